//! Jobs of a team, and their delegations.

use archon_run::GrantedLease;
use archon_types::{AgentId, CallId, CommandId, SchemaProblem, SubTask, Timestamp};
use serde::{Deserialize, Serialize};

use crate::response::Response;

/// A piece of work: a subtask, or something that the team needs besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// Its number in the run; its delegations are calls of this command.
    pub command: CommandId,
    /// The purpose.
    pub purpose: Purpose,
    /// The role that the member must have.
    pub role: Option<String>,
    /// The tool that the member must have.
    pub tool: Option<String>,
    /// The only member that may do it.
    pub to: Option<AgentId>,
    /// Members that may not do it.
    pub not: Vec<AgentId>,
    /// The chain of delegations that led to it.
    pub chain: Vec<AgentId>,
    /// Its state.
    pub state: JobState,
    /// Number of members that are to do it.
    pub wanted: u32,
    /// Its delegations, past and present.
    pub hands: Vec<Assignment>,
    /// The response, once it is done.
    pub response: Option<Response>,
    /// The lead does it, because no member can.
    pub by_lead: bool,
    /// The member with the best offer.
    pub(super) preferred: Option<AgentId>,
    pub(super) bids: Vec<CommandId>,
    pub(super) asked: bool,
    /// The time at which the question to a person expires.
    #[serde(default)]
    pub(super) expires: Option<Timestamp>,
}

/// Purpose of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// A step of the plan.
    Subtask {
        /// The step.
        subtask: Box<SubTask>,
    },
    /// A member's request to another member.
    Request {
        /// The delegation of the asker.
        by: CallId,
        /// The task.
        task: String,
    },
    /// An offer for a job.
    Bid {
        /// The job.
        job: CommandId,
    },
    /// A member explains its claim.
    Explain {
        /// The contradiction.
        conflict: u64,
    },
    /// A judge decides which claim holds.
    Judge {
        /// The contradiction.
        conflict: u64,
    },
    /// Another member answers the same question.
    Verify {
        /// The contradiction.
        conflict: u64,
    },
    /// The work of a job is done again with the settled value.
    Recompute {
        /// The contradiction.
        conflict: u64,
        /// The job.
        job: CommandId,
    },
    /// The lead combines the answer.
    Synthesize {
        /// Number of the answer, from 0.
        round: u32,
        /// The reviewer's objection to the last answer.
        notes: Option<String>,
        /// The places where the last answer did not fit the schema.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        misfits: Vec<SchemaProblem>,
    },
    /// The reviewer checks the answer.
    Review {
        /// Number of the answer.
        round: u32,
    },
    /// A person decides about a contradiction.
    AskHuman {
        /// The contradiction.
        conflict: u64,
    },
    /// A person decides whether the run goes on after many failures.
    Escalate {
        /// Number of failures.
        failures: u32,
    },
}

/// State of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum JobState {
    /// It waits for other jobs.
    Waiting,
    /// It waits for offers.
    Bidding,
    /// It can be delegated, or is.
    Open,
    /// The answers to it contradict each other.
    Disputed,
    /// It is done.
    Done,
    /// All tries failed; another plan may replace it.
    Lost {
        /// The reason.
        reason: String,
    },
    /// Another plan replaced it.
    Replaced,
    /// It failed for good.
    Failed {
        /// The reason.
        reason: String,
    },
}

/// One delegation of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Assignment {
    /// The member.
    pub member: AgentId,
    /// Its state.
    pub state: AssignmentState,
    /// The time since which the work counts: its delegation, or the last resume or answer.
    pub since: Timestamp,
    /// Time of the last sign of life.
    pub heard: Timestamp,
    /// The answer.
    pub response: Option<Response>,
    /// Number of members that answered the same job before it, once it has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// The reason why it failed.
    pub problem: Option<String>,
    /// Its run has a log, which a resume needs; a person who allows it to begin again clears this.
    #[serde(default)]
    pub is_begun: bool,
    /// A person is asked whether the run, whose log is lost, may begin again.
    #[serde(default)]
    pub(super) is_doubted: bool,
    /// The requests that it waits for, if it waits for nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) waits_for: Vec<CommandId>,
    pub(super) money: GrantedLease,
}

/// State of a delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AssignmentState {
    /// It was chosen, and has not begun.
    Chosen,
    /// It is at work.
    Running,
    /// It waits for a person.
    Asked,
    /// It was dropped while it waits for other members, who wait for a person.
    Waiting,
    /// It has answered.
    Answered,
    /// It has failed.
    Failed,
    /// The work was taken back.
    Taken,
}

impl Job {
    pub(super) fn new(command: CommandId, purpose: Purpose) -> Self {
        Self {
            command,
            purpose,
            role: None,
            tool: None,
            to: None,
            not: Vec::new(),
            chain: Vec::new(),
            state: JobState::Open,
            wanted: 1,
            hands: Vec::new(),
            response: None,
            by_lead: false,
            preferred: None,
            bids: Vec::new(),
            asked: false,
            expires: None,
        }
    }

    /// The call of the delegation at `index`.
    pub fn call(&self, index: usize) -> CallId {
        CallId::new(self.command, u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Returns whether the job has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.state, JobState::Done | JobState::Replaced | JobState::Failed { .. })
    }

    /// Returns the subtask, if the job is one.
    pub fn subtask(&self) -> Option<&SubTask> {
        match &self.purpose {
            Purpose::Subtask { subtask } => Some(subtask),
            _ => None,
        }
    }

    /// Returns whether the job is a question to a person.
    pub(super) fn is_question(&self) -> bool {
        matches!(self.purpose, Purpose::AskHuman { .. } | Purpose::Escalate { .. })
    }

    pub(super) fn count(&self, states: &[AssignmentState]) -> usize {
        self.hands.iter().filter(|hand| states.contains(&hand.state)).count()
    }

    pub(super) fn under_way(&self) -> usize {
        self.count(&[
            AssignmentState::Chosen,
            AssignmentState::Running,
            AssignmentState::Asked,
            AssignmentState::Waiting,
        ])
    }

    /// Number of delegations that failed or were taken back.
    pub(super) fn failures(&self) -> usize {
        self.count(&[AssignmentState::Failed, AssignmentState::Taken])
    }

    /// The reason why the last delegation failed.
    pub(super) fn last_problem(&self) -> String {
        self.hands
            .iter()
            .rev()
            .find_map(|hand| hand.problem.clone())
            .unwrap_or_else(|| "nobody did it".into())
    }
}

impl Assignment {
    pub(super) fn new(member: AgentId, at: Timestamp) -> Self {
        Self {
            member,
            state: AssignmentState::Chosen,
            since: at,
            heard: at,
            response: None,
            place: None,
            problem: None,
            is_begun: false,
            is_doubted: false,
            waits_for: Vec::new(),
            money: GrantedLease::default(),
        }
    }

    /// Returns whether the delegation has not ended.
    pub fn is_open(&self) -> bool {
        use AssignmentState::{Asked, Chosen, Running, Waiting};
        matches!(self.state, Chosen | Running | Asked | Waiting)
    }

    /// Returns true if its run has begun and waits for a person or for other members.
    pub(crate) fn rests(&self) -> bool {
        matches!(self.state, AssignmentState::Asked | AssignmentState::Waiting)
    }
}
