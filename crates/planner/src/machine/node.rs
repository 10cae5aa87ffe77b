//! One subtask of a plan that is followed, and how far it is.

use archon_types::{
    ApprovalRequest, CallId, CommandId, Effect, Json, Loan, QuestionKind, RunId, SubTask, SubTaskId,
    SubTaskStatus, Timestamp, ToolResult,
};
use serde::{Deserialize, Serialize};

/// A subtask with its place in the plan and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanNode {
    /// The subtask as it was planned.
    pub subtask: Box<SubTask>,
    /// What its calls are named by.
    pub command: CommandId,
    /// How far it is.
    pub state: NodeState,
    /// Subtasks that it still waits for.
    pub(super) waiting_for: u32,
    /// The longest way from its start to the end of the plan, milliseconds as far as they are expected.
    pub rank: u64,
    /// Calls that have ended; the number of the next one.
    pub calls: u32,
    /// How often the call of now was started: more than once where one was cut off.
    #[serde(default)]
    pub starts: u32,
    /// How often the tool of now has failed.
    pub failures: u32,
    /// Which of its tools is tried: 0 its own, then those that stand in for it.
    pub(super) tool: usize,
    /// What came of the last call.
    pub result: Option<Box<ToolResult>>,
    /// Many others wait for it.
    pub(super) is_central: bool,
    /// A person let it begin.
    pub is_approved: bool,
    /// To what a person agreed: the [binding](archon_types::binding) of a call that its tool asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<String>,
    /// The arguments that a person wants in the place of the plan's, with which the tool of now is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Json>,
    /// Who has the open question.
    #[serde(default)]
    pub(super) asked_by: AskedBy,
    /// The call whose run had a log, unless a person agreed to begin it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) begun: Option<CallId>,
    /// Of a loop whose list is known: for each item those that may have its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) items: Option<Vec<Vec<SubTaskId>>>,
    pub(crate) money: Loan,
    /// Places of the resources that it uses.
    pub(super) resources: Vec<u32>,
    /// When its last call began.
    pub started_at: Option<Timestamp>,
    /// When its last call ended.
    pub ended_at: Option<Timestamp>,
}

/// Who asks a person about a subtask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AskedBy {
    /// The plan: may it begin, is its result good.
    #[default]
    Plan,
    /// Its tool, about a call with this binding.
    Tool(String),
    /// The plan, about a call that was cut off and may have done its work; with the binding of a yes to a second run.
    Doubt(String),
    /// The run that does it. The answer goes there, and the run is looked at again.
    Below,
}

impl AskedBy {
    pub(super) fn of(request: &ApprovalRequest) -> Self {
        match (request.path.is_empty(), request.binding.as_str()) {
            (false, _) => Self::Below,
            (true, binding) if request.kind == QuestionKind::InDoubt => Self::Doubt(binding.to_owned()),
            (true, "") => Self::Plan,
            (true, binding) => Self::Tool(binding.to_owned()),
        }
    }
}

/// How far a subtask of a followed plan is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum NodeState {
    /// It waits for others.
    Waiting,
    /// It may begin.
    Ready,
    /// It failed and is tried again at this time.
    Delayed {
        /// When.
        until: Timestamp,
    },
    /// A person has to be asked.
    Gated,
    /// A person was asked.
    Asked,
    /// It is being done.
    Running {
        /// What a second run would do.
        effect: Effect,
        /// The run that does it, if it is one.
        child: Option<RunId>,
    },
    /// It was cut off and may have done its work: a person has to be asked whether it is to run again.
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
    /// It was not done and nobody waits for it: its condition did not hold.
    Skipped,
    /// It failed, and the others go on without it.
    DoneWithout,
    /// It failed, and another plan is wanted because of it.
    Troubled,
    /// It failed for good.
    Failed,
    /// What it depends on failed for good.
    Unreachable,
    /// Another plan does not have it.
    Dropped,
}

impl PlanNode {
    /// The call that does it, or did it if it has ended.
    pub fn call(&self) -> CallId {
        let number = if self.is_over() { self.calls.saturating_sub(1) } else { self.calls };
        CallId::new(self.command, number)
    }

    /// Whether the run of its call had a log, and nobody agreed to begin it again.
    pub fn is_begun(&self) -> bool {
        self.begun == Some(self.call())
    }

    /// The tool that does it, if it names one.
    pub fn tool(&self) -> Option<&str> {
        match self.tool.checked_sub(1) {
            None => self.subtask.tool_name(),
            Some(place) => self.subtask.rules.fallback_tools.get(place).map(String::as_str),
        }
    }

    /// Whether nothing more happens to it in this plan.
    pub fn is_over(&self) -> bool {
        use NodeState::{Done, DoneWithout, Dropped, Failed, Skipped, Unreachable};
        matches!(self.state, Done | Skipped | DoneWithout | Failed | Unreachable | Dropped)
    }

    /// Whether those that depend on it may begin.
    pub fn lets_go(&self) -> bool {
        matches!(self.state, NodeState::Done | NodeState::Skipped | NodeState::DoneWithout)
    }

    /// How far it is, in the words of a task.
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

    /// The subtask with its status and result.
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
