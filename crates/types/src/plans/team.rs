//! Teams: their members and roles, the pattern of delegation, and the settlement of conflicts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Json, bus::MessageType, values::AgentId};

/// A role in a team: its purpose and its permissions.
///
/// ```
/// use archon_types::TeamRole;
///
/// let researcher = TeamRole::new("researcher", "You find sources.").with_tools(["web_search"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TeamRole {
    /// The name, as plans use it.
    pub name: String,
    /// The tools that the work of the role needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The text that an agent with this role reads before each task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// The types of message that the role may send; all types if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub messages: Vec<MessageType>,
    /// The roles that this role may delegate to; all roles if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
    /// Hints for doing the work well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// Further instructions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<String>,
}

impl TeamRole {
    /// Creates a role that may send every message and delegate to every role, and that needs no tools.
    /// `prompt` is the text that an agent with this role reads before each task.
    pub fn new(name: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self { name: name.into(), prompt: prompt.into(), ..Self::default() }
    }

    /// Sets the names of the tools that the work of the role needs. Default none.
    pub fn with_tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }
}

/// A member of a team, as the team sees it.
///
/// ```
/// use archon_types::Member;
///
/// let ada = Member::new("ada", "researcher").with_tools(["web_search"]).with_authority(2).with_max_tasks(1);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Member {
    /// The id, unique in the team.
    pub id: AgentId,
    /// The roles of the member. The first is its main role; in the others it can replace another member.
    pub roles: Vec<String>,
    /// The tools that the member has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The maximum number of tasks that the member does in parallel. Default 3; 0 counts as 1.
    pub max_tasks: u32,
    /// The weight of the member's answers when a conflict is settled by authority. Default 0.
    #[serde(default)]
    pub authority: i32,
}

impl Member {
    /// Creates a member with one role and without tools.
    pub fn new(id: impl Into<AgentId>, role: impl Into<String>) -> Self {
        Self { id: id.into(), roles: vec![role.into()], tools: Vec::new(), max_tasks: 3, authority: 0 }
    }
}

crate::setters! {
impl Member {
    /// Sets the names of the tools that the member has. Default none.
    pub fn with_tools(self, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect()
    }

    /// Sets the weight of the member's answers when a conflict is settled by authority. Default 0.
    pub fn with_authority(self, authority: i32) -> Self { self.authority = authority }

    /// Sets the maximum number of tasks that the member does in parallel. Default 3; 0 counts as 1.
    pub fn with_max_tasks(self, tasks: u32) -> Self { self.max_tasks = tasks }
}
}

/// The pattern by which a team delegates its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "pattern", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TeamPattern {
    /// The member that fits a task best does the task.
    #[default]
    Hierarchical,
    /// Several members do each task, and their answers are compared.
    Committee {
        /// The number of members; fewer if the team is smaller.
        size: u32,
    },
    /// Each member that could do a task makes an offer, and the best offer wins.
    Market,
}

/// The method that settles a conflict between answers. If the method fails, a person is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConflictStrategy {
    /// The answer that most members give.
    #[default]
    Majority,
    /// The answer with the highest total confidence.
    Confidence,
    /// The answer of the member with the most authority.
    Authority,
    /// The first answer.
    First,
    /// An agent of this role decides.
    Expert {
        /// The role of the expert.
        role: String,
    },
    /// Each side explains its answer, and the lead decides. The members that gave another answer then do
    /// their tasks again, with the accepted answer as an input.
    Arbitration,
    /// The shortest answer.
    Simplest,
    /// The answer of another member that gets the same question.
    Verification,
    /// A person decides.
    Human,
}

/// The rules that decide if answers conflict, and how a conflict is settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ConflictPolicy {
    /// The maximum relative difference of two numbers that agree, as a share of the larger one. Default 0.05.
    pub tolerance: f64,
    /// The method that settles conflicts. Default [`ConflictStrategy::Majority`].
    pub strategy: ConflictStrategy,
    /// The methods that replace `strategy` for the work of some roles, by role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_role: BTreeMap<String, ConflictStrategy>,
}

impl Default for ConflictPolicy {
    fn default() -> Self {
        Self { tolerance: 0.05, strategy: ConflictStrategy::default(), by_role: BTreeMap::new() }
    }
}

/// The settings of a team's run. The log stores them, so that a resumed run works the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct TeamSettings {
    /// The pattern of delegation.
    pub pattern: TeamPattern,
    /// The maximum number of parallel delegations. Delegations that members ask for do not count. Default 8;
    /// 0 counts as 1.
    pub max_concurrent: u32,
    /// The maximum length of a chain of delegations. Default 5.
    pub max_delegation_depth: u32,
    /// The number of failed delegations after which a task counts as failed. Default 3; 0 counts as 1.
    pub max_attempts: u32,
    /// The maximum number of new plans in a run, made after all attempts at a subtask failed. Default 3; 0
    /// for none. A log without this field means 0.
    #[serde(default, skip_serializing_if = "crate::values::is_default")]
    pub max_replans: u32,
    /// The maximum number of delegations in one run, including those that members ask for. Default 1,000.
    pub max_delegations: u32,
    /// The maximum time of one delegation, in milliseconds. Default 300,000.
    pub task_timeout_ms: u64,
    /// The interval of the heartbeats of a working member in milliseconds; 0 if heartbeats are not checked.
    /// Default 5,000.
    pub heartbeat_ms: u64,
    /// The source of heartbeats. Default [`Heartbeat::Timer`].
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub heartbeat: Heartbeat,
    /// The number of heartbeats missed in a row after which a member loses its task. Default 3; 0 counts as
    /// 1.
    pub missed_heartbeats: u32,
    /// The number of members that do each task; the first answer wins. Default 1; 0 counts as 1.
    pub redundancy: u32,
    /// The rules for conflicts.
    pub conflicts: ConflictPolicy,
    /// The role that reviews the answer before it is final; `None` for no review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// The maximum number of times that the answer is rewritten after a review. Default 1.
    pub max_revisions: u32,
    /// The number of failed delegations after which a person is asked whether the run should go on; `None` if
    /// nobody is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_budget: Option<u32>,
    /// The time that a question of the team itself waits for a person, in milliseconds. Default 30 minutes.
    #[serde(skip_serializing_if = "crate::tools::is_usual_wait")]
    pub question_timeout_ms: u64,
}

impl Default for TeamSettings {
    fn default() -> Self {
        Self {
            pattern: TeamPattern::default(),
            max_concurrent: 8,
            max_delegation_depth: 5,
            max_attempts: 3,
            max_replans: 3,
            max_delegations: 1_000,
            task_timeout_ms: 300_000,
            heartbeat_ms: 5_000,
            heartbeat: Heartbeat::default(),
            missed_heartbeats: 3,
            redundancy: 1,
            conflicts: ConflictPolicy::default(),
            reviewer: None,
            max_revisions: 1,
            error_budget: None,
            question_timeout_ms: crate::tools::USUAL_WAIT_MS,
        }
    }
}

/// The source of the heartbeats of a working member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Heartbeat {
    /// A timer sends heartbeats while the member's run exists, so a slow tool or model causes no missed
    /// heartbeat. A member that hangs loses its task at the deadline of the task.
    #[default]
    Timer,
    /// The events and messages of the member's run count as heartbeats. Use this for agents in another
    /// process, and for teams that take tasks away from slow members.
    Events,
}

/// An entry of the shared context of a team.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SharedItem {
    /// The value.
    pub value: Json,
    /// The version: 1 for a new entry, one more with each change.
    pub version: u64,
    /// The member that wrote the value.
    pub by: AgentId,
    /// The time at which the value was written, in Unix milliseconds.
    pub at: crate::Timestamp,
}

impl SharedItem {
    /// Creates an entry of the shared context.
    pub fn new(value: Json, version: u64, by: AgentId, at: crate::Timestamp) -> Self {
        Self { value, version, by, at }
    }
}
