//! Runs the tool calls of one turn, so that each gets exactly one result.

mod prepare;

use std::{sync::Arc, time::Duration};

use archon_run::{Interrupt, Recorded};
use archon_types::{
    ApprovalRequest, CLEANUP_TOOL, CallId, Content, Context, Delta, DeltaKind, Effect, Event, Executed,
    Hooks, JournalError, Json, Media, Message, ReadyCall, RecordBody, RetryConfig, SeenResult, SnapshotPlace,
    ToolQuestions, ToolResult, metadata, questions_below,
};

use crate::{
    CallStage, CallState, QueueNotice, ReactMachine, ToolGate, decide, delegate,
    drive::{ReactExecutor, boxed},
    driver::Run,
    hooked::{self, Calls},
};

impl ReactExecutor<'_> {
    /// Runs the calls that are due: concurrently if all of them may run concurrently, otherwise in order.
    pub(crate) async fn run_calls(&mut self, run: &mut Run) -> Recorded {
        let open = run.machine.due_calls();
        let side_by_side = open.len() > 1 && run.machine.run_together(open.iter());
        let before = run.machine.window().usage();
        self.failed.clear();
        self.notice = match run.machine.window().tool_gate(open.len()) {
            ToolGate::Warn(text) => Some(text),
            _ => None,
        };
        let context = self.context_with_media(&run.machine);
        if side_by_side {
            run.receive(self).await?;
            // The machine settles the calls that are not started.
            if !open.iter().any(|call| self.is_interrupted(call, &run.machine)) {
                let trusting = decide::trusting(&run.machine, &context);
                self.run_together(open, trusting.as_ref().unwrap_or(&context), run).await?;
            }
        } else {
            let all = open.len();
            for (done, call) in open.into_iter().enumerate() {
                run.receive(self).await?;
                let machine = &run.machine;
                if self.is_interrupted(&call, machine)
                    || is_blocked(machine, done)
                    || machine.is_breaker_open(&call)
                {
                    break; // The machine settles the calls that were not started.
                }
                let id = call.id;
                // A person may have trusted a rule since the call before.
                let trusting = decide::trusting(&run.machine, &context);
                self.run_together(vec![call], trusting.as_ref().unwrap_or(&context), run).await?;
                if run.machine.is_waiting(id) {
                    break; // The calls behind it wait with it.
                }
                self.watch_window(all - done - 1, &run.machine);
            }
        }
        if let Some(change) = run.machine.window().usage().change_since(before) {
            tracing::debug!(run = %context.run, "{change}");
        }
        let (urgency, reason) = run.machine.window().usage().urgency();
        if urgency > before.urgency().0 {
            tracing::info!(run = %context.run, ?urgency, "{reason}");
        }
        Ok(())
    }

    /// Returns the context of the run, with the media of the conversation if a tool of the run takes media.
    fn context_with_media(&self, machine: &ReactMachine) -> Arc<Context> {
        let media = |message: &Arc<Message>| -> Vec<Media> {
            message.content().iter().filter_map(|block| block.as_media()?.media.cloned()).collect()
        };
        let mut context = self.context.clone();
        if machine.config().has_media_tool() {
            let all = machine.window().whole().flat_map(media).collect();
            Arc::make_mut(&mut context).media = Some(all);
        }
        context
    }

    /// Returns true if the call must not start because of a cancel or a steering message. After a
    /// steering message, a call that a crash cut off still runs; a call in doubt is always handled.
    fn is_interrupted(&self, call: &CallState, machine: &ReactMachine) -> bool {
        match call.stage {
            CallStage::Requested { attempts } => {
                self.context.cancel.is_cancelled() || (attempts == 0 && machine.is_steered())
            }
            CallStage::Waiting { .. } => self.context.cancel.is_cancelled() || machine.is_steered(),
            _ => false,
        }
    }

    /// Checks the usage of the context window while `queued` calls wait. A warning is stored for the next call, a
    /// notice for verbose output is logged.
    fn watch_window(&mut self, queued: usize, machine: &ReactMachine) {
        match machine.window().queue_notice(queued) {
            Some(QueueNotice::Warning(text)) => self.notice = Some(text),
            Some(QueueNotice::Verbose(text)) => tracing::debug!(run = %self.context.run, "{text}"),
            None => {}
        }
    }

    /// Logs the warning about context-window usage, if there is one, and reports it as progress of `call`.
    fn report_notice(&mut self, call: CallId) {
        let Some(text) = self.notice.take() else { return };
        tracing::warn!(run = %self.context.run, "{text}");
        self.report_progress(call, text);
    }

    /// Shows a text about a call to the watchers of the run.
    fn report_progress(&self, call: CallId, text: String) {
        self.context.sink.emit(Event::Delta(Delta {
            run: self.context.run.clone(),
            command: call.command,
            attempt: 0,
            offset: 0,
            kind: DeltaKind::ToolProgress { call, text },
        }));
    }

    async fn run_together(&mut self, calls: Vec<CallState>, tools: &Context, run: &mut Run) -> Recorded {
        let mut ready = Vec::with_capacity(calls.len());
        for call in calls {
            if let Some(one) = self.prepare(call, tools, run).await? {
                ready.push(one);
            }
        }
        for (ready, _) in &ready {
            // None is due if the lease was recorded before a crash.
            if let Some(granted) = run.machine.lease_due(ready.id) {
                run.record(vec![granted]).await?;
            }
        }
        if self.driver.snapshots.is_some() && ready.iter().any(|(ready, _)| ready.effect != Effect::ReadOnly)
        {
            boxed(|| self.snapshot(SnapshotPlace::Before, run)).await?;
        }
        let starts = ready.iter().map(|(ready, attempt)| RecordBody::ToolCallStarted {
            call: ready.id,
            attempt: *attempt,
            effect: ready.effect,
            child_run: run.machine.lease(ready.id).map(|_| self.context.run.of_call(ready.id)),
        });
        run.record(starts.collect()).await?;
        if let Some((first, _)) = ready.first() {
            self.report_notice(first.id);
        }
        for (ready, attempt) in &ready {
            if let Some(error) = self.failed.get(&ready.id) {
                self.report_progress(ready.id, format!("Retry {attempt} after: {error}\n"));
            }
        }
        self.execute(ready.into_iter().map(|(ready, _)| ready).collect(), tools, run).await
    }

    /// Executes calls concurrently. A call that does not stop within the grace period is dropped.
    async fn execute(&mut self, ready: Vec<ReadyCall>, tools: &Context, run: &mut Run) -> Recorded {
        let hooked = hooked::context(self.driver.hooks.as_ref(), &ready, tools);
        let mut tools = hooked.unwrap_or_else(|| tools.clone());
        tools.processes = Some(run.reporter());
        tools.results = results_for(&ready, &run.machine);
        tools.pinned = pinned_for(&ready, &run.machine);
        tools.under_way = Some(run.under_way());
        tools.tool_questions = Some(Arc::new(self.tool_questions(&ready, &run.machine)));
        self.calls = match self.driver.hooks {
            Some(_) => ready.iter().map(|ready| (ready.id, ready.call.clone())).collect(),
            None => Calls::new(),
        };
        let ids: Vec<CallId> = ready.iter().map(|ready| ready.id).collect();
        let (tools, grace) = (Arc::new(tools), self.grace(&ids, &run.machine));
        for ready in ready {
            let (id, toolbox) = (ready.id, self.driver.toolbox.clone());
            let own = delegate::context(self.driver, &run.machine, id, &tools, run.reporter());
            let context = own.map_or_else(|| tools.clone(), Arc::new);
            let work = async move { (id, toolbox.execute(ready, &context).await) };
            let panicked = || Executed::Done(Box::new(ToolResult::error("the toolbox panicked")));
            run.spawn(work, move || (id, panicked()));
        }
        let Some(cause) = run.settle(self, |task, watch| watch.poll(task, grace)).await? else {
            return Ok(());
        };
        for id in ids {
            if run.machine.is_started(id) {
                tracing::warn!(run = %self.context.run, call = %id, ?cause, "a tool call did not end in time and is dropped");
                self.record_result(id, stopped(cause), run).await?;
            }
        }
        Ok(())
    }

    /// Returns the questions that the tools of these calls may ask, with the answers so far.
    fn tool_questions(&self, ready: &[ReadyCall], machine: &ReactMachine) -> ToolQuestions {
        let answered = |id| machine.call(id).and_then(|call| call.answered.clone());
        let calls = ready.iter().map(|ready| (ready.id, answered(ready.id)));
        ToolQuestions::new(self.context.run.clone(), self.context.can_ask, calls)
            .with_approver(self.driver.approver.clone(), &*self.driver.agent_name)
    }

    /// Returns the grace period of cancelled calls. If one of the calls starts a child run, the grace period
    /// is longer for each level of child runs that the limits still allow.
    fn grace(&self, calls: &[CallId], machine: &ReactMachine) -> Duration {
        let agents = calls.iter().any(|call| machine.lease(*call).is_some());
        let levels = machine.config().limits.max_depth.saturating_sub(self.context.depth);
        if agents { TOOL_GRACE + LEVEL_GRACE * levels } else { TOOL_GRACE }
    }

    /// Records that a call waits for a person, because its tool or its child run asked a question.
    pub(crate) async fn waits(&self, id: CallId, question: ApprovalRequest, run: &mut Run) -> Recorded {
        if question.is_of_tool() && run.machine.lease(id).is_none() {
            // The call was agreed to before, and the answer is no consent, so no tool and arguments are bound.
            let request =
                decide::complete(question, None, &Json::Null, (self.driver, &run.machine), &self.context);
            return run.record(vec![RecordBody::ApprovalRequested { call: id, request }]).await;
        }
        let child = self.context.run.of_call(id);
        for request in questions_below(self.driver.journal.as_deref(), &child, id, question).await {
            run.record(vec![RecordBody::ApprovalRequested { call: id, request: Box::new(request) }]).await?;
        }
        Ok(())
    }

    /// Redacts the result, because not every toolbox does. Adds the number of attempts, because a toolbox
    /// knows only the attempts that it made itself. Tells the model if a person changed the arguments of the
    /// call.
    pub(crate) fn annotate(&self, id: CallId, mut result: ToolResult, machine: &ReactMachine) -> ToolResult {
        self.context.redactor.clean_result(&mut result);
        let call = machine.call(id);
        if let Some(CallStage::Started { attempt: attempt @ 1.., .. }) = call.map(|call| &call.stage) {
            result.metadata.insert(metadata::ATTEMPTS.to_owned(), (attempt + 1).into());
            result.metadata.insert(metadata::RETRY_COUNT.to_owned(), (*attempt).into());
            if let Some(error) = self.failed.get(&id) {
                result.metadata.insert(metadata::LAST_ERROR.to_owned(), error.as_str().into());
            }
        }
        if let Some(edited) = call.and_then(|call| call.consent.as_ref()?.edited.as_ref()) {
            let text = format!("[A person changed the arguments of this call to {edited}]");
            result.content.insert(0, Content::text(text));
        }
        result
    }

    /// Records that a call failed and is retried. Returns false if the call is not retried.
    pub(crate) async fn will_try_again(
        &self,
        id: CallId,
        result: &ToolResult,
        run: &mut Run,
    ) -> Result<bool, JournalError> {
        let now = self.context.clock.now();
        let failed = run.machine.tool_retry(id, result, now, || RetryConfig::draw_jitter(&*self.context.ids));
        let Some(failed) = failed else { return Ok(false) };
        tracing::warn!(run = %self.context.run, call = %id, error = %result.text(), "a tool failed and is tried again");
        run.record(vec![failed]).await?;
        Ok(true)
    }

    /// Records the result of a call that ran, and calls the hook after the call.
    pub(crate) async fn record_result(&self, id: CallId, result: ToolResult, run: &mut Run) -> Recorded {
        let hook = self.driver.hooks.as_ref().zip(self.calls.get(&id)).map(|hook| (hook, result.clone()));
        self.finish(id, result, run).await?;
        if let Some(((hooks, call), result)) = hook {
            hooks.after_tool(call, &result).await;
        }
        Ok(())
    }

    async fn refuse(&self, call: CallId, result: Box<ToolResult>, run: &mut Run) -> Recorded {
        let refused = RecordBody::ToolCallRefused { call, result: Arc::from(result) };
        delegate::close(self.driver, run, refused).await
    }

    async fn finish(&self, call: CallId, result: ToolResult, run: &mut Run) -> Recorded {
        let finished = RecordBody::ToolCallFinished { call, result: Arc::new(result) };
        let before = run.machine.window().unpinned().len();
        delegate::close(self.driver, run, finished).await?;
        for name in run.machine.window().unpinned().iter().skip(before) {
            tracing::warn!(run = %self.context.run, "the result `{name}` is not pinned any more: all pinned results have at most a quarter of the context window; it may leave the window, and can be loaded again");
        }
        Ok(())
    }
}

/// Returns true if the window became full while the first `done` calls ran.
fn is_blocked(machine: &ReactMachine, done: usize) -> bool {
    done > 0 && matches!(machine.window().tool_gate(1), ToolGate::Blocked(_))
}

/// Returns the tool results that the model sees, if one of the calls is of [`CLEANUP_TOOL`], with which the
/// model removes results from its context window.
fn results_for(ready: &[ReadyCall], machine: &ReactMachine) -> Option<Arc<[SeenResult]>> {
    let gives_up = ready.iter().any(|ready| ready.call.name == CLEANUP_TOOL);
    gives_up.then(|| machine.window().results().into())
}

/// Returns the names of the pinned results, if one of the calls is of a tool whose results may be pinned.
fn pinned_for(ready: &[ReadyCall], machine: &ReactMachine) -> Option<Arc<[String]>> {
    let instructs = |ready: &ReadyCall| {
        machine.config().tool(&ready.call.name).is_some_and(|tool| tool.annotations.instructs)
    };
    ready.iter().any(instructs).then(|| machine.window().pinned().map(str::to_owned).collect())
}

fn stopped(cause: Interrupt) -> ToolResult {
    match cause {
        Interrupt::Cancelled => ToolResult::cancelled("Cancelled"),
        Interrupt::Deadline => ToolResult::cancelled("Cancelled: the run's time is up"),
    }
}

/// Grace period of a cancelled tool before it is dropped.
const TOOL_GRACE: Duration = Duration::from_millis(500);

/// Additional grace period for each level of agents that may be working.
const LEVEL_GRACE: Duration = Duration::from_millis(250);
