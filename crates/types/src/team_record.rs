//! What a team's log holds that only a team has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, CallId, CommandId, FailureKind, Json, Member, PlanDiff, Role, RunConfig, Spending, SubTask,
    Task, TeamSettings, Timestamp,
};

/// An event in the life of a team's run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TeamRecord {
    /// How the team works, who is in it, and what the roles are; before the goal.
    Formed {
        /// How the team works.
        settings: TeamSettings,
        /// The roles.
        roles: Vec<Role>,
        /// The members, the one that leads left out.
        members: Vec<Member>,
        /// Who does what nobody else can, and puts the answer together, if somebody does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lead: Option<AgentId>,
    },
    /// What the team works with, for whoever resumes the run; before the goal.
    Given {
        /// What the runs of the members begin with, and of the one that leads, by their ids. Those are missing whose
        /// agents cannot tell.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        agents: BTreeMap<AgentId, RunConfig>,
        /// The plan, where it is fixed: no planner is asked for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Vec<SubTask>>,
        /// What the agents read beside the goal; see [`SessionPlace::background`](crate::SessionPlace::background).
        #[serde(default, skip_serializing_if = "String::is_empty")]
        background: String,
    },
    /// There is a plan.
    Planned {
        /// The goal with its subtasks.
        task: Box<Task>,
        /// What the planner's own questions took.
        #[serde(default, skip_serializing_if = "Spending::is_zero")]
        spent: Spending,
    },
    /// There is another plan for the steps that are lost and for what waits for them.
    Replanned {
        /// What is different.
        diff: Box<PlanDiff>,
        /// What the planner's own questions took.
        #[serde(default, skip_serializing_if = "Spending::is_zero")]
        spent: Spending,
    },
    /// There is none, or no other one for the steps that are lost.
    NotPlanned {
        /// Why.
        problem: String,
        /// Why there is no plan, where a program can tell: the planner's model gave no answer, for instance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<FailureKind>,
        /// What the planner's own questions took.
        #[serde(default, skip_serializing_if = "Spending::is_zero")]
        spent: Spending,
    },
    /// A member is about to be given work. Derived.
    Delegated {
        /// The delegation.
        call: CallId,
        /// Who gets the work.
        member: AgentId,
        /// Through whose hands it came, the first first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        chain: Vec<AgentId>,
        /// What it is, in a line.
        task: String,
    },
    /// Work cannot be given to anybody. Derived.
    Undeliverable {
        /// The work.
        command: CommandId,
        /// Why; a refused chain is named.
        reason: String,
    },
    /// A member gave a sign of life since the last such record.
    Beat {
        /// Its delegation.
        call: CallId,
        /// When it was heard last, Unix milliseconds.
        heard: Timestamp,
    },
    /// Work was taken from a member, and what it says about it from now on does not count. Derived.
    TakenBack {
        /// The delegation.
        call: CallId,
        /// Who had it.
        member: AgentId,
        /// Why.
        reason: String,
    },
    /// A member answered when its work had been taken from it; the answer was ignored.
    Late {
        /// The delegation.
        call: CallId,
        /// Who answered.
        member: AgentId,
        /// The beginning of the answer.
        answer: String,
    },
    /// A member asks for work of others.
    Requested {
        /// The delegation of who asks.
        by: CallId,
        /// What is to be done.
        task: String,
        /// The role that is to do it, or the member's id.
        to: String,
    },
    /// A member waits for others of the team, and they for a person: its run was stopped where it waits, and goes on from
    /// its log when they have answered, or when the team's run is taken up.
    Waits {
        /// Its delegation.
        call: CallId,
        /// What it asked for, if it waits for nothing else.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        requests: Vec<CommandId>,
    },
    /// A member wrote to what the team shares.
    Shared {
        /// The delegation of who writes.
        by: CallId,
        /// Where.
        key: String,
        /// What.
        value: Json,
        /// The version that it must have had until then; 0 for none. Whoever names none overwrites.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<u64>,
    },
    /// Answers contradict each other. Derived.
    Conflict {
        /// Its number in the run, from 0.
        conflict: u64,
        /// What they are about.
        key: String,
        /// Who says what.
        claims: Vec<Claim>,
    },
    /// A contradiction was settled. Derived.
    Settled {
        /// Its number.
        conflict: u64,
        /// What holds from now on.
        value: Json,
        /// How it was settled, for people.
        how: String,
    },
    /// The answer is put together from every contribution, nobody leading the team. Derived.
    Concluded {
        /// The answer.
        answer: String,
    },
}

impl TeamRecord {
    /// Whether the record carries something from outside.
    pub fn is_input(&self) -> bool {
        !matches!(
            self,
            Self::Delegated { .. }
                | Self::Undeliverable { .. }
                | Self::TakenBack { .. }
                | Self::Conflict { .. }
                | Self::Settled { .. }
                | Self::Concluded { .. }
        )
    }

    /// Whose sign of life it is, if it is one.
    pub fn beat_of(&self) -> Option<CallId> {
        match self {
            Self::Beat { call, .. } => Some(*call),
            _ => None,
        }
    }

    /// Whether the record must be on the medium before anything else happens.
    pub fn needs_sync(&self) -> bool {
        matches!(
            self,
            Self::Formed { .. } | Self::Planned { .. } | Self::Replanned { .. } | Self::Requested { .. }
        )
    }
}

/// What somebody says about something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Claim {
    /// Who.
    pub by: AgentId,
    /// In which delegation.
    pub call: CallId,
    /// What.
    pub value: Json,
    /// How sure, from 0 to 1, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

impl Claim {
    /// What `by` says, without saying how sure it is.
    pub fn new(by: AgentId, call: CallId, value: Json) -> Self {
        Self { by, call, value, confidence: None }
    }

    /// The same claim, of which its author is so sure.
    pub fn with_confidence(mut self, confidence: Option<f64>) -> Self {
        self.confidence = confidence;
        self
    }
}
