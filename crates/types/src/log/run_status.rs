//! The status of a run, and the states of an agent and of its loop.

use serde::{Deserialize, Serialize};

use super::outcome::OutcomeStatus;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// The run has started but done nothing yet, for instance a fork that was not resumed.
    Created,
    /// A process works on the run, as far as the journal can tell.
    Running,
    /// The run has not ended and no process works on it, for instance because its process died.
    Interrupted,
    /// The run waits for a person or a timer.
    Suspended,
    /// The run has a final answer.
    Finished,
    /// The run ended with an error.
    Failed,
    /// The run reached one of its limits.
    Limit,
    /// The run was cancelled.
    Cancelled,
    /// The log is damaged, or another version wrote it.
    Unreadable,
}

impl From<OutcomeStatus> for RunStatus {
    fn from(status: OutcomeStatus) -> Self {
        match status {
            OutcomeStatus::Finished => Self::Finished,
            OutcomeStatus::Failed => Self::Failed,
            OutcomeStatus::Limit(_) => Self::Limit,
            OutcomeStatus::Cancelled => Self::Cancelled,
            OutcomeStatus::Suspended => Self::Suspended,
        }
    }
}

impl RunStatus {
    /// Returns true if the run has ended.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Limit | Self::Cancelled)
    }

    /// Returns true if the run is under way: a process works on it, it waits, or it was interrupted.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::Running | Self::Suspended | Self::Interrupted)
    }
}

crate::values::named! { RunStatus:
    Created = "created",
    Running = "running",
    Interrupted = "interrupted",
    Suspended = "suspended",
    Finished = "finished",
    Failed = "failed",
    Limit = "limit",
    Cancelled = "cancelled",
    Unreadable = "unreadable",
}

/// The state of a planning agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AgentState {
    /// The agent has not started.
    #[default]
    Idle,
    /// The agent makes a plan.
    Planning,
    /// Subtasks are being executed.
    Executing,
    /// The plan is being changed.
    Replanning,
    /// The agent has a final answer.
    Finished,
    /// The agent ended without an answer.
    Error,
}

/// The state of a ReAct loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReactState {
    /// The loop has not started.
    #[default]
    Idle,
    /// The model is being asked.
    Thinking,
    /// Tools are running.
    Acting,
    /// The tool results are about to be given to the model.
    Observing,
    /// The loop has a final answer.
    Finished,
    /// The loop ended without an answer.
    Error,
}

impl ReactState {
    /// Returns true if the loop may go from this state to `next`.
    ///
    /// An answer that cannot be parsed becomes an observation, not an error, so `Thinking` may go to
    /// `Observing`. Repeated failures and a cancel lead to `Error`. Every state that is not final may go to
    /// `Finished`, for instance at a limit.
    pub fn may_become(self, next: Self) -> bool {
        use ReactState::{Acting, Error, Finished, Idle, Observing, Thinking};
        matches!(
            (self, next),
            (Idle | Acting | Observing, Thinking)
                | (Thinking, Acting)
                | (Thinking | Acting, Observing)
                | (Idle | Thinking | Acting | Observing, Finished | Error)
        )
    }
}
