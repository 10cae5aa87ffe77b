//! The executor of [`ReactMachine`]: runs the tasks of a loop, and records their results.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use archon_run::{Executor, InboxEffect, Machine, Next, Recorded, RunDriver};
use archon_types::{
    BoxFuture, CallId, CommandId, Compaction, Context, Executed, HookPoint, Hooks, InboxEntry, InboxRequest,
    JournalError, ModeSource, Outcome, PromptSource, RecordBody, SessionMode, SnapshotPlace, SnapshotResult,
    ToolResult,
};
use tracing::Instrument;

use crate::{
    Driver, ReactMachine, ReactTask, RunLog, SummaryDue, delegate,
    driver::Run,
    goal_check,
    hooked::{self, Calls, Turns},
    machine::{GoalDue, Step},
    resume::marked,
    single_call,
    summarize::summarize,
};

impl Driver {
    /// Drives a machine that has applied all records of `log`, until the run has ended or is suspended.
    ///
    /// # Errors
    /// The journal failed. A step that cannot be recorded is not executed.
    pub async fn drive(&self, machine: ReactMachine, log: RunLog) -> Result<Outcome, JournalError> {
        let mut executor = ReactExecutor {
            driver: self,
            context: Arc::new(log.context().clone()),
            turns: Turns::new(self.hooks.as_ref(), &machine),
            read_for: None,
            calls: Calls::default(),
            failed: BTreeMap::new(),
            notice: None,
        };
        executor.share_mode(machine.mode());
        RunDriver::new(machine, log).drive(&mut executor).await
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
}

/// The executor of one run.
pub(crate) struct ReactExecutor<'a> {
    pub(crate) driver: &'a Driver,
    /// Context of the run.
    pub(crate) context: Arc<Context>,
    turns: Turns<'a>,
    /// The latest request for which the project's instructions were read.
    read_for: Option<CommandId>,
    /// The calls of the current batch, for the hook that runs after each call.
    pub(crate) calls: Calls,
    /// The latest error of each call of the batch that is retried.
    pub(crate) failed: BTreeMap<CallId, String>,
    /// A notice about the usage of the context window, which is shown with the next call that starts.
    pub(crate) notice: Option<String>,
}

impl Executor<ReactMachine> for ReactExecutor<'_> {
    type Done = (CallId, Executed);

    /// No grace period, because nothing is in flight between two steps.
    const GRACE: Option<Duration> = None;
    const LISTENS: bool = true;

    /// Prepares the snapshots of the workspace. Does not read the inbox, because a message can wait until it can
    /// change the next step.
    async fn attach(&mut self, run: &mut Run) -> Recorded {
        run.watch.renew(run.machine.deadline());
        if let Some(source) = &self.driver.snapshots {
            source.prepare();
        }
        Ok(())
    }

    /// Reads the inbox if a message can change the next step, or after a cancel.
    async fn before_step(&mut self, run: &mut Run) -> Recorded {
        // A message after the last record waits until the run is resumed.
        let is_open = run.machine.ended().is_none()
            && (self.context.cancel.is_cancelled() || is_open_to_messages(&run.machine.next()));
        if is_open {
            run.receive(self).await?;
            run.record_cancel(self).await?;
        }
        Ok(())
    }

    async fn start(&mut self, task: ReactTask, run: &mut Run) -> Recorded {
        match task {
            ReactTask::AskModel { command, attempt, turn } => {
                boxed(|| self.ask_model((command, attempt, turn), run)).await?;
            }
            ReactTask::Summarize(due) => boxed(|| self.summarize(due, run)).await?,
            ReactTask::CheckGoal(due) => boxed(|| self.check_goal(due, run)).await?,
            ReactTask::CheckOutput => run.record(vec![run.machine.output_record()]).await?,
            ReactTask::RunCalls => {
                boxed(|| self.run_calls(run)).await?;
                if self.driver.snapshots.is_some() {
                    boxed(|| self.snapshot(SnapshotPlace::After, run)).await?;
                }
            }
            ReactTask::WaitUntil(due) => {
                run.watch.wait_until(due).await;
                run.record(vec![RecordBody::ClockRead]).await?;
            }
            ReactTask::Decide => boxed(|| self.decide(run)).await?,
        }
        self.turns.call_hooks(&run.machine, &self.context).await;
        Ok(())
    }

    /// Records the result of a call, or the questions for which the call waits.
    async fn done(&mut self, (id, executed): Self::Done, run: &mut Run) -> Recorded {
        let result = match executed {
            Executed::Suspended(question) => return self.waits(id, *question, run).await,
            Executed::Done(result) => self.annotate(id, *result, &run.machine),
            _ => ToolResult::error("the toolbox gave no result"),
        };
        if self.will_try_again(id, &result, run).await? {
            return Ok(());
        }
        self.record_result(id, result, run).await
    }

    /// Appends a derived record. If it ends a call whose tool ran, the call's `after_tool` hook runs now.
    async fn append(&mut self, body: RecordBody, run: &mut Run) -> Recorded {
        let is_limit = matches!(body, RecordBody::LimitReached(_));
        if let RecordBody::Compacted(compaction) = &body {
            // The memory sees the messages before they leave the window.
            self.driver.remember(&run.machine, &self.context, Some(compaction)).await;
        }
        if let RecordBody::ModeChanged { mode, .. } = &body {
            self.share_mode(*mode);
        }
        let ended = hooked::call_without_retry(&run.machine, &body);
        delegate::close(self.driver, run, body).await?;
        if let Some(((call, result), hooks)) = ended.zip(self.driver.hooks.as_ref()) {
            hooks.after_tool(&call, &result).await;
        }
        if is_limit {
            // A run at its limit may still get time for a last answer.
            run.watch.renew(run.machine.deadline());
        }
        self.turns.call_hooks(&run.machine, &self.context).await;
        Ok(())
    }

    /// Returns the record of an inbox message. An answer to a question that is not open changes nothing.
    fn meaning(&mut self, entry: InboxEntry, machine: &ReactMachine) -> InboxEffect {
        let body = match entry.request {
            InboxRequest::Steer { message } => {
                RecordBody::MessageAdded { message, source: PromptSource::Steer }
            }
            InboxRequest::FollowUp { message } => {
                RecordBody::MessageAdded { message, source: PromptSource::FollowUp }
            }
            InboxRequest::Cancel { reason } => RecordBody::CancelRequested { reason },
            InboxRequest::Answer { request_id, binding, answer } => {
                match machine.call_of_question(&request_id, &binding) {
                    Some(call) => RecordBody::ApprovalAnswered { call, answer },
                    None => RecordBody::ClockRead,
                }
            }
            InboxRequest::SetMode { mode } => {
                self.share_mode(mode);
                RecordBody::ModeChanged { mode, source: ModeSource::Person }
            }
            // The request stays in the inbox for the next run of the session.
            InboxRequest::Compact { .. } if !machine.can_compact() => return InboxEffect::NotMeant,
            InboxRequest::Compact { instructions } => RecordBody::CompactionRequested { instructions },
            // A request of a newer version is acknowledged and has no effect.
            _ => RecordBody::ClockRead,
        };
        // The mark of a message holds from now on, even if the model reads the message later.
        if let Some(SnapshotResult { tool, result }) = marked(&self.context.run, &body) {
            self.driver.toolbox.recall(&self.context.session, &tool, &result);
        }
        InboxEffect::Record(body)
    }

    /// If the run has ended: closes the log, gives the conversation to the memory and calls the hooks. Does
    /// nothing for a suspended run.
    async fn rested(&mut self, run: &mut Run) {
        if run.machine.ended().is_none() {
            return;
        }
        // The next run of the session may start while the memory still stores this conversation.
        run.close();
        self.driver.remember(&run.machine, &self.context, None).await;
        if let Some(outcome) = run.machine.ended() {
            self.turns.ended(outcome).await;
        }
    }
}

impl ReactExecutor<'_> {
    /// Sets the mode of the session for the calls of this run and of the runs below. A child run sets none, because
    /// it has the mode of its caller.
    fn share_mode(&self, mode: SessionMode) {
        if self.context.depth == 0 {
            self.context.mode.set(mode);
        }
    }

    /// Sends a request to the model. Before the first attempt, reads the project's instructions, and asks
    /// the hooks whether the turn may start.
    async fn ask_model(
        &mut self,
        (command, attempt, turn): (CommandId, u32, u32),
        run: &mut Run,
    ) -> Recorded {
        if attempt == 0 {
            if self.driver.instructions.is_some() && self.read_for.replace(command) != Some(command) {
                // The machine may now return another command: longer instructions leave less room in the
                // window.
                return match self.read_instructions(run).await {
                    Some(read) => run.record(vec![read]).await,
                    None => Ok(()),
                };
            }
            if !self.turns.may_begin(&run.machine, turn).await {
                return run.record(vec![RecordBody::StoppedByHook { hook: HookPoint::BeforeTurn }]).await;
            }
        }
        let request = run.machine.request();
        let request_hash = request.content_hash();
        run.record(vec![RecordBody::ModelCallStarted { command, attempt, turn, request_hash }]).await?;
        let span = tracing::info_span!("model_call", turn, attempt);
        let (machine, watch, ask) = (&run.machine, &mut run.watch, (command, attempt));
        let answer = single_call::answer(self.driver, machine, request, ask, watch, &self.context);
        let answer = answer.instrument(span).await;
        if let RecordBody::ModelCallFailed { failure, .. } = &answer {
            self.turns.failed(&failure.message).await;
        }
        run.record(vec![answer]).await
    }

    async fn summarize(&self, due: SummaryDue, run: &mut Run) -> Recorded {
        let provider = self.driver.provider_of(&run.machine);
        let summary = summarize(provider, &run.machine, &due, &mut run.watch, &self.context).await;
        run.record(vec![RecordBody::Summarized(summary)]).await
    }

    async fn check_goal(&self, due: GoalDue, run: &mut Run) -> Recorded {
        let provider = self.driver.provider_of(&run.machine);
        let verdict = goal_check::check(provider, &run.machine, &due, &mut run.watch, &self.context).await;
        run.record(vec![RecordBody::GoalChecked(verdict)]).await
    }

    /// Reads the project's instructions, and returns their record if they have changed.
    async fn read_instructions(&self, run: &mut Run) -> Option<RecordBody> {
        match run.watch.wait_for(self.driver.instructions.as_ref()?.read()).await? {
            Ok(text) => {
                let text = self.context.redactor.clean(text.unwrap_or_default());
                (text != run.machine.instructions()).then_some(RecordBody::InstructionsRead { text })
            }
            Err(error) => {
                tracing::warn!(run = %self.context.run, %error, "the project's instructions cannot be read");
                None
            }
        }
    }
}

/// Returns a future on the heap. Child runs are polled within the calls of their parents, so each awaited
/// future takes stack at each level. The closure keeps the future out of the caller's frame.
pub(crate) fn boxed<'a, F: Future + Send + 'a>(make: impl FnOnce() -> F) -> BoxFuture<'a, F::Output> {
    Box::pin(make())
}

/// Returns true if a message that arrives now can change the next step: before a request or a question,
/// before the end, and while the run waits. A batch of calls reads the inbox itself.
fn is_open_to_messages(next: &Step) -> bool {
    match next {
        Next::Append(body) => matches!(body, RecordBody::RunFinished(_)),
        Next::Do(ReactTask::RunCalls) | Next::Done(_) => false,
        _ => true,
    }
}
