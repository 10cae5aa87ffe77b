//! A subtask of a plan that is being followed, with its state.

use archon_run::GrantedLease;
use archon_types::{
    ApprovalRequest, CallId, CommandId, Effect, Json, QuestionKind, RunId, SubTask, SubTaskId, SubTaskStatus,
    Timestamp, ToolResult,
};
use serde::{Deserialize, Serialize};

/// A subtask with its position in the plan and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanNode {
    /// The subtask as planned.
    pub subtask: Box<SubTask>,
    /// The command id that all calls of the subtask have.
    pub command: CommandId,
    /// State of the subtask.
    pub state: NodeState,
    /// Number of dependencies that are not done.
    pub(super) waiting_for: u32,
    /// Expected time in ms from the start of this subtask to the end of the plan, along the longest path.
    pub rank: u64,
    /// Number of calls that have ended, which is also the index of the next call.
    pub calls: u32,
    /// Number of starts of the current call. It is more than 1 if a start was cut off.
    #[serde(default)]
    pub starts: u32,
    /// Number of failures with the current tool.
    pub failures: u32,
    /// Index of the current tool: 0 is the subtask's own tool, higher indexes are its fallback tools.
    pub(super) tool: usize,
    /// Result of the last call.
    pub result: Option<Box<ToolResult>>,
    /// True if many other subtasks depend on this one.
    pub(super) is_central: bool,
    /// True if a person approved the start of the subtask.
    pub is_approved: bool,
    /// The [hash](archon_types::binding) of the tool, the arguments and the files of the call that a person approved,
    /// after the tool had asked for an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<String>,
    /// Arguments that a person gave instead of the planned ones, for the current tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Json>,
    /// The source of the open question.
    #[serde(default)]
    pub(super) asked_by: AskedBy,
    /// The call whose child run has a log, as a `ChildRunCreated` record says. Reset to `None` when a person allows a
    /// second start of that child run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) begun: Option<CallId>,
    /// For an expanded loop: for each item, the subtasks that may have the item's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) items: Option<Vec<Vec<SubTaskId>>>,
    pub(crate) money: GrantedLease,
    /// Indexes of the resources that the subtask uses.
    pub(super) resources: Vec<u32>,
    /// Start time of the last call.
    pub started_at: Option<Timestamp>,
    /// End time of the last call.
    pub ended_at: Option<Timestamp>,
}

/// The source of a question about a subtask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AskedBy {
    /// The plan asks about the start of the subtask, its result, or its failure.
    #[default]
    Plan,
    /// The tool of the subtask asks about a call with this binding.
    Tool(String),
    /// The plan asks about a call in doubt. If a person approves a second execution, the approval has this binding.
    Doubt(String),
    /// The child run of the subtask asks. The answer goes to the child run, which is resumed.
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

/// The state of a subtask of a plan that is being followed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeState {
    /// The subtask waits for its dependencies.
    Waiting,
    /// The subtask may start.
    Ready,
    /// The subtask failed and is tried again at a set time.
    Delayed {
        /// Time of the next attempt.
        until: Timestamp,
    },
    /// A person must be asked before the subtask starts.
    Gated,
    /// A person was asked about the start or the call of the subtask.
    Asked,
    /// The subtask is running.
    Running {
        /// Effect of a second execution of the call.
        effect: Effect,
        /// Id of the child run that executes the subtask; `None` for a tool call.
        child: Option<RunId>,
    },
    /// The call is in doubt: it was cut off and may have taken effect, so a person must be asked about a
    /// second run.
    InDoubt,
    /// The subtask has a result, and a person must be asked about it.
    ToReview,
    /// A person was asked about the subtask's result.
    Reviewed,
    /// The subtask failed, and a person must be asked how to continue.
    ToDecide,
    /// The subtask failed, and a person was asked how to continue.
    Deciding,
    /// The subtask is done.
    Done,
    /// The subtask was skipped because its condition did not hold.
    Skipped,
    /// The subtask failed, and the plan continues without it.
    DoneWithout,
    /// The subtask failed, and a replan is requested because of it.
    Troubled,
    /// The subtask has failed finally.
    Failed,
    /// A dependency of the subtask has failed finally.
    Unreachable,
    /// A replan removed or replaced the subtask.
    Dropped,
}

impl PlanNode {
    /// Returns the current call, or the last one if the subtask is over.
    pub fn call(&self) -> CallId {
        let number = if self.is_over() { self.calls.saturating_sub(1) } else { self.calls };
        CallId::new(self.command, number)
    }

    /// Records the end of the current call.
    pub(super) fn end_call(&mut self, result: Option<ToolResult>, at: Timestamp) {
        (self.calls, self.starts) = (self.calls + 1, 0);
        (self.result, self.ended_at) = (result.map(Box::new), Some(at));
    }

    /// Returns true if the child run of the current call has a log. Returns false again after a person allowed a
    /// second start of this child run.
    pub fn is_begun(&self) -> bool {
        self.begun == Some(self.call())
    }

    /// Returns the current tool; `None` if the subtask names no tool.
    pub fn tool(&self) -> Option<&str> {
        match self.tool.checked_sub(1) {
            None => self.subtask.tool_name(),
            Some(place) => self.subtask.rules.fallback_tools.get(place).map(String::as_str),
        }
    }

    /// Returns true if the state of the subtask cannot change in this plan any more.
    pub fn is_over(&self) -> bool {
        use NodeState::{Done, DoneWithout, Dropped, Failed, Skipped, Unreachable};
        matches!(self.state, Done | Skipped | DoneWithout | Failed | Unreachable | Dropped)
    }

    /// Returns true if the subtasks that depend on this one may start.
    pub fn lets_go(&self) -> bool {
        matches!(self.state, NodeState::Done | NodeState::Skipped | NodeState::DoneWithout)
    }

    /// Returns the status of the subtask in a [`Task`](archon_types::Task).
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
        use SubTaskStatus::{Blocked, Completed, Executing, Failed, Pending};
        let planned = SubTask::clone(&self.subtask).after(self.subtask.dependencies().to_vec());
        // A status that cannot follow changes nothing.
        let step = |subtask: SubTask, to| subtask.with_status(to).unwrap_or(subtask);
        let status = self.status();
        if status == Blocked {
            return planned;
        }
        let pending = step(planned, Pending);
        if status == Pending {
            return pending;
        }
        let executing = step(pending, Executing);
        match (&self.result, status) {
            (Some(result), Completed | Failed) => {
                executing.with_result(ToolResult::clone(result)).unwrap_or(executing)
            }
            (None, Completed | Failed) => step(executing, status),
            _ => executing,
        }
    }
}
