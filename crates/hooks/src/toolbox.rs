//! A toolbox whose calls pass hooks.

use std::{any::Any, sync::Arc};

use archon_types::{
    ApprovalRequest, BoxFuture, CallId, Content, Context, Encoded, Executed, Json, Prepared, ProcessGroup,
    QuestionKind, ReadyCall, SessionId, Subject, ToolCall, ToolResult, ToolResultStatus, ToolSpec, Toolbox,
    metadata,
};
use serde_json::json;

use crate::{
    EventHooks,
    event::{HookEvent, Occurrence},
    event_hooks::context_text,
    verdict::{Answer, Verdict},
};

/// The most characters of the arguments in a question.
const SHOWN: usize = 200;

/// A [`Toolbox`] with the tools of another toolbox, whose calls also pass hooks. [`EventHooks::toolbox`] makes it.
///
/// The other toolbox decides first, and hooks can only make its decision stricter. A call that it refuses is refused
/// without asking the hooks. A call about which it asks a person can also be refused. A call that it allows can be
/// refused, or a person is asked. A call that hooks refuse is in the log as every other refused call.
///
/// Hooks see a call again when a person answered a question about it, and when it is retried, because arguments may
/// have changed. So a hook with an effect of its own may have it more than once for a call.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_hooks::{EventHooks, HookedToolbox};
/// use archon_types::Toolbox;
///
/// /// Returns the names of the tools: those of `tools`, whatever the hooks are.
/// fn names(hooks: &EventHooks, tools: Arc<dyn Toolbox>) -> Vec<String> {
///     let hooked: HookedToolbox = hooks.toolbox(tools);
///     hooked.specs().iter().map(|spec| spec.name.clone()).collect()
/// }
/// ```
pub struct HookedToolbox {
    inner: Arc<dyn Toolbox>,
    hooks: EventHooks,
}

/// The notes of a call that hooks have seen, around those of the inner toolbox.
struct Checked(Option<Box<dyn Any + Send + Sync>>);

impl EventHooks {
    /// Returns a toolbox with the tools of `inner`, whose calls pass these hooks too.
    pub fn toolbox(&self, inner: Arc<dyn Toolbox>) -> HookedToolbox {
        HookedToolbox { inner, hooks: self.clone() }
    }
}

impl HookedToolbox {
    /// Returns the hooks' answer about a call; `None` if the run was cancelled meanwhile.
    async fn ask_hooks(
        &self,
        event: HookEvent,
        call: &ToolCall,
        run: &Context,
        more: Json,
    ) -> Option<Answer> {
        if !self.hooks.has(event, Some(&call.name)) {
            return Some(Answer::default());
        }
        let mut fields =
            json!({ "tool_name": call.name, "tool_input": call.arguments, "tool_use_id": call.id });
        if let (Json::Object(fields), Json::Object(more)) = (&mut fields, more) {
            fields.extend(more);
        }
        self.run(event, &call.name, fields, run).await
    }

    async fn run(&self, event: HookEvent, subject: &str, mut fields: Json, run: &Context) -> Option<Answer> {
        fields["session_id"] = json!(run.session.as_str());
        fields["run_id"] = json!(run.run.as_str());
        run.redactor.clean_json(&mut fields);
        let occurrence = Occurrence::new(event, Some(subject), fields);
        run.cancel.run_until_cancelled(self.hooks.run(&occurrence)).await
    }

    /// Returns the decision of the inner toolbox, or a stricter one.
    async fn judge(&self, prepared: Prepared, call: &ToolCall, run: &Context) -> Prepared {
        let call = match &prepared {
            // Its arguments may have been corrected.
            Prepared::Ready(ready) => ready.call.clone(),
            Prepared::Ask(_) => call.clone(),
            _ => return prepared,
        };
        let Some(answer) = self.ask_hooks(HookEvent::BeforeTool, &call, run, Json::Null).await else {
            return Prepared::Refused(Box::new(cancellation()));
        };
        let spec = self.spec(&call.name);
        match stricter(prepared, answer.verdict, &call, spec.as_ref(), run) {
            Prepared::Ask(question) => self.question(question, &call, run).await,
            Prepared::Ready(mut ready) => {
                ready.notes = Some(Box::new(Checked(ready.notes.take())));
                Prepared::Ready(ready)
            }
            other => other,
        }
    }

    /// Passes a question about a call to the hooks, which may refuse the call.
    async fn question(&self, question: Box<ApprovalRequest>, call: &ToolCall, run: &Context) -> Prepared {
        let Some(answer) = self.ask_hooks(HookEvent::Permission, call, run, Json::Null).await else {
            return Prepared::Refused(Box::new(cancellation()));
        };
        if let Verdict::Deny(reason) = answer.verdict {
            return Prepared::Refused(Box::new(refusal(&call.name, &reason)));
        }
        self.notify(&question, run).await;
        Prepared::Ask(question)
    }

    async fn notify(&self, question: &ApprovalRequest, run: &Context) {
        let kind = match question.kind {
            QuestionKind::Input => "elicitation_dialog",
            _ => "permission_prompt",
        };
        if self.hooks.has(HookEvent::Notification, Some(kind)) {
            let fields = json!({ "notification_type": kind, "message": question.action_summary });
            self.run(HookEvent::Notification, kind, fields, run).await;
        }
    }

    fn spec(&self, name: &str) -> Option<ToolSpec> {
        let listed = self.inner.specs().iter().find(|spec| spec.name == name).cloned();
        listed.or_else(|| self.inner.sourced_spec(name))
    }

    async fn execute_checked(&self, mut ready: ReadyCall, run: &Context) -> Executed {
        let notes = ready.notes.take().map(|notes| notes.downcast::<Checked>());
        match notes {
            Some(Ok(checked)) => ready.notes = checked.0,
            other => {
                // Another toolbox prepared the call, or an earlier process did: only a no counts, because whoever
                // executes an unprepared call has the person's consent.
                ready.notes = other.and_then(Result::err);
                match self.ask_hooks(HookEvent::BeforeTool, &ready.call, run, Json::Null).await {
                    None => return Executed::Done(Box::new(cancellation())),
                    Some(Answer { verdict: Verdict::Deny(reason), .. }) => {
                        return Executed::Done(Box::new(refusal(&ready.call.name, &reason)));
                    }
                    Some(_) => {}
                }
            }
        }
        let call = ready.call.clone();
        match self.inner.execute(ready, run).await {
            Executed::Done(mut result) => {
                let is_error = result.status != ToolResultStatus::Success;
                let more = json!({ "tool_response": { "text": result.text(), "is_error": is_error } });
                if let Some(answer) = self.ask_hooks(HookEvent::AfterTool, &call, run, more).await
                    && !answer.context.is_empty()
                {
                    result.content.push(Content::text(context_text(&answer.context)));
                }
                Executed::Done(result)
            }
            Executed::Suspended(question) => {
                self.notify(&question, run).await;
                Executed::Suspended(question)
            }
            other => other,
        }
    }
}

impl Toolbox for HookedToolbox {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        self.inner.specs()
    }

    fn sourced_spec(&self, name: &str) -> Option<ToolSpec> {
        self.inner.sourced_spec(name)
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, run: &'a Context) -> BoxFuture<'a, Prepared> {
        Box::pin(async move { self.judge(self.inner.prepare(id, call, run).await, call, run).await })
    }

    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
        Box::pin(self.execute_checked(ready, run))
    }

    fn end_processes<'a>(
        &'a self,
        groups: &'a [ProcessGroup],
        run: &'a Context,
    ) -> BoxFuture<'a, Vec<ProcessGroup>> {
        self.inner.end_processes(groups, run)
    }

    fn recall(&self, session: &SessionId, tool: &str, result: &ToolResult) {
        self.inner.recall(session, tool, result);
    }
}

archon_types::debug_fields!(HookedToolbox: hooks);

/// Returns a decision after the verdict of hooks, which is never less strict.
fn stricter(
    prepared: Prepared,
    verdict: Verdict,
    call: &ToolCall,
    spec: Option<&ToolSpec>,
    run: &Context,
) -> Prepared {
    match (prepared, verdict) {
        (refusal @ Prepared::Refused(_), _) => refusal,
        (_, Verdict::Deny(reason)) => Prepared::Refused(Box::new(refusal(&call.name, &reason))),
        (Prepared::Ask(mut question), Verdict::Ask(reason)) => {
            question.action_summary = format!("{} (a hook asks: {reason})", question.action_summary);
            Prepared::Ask(question)
        }
        (Prepared::Ready(ready), Verdict::Ask(reason)) => match spec {
            Some(spec) if is_agreed(spec, call, run) => Prepared::Ready(ready),
            Some(spec) => Prepared::Ask(Box::new(question(spec, call, &reason, run))),
            // Without its description, no answer could be bound to the call.
            None => Prepared::Refused(Box::new(refusal(&call.name, &reason))),
        },
        (prepared, _) => prepared,
    }
}

/// Returns whether a person agreed to exactly this call, whoever asked.
fn is_agreed(spec: &ToolSpec, call: &ToolCall, run: &Context) -> bool {
    let arguments = &call.arguments;
    run.agreed
        .as_deref()
        .is_some_and(|agreed| archon_types::rebound(agreed, spec, arguments, arguments).is_some())
}

fn question(spec: &ToolSpec, call: &ToolCall, reason: &str, run: &Context) -> ApprovalRequest {
    let shown = archon_types::shorten(&call.arguments.to_string(), SHOWN, " ...");
    let summary = format!("Run {} with {shown} (a hook asks: {reason})", call.name);
    let details = json!({ "tool": call.name, "arguments": call.arguments });
    let mut question = ApprovalRequest::new(run.ids.fresh("approval"), summary, details);
    question.binding = archon_types::binding(spec, &call.arguments, &Subject::Unknown);
    question
}

fn refusal(tool: &str, reason: &str) -> ToolResult {
    let reason = reason.trim_end_matches(['.', ' ']);
    let text = format!("A hook refused this call of '{tool}': {reason}. It was not run. Go on without it.");
    ToolResult::error(text).with_metadata(metadata::ERROR_TYPE, "hook_refused")
}

fn cancellation() -> ToolResult {
    ToolResult::cancelled("Cancelled before its hooks answered")
        .with_metadata(metadata::ERROR_TYPE, "cancelled")
}

#[cfg(test)]
#[path = "toolbox_tests.rs"]
mod tests;
