//! Agents as settings describe them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Span, ToolSelection, value::FromText};

/// `[agents.NAME]` of a settings file: an agent that others call by its name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentSettings {
    /// Description for agents that may call it.
    pub(crate) description: String,
    /// Its instructions.
    pub(crate) system: Option<String>,
    /// Its tools, written as in `tools`; by default those that change nothing. It calls no agents.
    pub(crate) tools: Option<ToolSelection>,
    /// Its model; by default that of its caller.
    pub(crate) model: Option<String>,
    /// Most model calls for one call.
    pub(crate) max_turns: Option<u32>,
    /// The longest that it may work on one call; by default `"2m"`.
    pub(crate) max_duration: Option<Span>,
}

/// Agents by their names.
pub(crate) type Agents = BTreeMap<String, AgentSettings>;

impl FromText for Agents {
    fn from_text(_: &str) -> Result<Self, String> {
        Err("agents stand in a file, under [agents.NAME]".to_owned())
    }
}
