//! One piece of work, and the hands that it is in.

use archon_types::{AgentId, CallId, CommandId, FormProblem, Loan, SubTask, Timestamp};
use serde::{Deserialize, Serialize};

use crate::response::Response;

/// A piece of work of a team: a subtask, or what the team needs besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// Its place in the run; its delegations are calls of this command.
    pub command: CommandId,
    /// What it is for.
    pub purpose: Purpose,
    /// The role that it takes.
    pub role: Option<String>,
    /// The tool that it takes.
    pub tool: Option<String>,
    /// The only one who may do it.
    pub to: Option<AgentId>,
    /// Who may not.
    pub not: Vec<AgentId>,
    /// Through whose hands it came.
    pub chain: Vec<AgentId>,
    /// Where it stands.
    pub state: JobState,
    /// How many are to do it.
    pub wanted: u32,
    /// Who had it, and has it.
    pub hands: Vec<Hand>,
    /// What came of it.
    pub response: Option<Response>,
    /// Whoever leads does it, because nobody else can.
    pub by_lead: bool,
    /// Who made the best offer.
    pub(super) preferred: Option<AgentId>,
    pub(super) bids: Vec<CommandId>,
    pub(super) asked: bool,
    /// When a person was to answer at the latest.
    #[serde(default)]
    pub(super) expires: Option<Timestamp>,
}

/// What a job is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Purpose {
    /// A step of the plan.
    Subtask {
        /// The step.
        subtask: Box<SubTask>,
    },
    /// Something that a member asked others for.
    Request {
        /// The delegation of who asked.
        by: CallId,
        /// What is to be done.
        task: String,
    },
    /// An offer for a job.
    Bid {
        /// The job.
        job: CommandId,
    },
    /// How a member came to its claim.
    Explain {
        /// The contradiction.
        conflict: u64,
    },
    /// Who is right.
    Judge {
        /// The contradiction.
        conflict: u64,
    },
    /// The same question, to somebody else.
    Verify {
        /// The contradiction.
        conflict: u64,
    },
    /// The work of a job again, with what was settled.
    Recompute {
        /// The contradiction.
        conflict: u64,
        /// The job.
        job: CommandId,
    },
    /// The answer, put together.
    Synthesize {
        /// From 0.
        round: u32,
        /// What the reviewer said of the last one.
        notes: Option<String>,
        /// What of the last one did not fit the form that the answer must have.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        misfits: Vec<FormProblem>,
    },
    /// Whether the answer is good.
    Review {
        /// Which answer.
        round: u32,
    },
    /// A person decides about a contradiction.
    AskHuman {
        /// The contradiction.
        conflict: u64,
    },
    /// A person decides whether the run goes on after so many failures.
    Escalate {
        /// How many.
        failures: u32,
    },
}

/// Where a job stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum JobState {
    /// For others.
    Waiting,
    /// For offers.
    Bidding,
    /// It can be given to somebody, or somebody has it.
    Open,
    /// Those who did it contradict each other.
    Disputed,
    /// Done.
    Done,
    /// Nobody did it, and another plan is to take its place.
    Lost {
        /// Why.
        reason: String,
    },
    /// Another plan took its place.
    Replaced,
    /// It will not be done.
    Failed {
        /// Why.
        reason: String,
    },
}

/// One delegation of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Hand {
    /// Who.
    pub member: AgentId,
    /// How far.
    pub state: HandState,
    /// When it was given the job.
    pub since: Timestamp,
    /// When it was heard last.
    pub heard: Timestamp,
    /// What it answered.
    pub response: Option<Response>,
    /// How many had answered the same job before it, in the order of the log, once it has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
    /// Why it failed.
    pub problem: Option<String>,
    /// Its run had a log, and nobody agreed to begin it again.
    #[serde(default)]
    pub is_begun: bool,
    /// A person is asked whether its run, whose log is lost, is to begin again.
    #[serde(default)]
    pub(super) is_doubted: bool,
    /// What it asked others for, while it waits for that and nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) waits_for: Vec<CommandId>,
    pub(super) money: Loan,
}

/// How far a delegation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HandState {
    /// Chosen, not begun.
    Chosen,
    /// At work.
    Running,
    /// Waits for a person.
    Asked,
    /// Waits for others of the team, who wait for a person: its run is stopped.
    Waiting,
    /// Answered.
    Answered,
    /// Failed.
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

    /// The delegation at `index`.
    pub fn call(&self, index: usize) -> CallId {
        CallId::new(self.command, u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Whether nothing more becomes of it.
    pub fn is_over(&self) -> bool {
        matches!(self.state, JobState::Done | JobState::Replaced | JobState::Failed { .. })
    }

    /// The subtask that it is, if it is one.
    pub fn subtask(&self) -> Option<&SubTask> {
        match &self.purpose {
            Purpose::Subtask { subtask } => Some(subtask),
            _ => None,
        }
    }

    /// Whether a person does it.
    pub(super) fn is_question(&self) -> bool {
        matches!(self.purpose, Purpose::AskHuman { .. } | Purpose::Escalate { .. })
    }

    pub(super) fn count(&self, states: &[HandState]) -> usize {
        self.hands.iter().filter(|hand| states.contains(&hand.state)).count()
    }

    pub(super) fn under_way(&self) -> usize {
        self.count(&[HandState::Chosen, HandState::Running, HandState::Asked, HandState::Waiting])
    }

    /// Delegations that came to nothing.
    pub(super) fn failures(&self) -> usize {
        self.count(&[HandState::Failed, HandState::Taken])
    }

    /// Why the last one came to nothing.
    pub(super) fn last_problem(&self) -> String {
        self.hands
            .iter()
            .rev()
            .find_map(|hand| hand.problem.clone())
            .unwrap_or_else(|| "nobody did it".into())
    }
}

impl Hand {
    pub(super) fn new(member: AgentId, at: Timestamp) -> Self {
        Self {
            member,
            state: HandState::Chosen,
            since: at,
            heard: at,
            response: None,
            place: None,
            problem: None,
            is_begun: false,
            is_doubted: false,
            waits_for: Vec::new(),
            money: Loan::default(),
        }
    }

    /// Whether it is not over.
    pub fn is_open(&self) -> bool {
        use HandState::{Asked, Chosen, Running, Waiting};
        matches!(self.state, Chosen | Running | Asked | Waiting)
    }
}
