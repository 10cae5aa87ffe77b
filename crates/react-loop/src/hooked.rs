//! Hooks around what the driver does; without hooks none of this costs anything.

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    CallId, Context, Delta, DeltaKind, DynHooks, Event, Hooks, Outcome, OutcomeStatus, ReadyCall, RecordBody,
    RunId, Sink, ToolCall, ToolResult, ToolResultStatus, metadata,
};

use crate::{CallStage, CallState, ReactMachine};

/// Calls the hooks of turns in order, whatever happens in between.
pub(crate) struct Turns<'a> {
    hooks: Option<&'a dyn DynHooks>,
    open: bool,
    /// The latest failure that was heard.
    failure: Option<String>,
}

impl<'a> Turns<'a> {
    pub(crate) fn new(hooks: Option<&'a dyn DynHooks>, machine: &ReactMachine) -> Self {
        Self { hooks, open: machine.is_in_turn(), failure: None }
    }

    /// Whether the next turn may begin.
    pub(crate) async fn may_begin(&mut self, machine: &ReactMachine, turn: u32) -> bool {
        let Some(hooks) = self.hooks else { return true };
        self.open = hooks.before_turn(machine.messages(), turn).await;
        self.open
    }

    /// Looks whether the turn is over. Watchers hear of that between what hooks hear of its calls and what they hear of
    /// the turn.
    pub(crate) async fn look(&mut self, machine: &ReactMachine, context: &Context) {
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

    /// Something failed.
    pub(crate) async fn failed(&mut self, error: &str) {
        if let Some(hooks) = self.hooks {
            hooks.on_error(error).await;
            self.failure = Some(error.to_owned());
        }
    }

    /// The run is over. The failure that ended it is heard once.
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

/// The call that `body` ends without another try, and its last result: unlike others that are refused, its tool ran.
pub(crate) fn given_up(machine: &ReactMachine, body: &RecordBody) -> Option<(Arc<ToolCall>, ToolResult)> {
    let RecordBody::ToolRefused { call, result } = body else { return None };
    let waits = |state: &&CallState| state.id == *call && matches!(state.stage, CallStage::Waiting { .. });
    machine.calls().iter().find(waits).map(|state| (state.call.clone(), (**result).clone()))
}

/// What the model reads of a call that a hook skipped.
pub(crate) fn skipped(tool: &str) -> ToolResult {
    let text = format!("Error: the call of `{tool}` was skipped: a hook of this program does not allow it.");
    ToolResult::failed(ToolResultStatus::Error, text.clone(), text)
        .with_metadata(metadata::ERROR_TYPE, "permission_denied")
}

/// The calls of a batch by their ids, for the hooks that hear of them later.
pub(crate) type Calls = HashMap<CallId, ToolCall>;

/// The context in which a batch runs: its watchers see what the hooks let through.
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
    /// The run whose calls these are; runs that they start are heard here, too.
    run: RunId,
    calls: Calls,
}

impl Sink for HookedSink {
    fn emit(&self, event: Event) {
        let Event::Delta(Delta { run, kind: DeltaKind::Partial { call, result }, .. }) = &event else {
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
