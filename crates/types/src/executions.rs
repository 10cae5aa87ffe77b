//! How far each tool call of a run is: a view of its log, derived and never stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CallId, RecordBody, StopReason, ToolResult};

/// How far a tool call is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ToolExecutionState {
    /// There is no such call, or not yet.
    #[default]
    Idle,
    /// The tool and its arguments are looked at.
    Validating,
    /// A person is asked.
    RequestingPermission,
    /// It runs.
    Executing,
    /// It worked; the model has not got its result yet.
    ProcessingResult,
    /// The model has got its result.
    Completed,
    /// It failed or was refused; the model has not been told yet.
    Failed,
}

impl ToolExecutionState {
    /// Whether a call may go from here to `next`. One that is an agent may ask while it runs.
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

/// The states of a run's calls. Shown each of its records in order, as a watcher hears of them, it says what changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolExecutions {
    /// Calls of the turn that is under way, and of the one before.
    states: BTreeMap<CallId, ToolExecutionState>,
}

impl ToolExecutions {
    /// Takes the run's next record; returns the calls that it brought into another state, each state that they passed
    /// in order.
    pub fn see(&mut self, body: &RecordBody) -> Vec<(CallId, ToolExecutionState)> {
        use ToolExecutionState::{Executing, RequestingPermission, Validating};
        let mut changes = Vec::new();
        match body {
            RecordBody::ModelAnswered { command, message, .. }
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
            RecordBody::ToolAsked { call, .. } => self.enter(*call, RequestingPermission, &mut changes),
            RecordBody::ToolStarted { call, .. } => self.enter(*call, Executing, &mut changes),
            RecordBody::ToolFinished { call, result } => {
                // What a person said in the tool's place is a result like another.
                self.enter(*call, Executing, &mut changes);
                self.ended(*call, result, &mut changes);
            }
            RecordBody::ToolRefused { call, result } => self.ended(*call, result, &mut changes),
            _ => {}
        }
        changes
    }

    /// The call's state.
    pub fn state(&self, call: CallId) -> ToolExecutionState {
        self.states.get(&call).copied().unwrap_or_default()
    }

    /// The results of a turn reach the model together.
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
