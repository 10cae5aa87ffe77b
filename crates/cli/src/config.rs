//! Settings in layers: built-in values, the user's archon.toml, the project's, the environment, flags.
//!
//! Later layers take precedence. Each value remembers its layer, so that `archon doctor` can explain it. A
//! project's file may come from a stranger: see [`trust`] for its limits.

mod agents;
mod agreed;
mod apis;
mod channels;
mod chat;
#[cfg(feature = "setup")]
mod edit;
mod events;
mod file;
mod keys;
mod models;
mod name;
mod rules;
mod serve;
mod servers;
mod source;
mod trust;
mod value;
pub(crate) mod variables;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;

use crate::failure::Failure;
use agents::Agents;
pub(crate) use agents::{AgentFile, AgentSettings};
pub(crate) use agreed::{AgreedTable, Agreements, sha256};
pub(crate) use apis::Apis;
#[cfg(feature = "openapi")]
pub(crate) use apis::{ApiAuthForm, ApiSettings, is_address};
#[cfg(feature = "triggers")]
pub(crate) use channels::ChannelSettings;
use channels::Channels;
#[cfg(all(feature = "serve", feature = "triggers"))]
pub(crate) use channels::RuleSettings;
pub(crate) use chat::ChatSettings;
#[cfg(feature = "chat")]
pub(crate) use chat::{EditingKeys, Notify};
#[cfg(feature = "setup")]
pub(crate) use edit::Edit;
#[cfg(all(feature = "serve", feature = "triggers"))]
pub(crate) use events::EventSettings;
use events::Events;
#[cfg(test)]
pub(crate) use file::parse as parse_settings;
pub(crate) use file::{Problem, line_at, resolve_paths};
use keys::Keys;
pub(crate) use models::{Models, catalogue_reason};
pub(crate) use name::{Name, Names};
pub(crate) use rules::PermissionRules;
pub(crate) use serve::ServeSettings;
#[cfg(feature = "serve")]
pub(crate) use serve::{RoleName, TokenSettings};
pub(crate) use servers::Servers;
#[cfg(all(unix, feature = "mcp"))]
pub(crate) use servers::{FirstTools, SandboxSettings, ServerSettings, SignInParty, SignInSettings};
pub(crate) use source::Source;
pub(crate) use trust::{Asks, asks, refusals, remedy};
use value::FromText;
pub(crate) use value::{
    Detail, EmbedderChoice, ExtractorChoice, LocalServers, Mode, Money, Span, Thinking, ToolExecution,
    ToolSelection,
};

/// The tenant of each token, task, channel, event source and stored key for which no tenant is named.
pub(crate) const LOCAL: &str = "local";

/// Declares the settings once; the file's keys, the environment variables and the merge are generated from
/// it.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty,)+) => {
        /// One layer of settings, in the form of a file `archon.toml`. A missing setting is taken from the
        /// layers below.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct Settings {
            $($(#[doc = $doc])+ pub(crate) $name: Option<$type>,)+
        }

        /// The names of all settings.
        pub(crate) const KEYS: &[&str] = &[$(stringify!($name)),+];

        impl Settings {
            /// Takes over all settings of `layer`, and stores their origin.
            fn overlay(&mut self, layer: Settings, origin: &Origin, origins: &mut Origins) {
                $(if layer.$name.is_some() {
                    self.$name = layer.$name;
                    origins.insert(stringify!($name), origin.named(stringify!($name)));
                })+
            }

            /// Removes a setting; returns false if the layer does not have it.
            fn forget(&mut self, key: &str) -> bool {
                match key {
                    $(stringify!($name) => self.$name.take().is_some(),)+
                    _ => false,
                }
            }

            /// Sets a setting from the text of an environment variable.
            fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
                match key {
                    $(stringify!($name) => self.$name = Some(<$type>::from_text(text)?),)+
                    _ => {}
                }
                Ok(())
            }
        }
    };
}

settings! {
    /// The model: a name, `provider:name`, or the path of a GGUF file.
    model: String,
    /// Models to use, in this order, when a model cannot answer: `provider:name` or GGUF files.
    fallback: Vec<String>,
    /// The address of an OpenAI-compatible service, up to and including `/v1`.
    base_url: String,
    /// The environment variable with the service's key. A key itself may not be in a settings file. Not in a
    /// project's settings.
    api_key_env: String,
    /// Allows a key to be sent over `http://` to another machine, as in a private network; by default not.
    /// Not in a project's settings.
    allow_plain_http: bool,
    /// The tools that the agent has: `"all"`, `"none"`, or a list of names, where `SERVER__*` means all tools of
    /// an MCP server or an API; by default those that change nothing, and those of MCP servers and APIs.
    tools: ToolSelection,
    /// The maximum number of tokens that the definitions of the tools of MCP servers and APIs have in a request: beyond
    /// it, the model finds tools with a search, except those that `tools` names; by default 2000.
    definition_budget: u64,
    /// The folder that tools may see.
    workspace: PathBuf,
    /// Agents that the main agent may call as tools. A layer adds to those below.
    agents: Agents,
    /// MCP servers, whose tools the agent gets. Not in a project's settings: its servers are in `.mcp.json`.
    mcp: Servers,
    /// HTTP APIs, whose operations the agent gets as tools. A layer adds to those below. To an API of a project's settings no
    /// stored key is sent.
    openapi: Apis,
    /// Runs the commands of a project's hooks in a sandbox, in which they read the project and change nothing; by
    /// default they have your rights. Your own hooks always have your rights. Not in a project's settings.
    sandbox_hooks: bool,
    /// The address of a service for `web_search` with the protocol of Brave Search; by default Brave Search
    /// itself. Not in a project's settings.
    search_url: String,
    /// Properties of models: prices, context windows, abilities; over the built-in catalogue. Not in a
    /// project's settings.
    models: Models,
    /// The form in which the model gets tools: `native` or `text`; by default the form that it supports.
    mode: Mode,
    /// The number of a turn's calls that run at the same time: `"parallel"` (all, if their tools are safe
    /// to), `"sequential"`, or a number as in `"4"`, after which you can steer; by default `parallel`.
    tool_execution: ToolExecution,
    /// The amount of thinking before an answer: `off`, `minimal`, `low`, `medium` or `high`.
    thinking: Thinking,
    /// The length of tool results that the model reads: `brief`, `standard` or `full`; by default set by the
    /// tool.
    output_level: Detail,
    /// The maximum number of model calls of a run.
    max_turns: u32,
    /// The maximum number of tokens of a run.
    max_tokens: u64,
    /// The maximum cost of a run in US dollars, as in `"0.50"`: needs a model with a known price.
    max_cost: Money,
    /// The maximum time that a run may work: `"90s"`, `"20m"` or `"2h"`.
    max_duration: Span,
    /// Standing instructions for the agent.
    system: String,
    /// A file with the project's instructions, such as `ARCHON.md`, read again before each question to the model; by
    /// default, the main agent reads `AGENTS.md` of the project, or `CLAUDE.md` without it, once you agreed to the file.
    project_file: PathBuf,
    /// Permission rules: calls that are allowed, asked about or denied. Layers add to each other.
    permissions: PermissionRules,
    /// The embedder, which makes vectors of memories, so that they are also found by meaning: `local`
    /// (all-MiniLM-L6-v2, in this program), `table` (WordLlama's table of words), `hash` (by spelling) or `none`; by
    /// default `auto`, the first of `local` and `table` whose files were fetched with `archon model pull`. With `local`,
    /// deferred tools are also found by meaning.
    embedder: EmbedderChoice,
    /// The reader of facts from your messages, for runs with a memory: `rules` (plain English sentences, without a model
    /// call) or `model` (the model of the run, in any language that it reads: one more call for each message, outside of
    /// the limits of the run); by default `rules`.
    extractor: ExtractorChoice,
    /// The number of threads that compute for a model in this program; by default one: two are quicker on
    /// idle cores and much slower on busy ones.
    local_threads: u32,
    /// The kernel that computes for a model in this program, such as `haswell`; by default the fastest
    /// one for the processor. Answers can differ between kernels.
    local_kernel: String,
    /// The folder for runs and models. Not in a project's settings.
    data_dir: PathBuf,
    /// Servers to look for on this machine: `"none"`, or a list of `PROFILE` (at its own port) and
    /// `PROFILE@URL`; by default `ollama`, `lmstudio` and `llamacpp`. Not in a project's settings.
    local_servers: LocalServers,
    /// Keys of a conversation on the terminal. A key is a character behind `ctrl+` or `alt+`, as in `"ctrl+j"`, or
    /// `enter`, `tab`, `backtab`, `backspace`, `delete`, `left`, `right`, `up`, `down`, `home`, `end`, `pageup`,
    /// `pagedown` or `esc`, also behind `ctrl+`, `alt+` or `shift+`. Not in a project's settings.
    keys: Keys,
    /// The look of a conversation on the terminal, its notices and its editing keys. Not in a project's settings.
    chat: ChatSettings,
    /// The server of `archon serve`: its address, its access tokens and the agents that it offers. Not in a project's
    /// settings.
    serve: ServeSettings,
    /// Notification channels, such as mail, through which `archon serve` tells people about the runs of tasks. Not in a
    /// project's settings.
    channels: Channels,
    /// Sources of events, which start runs of tasks while `archon serve` works. Not in a project's settings.
    events: Events,
}

/// Implements [`FromText`] for settings that have no form as a text; the error says where to set them.
macro_rules! only_in_files {
    ($($name:ty: $problem:literal,)+) => {$(
        impl FromText for $name {
            fn from_text(_: &str) -> Result<Self, String> {
                Err($problem.to_owned())
            }
        }
    )+};
}

only_in_files! {
    PermissionRules: "rules can be set only in a file, under [permissions]",
    Models: "models can be set only in a file, under [models.\"PROVIDER:MODEL\"]",
    Agents: "agents can be set only in a file, under [agents.NAME]",
    Servers: "servers can be set only in a file, under [mcp.NAME]",
    Apis: "APIs can be set only in a file, under [openapi.NAME]",
    Keys: "keys can be set only in a file, under [keys]",
    ServeSettings: "the server can be set only in a file, under [serve]",
    Channels: "channels can be set only in a file, under [channels.NAME]",
    Events: "sources of events can be set only in a file, under [events.NAME]",
    ChatSettings: "theme, notices and editing can be set only in a file, under [chat]",
}

/// The origin of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The user's file.
    User(PathBuf),
    /// The project's file.
    Project(PathBuf),
    /// An environment variable.
    Env(String),
    /// A flag.
    Flag(String),
}

impl Origin {
    fn named(&self, key: &str) -> Self {
        match self {
            Self::Env(_) => Self::Env(variable(key)),
            Self::Flag(_) => Self::Flag(format!("--{}", key.replace('_', "-"))),
            file => file.clone(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(path) | Self::Project(path) => write!(f, "{}", path.display()),
            Self::Env(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

type Origins = BTreeMap<&'static str, Origin>;

/// The settings of all layers merged, and the origin of each setting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    /// The merged settings.
    pub(crate) settings: Settings,
    origins: Origins,
    /// Settings of the project's file that are ignored, because no person has agreed to them.
    pub(crate) asks: Option<Asks>,
}

/// The owner of a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The user.
    User,
    /// A project, whose file may come from a stranger.
    Project,
}

/// The sources of settings, which are an input so that tests control them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The path of the user's file, which may not exist.
    pub(crate) user: Option<PathBuf>,
    /// The path of the project's file, which may not exist.
    pub(crate) project: Option<PathBuf>,
    /// The environment variables.
    pub(crate) env: BTreeMap<String, String>,
}

impl Sources {
    /// Returns the sources of this process: the user's configuration directory, the current directory and
    /// the environment.
    pub(crate) fn system() -> Self {
        let env: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
            .collect();
        let user = base_directory(&env, "XDG_CONFIG_HOME", ".config");
        Self {
            user: user.map(|dir| dir.join("archon").join(FILE)),
            project: std::env::current_dir().ok().map(|dir| dir.join(FILE)),
            env,
        }
    }

    /// Returns the path of this owner's file.
    pub(crate) fn file(&self, owner: Owner) -> Option<&PathBuf> {
        match owner {
            Owner::User => self.user.as_ref(),
            Owner::Project => self.project.as_ref(),
        }
    }
}

impl Config {
    /// Reads all layers and puts `flags` on top.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be read, or if a file or a variable has a wrong value.
    pub(crate) fn load(sources: &Sources, flags: Settings) -> Result<Self, Failure> {
        let mut config = Self::default();
        if let Some(file) = file::read(sources.user.as_deref())? {
            config.add(file.settings, &Origin::User(file.path));
        }
        let own =
            [(from_env(&sources.env)?, Origin::Env(String::new())), (flags, Origin::Flag(String::new()))];
        if let Some(mut file) = file::read(sources.project.as_deref())? {
            let mut without = config.clone();
            own.iter().for_each(|(layer, origin)| without.add(layer.clone(), origin));
            config.asks = trust::restrict(&mut file, &without, sources)?;
            config.add(file.settings, &Origin::Project(file.path));
        }
        own.into_iter().for_each(|(layer, origin)| config.add(layer, &origin));
        Ok(config)
    }

    /// Creates a configuration with only this layer, whose settings have this origin.
    pub(crate) fn of(layer: Settings, origin: &Origin) -> Self {
        let mut config = Self::default();
        config.add(layer, origin);
        config
    }

    /// Returns the origin of a setting; `None` if it is not set.
    pub(crate) fn origin(&self, key: &str) -> Option<&Origin> {
        self.origins.get(key)
    }

    /// Returns true if a flag sets the setting.
    pub(crate) fn is_flag(&self, key: &str) -> bool {
        matches!(self.origin(key), Some(Origin::Flag(_)))
    }

    /// Returns the folder for runs and models.
    ///
    /// # Errors
    /// [`Failure`] if neither a setting nor the environment gives the folder.
    pub(crate) fn data_dir(&self, sources: &Sources) -> Result<PathBuf, Failure> {
        if let Some(dir) = &self.settings.data_dir {
            return Ok(dir.clone());
        }
        base_directory(&sources.env, "XDG_DATA_HOME", ".local/share")
            .map(|dir| dir.join("archon"))
            .ok_or_else(|| {
                Failure::usage("there is no home directory for runs", "set the folder with --data-dir DIR")
            })
    }

    fn add(&mut self, mut layer: Settings, origin: &Origin) {
        let own = self.settings.clone();
        layer.permissions = layer.permissions.map(|more| own.permissions.unwrap_or_default().and(more));
        layer.models = layer.models.map(|more| own.models.unwrap_or_default().and(more));
        layer.mcp = layer.mcp.map(|more| own.mcp.unwrap_or_default().and(more));
        if let (Origin::Project(_), Some(apis)) = (origin, &mut layer.openapi) {
            apis.mark_as_of_project();
        }
        layer.openapi = layer.openapi.map(|more| own.openapi.unwrap_or_default().and(more));
        layer.agents = layer.agents.map(|more| own.agents.into_iter().flatten().chain(more).collect());
        self.settings.overlay(layer, origin, &mut self.origins);
    }
}

const FILE: &str = "archon.toml";

fn variable(key: &str) -> String {
    format!("ARCHON_{}", key.to_uppercase())
}

/// Reads `ARCHON_MODEL` and the other variables; an empty variable counts as missing.
fn from_env(env: &BTreeMap<String, String>) -> Result<Settings, Failure> {
    let mut layer = Settings::default();
    for key in KEYS {
        let name = variable(key);
        if let Some(text) = env.get(&name).filter(|t| !t.is_empty()) {
            layer.set(key, text).map_err(|problem| {
                Failure::usage(
                    format!("the variable {name} is {text:?}: {problem}"),
                    format!("change it or unset it: unset {name}"),
                )
            })?;
        }
    }
    Ok(layer)
}

/// Returns a base directory of the XDG specification: an absolute path, otherwise a folder under the home
/// directory. On Windows it may be the user's local application data.
fn base_directory(env: &BTreeMap<String, String>, variable: &str, under_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| env.get(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute(variable)
        .or_else(|| if cfg!(windows) { absolute("LOCALAPPDATA") } else { None })
        .or_else(|| absolute("HOME").map(|home| home.join(under_home)))
}

/// Makes a path in a file relative to that file.
fn resolve(file: &Path, path: &mut Option<PathBuf>) {
    if let (Some(dir), Some(path)) = (file.parent(), path.as_mut()) {
        *path = dir.join(&*path);
    }
}

#[cfg(test)]
mod tests;
