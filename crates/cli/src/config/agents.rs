//! Agents in settings.

#[cfg(not(feature = "skills"))]
mod absent;

use std::{collections::BTreeMap, sync::Arc};

#[cfg(feature = "skills")]
pub(crate) use archon::skills::AgentFile;
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(not(feature = "skills"))]
pub(crate) use self::absent::AgentFile;
use super::{Span, ToolSelection};

/// `[agents.NAME]` of a settings file: an agent that other agents call by its name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentSettings {
    /// The description for agents that may call it.
    pub(crate) description: String,
    /// The agent's instructions.
    pub(crate) system: Option<String>,
    /// The agent's tools, as for `tools`; by default those that change nothing. The agent calls no other
    /// agents.
    pub(crate) tools: Option<ToolSelection>,
    /// The agent's model; by default that of its caller.
    pub(crate) model: Option<String>,
    /// The maximum number of model calls for one call of the agent.
    pub(crate) max_turns: Option<u32>,
    /// The maximum time that the agent may work on one call; by default `"2m"`.
    pub(crate) max_duration: Option<Span>,
    /// The file that describes the agent, for an agent that is not from settings. The agent gets those tools of its
    /// caller that the file names.
    #[serde(skip)]
    pub(crate) file: Option<Arc<AgentFile>>,
}

/// Agents by their names.
pub(crate) type Agents = BTreeMap<String, AgentSettings>;
