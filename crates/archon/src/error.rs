//! The error of building an agent.

use archon_tools::ToolSetupError;
use archon_types::{JournalError, RunError};

/// The reason why an agent could not be built. The error of runs is [`RunError`]. `?` converts a `BuildError`
/// into a `RunError`, so that a program needs only one error type.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The builder has no model.
    #[error("no model was chosen")]
    NoModel,
    /// The model's name is unknown or cannot be used.
    #[cfg(feature = "named-models")]
    #[error(transparent)]
    Model(#[from] archon_providers::SetupError),
    /// A tool could not be registered, for instance because two tools have the same name.
    #[error(transparent)]
    Tool(#[from] ToolSetupError),
    /// A tool has the name `tool_search` or `call_tool`. These names are reserved for the search of deferred tools.
    #[error("the tool name `{tool}` is reserved for the search of deferred tools")]
    ReservedName {
        /// The name of the tool.
        tool: String,
    },
    /// An agent file names an unknown model or skill.
    #[cfg(feature = "skills")]
    #[error(transparent)]
    AgentFile(#[from] archon_skills::AgentFileProblem),
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A setting has no effect because of another one.
    #[error("`{setting}` has no effect together with `{beside}`")]
    NoEffect {
        /// The setting without an effect.
        setting: &'static str,
        /// The setting that takes away the effect.
        beside: &'static str,
    },
    /// A setting has no effect without another one.
    #[error("`{setting}` has no effect without `{needs}`")]
    Needs {
        /// The setting without an effect.
        setting: &'static str,
        /// The missing setting.
        needs: &'static str,
    },
}

impl BuildError {
    /// Returns one line of advice about what to change in the builder.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NoModel => "call `model(\"provider:name\")` or `provider(…)` on the builder",
            #[cfg(feature = "named-models")]
            Self::Model(_) => "name a model as PROVIDER:MODEL, with the key that its service needs",
            // Each `McpServers` brings this tool, if one of its servers offers resources.
            Self::Tool(ToolSetupError::AlreadyRegistered { name }) if name == "list_mcp_resources" => {
                "start all MCP servers of the agent with one `McpServers::start`"
            }
            Self::Tool(_) => {
                "give every tool its own name, an object schema as its parameters, and a folder that exists"
            }
            Self::ReservedName { .. } => "give the tool another name",
            #[cfg(feature = "skills")]
            Self::AgentFile(_) => "correct the line of the file, or leave the file out",
            Self::Journal(error) => error.advice(),
            Self::NoEffect { setting: "api_keys", .. } => {
                "give the keys to the providers: `provider_with_keys`"
            }
            Self::NoEffect { setting: "http", .. } => "give the options to the provider itself",
            Self::NoEffect { setting: "context_parts", .. } => "use only one of the two settings",
            Self::Needs { .. } => "use both settings, or neither",
            Self::NoEffect { .. } => {
                "give tools, their options and guards to the toolbox, or leave the toolbox out"
            }
        }
    }
}

impl From<BuildError> for RunError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Journal(error) => error.into(),
            error => {
                let advice = error.advice();
                Self::agent(error, advice)
            }
        }
    }
}
