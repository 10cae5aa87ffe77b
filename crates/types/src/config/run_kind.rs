//! Kinds of runs: each kind has a machine of its own, and the first record of a log names it.

use serde::{Deserialize, Serialize};

/// The kind of a run. The names of the kinds in logs, JSON and messages are stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunKind {
    /// A ReAct loop: a model thinks and calls tools in turns.
    #[default]
    Loop,
    /// A parallel loop: several branches on one task, and a choice among their answers.
    Parallel,
    /// A plan: a goal is broken down into subtasks, which are then executed.
    Plan,
    /// A team, whose members do the work.
    Team,
    /// A call of an agent with typed fields, which may wait for people.
    AgentCall,
}

impl RunKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Loop, Self::Parallel, Self::Plan, Self::Team, Self::AgentCall];

    /// Returns the name of the kind, as in logs and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Parallel => "parallel",
            Self::Plan => "plan",
            Self::Team => "team",
            Self::AgentCall => "agent_call",
        }
    }

    /// Returns the kind with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl std::fmt::Display for RunKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
