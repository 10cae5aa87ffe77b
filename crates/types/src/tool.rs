//! Defines the [`Tool`] trait, the description of a tool for the model, and the context of a call.

use std::{sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    CallId, Ceiling, Context, Credentials, Json, Preview, Processes, SessionId, ToolCallId, ToolError,
    ToolResult,
};

/// A function that a model can call.
///
/// Implement it by hand, or write a function with `#[tool]`. The arguments of [`call`](Self::call) were
/// validated against the spec's schema and are otherwise exactly as the model sent them.
///
/// The future is boxed, unlike that of an [`Approver`](crate::Approver), because tools are held as `Arc<dyn
/// Tool>`. `#[tool]` and `FnTool` take an `async fn` or a closure, and box it for you.
pub trait Tool: Send + Sync {
    /// Returns the tool's name, description, schema and annotations. Must not change while the tool is
    /// registered.
    fn spec(&self) -> &ToolSpec;

    /// Runs the tool. Dropping the future must stop the work.
    ///
    /// # Errors
    /// Any [`ToolError`]; the caller turns it, like a panic, into a result for the model.
    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>>;

    /// Returns the change that a call with these arguments would make, for the person who is asked about it.
    /// Must change nothing and must not wait. Default: none.
    ///
    /// # Errors
    /// The call would fail with this error; it is refused.
    fn preview(&self, arguments: &Json, run: &Context) -> Result<Option<Preview>, ToolError> {
        let _ = (arguments, run);
        Ok(None)
    }

    /// Returns the command, files or addresses that a call with these arguments works on, for permission
    /// rules. Default: [`Subject::Unknown`]; then only rules about the whole tool apply to its calls.
    fn subject(&self, arguments: &Json) -> Subject {
        let _ = arguments;
        Subject::Unknown
    }

    /// Returns corrected arguments in place of these, which were refused, if the tool is sure of the
    /// correction. Must change nothing and must not wait. Called once per call, and only if the engine's
    /// options allow corrections of that kind. Default: none.
    fn correction(&self, arguments: &Json, run: &Context) -> Option<Correction> {
        let _ = (arguments, run);
        None
    }

    /// Returns the names of the tools that it calls itself. They are used to detect tools that call each
    /// other in a circle, and to apply permission bounds to indirect calls. Default: empty.
    fn calls(&self) -> &[String] {
        &[]
    }

    /// Restores the state that the tool keeps in memory for a session, when the session is resumed, maybe in
    /// another process. Called for each earlier result of this tool, in order.
    fn recall(&self, session: &SessionId, result: &ToolResult) {
        let _ = (session, result);
    }
}

/// Arguments in place of some that would have failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Correction {
    /// The kind of the correction, as options name it, for instance `replace_all`.
    pub kind: &'static str,
    /// The corrected arguments.
    pub arguments: Json,
    /// The text that tells the model about the correction.
    pub what: String,
}

impl Correction {
    /// Creates a correction.
    pub fn new(kind: &'static str, arguments: Json, what: impl Into<String>) -> Self {
        Self { kind, arguments, what: what.into() }
    }
}

/// The target of a call, as permission rules see it.
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
        /// The working folder: absolute, without symbolic links.
        root: std::path::PathBuf,
    },
    /// Files or folders, with symbolic links resolved.
    Paths {
        /// The folder that relative rules are resolved against: absolute, without symbolic links.
        root: std::path::PathBuf,
        /// The paths: absolute; symbolic links are resolved as far as the path exists.
        paths: Vec<std::path::PathBuf>,
    },
    /// Web addresses.
    Urls(Vec<String>),
}

/// The description of a tool: for the model, for people and for the engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ToolSpec {
    /// The name, unique in a registry: letters, digits, `_`, `-`, and `.` for namespaces.
    pub name: String,
    /// The name for people; if empty, `name` is shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The text for the model: what the tool does, when to use it, its inputs and outputs.
    pub description: String,
    /// JSON Schema of the arguments; an object schema.
    pub parameters: Json,
    /// The version; it grows with every change of the tool's behaviour.
    #[serde(default = "default_version")]
    pub version: String,
    /// The tool's effects and how it wants to be run.
    #[serde(default)]
    pub annotations: ToolAnnotations,
    /// Example calls: argument objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Json>,
    /// Names of similar tools, best first. The model is told of them while the circuit breaker of this tool
    /// is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
}

/// The part of a [`ToolSpec`] that a model reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolDefinition {
    /// The tool's name.
    pub name: String,
    /// The text for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Json,
}

impl ToolSpec {
    /// Creates a spec with default annotations: side effects, no permissions needed.
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

    /// Sets tools that can replace this one, best first.
    pub fn with_alternatives<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.alternatives = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the annotations.
    pub fn with_annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// Returns the part that a model reads.
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

/// The effects of a tool and how it wants to be run. The defaults assume the worst.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// The effect of a second execution of the same call.
    pub effect: Effect,
    /// True if it may run in parallel with other calls of the same turn.
    pub concurrency_safe: bool,
    /// True if each call needs a person's consent.
    pub requires_confirmation: bool,
    /// True if it may destroy data that cannot be restored.
    pub destructive: bool,
    /// True if the tool is an agent: each call starts a child run, which has a part of the caller's budget
    /// and ends by itself when the call is cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub agent: bool,
    /// True if it depends on a network, so that a failed call may succeed a moment later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// True if it blocks its thread while it works; it then runs on a thread for blocking work.
    pub blocking: bool,
    /// Permissions that it must be granted, for instance `fs_write`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// The time limit of a call in milliseconds, instead of the engine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The detail of its results, unless the caller sets another level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_level: Option<OutputLevel>,
    /// True if the tool may hide parts of its results from the model: of a JSON object with
    /// `"_internal_only": true` the model reads only the value of `result`. For other tools this mark is
    /// ignored, because foreign data that they pass on could contain it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub internal_results: bool,
}

impl ToolAnnotations {
    /// Creates the annotations of a tool that changes nothing and may run in parallel.
    pub fn read_only() -> Self {
        Self { effect: Effect::ReadOnly, concurrency_safe: true, ..Self::default() }
    }

    /// Creates the annotations of a tool that may destroy data that cannot be restored. A person is asked
    /// before each call, unless the engine's options say otherwise.
    pub fn destructive() -> Self {
        Self { destructive: true, ..Self::default() }
    }

    /// Makes each call need a person's consent.
    pub fn with_confirmation(mut self) -> Self {
        self.requires_confirmation = true;
        self
    }

    /// Sets the time limit of a call.
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.timeout_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Returns the time limit of a call, if the tool sets one.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }
}

/// The effect of a second execution of the same call. It decides what happens to a call that a crash cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// A call changes nothing. It is simply run again.
    ReadOnly,
    /// A second execution changes nothing more. It is run again under the same call id.
    Idempotent,
    /// A second execution may do harm. It is never repeated without asking.
    #[default]
    SideEffect,
}

impl Effect {
    /// Returns true if a call that was cut off may simply run again.
    pub fn may_repeat(self) -> bool {
        self != Self::SideEffect
    }
}

/// The amount of detail in a formatted result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OutputLevel {
    /// One line.
    Brief,
    /// A summary of the result.
    #[default]
    Standard,
    /// The whole result, or a file with it.
    Full,
}

/// The context of a running tool call: its run, its cancellation, and callbacks for progress.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The id of the call, as the model gave it; models repeat ids. See [`key`](Self::key).
    pub tool_call_id: ToolCallId,
    /// The place of the call in its run; none outside of a run.
    pub call: Option<CallId>,
    /// The tool's name.
    pub tool_name: String,
    /// Cancels the call; its future is dropped soon after.
    pub cancel: CancellationToken,
    /// The context of the run that the call belongs to: tenant, credentials, depth.
    pub run: Context,
    /// Receives progress and partial results; without it they are dropped.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Registers the processes that the tool starts; see [`register_process`](Self::register_process).
    pub processes: Option<Arc<dyn Processes>>,
    /// Checks permission rules for paths that the call finds by itself, for instance below a folder; none if
    /// there are no rules.
    pub places: Option<Arc<dyn Ceiling>>,
    /// The target of the call at the moment when it was allowed; none if no check needed it. If the target is
    /// another by now, because a symbolic link was changed meanwhile, the tool must not go on.
    pub subject: Option<Arc<Subject>>,
    /// True if a person was asked about this call and agreed.
    pub is_agreed: bool,
}

impl ToolContext {
    /// Creates a context for one call of `run`. The call's cancellation token is a child of the run's.
    pub fn new(run: Context, tool_call_id: ToolCallId, tool_name: impl Into<String>) -> Self {
        let cancel = run.cancel.child_token();
        let tool_name = tool_name.into();
        Self {
            tool_call_id,
            call: None,
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

    /// Returns a key of the call for other services, as an idempotency key: another call has another key, and
    /// the call has the same key when it is run again after a failure or a crash.
    pub fn key(&self) -> String {
        let run = self.call.map(|call| self.run.run.of_call(call));
        format!("{}.{}", run.as_ref().unwrap_or(&self.run.run), self.tool_call_id)
    }

    /// Returns the credentials of the run's tenant.
    pub fn credentials(&self) -> Credentials {
        Credentials::new(self.run.credentials.clone(), self.run.tenant.clone(), self.run.redactor.clone())
    }

    /// Removes the run's secrets, such as those from [`credentials`](Self::credentials), from a result. An
    /// engine does this with every result and with progress.
    pub fn hide_secrets(&self, result: &mut ToolResult) {
        self.run.redactor.clean_result(result);
    }

    /// Registers the process group with the leader `leader`: it is ended when the call ends, in whatever way,
    /// and after a crash before the run is resumed.
    ///
    /// Wait for this to return before the process does any work; otherwise it may survive a crash unnoticed.
    /// Outside of a run this does nothing.
    ///
    /// # Errors
    /// The call is over; the group was ended.
    pub async fn register_process(&self, leader: u32) -> Result<(), ToolError> {
        match &self.processes {
            Some(processes) => processes.register(leader).await,
            None => Ok(()),
        }
    }

    /// Shows a person what the tool is doing.
    pub fn on_progress(&self, text: impl Into<String>) {
        if let Some(progress) = &self.progress {
            progress(Progress::Text(self.run.redactor.clean(text.into())));
        }
    }

    /// Shows the partial result of the tool.
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

/// A message of a running tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A line for a person.
    Text(String),
    /// The partial result so far; replaces the one before.
    Partial(ToolResult),
}

/// A tool call from outside of a run, with all its options.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ToolInvocationRequest {
    /// The id of the request, globally unique.
    pub request_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// The version of the tool that the caller expects.
    #[serde(default = "default_version")]
    pub tool_version: String,
    /// The arguments; an object.
    pub parameters: Json,
    /// The detail that the caller wants in the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_level: Option<OutputLevel>,
    /// Time limit in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// True if a call that timed out is retried, provided that the tool may be repeated.
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
    /// Creates a request with the defaults: version 1.0.0, 120 seconds, one retry after a time-out.
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
