//! Jobs of a team, and the delegations of jobs.

use archon_run::GrantedLease;
use archon_types::{AgentId, CallId, CommandId, SchemaProblem, SubTask, Timestamp};
use serde::{Deserialize, Serialize};

use crate::response::Response;

/// A unit of work of a team: a subtask of the plan, or work that the team adds, such as a review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// Command of the job in the run. The delegations of the job are calls of this command.
    pub command: CommandId,
    /// Purpose of the job.
    pub purpose: Purpose,
    /// The role that the member must have, if one is required.
    pub role: Option<String>,
    /// The tool that the member must have, if one is required.
    pub tool: Option<String>,
    /// The only member that may do the job; `None` if others may, too.
    pub to: Option<AgentId>,
    /// Members that may not do the job.
    pub not: Vec<AgentId>,
    /// The members that asked one another until the last one asked for this job, in this order. Empty for a job that no
    /// member asked for, such as a step of the plan.
    pub chain: Vec<AgentId>,
    /// State of the job.
    pub state: JobState,
    /// The number of members that get the job, each independently of the others.
    pub wanted: u32,
    /// Delegations of the job, open and ended.
    pub hands: Vec<Assignment>,
    /// The response, once the job is done.
    pub response: Option<Response>,
    /// True if the lead does the job: because it is the lead's own work, or because no member can do it.
    pub by_lead: bool,
    /// The member with the best offer.
    pub(super) preferred: Option<AgentId>,
    pub(super) bids: Vec<CommandId>,
    pub(super) asked: bool,
    /// The time at which the job's question to a person expires.
    #[serde(default)]
    pub(super) expires: Option<Timestamp>,
}

/// Purpose of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// A member does a step of the plan.
    Subtask {
        /// The subtask of the plan.
        subtask: Box<SubTask>,
    },
    /// A member asks another member to do a task.
    Request {
        /// The delegation that asks.
        by: CallId,
        /// Text of the task.
        task: String,
    },
    /// A member makes an offer for a job.
    Bid {
        /// Command of the job.
        job: CommandId,
    },
    /// A member explains its claim.
    Explain {
        /// The number of the contradiction in the run, from 0.
        conflict: u64,
    },
    /// A judge decides which claim is right.
    Judge {
        /// The number of the contradiction in the run, from 0.
        conflict: u64,
    },
    /// A member that made none of the claims answers the same question.
    Verify {
        /// The number of the contradiction in the run, from 0.
        conflict: u64,
    },
    /// A member does a job again with the settled value.
    Recompute {
        /// The number of the contradiction in the run, from 0.
        conflict: u64,
        /// Command of the job.
        job: CommandId,
    },
    /// The lead combines the contributions into the answer.
    Synthesize {
        /// Number of the round of review, from 0.
        round: u32,
        /// The reviewer's objection to the last answer.
        notes: Option<String>,
        /// The problems of the last answer with the schema.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        misfits: Vec<SchemaProblem>,
    },
    /// The reviewer checks the answer.
    Review {
        /// Number of the round of review, from 0.
        round: u32,
    },
    /// A person decides about a contradiction.
    AskHuman {
        /// The number of the contradiction in the run, from 0.
        conflict: u64,
    },
    /// A person decides whether the run continues after many failures.
    Escalate {
        /// Number of failed delegations.
        failures: u32,
    },
}

/// State of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum JobState {
    /// The job waits for other jobs.
    Waiting,
    /// The job waits for offers.
    Bidding,
    /// The job can be delegated, or its delegations are open.
    Open,
    /// The answers to the job contradict each other.
    Disputed,
    /// The job is done.
    Done,
    /// All attempts failed; a replan may replace the job.
    Lost {
        /// Reason of the last failure.
        reason: String,
    },
    /// A replan replaced the job.
    Replaced,
    /// The job has failed, and is not replanned.
    Failed {
        /// Reason of the failure.
        reason: String,
    },
}

/// One delegation of a job to a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Assignment {
    /// Id of the member.
    pub member: AgentId,
    /// State of the delegation.
    pub state: AssignmentState,
    /// Start of the delegation's timeout: the start of the member's run, the last resume of the team's run,
    /// or a person's last answer.
    pub since: Timestamp,
    /// Time of the last heartbeat.
    pub heard: Timestamp,
    /// The member's answer.
    pub response: Option<Response>,
    /// Number of members that answered the same job before this member; `None` until this member has
    /// answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// Reason why the delegation failed or was revoked.
    pub problem: Option<String>,
    /// True if the member's run has a log. A person who allows a restart resets this.
    #[serde(default)]
    pub is_begun: bool,
    /// True while a person is asked whether the run, whose log is lost, may start again.
    #[serde(default)]
    pub(super) is_doubted: bool,
    /// The requests for which the run waits, if the run waits for nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) waits_for: Vec<CommandId>,
    pub(super) money: GrantedLease,
}

/// State of a delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AssignmentState {
    /// The member was chosen, and its run has not started.
    Chosen,
    /// The member works.
    Running,
    /// The member waits for a person.
    Asked,
    /// The member's run was dropped while it waits for other members, who wait for a person.
    Waiting,
    /// The member has answered.
    Answered,
    /// The member's run has failed.
    Failed,
    /// The team revoked the work.
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

    /// Returns the call of the delegation with this index.
    pub fn call(&self, index: usize) -> CallId {
        CallId::new(self.command, u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Returns the delegations with their calls.
    pub(super) fn calls(&self) -> impl Iterator<Item = (CallId, &Assignment)> {
        let command = self.command;
        (0..).zip(&self.hands).map(move |(index, hand)| (CallId::new(command, index), hand))
    }

    /// Returns whether the job has ended.
    pub fn is_over(&self) -> bool {
        matches!(self.state, JobState::Done | JobState::Replaced | JobState::Failed { .. })
    }

    /// Returns the subtask, if the job does one.
    pub fn subtask(&self) -> Option<&SubTask> {
        match &self.purpose {
            Purpose::Subtask { subtask } => Some(subtask),
            _ => None,
        }
    }

    /// Returns the text of the response; empty if there is none.
    pub(crate) fn response_text(&self) -> String {
        self.response.as_ref().map(Response::text).unwrap_or_default()
    }

    /// Returns whether the job is a question to a person.
    pub(super) fn is_question(&self) -> bool {
        matches!(self.purpose, Purpose::AskHuman { .. } | Purpose::Escalate { .. })
    }

    pub(super) fn count(&self, states: &[AssignmentState]) -> usize {
        self.hands.iter().filter(|hand| states.contains(&hand.state)).count()
    }

    pub(super) fn under_way(&self) -> usize {
        self.hands.iter().filter(|hand| hand.is_open()).count()
    }

    /// Returns the number of delegations that failed or were revoked.
    pub(super) fn failures(&self) -> usize {
        self.hands.iter().filter(|hand| hand.has_failed()).count()
    }

    /// Returns the reason of the last failure of a delegation.
    pub(super) fn last_problem(&self) -> String {
        let last = self.hands.iter().rev().find_map(|hand| hand.problem.clone());
        last.unwrap_or_else(|| "nobody did it".into())
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

    /// Returns whether the delegation failed or was revoked.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.state, AssignmentState::Failed | AssignmentState::Taken)
    }

    /// Returns true if the member's run has started and waits for a person or for other members.
    pub(crate) fn is_suspended(&self) -> bool {
        matches!(self.state, AssignmentState::Asked | AssignmentState::Waiting)
    }
}
