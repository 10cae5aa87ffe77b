//! The description of a tool, and the request, the target and the progress of a call.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Json,
    messages::{OutputLevel, ToolResult, is_listed},
};

/// The description of a tool: for the model, for people and for the engine.
///
/// ```
/// use archon_types::{ToolAnnotations, ToolSpec};
///
/// let parameters = serde_json::json!({ "type": "object", "properties": { "query": { "type": "string" } } });
/// let spec = ToolSpec::new("web_search", "Searches the web.", parameters)
///     .with_annotations(ToolAnnotations::read_only())
///     .with_alternatives(["web_fetch"]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name, unique in a registry: letters, digits, `_`, `-`, and `.` for namespaces.
    pub name: String,
    /// The name shown to people; if empty, `name` is shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The description for the model: the tool's purpose, when to use it, its inputs and outputs.
    pub description: String,
    /// The JSON Schema of the arguments, which is an object schema.
    pub parameters: Json,
    /// The version of the tool, which changes with every change of the tool's behaviour.
    #[serde(default = "default_version")]
    pub version: String,
    /// The tool's effects and its requirements for execution.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// Examples of arguments, each an object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Json>,
    /// The names of similar tools, best first. While the circuit breaker of this tool blocks its calls, the model
    /// reads the first of these names whose tool the run has and that is not blocked too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// The names of groups of tools to which this one belongs, in ASCII, such as the tags of an operation of an HTTP API.
    /// A search for tools names the groups of the deferred tools, and finds tools by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

/// The part of a [`ToolSpec`] that a model reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolDefinition {
    /// The name of the tool.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub parameters: Json,
}

impl ToolSpec {
    /// Creates the spec of a tool, with the version 1.0.0 and default annotations: the calls have side effects, run
    /// one after the other, and require no permissions.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Json) -> Self {
        Self {
            name: name.into(),
            label: String::new(),
            description: description.into(),
            parameters,
            version: default_version(),
            annotations: ToolAnnotations::default(),
            examples: Vec::new(),
            alternatives: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Returns the part of the spec that a model reads.
    pub fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters.clone(),
        }
    }
}

crate::setters! {
impl ToolSpec {
    /// Sets the names of similar tools, best first. While this tool is blocked because it keeps failing, the model
    /// reads the first of these names whose tool the run has and that is not blocked too. Default none.
    pub fn with_alternatives(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.alternatives = names.into_iter().map(Into::into).collect()
    }

    /// Sets the effects of the tool and its requirements for execution. Default: calls have side effects.
    pub fn with_annotations(self, annotations: ToolAnnotations) -> Self { self.annotations = annotations }
}
}

fn default_version() -> String {
    "1.0.0".to_owned()
}

/// The effects of a tool and its requirements for execution. The defaults assume the worst case.
///
/// ```
/// use std::time::Duration;
///
/// use archon_types::ToolAnnotations;
///
/// let harmful = ToolAnnotations::destructive().with_confirmation().with_timeout(Duration::from_secs(30));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The effect of a second execution of the same call.
    pub effect: Effect,
    /// True if a call may run in parallel with other calls of the same turn.
    pub concurrency_safe: bool,
    /// True if each call needs a person's approval.
    pub requires_confirmation: bool,
    /// True if a call may destroy data that cannot be restored.
    pub destructive: bool,
    /// True if the tool is an agent: each call starts a child run, which has a lease (a part of the caller's
    /// budget) and ends by itself when the call is cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub agent: bool,
    /// True if the tool's definition may be left out of requests to the model when there are many tools. The
    /// model then finds the tool with a search. True for tools of MCP servers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deferrable: bool,
    /// True if the tool depends on a network, so that a failed call may succeed on a retry.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// True if the tool blocks its thread while it works; it then runs on a thread for blocking work.
    pub blocking: bool,
    /// The permissions that the tool must be granted, for instance `fs_write`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// The time limit of a call in milliseconds; `None` for the engine's limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The level of detail of the tool's results, unless the caller sets another level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_level: Option<OutputLevel>,
    /// True if the tool may hide parts of its results from the model: from a JSON object with
    /// `"_internal_only": true` the model reads only the value of `result`. For other tools this mark is
    /// ignored, because data from outside that they return could contain it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub internal_results: bool,
    /// True if the tool gives the model instructions of the person on whose behalf the agent works, such as those of
    /// a skill. Only results of such a tool may be [pinned](crate::metadata::PINNED) and
    /// [trusted](crate::metadata::TRUST). For other tools these marks are ignored, because data from outside that
    /// they return could contain them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub instructs: bool,
    /// The media types that the tool takes, such as `application/pdf` or `image/*`; empty for a tool that takes no
    /// media. An argument for a medium is a string with the `format` `media` in the schema of the tool. The model
    /// writes the [reference](crate::Media::reference) of a medium of the conversation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input_mime_types: Vec<String>,
    /// The media types that a result may have; empty for any. The model reads a text about a medium of another type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_mime_types: Vec<String>,
    /// The maximum size in bytes of a medium that the tool takes; `None` for
    /// [`Media::MAX_BYTES`](crate::Media::MAX_BYTES).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_size: Option<u64>,
}

impl ToolAnnotations {
    /// Creates the annotations of a tool that changes nothing and whose calls may run in parallel.
    pub fn read_only() -> Self {
        Self { effect: Effect::ReadOnly, concurrency_safe: true, ..Self::default() }
    }

    /// Creates the annotations of a tool that may destroy data that cannot be restored. A person is asked
    /// before each call, unless the engine's options allow the calls.
    pub fn destructive() -> Self {
        Self { destructive: true, ..Self::default() }
    }

    /// Requires a person's approval for each call.
    pub fn with_confirmation(mut self) -> Self {
        self.requires_confirmation = true;
        self
    }

    /// Sets the time limit of a call. Default: the limit of the tool engine.
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.timeout_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Sets the media types of the files that the tool takes as arguments, such as `application/pdf` or
    /// `image/*`. Default none.
    ///
    /// ```
    /// use archon_types::ToolAnnotations;
    ///
    /// let annotations = ToolAnnotations::read_only().with_input_types(["application/pdf", "image/*"]);
    /// assert!(annotations.takes_media("image/png") && !annotations.takes_media("audio/wav"));
    /// ```
    pub fn with_input_types(mut self, types: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.input_mime_types = types.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the media types of the files that a result may contain, such as `image/png`. Default: all types.
    pub fn with_output_types(mut self, types: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.output_mime_types = types.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the maximum size in bytes of a file that the tool takes as an argument. Default
    /// [`Media::MAX_BYTES`](crate::Media::MAX_BYTES).
    pub fn with_max_input_size(mut self, bytes: u64) -> Self {
        self.max_input_size = Some(bytes);
        self
    }

    /// Returns true if the tool takes files of this media type as arguments.
    pub fn takes_media(&self, mime_type: &str) -> bool {
        is_listed(&self.input_mime_types, mime_type)
    }

    /// Returns true if a result of the tool may contain files of this media type.
    pub fn may_return(&self, mime_type: &str) -> bool {
        self.output_mime_types.is_empty() || is_listed(&self.output_mime_types, mime_type)
    }

    /// Returns the time limit of a call; `None` if the tool sets no limit.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }
}

/// The effect of a second execution of the same call, which decides about a call that a crash cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// A call changes nothing, so it is run again without a question.
    ReadOnly,
    /// A second execution changes nothing more, so the call is run again under the same call id.
    Idempotent,
    /// A second execution may do harm, so the call is never repeated without a question to a person.
    #[default]
    SideEffect,
}

impl Effect {
    /// Returns true if a call that was cut off may run again without a question.
    pub fn may_repeat(self) -> bool {
        self != Self::SideEffect
    }
}

/// The target of a tool call: a command, files or web addresses. Permission rules are compared with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// The target is unknown.
    #[default]
    Unknown,
    /// A command line of a shell.
    Command {
        /// The command line.
        line: String,
        /// The working folder of the command, as an absolute path without symbolic links.
        root: std::path::PathBuf,
    },
    /// Files or folders, with symbolic links resolved.
    Paths {
        /// The folder that relative paths in permission rules start from, as an absolute path without
        /// symbolic links.
        root: std::path::PathBuf,
        /// The absolute paths. Symbolic links are resolved as far as the path exists.
        paths: Vec<std::path::PathBuf>,
    },
    /// Web addresses.
    Urls(Vec<String>),
}

/// New arguments for a call that would fail with the given ones.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Correction {
    /// The kind of the correction, such as `replace_all`. The options of the tool engine allow corrections by
    /// their kinds.
    pub kind: &'static str,
    /// The corrected arguments.
    pub arguments: Json,
    /// The text that describes the correction to the model.
    pub what: String,
}

impl Correction {
    /// Creates a correction of this kind; `what` describes the correction to the model.
    pub fn new(kind: &'static str, arguments: Json, what: impl Into<String>) -> Self {
        Self { kind, arguments, what: what.into() }
    }
}

/// A progress message of a running tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// One line of text for a person.
    Text(String),
    /// The partial result so far, which replaces the previous one.
    Partial(ToolResult),
}

/// A tool call from outside of a run, with all options of the call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ToolInvocationRequest {
    /// The id of the request, globally unique.
    pub request_id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The version of the tool that the caller expects.
    #[serde(default = "default_version")]
    pub tool_version: String,
    /// The arguments, which are an object.
    pub parameters: Json,
    /// The level of detail of the result; `None` for the level that the tool sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_level: Option<OutputLevel>,
    /// The time limit in milliseconds. Default 120,000.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// True if a call is retried after a timeout, provided that it may be repeated. Default true.
    #[serde(default = "yes")]
    pub retry_on_timeout: bool,
    /// The folder for large results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_dir: Option<String>,
    /// The id of the caller.
    #[serde(default)]
    pub caller_id: String,
    /// The permission level of the caller.
    #[serde(default = "default_permission_level")]
    pub permission_level: String,
}

impl ToolInvocationRequest {
    /// Creates a request with the defaults: version 1.0.0, a time limit of 120 s, one retry after a timeout.
    pub fn new(request_id: impl Into<String>, tool_name: impl Into<String>, parameters: Json) -> Self {
        Self {
            request_id: request_id.into(),
            tool_name: tool_name.into(),
            tool_version: default_version(),
            parameters,
            output_level: None,
            timeout_ms: default_timeout_ms(),
            retry_on_timeout: true,
            storage_dir: None,
            caller_id: String::new(),
            permission_level: default_permission_level(),
        }
    }
}

fn default_timeout_ms() -> u64 {
    120_000
}

fn yes() -> bool {
    true
}

fn default_permission_level() -> String {
    "default".to_owned()
}
