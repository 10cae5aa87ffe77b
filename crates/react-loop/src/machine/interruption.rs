//! Tracks the point at which a person stopped the run, so that the next run can tell the model.

use archon_types::{Answer, Interruption, ModelErrorCode, RecordBody, StopReason, ToolResult, metadata};
use serde::{Deserialize, Serialize};

/// Facts about a run that determine the kind of an interruption, folded from the same records as the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Interrupted {
    /// True if the model was asked in this run.
    asked: bool,
    /// True if a call was started, refused or ended since the latest request to the model.
    acting: bool,
    /// True if one of these calls was not permitted.
    denied: bool,
    by: Option<Interruption>,
}

impl Interrupted {
    pub(super) fn see(&mut self, body: &RecordBody) {
        match body {
            RecordBody::ModelCallStarted { .. } => {
                (self.asked, self.acting, self.denied) = (true, false, false)
            }
            RecordBody::ModelCallFinished { message, .. } if message.stop_reason == StopReason::Aborted => {
                self.stop();
            }
            RecordBody::ModelCallFailed { failure, .. } if failure.code == ModelErrorCode::Cancelled => {
                self.stop()
            }
            RecordBody::ToolCallStarted { .. } => self.acting = true,
            RecordBody::ToolCallFinished { result, .. } | RecordBody::ToolCallRefused { result, .. } => {
                self.acting = true;
                self.denied |= is_denied(result);
            }
            RecordBody::ApprovalAnswered { answer: Answer::Cancel { .. }, .. } => self.denied = true,
            RecordBody::CancelRequested { .. } => self.stop(),
            RecordBody::Resumed => self.by = None,
            _ => {}
        }
    }

    /// Returns the kind of interruption; `None` if the run was not stopped.
    pub(super) fn by(self) -> Option<Interruption> {
        self.by
    }

    /// Records that a person's refusal ends the run.
    pub(super) fn denied(&mut self) {
        self.denied = true;
        self.stop();
    }

    fn stop(&mut self) {
        let by = match self {
            Self { denied: true, .. } => Interruption::PermissionDenial,
            Self { acting: true, .. } => Interruption::ToolUse,
            Self { asked: true, .. } => Interruption::Request,
            _ => Interruption::Cancelled,
        };
        self.by.get_or_insert(by);
    }
}

fn is_denied(result: &ToolResult) -> bool {
    result.metadata.get(metadata::ERROR_TYPE).is_some_and(|kind| kind == "permission_denied")
}
