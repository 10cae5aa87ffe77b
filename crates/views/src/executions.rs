//! The state of each tool call of a run, computed from the log and not stored.

use std::collections::BTreeMap;

use archon_types::{CallId, RecordBody, StopReason, ToolResult};
use serde::{Deserialize, Serialize};

/// The state of a tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ToolExecutionState {
    /// The call does not exist, or does not exist yet.
    #[default]
    Idle,
    /// The tool and its arguments are being checked.
    Validating,
    /// A person is asked about the call.
    RequestingPermission,
    /// The call is being executed.
    Executing,
    /// The call succeeded; the model has not yet got the result.
    ProcessingResult,
    /// The model has got the result.
    Completed,
    /// The call failed or was refused; the model has not yet got the result.
    Failed,
}

impl ToolExecutionState {
    /// Returns true if the state may change to `next`. A call that runs another agent may ask a person while
    /// it is executed.
    pub fn may_become(self, next: Self) -> bool {
        use ToolExecutionState::{
            Completed, Executing, Failed, Idle, ProcessingResult, RequestingPermission, Validating,
        };
        matches!(
            (self, next),
            (Idle, Validating)
                | (Validating, RequestingPermission | Executing | Failed)
                | (RequestingPermission, Executing | Failed)
                | (Executing, RequestingPermission | ProcessingResult | Failed)
                | (ProcessingResult | Failed, Completed)
        )
    }
}

/// The states of a run's tool calls. [`see`](Self::see) takes each record in order and returns the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolExecutions {
    /// The tool calls of the model's latest answer.
    states: BTreeMap<CallId, ToolExecutionState>,
}

impl ToolExecutions {
    /// Takes the next record of the run, and returns the changes of state that the record causes, in order. Each change
    /// is a call with its new state. One record can change the state of a call several times.
    pub fn see(&mut self, body: &RecordBody) -> Vec<(CallId, ToolExecutionState)> {
        use ToolExecutionState::{Executing, RequestingPermission, Validating};
        let mut changes = Vec::new();
        match body {
            RecordBody::ModelCallFinished { command, message, .. }
                if !matches!(
                    message.stop_reason,
                    StopReason::Aborted | StopReason::Error | StopReason::Refusal
                ) =>
            {
                self.states.clear();
                for (index, _) in message.tool_calls().enumerate() {
                    let index = u32::try_from(index).unwrap_or(u32::MAX);
                    self.enter(CallId::new(*command, index), Validating, &mut changes);
                }
            }
            RecordBody::ApprovalRequested { call, .. } => {
                self.enter(*call, RequestingPermission, &mut changes)
            }
            RecordBody::ToolCallStarted { call, .. } => self.enter(*call, Executing, &mut changes),
            RecordBody::ToolCallFinished { call, result } => {
                // A person's reply in place of the tool counts as an execution.
                self.enter(*call, Executing, &mut changes);
                self.ended(*call, result, &mut changes);
            }
            RecordBody::ToolCallRefused { call, result } => self.ended(*call, result, &mut changes),
            _ => {}
        }
        changes
    }

    /// Returns the state of a call.
    pub fn state(&self, call: CallId) -> ToolExecutionState {
        self.states.get(&call).copied().unwrap_or_default()
    }

    /// Ends a call. The results of a turn reach the model together, so the last result completes all calls.
    fn ended(&mut self, call: CallId, result: &ToolResult, changes: &mut Vec<(CallId, ToolExecutionState)>) {
        use ToolExecutionState::{Completed, Failed, ProcessingResult};
        let has_failed = result.is_error() || self.state(call) != ToolExecutionState::Executing;
        self.enter(call, if has_failed { Failed } else { ProcessingResult }, changes);
        if self.states.values().all(|state| matches!(state, Failed | ProcessingResult)) {
            for call in self.states.keys().copied().collect::<Vec<_>>() {
                self.enter(call, Completed, changes);
            }
        }
    }

    fn enter(
        &mut self,
        call: CallId,
        next: ToolExecutionState,
        changes: &mut Vec<(CallId, ToolExecutionState)>,
    ) {
        if self.state(call).may_become(next) {
            self.states.insert(call, next);
            changes.push((call, next));
        }
    }
}
