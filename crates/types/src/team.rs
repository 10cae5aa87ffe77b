//! Teams: who belongs to one, what each can do, how work is shared out, and how contradictions are settled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{AgentId, Json, MessageType};

/// A role: what whoever has it is for, and may.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Role {
    /// Its name, as plans use it.
    pub name: String,
    /// The tools that its work takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// What stands before each task that it gets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
    /// The kinds of message that it may send; all of them if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub messages: Vec<MessageType>,
    /// The roles that it may hand work to; all of them if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<String>,
    /// What is known about how it works best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// What else it has to heed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<String>,
}

impl Role {
    /// A role that may talk and hand on as it likes.
    pub fn new(name: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tools: Vec::new(),
            prompt: prompt.into(),
            messages: Vec::new(),
            peers: Vec::new(),
            hints: Vec::new(),
            instructions: Vec::new(),
        }
    }

    /// The same role, whose work takes these tools.
    pub fn with_tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }
}

/// A member of a team, as the team sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Member {
    /// Who it is; nobody else in the team has this id.
    pub id: AgentId,
    /// Its roles. The first is its own, the others it can stand in for.
    pub roles: Vec<String>,
    /// The tools that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Tasks that it takes at the same time. Default 3; 0 counts as 1.
    pub max_tasks: u32,
    /// How much its word counts where sources are weighed. Default 0.
    #[serde(default)]
    pub authority: i32,
}

impl Member {
    /// A member with one role, without tools.
    pub fn new(id: impl Into<AgentId>, role: impl Into<String>) -> Self {
        Self { id: id.into(), roles: vec![role.into()], tools: Vec::new(), max_tasks: 3, authority: 0 }
    }

    /// The same member with these tools.
    pub fn with_tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// The same member, which can stand in for another role.
    pub fn and_role(mut self, role: impl Into<String>) -> Self {
        self.roles.push(role.into());
        self
    }

    /// The same member, whose word counts so much.
    pub fn with_authority(mut self, authority: i32) -> Self {
        self.authority = authority;
        self
    }

    /// The same member, which takes so many tasks at the same time.
    pub fn with_max_tasks(mut self, tasks: u32) -> Self {
        self.max_tasks = tasks;
        self
    }
}

/// How the work of a team is shared out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "pattern", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TeamPattern {
    /// Whoever fits a task best does it.
    #[default]
    Hierarchical,
    /// Several do each task, and what they say is compared.
    Committee {
        /// How many; as many as there are if there are fewer.
        size: u32,
    },
    /// Whoever could do a task says what it would take, and the best offer wins.
    Market,
}

/// How a contradiction is settled. What a way cannot settle goes to a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConflictStrategy {
    /// What most say.
    #[default]
    Majority,
    /// What those say who are together the most sure.
    Confidence,
    /// What the one with the most authority says.
    Authority,
    /// What was said first.
    First,
    /// What an agent of this role decides.
    Expert {
        /// The role.
        role: String,
    },
    /// Each side says how it came to its answer, the agent that leads the team decides, and whose answer
    /// was not taken works again with the right one.
    Arbitration,
    /// The shortest.
    Simplest,
    /// What somebody else finds who is given the same question.
    Verification,
    /// A person is asked.
    Human,
}

/// When two answers contradict each other, and what is done then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ConflictPolicy {
    /// Numbers that differ by more than this part of the larger one contradict each other. Default 0.05.
    pub tolerance: f64,
    /// How contradictions are settled. Default by majority.
    pub strategy: ConflictStrategy,
    /// How they are settled in the work of these roles.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_role: BTreeMap<String, ConflictStrategy>,
}

impl Default for ConflictPolicy {
    fn default() -> Self {
        Self { tolerance: 0.05, strategy: ConflictStrategy::default(), by_role: BTreeMap::new() }
    }
}

/// How a team's run works: recorded, so that it goes on as it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct TeamSettings {
    /// How work is shared out.
    pub pattern: TeamPattern,
    /// Delegations under way at the same time; those that a member asks for come on top. Default 8; 0 counts as 1.
    pub max_concurrent: u32,
    /// How long a chain of delegations may get. Default 5.
    pub max_chain: u32,
    /// How often a task is delegated before it has failed. Default 3; 0 counts as 1.
    pub max_tries: u32,
    /// Other plans that a run may have when steps of its plan are lost. Default 3; 0 never makes another plan, and so do runs
    /// whose log says nothing of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_replans: u32,
    /// Delegations in one run, whoever asks for them. Default 1,000.
    pub max_delegations: u32,
    /// How long one delegation may take, milliseconds. Default 300,000.
    pub task_ms: u64,
    /// A member at work gives a sign of life at least this often, milliseconds. 0 never looks. Default 5,000.
    pub beat_ms: u64,
    /// What a sign of life is. Default [`Heartbeat::Timer`].
    #[serde(skip_serializing_if = "Heartbeat::is_timer")]
    pub heartbeat: Heartbeat,
    /// Signs of life that may be missing in a row. Default 3; 0 counts as 1.
    pub missed_beats: u32,
    /// How many members do each task, of whom the first with an answer wins. Default 1; 0 counts as 1.
    pub redundancy: u32,
    /// What is done about contradictions.
    pub conflicts: ConflictPolicy,
    /// The role that looks at the answer before it is given, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// How often the answer may be put together again after a review. Default 1.
    pub max_revisions: u32,
    /// Failed delegations in the whole run before a person is asked whether to go on; none never asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_budget: Option<u32>,
    /// How long a question of the team itself waits for a person, milliseconds. Default 30 minutes.
    #[serde(skip_serializing_if = "crate::approval::is_usual_wait")]
    pub answer_within_ms: u64,
}

impl Default for TeamSettings {
    fn default() -> Self {
        Self {
            pattern: TeamPattern::default(),
            max_concurrent: 8,
            max_chain: 5,
            max_tries: 3,
            max_replans: 3,
            max_delegations: 1_000,
            task_ms: 300_000,
            beat_ms: 5_000,
            heartbeat: Heartbeat::default(),
            missed_beats: 3,
            redundancy: 1,
            conflicts: ConflictPolicy::default(),
            reviewer: None,
            max_revisions: 1,
            error_budget: None,
            answer_within_ms: crate::approval::USUAL_WAIT_MS,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// By what a member at work is known to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Heartbeat {
    /// Its run is there: a timer beats until it ends. A slow tool and a slow first word are no silence; what hangs loses
    /// its work at the deadline of the task.
    #[default]
    Timer,
    /// What its run emits, and what it says at its seat: for agents that work in another process, and for teams that take
    /// work from whoever is slow.
    Events,
}

impl Heartbeat {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
    fn is_timer(&self) -> bool {
        *self == Self::Timer
    }
}

/// An entry of what a team shares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SharedItem {
    /// What it says.
    pub value: Json,
    /// Grows by one with each change, from 1.
    pub version: u64,
    /// Who wrote it.
    pub by: AgentId,
    /// When, Unix milliseconds.
    pub at: crate::Timestamp,
}

impl SharedItem {
    /// An entry.
    pub fn new(value: Json, version: u64, by: AgentId, at: crate::Timestamp) -> Self {
        Self { value, version, by, at }
    }
}
