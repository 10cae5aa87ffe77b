//! Tools: what a model may ask for, how it is described, and the one call that does it.

use std::{sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    Ceiling, Context, Credentials, Json, Preview, Processes, SessionId, ToolCallId, ToolError, ToolResult,
};

/// Something that a model can call.
///
/// Implement it by hand, or write a function with `#[tool]`. Arguments reach [`call`](Self::call)
/// validated against the spec's schema, exactly as the model sent them.
///
/// The future is boxed here, unlike that of an [`Approver`](crate::Approver): engines hold tools as `Arc<dyn Tool>` and call
/// them once for each call of a model, so a second trait would box the same future a layer further. `#[tool]` and `FnTool`
/// take an `async fn` or a closure, and box it for you.
pub trait Tool: Send + Sync {
    /// The tool's name, description, schema and traits. Must not change while the tool is registered.
    fn spec(&self) -> &ToolSpec;

    /// Runs the tool. Dropping the future must stop the work.
    ///
    /// # Errors
    /// [`ToolError`] says what went wrong; the caller turns it, like a panic, into a result.
    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>>;

    /// What a call with these arguments would change, for the person who is asked about it, or why it cannot
    /// be done. Changes nothing and does not wait. By default nothing is known.
    ///
    /// # Errors
    /// The call would fail with this error; it is refused.
    fn preview(&self, arguments: &Json, run: &Context) -> Result<Option<Preview>, ToolError> {
        let _ = (arguments, run);
        Ok(None)
    }

    /// What a call with these arguments works on, for rules that speak of it. By default nothing is known, and only
    /// rules about the whole tool speak of its calls.
    fn subject(&self, arguments: &Json) -> Subject {
        let _ = arguments;
        Subject::Unknown
    }

    /// Arguments that would work in place of these, which were refused, where that is sure. Changes nothing and does
    /// not wait. An engine uses it once for each call, if its options allow corrections of that kind. By default
    /// nothing is corrected.
    fn correction(&self, arguments: &Json, run: &Context) -> Option<Correction> {
        let _ = (arguments, run);
        None
    }

    /// The names of the tools that it calls itself, so that tools that call each other in a circle are found before
    /// they do, and so that what those above may not do is not done by way of them. By default there are none.
    fn calls(&self) -> &[String] {
        &[]
    }

    /// A session is taken up in which a call of this tool came to `result`, maybe in another process: what the tool keeps
    /// of a session in memory, it finds there again. Results come in their order.
    fn recall(&self, session: &SessionId, result: &ToolResult) {
        let _ = (session, result);
    }
}

/// Arguments in place of some that could not work.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Correction {
    /// What is done, in a word that options name, for instance `replace_all`.
    pub kind: &'static str,
    /// The arguments that would work.
    pub arguments: Json,
    /// What was changed, for the model.
    pub what: String,
}

impl Correction {
    /// Other arguments, and what was changed.
    pub fn new(kind: &'static str, arguments: Json, what: impl Into<String>) -> Self {
        Self { kind, arguments, what: what.into() }
    }
}

/// What a call works on, as rules speak of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// Nothing is known about it.
    #[default]
    Unknown,
    /// A command line of a shell, and the folder that it begins in.
    Command {
        /// The line.
        line: String,
        /// Absolute, without links.
        root: std::path::PathBuf,
    },
    /// Files or folders, resolved: as they are reached once links are followed. `root` is the folder that relative
    /// rules are meant from.
    Paths {
        /// Absolute, without links.
        root: std::path::PathBuf,
        /// Absolute, without links as far as they exist.
        paths: Vec<std::path::PathBuf>,
    },
    /// Addresses.
    Urls(Vec<String>),
}

/// What a tool says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ToolSpec {
    /// Unique in a registry: letters, digits, `_`, `-` and `.` for namespaces.
    pub name: String,
    /// For people; empty means the name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// For the model: what it does, when to use it, what goes in, what comes out.
    pub description: String,
    /// JSON Schema of the arguments; an object schema.
    pub parameters: Json,
    /// Grows with every change of meaning.
    #[serde(default = "default_version")]
    pub version: String,
    /// What the tool does to the world, and how it wants to be run.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// Calls that show how the tool is used: argument objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Json>,
    /// Names of tools that do about the same, best first: named to the model while this one is left
    /// alone because it keeps failing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
}

/// The part of a [`ToolSpec`] that a model reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolDefinition {
    /// The tool's name.
    pub name: String,
    /// What the model reads about it.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Json,
}

impl ToolSpec {
    /// A spec with default annotations: side effects, no permissions asked.
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
        }
    }

    /// The same spec with tools that can stand in for it, best first.
    pub fn with_alternatives<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.alternatives = names.into_iter().map(Into::into).collect();
        self
    }

    /// The same spec with other annotations.
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// The part that a model reads.
    pub fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters.clone(),
        }
    }
}

fn default_version() -> String {
    "1.0.0".to_owned()
}

/// What a tool does to the world, and how it wants to be run. The defaults assume the worst.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// What a second run of the same call would do.
    pub effect: Effect,
    /// May run beside other calls of the same turn.
    pub concurrency_safe: bool,
    /// Needs a person's consent each time.
    pub requires_confirmation: bool,
    /// May destroy what cannot be brought back.
    pub destructive: bool,
    /// It is an agent: each call starts a run of its own, which has a part of the caller's budget and ends
    /// by itself when the call is cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub agent: bool,
    /// It works with other machines over a network: what failed may work a moment later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Does not yield while it works, so it runs on a thread that may block.
    pub blocking: bool,
    /// What it must be granted, for instance `fs_write`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// Its own time limit in milliseconds, instead of the engine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How much detail its results have unless the caller says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_level: Option<OutputLevel>,
    /// It may say that a result is for the program: of a JSON object with `"_internal_only": true` the model reads only
    /// what is under `result`. Of other tools it reads all, as what they pass on may say so of itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub internal_results: bool,
}

impl ToolAnnotations {
    /// For a tool that changes nothing and may run beside others.
    pub fn read_only() -> Self {
        Self { effect: Effect::ReadOnly, concurrency_safe: true, ..Self::default() }
    }

    /// For a tool that may destroy what cannot be brought back: a person is asked before, unless the engine's options
    /// say otherwise.
    pub fn destructive() -> Self {
        Self { destructive: true, ..Self::default() }
    }

    /// The same annotations of a tool whose every call needs a person's consent.
    pub fn with_confirmation(mut self) -> Self {
        self.requires_confirmation = true;
        self
    }

    /// The same annotations with a time limit of the tool's own.
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.timeout_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// The tool's own time limit, if it has one.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }
}

/// What a second run of the same call would do; decides what happens to a call that a crash cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing changes: run it again.
    ReadOnly,
    /// The second run changes nothing more: run it again under the same call id.
    Idempotent,
    /// The second run may do harm: never repeated silently.
    #[default]
    SideEffect,
}

impl Effect {
    /// Whether a call that was cut off may simply run again.
    pub fn may_repeat(self) -> bool {
        self != Self::SideEffect
    }
}

/// How much detail a formatted result has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OutputLevel {
    /// A line.
    Brief,
    /// The gist.
    #[default]
    Standard,
    /// Everything, or a file with everything.
    Full,
}

/// What a running tool may use: its call, its run, its cancellation, and two ways to be heard early.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The call, as the model named it.
    pub tool_call_id: ToolCallId,
    /// The tool's name.
    pub tool_name: String,
    /// Fires when the call is to stop; the future is dropped soon after.
    pub cancel: CancellationToken,
    /// The run that the call belongs to: tenant, credentials, depth.
    pub run: Context,
    /// Takes what the tool says before it is done; without one it is not heard.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Keeps the processes that the tool starts; see [`register_process`](Self::register_process).
    pub processes: Option<Arc<dyn Processes>>,
    /// What rules say of the places that the call comes across by itself, for instance below a folder; none where there
    /// are no rules.
    pub places: Option<Arc<dyn Ceiling>>,
    /// What the call worked on when rules and people let it through; none where nobody had to know. A tool that arrives
    /// elsewhere by now, because a link was changed meanwhile, must not go on.
    pub subject: Option<Arc<Subject>>,
    /// A person was asked about this call, and agreed.
    pub is_agreed: bool,
}

impl ToolContext {
    /// A context for one call of `run`. The call's token ends with the run's.
    pub fn new(run: Context, tool_call_id: ToolCallId, tool_name: impl Into<String>) -> Self {
        let cancel = run.cancel.child_token();
        let tool_name = tool_name.into();
        Self {
            tool_call_id,
            tool_name,
            cancel,
            run,
            progress: None,
            processes: None,
            places: None,
            subject: None,
            is_agreed: false,
        }
    }

    /// The accounts of the run's tenant.
    pub fn credentials(&self) -> Credentials {
        Credentials::new(self.run.credentials.clone(), self.run.tenant.clone(), self.run.redactor.clone())
    }

    /// Blacks out the secrets of the run, such as what [`credentials`](Self::credentials) gave, wherever they stand in a
    /// result. An engine does it with every result, and progress is looked through before anybody hears it.
    pub fn hide_secrets(&self, result: &mut ToolResult) {
        self.run.redactor.clean_result(result);
    }

    /// Hands over the process group that `leader` leads, so that it ends when the call does, however that
    /// happens, and so that whoever takes the run up after a crash ends it first.
    ///
    /// A process that works before this returns may outlive a crash unseen. Outside a run nobody takes
    /// charge, and this does nothing.
    ///
    /// # Errors
    /// The call is over; the group was ended.
    pub async fn register_process(&self, leader: u32) -> Result<(), ToolError> {
        match &self.processes {
            Some(processes) => processes.register(leader).await,
            None => Ok(()),
        }
    }

    /// Tells a person what the tool is doing.
    pub fn on_progress(&self, text: impl Into<String>) {
        if let Some(progress) = &self.progress {
            progress(Progress::Text(self.run.redactor.clean(text.into())));
        }
    }

    /// Shows what the tool has so far.
    pub fn on_update(&self, mut partial: ToolResult) {
        if let Some(progress) = &self.progress {
            self.hide_secrets(&mut partial);
            progress(Progress::Partial(partial));
        }
    }
}

impl std::fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolContext")
            .field("tool_call_id", &self.tool_call_id)
            .field("tool_name", &self.tool_name)
            .finish_non_exhaustive()
    }
}

/// What a tool says before it is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A line for a person.
    Text(String),
    /// What there is so far; replaces the partial result before.
    Partial(ToolResult),
}

/// A call with everything that a caller outside a run may say about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ToolInvocationRequest {
    /// Unique everywhere.
    pub request_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// The version that the caller expects.
    #[serde(default = "default_version")]
    pub tool_version: String,
    /// The arguments; an object.
    pub parameters: Json,
    /// How much detail the caller wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_level: Option<OutputLevel>,
    /// Time limit in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Whether a time-out is tried again, for tools that may be repeated.
    #[serde(default = "yes")]
    pub retry_on_timeout: bool,
    /// Where large results are put.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_dir: Option<String>,
    /// Who calls.
    #[serde(default)]
    pub caller_id: String,
    /// What the caller may do.
    #[serde(default = "default_permission_level")]
    pub permission_level: String,
}

impl ToolInvocationRequest {
    /// A request with the defaults: version 1.0.0, 120 seconds, one retry of a time-out.
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
