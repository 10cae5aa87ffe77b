//! The [`Tool`] trait and the context of a tool call.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::{
    Json,
    messages::{Media, ToolResult},
    tools::{
        Answer, AnsweredQuestion, ApprovalRequest, Correction, Credentials, Decision, Preview, Processes,
        Progress, Subject, ToolError, ToolSpec,
    },
    values::{CallId, RunId, SessionId, ToolCallId},
};

use super::{
    context::{Context, PermissionBound},
    tool_questions::ToolQuestions,
};

/// A function that a model can call.
///
/// Implement this trait by hand, or write a function with `#[tool]`. The arguments of [`call`](Self::call) match
/// the spec's schema. The model sent them, unless a person edited them or [`correction`](Self::correction) did.
///
/// The future is boxed, unlike that of an [`Approver`](crate::Approver), because tools are stored as `Arc<dyn
/// Tool>`. `#[tool]` and `FnTool` take an `async fn` or a closure, and box the future.
///
/// ```
/// use archon_types::{BoxFuture, Json, Tool, ToolContext, ToolError, ToolResult, ToolSpec};
///
/// /// Counts the characters of a text.
/// struct CountCharacters(ToolSpec);
///
/// impl Tool for CountCharacters {
///     fn spec(&self) -> &ToolSpec {
///         &self.0
///     }
///
///     fn call<'a>(
///         &'a self,
///         arguments: Json,
///         _context: &'a ToolContext,
///     ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
///         Box::pin(async move {
///             let count = arguments["text"].as_str().unwrap_or_default().chars().count();
///             Ok(ToolResult::success(count.to_string().as_str()))
///         })
///     }
/// }
///
/// let schema = serde_json::json!({
///     "type": "object",
///     "properties": { "text": { "type": "string" } },
///     "required": ["text"],
/// });
/// let tool = CountCharacters(ToolSpec::new("count_characters", "Counts the characters of a text.", schema));
/// assert_eq!(tool.spec().name, "count_characters");
/// ```
pub trait Tool: Send + Sync {
    /// Returns the tool's name, description, schema and annotations, which must not change after
    /// registration.
    fn spec(&self) -> &ToolSpec;

    /// Runs the tool. Dropping the future must stop the work.
    ///
    /// # Errors
    /// Any [`ToolError`]. The caller turns an error or a panic into a result for the model.
    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>>;

    /// Returns the change that a call with these arguments would make, for the person who is asked about the
    /// call. This method must change nothing and must not wait. Default: `None`.
    ///
    /// # Errors
    /// The error with which the call would fail; the call is then refused.
    fn preview(&self, arguments: &Json, run: &Context) -> Result<Option<Preview>, ToolError> {
        let _ = (arguments, run);
        Ok(None)
    }

    /// Returns the command, files or addresses that a call with these arguments works on, for permission
    /// rules. Default: [`Subject::Unknown`], so that only rules about the whole tool apply to its calls.
    fn subject(&self, arguments: &Json) -> Subject {
        let _ = arguments;
        Subject::Unknown
    }

    /// Returns corrected arguments if the call would fail with `arguments` and the tool is sure of the
    /// correction. This method must change nothing and must not wait. The engine calls it at most once per
    /// call, and uses the correction only if the engine's options allow its [kind](Correction::kind). Default:
    /// `None`.
    fn correction(&self, arguments: &Json, run: &Context) -> Option<Correction> {
        let _ = (arguments, run);
        None
    }

    /// Returns the names of the tools that this tool calls itself. They are used to detect tools that call
    /// each other in a circle, and to apply permission bounds to indirect calls. Default: empty.
    fn calls(&self) -> &[String] {
        &[]
    }

    /// Restores the state that the tool keeps in memory for a session. When the session is resumed, maybe in
    /// another process, this method is called in order for each earlier result of this tool and for each
    /// earlier message with a [mark](crate::ToolMark) for the tool. This method is also called when a run receives
    /// a message with such a mark. Default: does nothing.
    fn recall(&self, session: &SessionId, result: &ToolResult) {
        let _ = (session, result);
    }

    /// Returns the source of further tools that this tool stands for. A tool with a source is never called
    /// itself. Its name is `PREFIX*`, and the names of the source's tools begin with the prefix. Default: `None`.
    fn source(&self) -> Option<&dyn ToolSource> {
        None
    }
}

/// A source of tools that may not be known when an agent is built, for instance a server that is still
/// starting. See [`Tool::source`].
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{BoxFuture, Tool, ToolSource};
///
/// /// Plugins that the program has already loaded.
/// struct Plugins(Vec<Arc<dyn Tool>>);
///
/// impl ToolSource for Plugins {
///     fn name(&self) -> &str {
///         "plugins"
///     }
///
///     fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, String> {
///         Ok(self.0.clone())
///     }
///
///     fn settled(&self) -> BoxFuture<'_, ()> {
///         Box::pin(std::future::ready(()))
///     }
/// }
/// ```
pub trait ToolSource: Send + Sync {
    /// Returns the name of the source, for the model.
    fn name(&self) -> &str;

    /// Returns the tools that can be called now.
    ///
    /// # Errors
    /// The reason why the tools are not known now, as a sentence without a full stop.
    fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, String>;

    /// Waits until the source knows its tools, or knows that it cannot get them for now. The source itself must
    /// limit the time of this wait.
    fn settled(&self) -> BoxFuture<'_, ()>;
}

/// The context of a running tool call: its run, its cancellation token, and callbacks for progress.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The id of the call, as the model gave it. A model may use an id again, so use [`key`](Self::key) as a unique
    /// id.
    pub tool_call_id: ToolCallId,
    /// The id of the call in its run; `None` outside of a run.
    pub call: Option<CallId>,
    /// The name of the tool.
    pub tool_name: String,
    /// The cancellation token of the call. The future of a cancelled call is dropped soon after.
    pub cancel: CancellationToken,
    /// The context of the run that the call belongs to: tenant, credentials, depth.
    pub run: Context,
    /// Receives progress messages and partial results; without a receiver they are dropped.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// Registers the processes that the tool starts; see [`register_process`](Self::register_process).
    pub processes: Option<Arc<dyn Processes>>,
    /// Checks the permission rules for paths that the tool finds during the call, for instance below a
    /// folder; `None` without rules.
    pub places: Option<Arc<dyn PermissionBound>>,
    /// The target of the call at the time at which the call was allowed; `None` if no check needed it. If the
    /// target has changed, because a symbolic link was changed meanwhile, the tool must not go on.
    pub subject: Option<Arc<Subject>>,
    /// True if a person was asked about this call and approved it.
    pub is_agreed: bool,
}

impl ToolContext {
    /// Creates a context for one call of `run`, whose cancellation token is a child of the run's token.
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

    /// Creates the context of the run that this call starts. A call outside of a run starts a run without a
    /// caller.
    pub fn child(&self) -> Context {
        let mut child = self.run.clone();
        child.depth += 1;
        child.cancel = self.cancel.clone();
        child.delegation = child.delegation.filter(|by| by.caller == self.run.run);
        let run = match &child.delegation {
            Some(by) => by.child.clone(),
            None => RunId::new(self.run.ids.fresh("run")),
        };
        child.begin_child(run);
        child
    }

    /// Returns an idempotency key for requests that the tool sends to a service. Each call of a run has its own
    /// key, and keeps it when the call is executed again after a failure or a crash.
    pub fn key(&self) -> String {
        let run = self.call.map(|call| self.run.run.of_call(call));
        format!("{}.{}", run.as_ref().unwrap_or(&self.run.run), self.tool_call_id)
    }

    /// Returns the picture, PDF file or other medium of the conversation that has this
    /// [reference](Media::reference), which the model gave as an argument of the call.
    ///
    /// # Errors
    /// The conversation has no such medium. The text lists the media of the conversation.
    pub fn media(&self, reference: &str) -> Result<Media, ToolError> {
        self.run.find_media(reference).cloned().map_err(ToolError::InvalidArgs)
    }

    /// Returns the credentials of the run's tenant.
    pub fn credentials(&self) -> Credentials {
        Credentials::new(self.run.credentials.clone(), self.run.tenant.clone(), self.run.redactor.clone())
    }

    /// Removes the run's secrets, such as those from [`credentials`](Self::credentials), from a result. The tool
    /// engine does this with every result and with progress messages.
    pub fn hide_secrets(&self, result: &mut ToolResult) {
        self.run.redactor.clean_result(result);
    }

    /// Registers the process group with the leader `leader`. The group is ended when the call ends, in
    /// whatever way, and after a crash before the run is resumed.
    ///
    /// Wait for this function to return before the process does any work; otherwise the process may survive a
    /// crash unnoticed. Outside of a run this function does nothing.
    ///
    /// # Errors
    /// The call has ended, and the group was ended.
    pub async fn register_process(&self, leader: u32) -> Result<(), ToolError> {
        match &self.processes {
            Some(processes) => processes.register(leader).await,
            None => Ok(()),
        }
    }

    /// Sends a progress message, a text for a person, to the watchers of the run.
    pub fn on_progress(&self, text: impl Into<String>) {
        if let Some(progress) = &self.progress {
            progress(Progress::Text(self.run.redactor.clean(text.into())));
        }
    }

    /// Sends the result so far to the watchers of the run, in place of the previous partial result.
    pub fn on_update(&self, mut partial: ToolResult) {
        if let Some(progress) = &self.progress {
            self.hide_secrets(&mut partial);
            progress(Progress::Partial(partial));
        }
    }
}

/// Questions that a tool asks a person during its call.
impl ToolContext {
    /// Returns true if the call may end with [`ToolError::Suspended`](crate::ToolError::Suspended) and a
    /// question of the tool ([`ApprovalRequest::of_tool`]). The call then waits, even if this process ends,
    /// and is executed again with the answer.
    pub fn may_suspend(&self) -> bool {
        self.questions().is_some_and(|(questions, _)| questions.can_ask)
    }

    /// Returns the last question that the tool asked in this call, with the answer. Every further execution
    /// of the call gets the same question, until the tool asks another question.
    pub fn answered(&self) -> Option<&AnsweredQuestion> {
        self.questions()?.1.as_deref()
    }

    /// Returns true if this process has an approver that [`ask_now`](Self::ask_now) can ask.
    pub fn can_ask_now(&self) -> bool {
        self.questions().is_some_and(|(questions, _)| questions.can_ask && questions.approver.is_some())
    }

    /// Asks the approver of this process while the call runs, and waits for the answer. Returns `None` if
    /// there is no approver, or if it defers the answer. The question is not in the log, so use this only for
    /// a call that cannot be suspended.
    pub async fn ask_now(&self, mut request: ApprovalRequest) -> Option<Answer> {
        let (questions, _) = self.questions()?;
        let approver = questions.approver.as_ref().filter(|_| questions.can_ask)?;
        if request.agent_name.is_empty() {
            request.agent_name.clone_from(&questions.agent_name);
        }
        match approver.boxed_decide(&request).await {
            Decision::Now(answer) => Some(answer),
            Decision::Later => None,
        }
    }

    /// Returns the tool questions of the run and the answer for this call; `None` for a call that is not in
    /// the log, such as a call that a tool makes.
    fn questions(&self) -> Option<(&ToolQuestions, &Option<Arc<AnsweredQuestion>>)> {
        let questions =
            self.run.tool_questions.as_deref().filter(|questions| questions.run == self.run.run)?;
        Some((questions, questions.answered.get(&self.call?)?))
    }
}

crate::debug_fields!(ToolContext: tool_call_id, tool_name);
