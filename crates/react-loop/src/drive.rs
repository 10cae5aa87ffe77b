//! Drives a run: executes what the machine asks for, and records what came of it before it acts on it.

use std::{any::Any, panic::AssertUnwindSafe, pin::pin, sync::Arc};

use archon_types::{
    AssistantMessage, CommandId, Compaction, Context, FailureKind, HookPoint, Hooks, JournalError,
    ModelFailure, Outcome, Provider, ProviderError, RecordBody, Request, Timestamp,
};
use futures_util::{
    FutureExt,
    future::{Either, select},
};
use tracing::Instrument;

use crate::{
    Command, Driver, GoalDue, ReactMachine, RunLog, SummaryDue, decide, decode_answer, delegate,
    deltas::Deltas,
    goal_check,
    hooked::{self, Turns},
    interrupt::Watch,
    retry::draw_jitter,
    run_log::{receive, step},
    single_call,
    summarize::summarize,
    tool_batch,
};

impl Driver {
    /// Drives the machine until its run has ended, and returns the outcome.
    ///
    /// # Errors
    /// The journal failed. A step that cannot be recorded is not executed.
    pub async fn drive(
        &self,
        machine: &mut ReactMachine,
        log: &mut RunLog,
        context: &Context,
    ) -> Result<Outcome, JournalError> {
        // Log lines from here on, those of tools too, carry the id of the run.
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
                Command::Done(outcome) => {
                    let outcome = outcome.clone();
                    return Ok(self.done(outcome, machine, log, &turns, context).await);
                }
                Command::Append(body) => self.append(machine, log, body, &mut watch).await?,
                Command::AskModel { attempt: 0, command, .. }
                    if self.instructions.is_some() && read_for != Some(command) =>
                {
                    read_for = Some(command);
                    // The machine may now ask for something else: longer instructions leave less room in the
                    // window.
                    if let Some(read) = self.read_instructions(machine, &mut watch).await {
                        step(log, machine, read).await?;
                    }
                    continue;
                }
                Command::AskModel { attempt: 0, turn, .. } if !turns.may_begin(machine, turn).await => {
                    step(log, machine, RecordBody::Vetoed { hook: HookPoint::BeforeTurn }).await?;
                }
                Command::AskModel { command, attempt, turn } => {
                    let answer = self.request((command, attempt, turn), machine, log, &mut watch).await?;
                    if let RecordBody::ModelFailed { failure, .. } = &answer {
                        turns.failed(&failure.message).await;
                    }
                    step(log, machine, answer).await?;
                }
                Command::Summarize(due) => {
                    let summary = self.summary(machine, &due, &mut watch).await;
                    step(log, machine, summary).await?;
                }
                Command::CheckGoal(due) => {
                    let verdict = self.verdict(machine, &due, &mut watch).await;
                    step(log, machine, verdict).await?;
                }
                Command::CheckForm => step(log, machine, machine.form_record()).await?,
                Command::RunCalls(_) => tool_batch::run(self, machine, log, &mut watch, context).await?,
                Command::WaitUntil(due) => {
                    watch.wait_until(due).await;
                    step(log, machine, RecordBody::ClockRead).await?;
                }
                Command::Decide => decide::decide(self, machine, log, &mut watch, context).await?,
                Command::Suspended => return Ok(machine.suspended_outcome()),
                // Without a prompt there is nothing to do; the agent never starts a run without one.
                Command::WaitForPrompt => return Ok(nothing_asked(context)),
            }
            turns.look(machine, context).await;
        }
    }

    /// Ends the run: closes the log, offers the conversation to the memory and runs the hooks.
    async fn done(
        &self,
        outcome: Outcome,
        machine: &ReactMachine,
        log: &mut RunLog,
        turns: &Turns<'_>,
        context: &Context,
    ) -> Outcome {
        // The next run of the session may begin while the memory still stores this conversation.
        log.close();
        self.remember(machine, context, None).await;
        turns.ended(&outcome).await;
        outcome
    }

    async fn summary(&self, machine: &ReactMachine, due: &SummaryDue, watch: &mut Watch<'_>) -> RecordBody {
        let (provider, context) = (self.provider_of(machine), watch.context());
        RecordBody::Summarized(summarize(provider, machine, due, watch, context).await)
    }

    async fn verdict(&self, machine: &ReactMachine, due: &GoalDue, watch: &mut Watch<'_>) -> RecordBody {
        let (provider, context) = (self.provider_of(machine), watch.context());
        RecordBody::GoalChecked(goal_check::check(provider, machine, due, watch, context).await)
    }

    /// Appends a record that the machine derived from its log. If the record gives up a call whose tool ran, its
    /// `after_tool` hook runs now.
    async fn append(
        &self,
        machine: &mut ReactMachine,
        log: &mut RunLog,
        body: RecordBody,
        watch: &mut Watch<'_>,
    ) -> Result<(), JournalError> {
        let (context, is_limit) = (watch.context(), matches!(body, RecordBody::LimitReached(_)));
        if let RecordBody::Compacted(compaction) = &body {
            // The memory sees the messages before they leave the window.
            self.remember(machine, context, Some(compaction)).await;
        }
        let given_up = hooked::given_up(machine, &body);
        delegate::close(self, machine, log, body).await?;
        if let Some(((call, result), hooks)) = given_up.zip(self.hooks.as_ref()) {
            hooks.after_tool(&call, &result).await;
        }
        if is_limit {
            // A run at its limit may still get time for a last answer.
            watch.renew(machine.deadline());
        }
        Ok(())
    }

    /// Records that a request is sent, sends it, and returns the record of the answer or failure.
    async fn request(
        &self,
        (command, attempt, turn): (CommandId, u32, u32),
        machine: &mut ReactMachine,
        log: &mut RunLog,
        watch: &mut Watch<'_>,
    ) -> Result<RecordBody, JournalError> {
        let request = machine.request();
        let request_hash = request.content_hash();
        step(log, machine, RecordBody::ModelAsked { command, attempt, turn, request_hash }).await?;
        let span = tracing::info_span!("model_call", turn, attempt);
        let context = watch.context();
        Ok(self.ask(machine, request, (command, attempt), watch, context).instrument(span).await)
    }

    /// Reads the project's instructions and returns a record of them if they changed.
    async fn read_instructions(&self, machine: &ReactMachine, watch: &mut Watch<'_>) -> Option<RecordBody> {
        let run = &watch.context().run;
        match watch.wait_for(self.instructions.as_ref()?.read()).await? {
            Ok(text) => {
                let text = watch.context().redactor.clean(text.unwrap_or_default());
                (text != machine.instructions()).then_some(RecordBody::InstructionsRead { text })
            }
            Err(error) => {
                tracing::warn!(%run, %error, "the project's instructions cannot be read");
                None
            }
        }
    }

    pub(crate) async fn remember(
        &self,
        machine: &ReactMachine,
        context: &Context,
        compaction: Option<&Compaction>,
    ) {
        if let Some(memory) = &self.memory {
            memory.keep(context, machine.attributed_messages(), compaction).await;
        }
    }

    /// Sends the machine's request and returns the record of the answer or failure.
    async fn ask(
        &self,
        machine: &ReactMachine,
        request: Request,
        (command, attempt): (CommandId, u32),
        watch: &mut Watch<'_>,
        context: &Context,
    ) -> RecordBody {
        let mode = machine.config().tool_mode;
        let mut deltas = Deltas::new(command, attempt, context);
        let provider = self.provider_of(machine);
        let answer = match provider {
            Some(provider) => {
                let answer =
                    single_call::ask(&**provider, request, |event| deltas.emit(event), watch, context);
                // A panic of the provider counts as a failed request.
                AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|panic| {
                    Err(ProviderError::Other(
                        format!("the provider panicked: {}", panic_text(&*panic)).into(),
                    ))
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
                let error = error.with_text(|text| context.redactor.clean(text));
                tracing::warn!(run = %context.run, attempt, model = machine.model(), %error, "no answer");
                let mut failure = ModelFailure::new(&error, draw_jitter(context));
                failure.partial = deltas.any();
                RecordBody::ModelFailed { command, attempt, failure }
            }
        }
    }
}

fn nothing_asked(context: &Context) -> Outcome {
    Outcome::failed(context.run.clone(), FailureKind::Refused, "nothing was asked")
}

/// Fills in provider, model and timestamp if the provider left them out.
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

/// Returns the error for a model or key that the run was begun with and that is not configured in this
/// process.
fn not_here(machine: &ReactMachine) -> ProviderError {
    let key = machine.target().key + 1;
    let text =
        format!("{} with key {key} is not set up here, and the run was begun with it", machine.model());
    ProviderError::Other(text.into())
}

/// Appends the messages from the inbox and a cancel to the log.
async fn listen(machine: &mut ReactMachine, log: &mut RunLog, context: &Context) -> Result<(), JournalError> {
    // The inbox comes first: its message says who cancelled the run.
    if context.cancel.is_cancelled() || is_open_to_messages(&machine.next()) {
        receive(log, machine).await?;
    }
    if context.cancel.is_cancelled() {
        note_cancel(machine, log).await?;
    }
    Ok(())
}

/// Returns true if a message that arrives now can change the next step: before a request or a question,
/// before the end, and while the run waits. A batch of calls reads the inbox itself.
fn is_open_to_messages(next: &Command<'_>) -> bool {
    match next {
        Command::Append(body) => matches!(body, RecordBody::RunFinished(_)),
        Command::RunCalls(_) | Command::Done(_) => false,
        _ => true,
    }
}

async fn note_cancel(machine: &mut ReactMachine, log: &mut RunLog) -> Result<(), JournalError> {
    if machine.ended().is_none() && !machine.is_cancelled() {
        step(log, machine, RecordBody::CancelRequested { reason: "cancelled by the caller".into() }).await?;
    }
    Ok(())
}

/// Returns the text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".to_owned())
}
