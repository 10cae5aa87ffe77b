//! A subtask of a followed plan with its state.

use archon_run::GrantedLease;
use archon_types::{
    ApprovalRequest, CallId, CommandId, Effect, Json, QuestionKind, RunId, SubTask, SubTaskId, SubTaskStatus,
    Timestamp, ToolResult,
};
use serde::{Deserialize, Serialize};

/// A subtask with its place in the plan and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanNode {
    /// The subtask as planned.
    pub subtask: Box<SubTask>,
    /// The command id of its calls.
    pub command: CommandId,
    /// The state of the subtask.
    pub state: NodeState,
    /// Number of dependencies that are not done.
    pub(super) waiting_for: u32,
    /// The longest path from its start to the end of the plan, in expected ms.
    pub rank: u64,
    /// Number of calls that have ended, which is also the index of the next call.
    pub calls: u32,
    /// Number of starts of the current call; more than one if a start was cut off.
    #[serde(default)]
    pub starts: u32,
    /// Number of failures of the current tool.
    pub failures: u32,
    /// Index of the current tool: 0 is its own, then its fallback tools.
    pub(super) tool: usize,
    /// Result of the last call.
    pub result: Option<Box<ToolResult>>,
    /// True if many other subtasks depend on it.
    pub(super) is_central: bool,
    /// True if a person approved its start.
    pub is_approved: bool,
    /// The [binding](archon_types::binding) of a call that its tool asked about and a person approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<String>,
    /// Arguments from a person in place of the planned ones, for the current tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Json>,
    /// The source of the open question.
    #[serde(default)]
    pub(super) asked_by: AskedBy,
    /// The call whose child run had a log, unless a person agreed to begin it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) begun: Option<CallId>,
    /// For an expanded loop: for each item the subtasks that may have its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) items: Option<Vec<Vec<SubTaskId>>>,
    pub(crate) money: GrantedLease,
    /// Indexes of the resources that it uses.
    pub(super) resources: Vec<u32>,
    /// Start time of its last call.
    pub started_at: Option<Timestamp>,
    /// End time of its last call.
    pub ended_at: Option<Timestamp>,
}

/// The source of a question about a subtask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AskedBy {
    /// The plan: to start the subtask, to accept its result, or to decide after a failure.
    #[default]
    Plan,
    /// The tool of the subtask, about a call with this binding.
    Tool(String),
    /// The plan, about a call in doubt; with the binding of a yes to a second run.
    Doubt(String),
    /// The child run of the subtask. The answer goes there, and the child run is resumed.
    Below,
}

impl AskedBy {
    pub(super) fn of(request: &ApprovalRequest) -> Self {
        match (request.call_path.is_empty(), request.binding.as_str()) {
            (false, _) => Self::Below,
            (true, binding) if request.kind == QuestionKind::InDoubt => Self::Doubt(binding.to_owned()),
            (true, "") => Self::Plan,
            (true, binding) => Self::Tool(binding.to_owned()),
        }
    }
}

/// The state of a subtask of a followed plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeState {
    /// It waits for its dependencies.
    Waiting,
    /// It may start.
    Ready,
    /// It failed and is retried at this time.
    Delayed {
        /// The time of the retry.
        until: Timestamp,
    },
    /// A person has to be asked before it starts.
    Gated,
    /// A person was asked about its call.
    Asked,
    /// It is running.
    Running {
        /// The effect of a second execution.
        effect: Effect,
        /// The child run that executes it, if there is one.
        child: Option<RunId>,
    },
    /// In doubt: it was cut off and may have taken effect, so a person has to be asked about a second run.
    InDoubt,
    /// It is done, and a person has to be asked about its result.
    ToReview,
    /// A person was asked about its result.
    Reviewed,
    /// It failed, and a person has to be asked what follows.
    ToDecide,
    /// It failed, and a person was asked what follows.
    Deciding,
    /// It is done.
    Done,
    /// It was skipped because its condition did not hold.
    Skipped,
    /// It failed, and the plan goes on without it.
    DoneWithout,
    /// It failed, and another plan is requested because of it.
    Troubled,
    /// It failed for good.
    Failed,
    /// A dependency failed for good.
    Unreachable,
    /// Another plan removed it.
    Dropped,
}

impl PlanNode {
    /// Returns the current call, or the last one if the subtask is over.
    pub fn call(&self) -> CallId {
        let number = if self.is_over() { self.calls.saturating_sub(1) } else { self.calls };
        CallId::new(self.command, number)
    }

    /// Returns true if the current call's child run had a log, and nobody agreed to begin it again.
    pub fn is_begun(&self) -> bool {
        self.begun == Some(self.call())
    }

    /// Returns the current tool, if the subtask names one.
    pub fn tool(&self) -> Option<&str> {
        match self.tool.checked_sub(1) {
            None => self.subtask.tool_name(),
            Some(place) => self.subtask.rules.fallback_tools.get(place).map(String::as_str),
        }
    }

    /// Returns true if nothing more happens to it in this plan.
    pub fn is_over(&self) -> bool {
        use NodeState::{Done, DoneWithout, Dropped, Failed, Skipped, Unreachable};
        matches!(self.state, Done | Skipped | DoneWithout | Failed | Unreachable | Dropped)
    }

    /// Returns true if the subtasks that depend on it may start.
    pub fn lets_go(&self) -> bool {
        matches!(self.state, NodeState::Done | NodeState::Skipped | NodeState::DoneWithout)
    }

    /// Returns its status in terms of a task.
    pub fn status(&self) -> SubTaskStatus {
        match &self.state {
            NodeState::Waiting | NodeState::Unreachable | NodeState::Dropped => {
                SubTaskStatus::initial(self.subtask.dependencies())
            }
            NodeState::Ready | NodeState::Delayed { .. } | NodeState::Gated => SubTaskStatus::Pending,
            NodeState::Asked if self.started_at.is_none() => SubTaskStatus::Pending,
            NodeState::Asked | NodeState::InDoubt | NodeState::Running { .. } => SubTaskStatus::Executing,
            NodeState::ToReview | NodeState::Reviewed | NodeState::Done | NodeState::Skipped => {
                SubTaskStatus::Completed
            }
            NodeState::ToDecide | NodeState::Deciding => SubTaskStatus::Executing,
            NodeState::DoneWithout | NodeState::Troubled | NodeState::Failed => SubTaskStatus::Failed,
        }
    }

    /// Returns the subtask with its status and result.
    pub fn as_subtask(&self) -> SubTask {
        let fresh = SubTask::clone(&self.subtask).after(self.subtask.dependencies().to_vec());
        let step = |subtask: SubTask, to: SubTaskStatus| {
            if subtask.status() == to { subtask } else { subtask.with_status(to).unwrap_or(subtask) }
        };
        let status = self.status();
        if status == fresh.status() {
            return fresh;
        }
        let pending = step(fresh, SubTaskStatus::Pending);
        if status == SubTaskStatus::Pending {
            return pending;
        }
        let executing = step(pending, SubTaskStatus::Executing);
        match (&self.result, status) {
            (_, SubTaskStatus::Executing) => executing,
            (Some(result), SubTaskStatus::Completed | SubTaskStatus::Failed) => {
                executing.with_result(ToolResult::clone(result)).unwrap_or(executing)
            }
            (None, status) => step(executing, status),
            _ => executing,
        }
    }
}
