//! Calls the program's hooks around the work of the driver. Without hooks, this costs nothing.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    CallId, Context, Delta, DeltaKind, DynHooks, Event, Hooks, Outcome, OutcomeStatus, ReadyCall, RecordBody,
    RunId, Sink, ToolCall, ToolResult,
};

use crate::{CallStage, CallState, ReactMachine, calls::refusal};

/// Calls the hooks of turns in order, also if a turn fails or is cut off.
pub(crate) struct Turns<'a> {
    hooks: Option<&'a Arc<dyn DynHooks>>,
    open: bool,
    /// The latest failure that was reported to the hooks.
    failure: Option<String>,
}

impl<'a> Turns<'a> {
    pub(crate) fn new(hooks: Option<&'a Arc<dyn DynHooks>>, machine: &ReactMachine) -> Self {
        Self { hooks, open: machine.is_in_turn(), failure: None }
    }

    /// Asks the hooks whether the next turn may start.
    pub(crate) async fn may_begin(&mut self, machine: &ReactMachine, turn: u32) -> bool {
        let Some(hooks) = self.hooks else { return true };
        self.open = hooks.before_turn(machine.messages(), turn).await;
        self.open
    }

    /// Ends the turn if it is over: first emits [`DeltaKind::TurnEnd`], then calls the hooks. So watchers
    /// receive the end of the turn after the hooks of its calls and before the hook of the turn.
    pub(crate) async fn call_hooks(&mut self, machine: &ReactMachine, context: &Context) {
        let Some(hooks) = self.hooks.filter(|_| self.open && !machine.is_in_turn()) else { return };
        self.open = false;
        context.sink.emit(Event::Delta(Delta {
            run: context.run.clone(),
            command: machine.last_command(),
            attempt: 0,
            offset: 0,
            kind: DeltaKind::TurnEnd,
        }));
        hooks.after_turn(machine.messages(), machine.usage()).await;
    }

    /// Reports a failure to the hooks.
    pub(crate) async fn failed(&mut self, error: &str) {
        if let Some(hooks) = self.hooks {
            hooks.on_error(error).await;
            self.failure = Some(error.to_owned());
        }
    }

    /// Reports the end of the run to the hooks. A failure that was reported before is not reported again.
    pub(crate) async fn ended(&self, outcome: &Outcome) {
        let Some(hooks) = self.hooks else { return };
        if let (OutcomeStatus::Failed, Some(error)) = (outcome.status, &outcome.error)
            && self.failure.as_ref() != Some(error)
        {
            hooks.on_error(error).await;
        }
        hooks.after_loop(outcome).await;
    }
}

/// Returns the call that `body` refuses while the call waits for a retry, with the result of its latest
/// start. The tool of such a call ran, unlike the tools of other refused calls.
pub(crate) fn call_without_retry(
    machine: &ReactMachine,
    body: &RecordBody,
) -> Option<(Arc<ToolCall>, ToolResult)> {
    let RecordBody::ToolCallRefused { call, result } = body else { return None };
    let waits = |state: &&CallState| state.id == *call && matches!(state.stage, CallStage::Waiting { .. });
    machine.calls().iter().find(waits).map(|state| (state.call.clone(), (**result).clone()))
}

/// Returns the result of a call that a hook skipped.
pub(crate) fn skipped(tool: &str) -> ToolResult {
    let text = format!("Error: the call of `{tool}` was skipped: a hook of this program does not allow it.");
    refusal(text, "permission_denied")
}

/// The calls of a batch by their ids, for hooks that get a call again with its result.
pub(crate) type Calls = HashMap<CallId, ToolCall>;

/// Returns the context for a batch, in which hooks may hide partial results from watchers.
pub(crate) fn context(
    hooks: Option<&Arc<dyn DynHooks>>,
    ready: &[ReadyCall],
    context: &Context,
) -> Option<Context> {
    let hooks = hooks?.clone();
    let calls = ready.iter().map(|ready| (ready.id, ready.call.clone())).collect();
    let mut hooked = context.clone();
    let run = context.run.clone();
    hooked.sink = Arc::new(HookedSink { inner: context.sink.clone(), hooks, run, calls });
    Some(hooked)
}

struct HookedSink {
    inner: Arc<dyn Sink>,
    hooks: Arc<dyn DynHooks>,
    /// The run of `calls`. Events of its child runs pass through this sink, too.
    run: RunId,
    calls: Calls,
}

impl Sink for HookedSink {
    fn emit(&self, event: Event) {
        let Event::Delta(Delta { run, kind: DeltaKind::ToolPartialResult { call, result }, .. }) = &event
        else {
            return self.inner.emit(event);
        };
        let Some(call) = self.calls.get(call).filter(|_| *run == self.run) else {
            return self.inner.emit(event);
        };
        if self.hooks.before_update(call, result) {
            let result = result.clone();
            self.inner.emit(event);
            self.hooks.after_update(call, &result);
        }
    }
}
