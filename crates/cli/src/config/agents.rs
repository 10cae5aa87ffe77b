//! Agents as settings describe them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Span, ToolSelection};

/// `[agents.NAME]` of a settings file: an agent to which others hand work over by its name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentSettings {
    /// What it is good for: who may hand work over reads this.
    pub(crate) description: String,
    /// Its instructions.
    pub(crate) system: Option<String>,
    /// Its tools, said as `tools` is; by default those that change nothing. It has no agents.
    pub(crate) tools: Option<ToolSelection>,
    /// Its model; by default that of who hands work over.
    pub(crate) model: Option<String>,
    /// Most model calls for one piece of work.
    pub(crate) max_turns: Option<u32>,
    /// The longest that it may work on one piece of work; by default `"2m"`.
    pub(crate) max_duration: Option<Span>,
}

/// Agents by their names.
pub(crate) type Agents = BTreeMap<String, AgentSettings>;
