//! The driver: does what the machine wants, and records what happened before anyone acts on it.

use std::{any::Any, panic::AssertUnwindSafe, pin::pin, sync::Arc};

use archon_types::{
    AssistantMessage, CommandId, Compaction, Context, Delta, DeltaKind, Event, HookPoint, Hooks,
    Instructions, Journal, JournalError, ModelEvent, ModelFailure, Outcome, OutcomeStatus, Provider,
    ProviderError, RecordBody, RunMemory, Timestamp, ToolCallId, Toolbox,
};
use futures_util::{
    FutureExt,
    future::{Either, select},
};

use tracing::Instrument;

use crate::{
    Command, Fallback, History, ReactMachine, RunLog, decode_answer, delegate, fallback, goal_check,
    hooked::Turns, interrupt::Watch, single_call, summarize::summarize, tool_batch,
};

/// Carries out a machine's commands with a provider and a toolbox.
#[derive(Clone)]
#[non_exhaustive]
pub struct Driver {
    /// The model.
    pub provider: Arc<dyn Provider>,
    /// The same service with further keys, in the order in which they are tried.
    pub keys: Vec<Arc<dyn Provider>>,
    /// The models that are asked when this one cannot answer.
    pub fallbacks: Vec<Fallback>,
    /// The tools.
    pub toolbox: Arc<dyn Toolbox>,
    /// The program's own code at fixed places, if it has any.
    pub hooks: Option<Arc<dyn Hooks>>,
    /// Where the project says what its agents should know; read before each question.
    pub instructions: Option<Arc<dyn Instructions>>,
    /// Keeps what leaves the window, and what was said when the run ends.
    pub memory: Option<Arc<dyn RunMemory>>,
    /// Where the runs of the agents that a run calls are kept; without it none are called.
    pub journal: Option<Arc<dyn Journal>>,
}

impl Driver {
    /// A driver.
    pub fn new(provider: Arc<dyn Provider>, toolbox: Arc<dyn Toolbox>) -> Self {
        Self {
            provider,
            keys: Vec::new(),
            fallbacks: Vec::new(),
            toolbox,
            hooks: None,
            instructions: None,
            memory: None,
            journal: None,
        }
    }

    /// Whether the run that goes on from `history`, the `earlier`th of its chain, may begin.
    pub(crate) async fn may_begin(&self, history: &History, earlier: usize) -> bool {
        match &self.hooks {
            Some(hooks) => {
                hooks.before_loop(history.messages(), u32::try_from(earlier).unwrap_or(u32::MAX)).await
            }
            None => true,
        }
    }

    /// Whether a call that passed every guard may start.
    pub(crate) async fn may_run(&self, call: &archon_types::ToolCall) -> bool {
        match &self.hooks {
            Some(hooks) => hooks.before_tool(call).await,
            None => true,
        }
    }

    /// Drives the machine until its run has ended, and returns the outcome.
    ///
    /// # Errors
    /// Only the journal makes this fail: what cannot be recorded is not done.
    pub async fn drive(
        &self,
        machine: &mut ReactMachine,
        log: &mut RunLog,
        context: &Context,
    ) -> Result<Outcome, JournalError> {
        // What is logged from here on, by tools too, names the run.
        let span = tracing::info_span!("run", run = %context.run, session = %context.session);
        let mailbox = log.mailbox();
        let work = self.work(machine, log, context).instrument(span);
        let Some(mailbox) = mailbox else { return work.await };
        let (work, pump) = (pin!(work), pin!(mailbox.pump()));
        match select(work, pump).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right((never, _)) => match never {},
        }
    }

    async fn work(
        &self,
        machine: &mut ReactMachine,
        log: &mut RunLog,
        context: &Context,
    ) -> Result<Outcome, JournalError> {
        let mut watch = Watch::new(context, machine.deadline());
        let mut turns = Turns::new(self.hooks.as_deref(), machine);
        let mut read_for = None;
        loop {
            listen(machine, log, context).await?;
            match machine.next() {
                Command::Done(outcome) => return Ok(self.ended(outcome.clone(), machine, context).await),
                Command::Append(body) => self.append(machine, log, body, context).await?,
                Command::AskModel { attempt: 0, command, .. }
                    if self.instructions.is_some() && read_for != Some(command) =>
                {
                    read_for = Some(command);
                    // What is due after that may be another thing: longer instructions leave less room.
                    if let Some(read) = self.read_instructions(machine, &mut watch).await {
                        log.step(machine, read).await?;
                    }
                    continue;
                }
                Command::AskModel { attempt: 0, turn, .. } if !turns.may_begin(machine, turn).await => {
                    log.step(machine, RecordBody::Vetoed { hook: HookPoint::BeforeTurn }).await?;
                }
                Command::AskModel { command, attempt, turn } => {
                    let answer = self.asked((command, attempt, turn), machine, log, &mut watch).await?;
                    if let RecordBody::ModelFailed { failure, .. } = &answer {
                        turns.failed(&failure.message).await;
                    }
                    log.step(machine, answer).await?;
                }
                Command::Summarize(due) => {
                    let provider = self.provider_of(machine);
                    let summary = summarize(provider, machine, &due, &mut watch, context).await;
                    log.step(machine, RecordBody::Summarized(summary)).await?;
                }
                Command::CheckGoal(due) => {
                    let provider = self.provider_of(machine);
                    let verdict = goal_check::check(provider, machine, &due, &mut watch, context).await;
                    log.step(machine, RecordBody::GoalChecked(verdict)).await?;
                }
                Command::RunCalls(_) => {
                    tool_batch::run(self, machine, log, &mut watch, context).await?;
                }
                Command::WaitUntil(due) => {
                    wait_until(due, &mut watch, context).await;
                    log.step(machine, RecordBody::ClockRead).await?;
                }
                // Without a prompt there is nothing to do; the agent never starts a run without one.
                Command::WaitForPrompt => {
                    return Ok(Outcome::failed(context.run.clone(), "nothing was asked"));
                }
            }
            turns.look(machine).await;
        }
    }

    /// Records that a request is on its way, sends it, and returns the record of what came back.
    async fn asked(
        &self,
        (command, attempt, turn): (CommandId, u32, u32),
        machine: &mut ReactMachine,
        log: &mut RunLog,
        watch: &mut Watch<'_>,
    ) -> Result<RecordBody, JournalError> {
        let request_hash = machine.request().content_hash();
        log.step(machine, RecordBody::ModelAsked { command, attempt, turn, request_hash }).await?;
        let span = tracing::info_span!("model_call", turn, attempt);
        let context = watch.context();
        Ok(self.ask(machine, command, attempt, watch, context).instrument(span).await)
    }

    /// The record of what the project says, if that is new.
    async fn read_instructions(&self, machine: &ReactMachine, watch: &mut Watch<'_>) -> Option<RecordBody> {
        let run = &watch.context().run;
        match watch.wait_for(self.instructions.as_ref()?.read()).await? {
            Ok(text) => {
                let text = text.unwrap_or_default();
                (text != machine.instructions()).then_some(RecordBody::InstructionsRead { text })
            }
            Err(error) => {
                tracing::warn!(%run, %error, "the project's instructions cannot be read");
                None
            }
        }
    }

    async fn append(
        &self,
        machine: &mut ReactMachine,
        log: &mut RunLog,
        body: RecordBody,
        context: &Context,
    ) -> Result<(), JournalError> {
        if let RecordBody::Compacted(compaction) = &body {
            self.remember(machine, context, Some(compaction)).await;
        }
        delegate::close(self, machine, log, body).await
    }

    /// Has what is said kept: before it leaves the window, or at the end.
    async fn remember(&self, machine: &ReactMachine, context: &Context, compaction: Option<&Compaction>) {
        if let Some(memory) = &self.memory {
            memory.keep(context, machine.window().whole().cloned().collect(), compaction).await;
        }
    }

    async fn ended(&self, outcome: Outcome, machine: &ReactMachine, context: &Context) -> Outcome {
        self.remember(machine, context, None).await;
        if let Some(hooks) = &self.hooks {
            if let (OutcomeStatus::Failed, Some(error)) = (outcome.status, &outcome.error) {
                hooks.on_error(error).await;
            }
            hooks.after_loop(&outcome).await;
        }
        outcome
    }

    /// Sends the machine's request and returns the record of what came back.
    async fn ask(
        &self,
        machine: &ReactMachine,
        command: CommandId,
        attempt: u32,
        watch: &mut Watch<'_>,
        context: &Context,
    ) -> RecordBody {
        let mode = machine.config().tool_mode;
        let mut deltas = Deltas::new(command, attempt, context);
        let provider = self.provider_of(machine);
        let answer = match provider {
            Some(provider) => {
                let request = machine.request();
                let answer =
                    single_call::ask(&**provider, request, |event| deltas.emit(event), watch, context);
                // A provider that panics has failed like any other.
                AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|panic| {
                    Err(ProviderError::Other(format!("the provider panicked: {}", panic_text(&*panic))))
                })
            }
            None => Err(not_here(machine)),
        };
        match answer {
            Ok(answer) => RecordBody::ModelAnswered {
                command,
                attempt,
                message: Box::new(decode_answer(signed(answer, provider, machine, context), mode, command)),
            },
            Err(error) => {
                tracing::warn!(run = %context.run, attempt, model = machine.model(), %error, "no answer");
                let mut failure = ModelFailure::new(&error, draw_jitter(context));
                failure.partial = deltas.any();
                RecordBody::ModelFailed { command, attempt, failure }
            }
        }
    }

    /// Who answers the machine's next request. None when the run was begun with a model or a key that
    /// this process does not have.
    fn provider_of(&self, machine: &ReactMachine) -> Option<&Arc<dyn Provider>> {
        let own = (&self.provider, &self.keys[..]);
        fallback::provider(machine.config(), machine.target(), own, &self.fallbacks)
    }
}

/// Fills in what a provider may leave out.
fn signed(
    mut answer: AssistantMessage,
    provider: Option<&Arc<dyn Provider>>,
    machine: &ReactMachine,
    context: &Context,
) -> AssistantMessage {
    if let Some(provider) = provider.filter(|_| answer.provider.is_empty()) {
        provider.id().clone_into(&mut answer.provider);
    }
    if answer.model.is_empty() {
        machine.model().clone_into(&mut answer.model);
    }
    if answer.timestamp == Timestamp::default() {
        answer.timestamp = context.clock.now();
    }
    answer
}

/// The run was begun with more models or keys than this process has.
fn not_here(machine: &ReactMachine) -> ProviderError {
    let key = machine.target().key + 1;
    let text =
        format!("{} with key {key} is not set up here, and the run was begun with it", machine.model());
    ProviderError::Other(text)
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("provider", &self.provider.id()).finish_non_exhaustive()
    }
}

/// Takes in what came for the run, and a cancel.
async fn listen(machine: &mut ReactMachine, log: &mut RunLog, context: &Context) -> Result<(), JournalError> {
    // Who cancelled is known by what came for the run, so that is looked at first.
    if context.cancel.is_cancelled() || is_open_to_messages(&machine.next()) {
        log.receive(machine).await?;
    }
    if context.cancel.is_cancelled() {
        note_cancel(machine, log).await?;
    }
    Ok(())
}

/// Whether what somebody says now can change what is done next: before a question, before the end, and while
/// there is nothing to do. Between calls their batch looks for itself.
fn is_open_to_messages(next: &Command<'_>) -> bool {
    match next {
        Command::Append(body) => matches!(body, RecordBody::RunFinished(_)),
        Command::RunCalls(_) | Command::Done(_) => false,
        _ => true,
    }
}

pub(crate) async fn note_cancel(machine: &mut ReactMachine, log: &mut RunLog) -> Result<(), JournalError> {
    if machine.ended().is_none() && !machine.is_cancelled() {
        log.step(machine, RecordBody::CancelRequested { reason: "cancelled by the caller".into() }).await?;
    }
    Ok(())
}

/// Waits for `due`, unless the run is cancelled or its time is up before.
pub(crate) async fn wait_until(due: Timestamp, watch: &mut Watch<'_>, context: &Context) {
    let _ = watch.wait_for(context.clock.sleep_until(due)).await;
}

/// What a panic says of itself.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".to_owned())
}

/// Chance is an input as identity is: with seeded ids the jitter is the same every time.
pub(crate) fn draw_jitter(context: &Context) -> f64 {
    let seed = context.ids.fresh("jitter");
    let sum = seed.bytes().fold(0u32, |sum, b| sum.wrapping_mul(31).wrapping_add(u32::from(b)));
    f64::from(sum % 2001) / 1000.0 - 1.0
}

/// Turns a model's events into deltas with their place in the answer.
struct Deltas<'a> {
    context: &'a Context,
    command: CommandId,
    attempt: u32,
    text: u64,
    thinking: u64,
    calls: Vec<(u32, ToolCallId, u64)>,
}

impl<'a> Deltas<'a> {
    fn new(command: CommandId, attempt: u32, context: &'a Context) -> Self {
        Self { context, command, attempt, text: 0, thinking: 0, calls: Vec::new() }
    }

    /// Whether anything was shown.
    fn any(&self) -> bool {
        self.text > 0 || self.thinking > 0 || !self.calls.is_empty()
    }

    fn emit(&mut self, event: ModelEvent) {
        let (offset, kind) = match event {
            ModelEvent::TextDelta(text) => (advance(&mut self.text, &text), DeltaKind::Text { text }),
            ModelEvent::ThinkingDelta(text) => {
                (advance(&mut self.thinking, &text), DeltaKind::Thinking { text })
            }
            ModelEvent::ToolCallStart { index, id, name } => {
                let id = ToolCallId::new(id);
                self.calls.push((index, id.clone(), 0));
                (0, DeltaKind::ToolCall { index, id, name })
            }
            ModelEvent::ToolCallDelta { index, arguments: text } => {
                let Some((_, id, sent)) = self.calls.iter_mut().find(|(i, ..)| *i == index) else { return };
                let id = id.clone();
                (advance(sent, &text), DeltaKind::Arguments { index, id, text })
            }
            _ => return,
        };
        self.context.sink.emit(Event::Delta(Delta {
            run: self.context.run.clone(),
            command: self.command,
            attempt: self.attempt,
            offset,
            kind,
        }));
    }
}

fn advance(offset: &mut u64, text: &str) -> u64 {
    let at = *offset;
    *offset += text.len() as u64;
    at
}
