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
    /// A call of an agent tool: an agent that other agents call as a tool with typed fields. The call may
    /// wait for people.
    AgentCall,
}

crate::values::named! { RunKind:
    Loop = "loop",
    Parallel = "parallel",
    Plan = "plan",
    Team = "team",
    AgentCall = "agent_call",
}
