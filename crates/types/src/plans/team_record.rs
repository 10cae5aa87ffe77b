//! The records that only the log of a team's run has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Json,
    config::{RunConfig, Spending},
    models::FailureKind,
    values::{AgentId, CallId, CommandId, Timestamp},
};

use super::{
    plan_record::PlanDiff,
    task::{SubTask, Task},
    team::{Member, TeamRole, TeamSettings},
};

/// A record of a team's run. A record marked "Derived" follows from earlier records of the log; every other
/// record has new data from outside the run, such as an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TeamRecord {
    /// The settings, roles and members of the team, logged before the goal.
    Formed {
        /// The settings.
        settings: TeamSettings,
        /// The roles.
        roles: Vec<TeamRole>,
        /// The members of the team, without the lead.
        members: Vec<Member>,
        /// The lead, which writes the answer and does work that no member can do; `None` without a lead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lead: Option<AgentId>,
    },
    /// The inputs of the team, for a process that resumes the run; logged before the goal.
    Inputs {
        /// The configurations of the runs of the members and the lead, by agent id. An agent without a known
        /// configuration has no entry.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        agents: BTreeMap<AgentId, RunConfig>,
        /// The fixed plan; `None` if a planner is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<Vec<SubTask>>,
        /// Background for the agents besides the goal; see
        /// [`SessionPlace::background`](crate::SessionPlace::background).
        #[serde(default, skip_serializing_if = "String::is_empty")]
        background: String,
    },
    /// The planner made a plan.
    Planned {
        /// The goal with its subtasks.
        task: Box<Task>,
        /// The tokens and the money that the planner used.
        #[serde(default, skip_serializing_if = "Spending::is_zero")]
        spent: Spending,
    },
    /// The planner changed the plan, because all attempts at some subtasks failed.
    Replanned {
        /// The change.
        diff: Box<PlanDiff>,
        /// The tokens and the money that the planner used.
        #[serde(default, skip_serializing_if = "Spending::is_zero")]
        spent: Spending,
    },
    /// The planner made no plan, or no new plan after all attempts at some subtasks had failed.
    PlanningFailed {
        /// The reason why there is no plan.
        problem: String,
        /// The kind of the failure, if known, for instance that the planner's model gave no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<FailureKind>,
        /// The tokens and the money that the planner used.
        #[serde(default, skip_serializing_if = "Spending::is_zero")]
        spent: Spending,
    },
    /// A task is about to be delegated to a member. Derived.
    Delegated {
        /// The id of the delegation.
        call: CallId,
        /// The member that gets the task.
        member: AgentId,
        /// The agents that delegated the task, the first one first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        chain: Vec<AgentId>,
        /// The task, as one line.
        task: String,
    },
    /// A task cannot be delegated to any member. Derived.
    DelegationFailed {
        /// The id of the command to do the task.
        command: CommandId,
        /// The reason. If the chain of delegations was refused, the reason names the agents of the chain.
        reason: String,
    },
    /// A member has sent a heartbeat since its last record of this kind.
    Heartbeat {
        /// The delegation of the member.
        call: CallId,
        /// The time of the last heartbeat, in Unix milliseconds.
        last_seen: Timestamp,
    },
    /// A task was taken from a member, whose answer is ignored from here on. Derived.
    DelegationRevoked {
        /// The delegation that was revoked.
        call: CallId,
        /// The member that had the task.
        member: AgentId,
        /// The reason why the task was taken away.
        reason: String,
    },
    /// A member answered after its task had been taken away, and the answer was ignored.
    LateAnswer {
        /// The revoked delegation.
        call: CallId,
        /// The member that answered.
        member: AgentId,
        /// The beginning of the answer.
        answer: String,
    },
    /// A member asks for another delegation.
    DelegationRequested {
        /// The delegation of the member that asks.
        requester: CallId,
        /// The task.
        task: String,
        /// The id of a member, or a role.
        assignee: String,
    },
    /// A member waits for other members that wait for a person. The run of this member was stopped. It is
    /// resumed when the other members have answered, or when the team's run is resumed.
    MemberWaiting {
        /// The delegation of the member.
        call: CallId,
        /// The delegations that the member asked for, if it waits only for these.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        requests: Vec<CommandId>,
    },
    /// A member wrote to the shared context.
    ValueShared {
        /// The delegation of the member that writes.
        writer: CallId,
        /// The key of the entry.
        key: String,
        /// The new value of the entry.
        value: Json,
        /// The version of the entry that the writer expects to replace; 0 if it expects no entry. `None`
        /// replaces any version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected_version: Option<u64>,
    },
    /// Answers of members conflict. Derived.
    ConflictFound {
        /// The number of the conflict in the run, from 0.
        number: u64,
        /// The subject of the answers: the title of a task, or a key of the shared context.
        key: String,
        /// The conflicting answers.
        claims: Vec<Claim>,
    },
    /// A conflict was settled. Derived.
    ConflictResolved {
        /// The number of the conflict.
        number: u64,
        /// The value that holds from now on.
        value: Json,
        /// The method that settled the conflict, to show to people.
        resolution: String,
    },
    /// The team has no lead, so the answer is composed of all contributions. Derived.
    AnswerFinished {
        /// The answer.
        answer: String,
    },
}

impl TeamRecord {
    /// Returns true if the record has new data from outside the run; false if it follows from earlier
    /// records.
    pub fn is_input(&self) -> bool {
        !matches!(
            self,
            Self::Delegated { .. }
                | Self::DelegationFailed { .. }
                | Self::DelegationRevoked { .. }
                | Self::ConflictFound { .. }
                | Self::ConflictResolved { .. }
                | Self::AnswerFinished { .. }
        )
    }

    /// Returns the delegation of the member that sent a heartbeat; `None` for other records.
    pub fn beat_of(&self) -> Option<CallId> {
        match self {
            Self::Heartbeat { call, .. } => Some(*call),
            _ => None,
        }
    }

    /// Returns true if the record must be on the storage medium before the run goes on.
    pub fn needs_sync(&self) -> bool {
        matches!(
            self,
            Self::Formed { .. }
                | Self::Planned { .. }
                | Self::Replanned { .. }
                | Self::DelegationRequested { .. }
        )
    }
}

/// One of several answers of team members that contradict each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Claim {
    /// The member that gave the answer.
    pub by: AgentId,
    /// The delegation of the member.
    pub call: CallId,
    /// The answer.
    pub value: Json,
    /// The confidence from 0 to 1; `None` if the member reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

impl Claim {
    /// Creates the claim of the member `by`, which answered `value` in the delegation `call`, without a
    /// confidence.
    pub fn new(by: AgentId, call: CallId, value: Json) -> Self {
        Self { by, call, value, confidence: None }
    }

    /// Sets the confidence of the member in its answer, from 0 to 1; `None` if the member reports none.
    ///
    /// ```
    /// use archon_types::{CallId, Claim, CommandId};
    ///
    /// let call = CallId::new(CommandId(3), 0);
    /// let claim = Claim::new("ada".into(), call, 1969.into()).with_confidence(Some(0.8));
    /// ```
    pub fn with_confidence(mut self, confidence: Option<f64>) -> Self {
        self.confidence = confidence;
        self
    }
}
