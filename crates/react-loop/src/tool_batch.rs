//! Runs the tool calls of one turn and brings each to exactly one result.

use std::{collections::BTreeMap, sync::Arc, task::Poll, time::Duration};

use archon_run::{Report, Reports};
use archon_types::{
    ApprovalRequest, CLEANUP_TOOL, CallId, CallsUnderWay, Content, Context, Delta, DeltaKind, Event,
    Executed, Hooks, JournalError, Prepared, ReadyCall, RecordBody, SeenResult, ToolCall, ToolResult,
    ToolResultStatus, ToolSpec, Toolbox, metadata, questions_below,
};
use futures_util::{StreamExt, stream::FuturesUnordered};

use crate::{
    CallStage, CallState, Driver, QueueNotice, ReactMachine, RunLog, ToolGate, decide, delegate,
    hooked::{self, Calls},
    interrupt::{Interrupt, Watch},
    machine::in_doubt,
    retry::draw_jitter,
    run_log::{receive, step},
};

/// Runs the calls that have no result yet: concurrently if every tool of the turn allows it, otherwise one
/// after the other.
pub(crate) async fn run<'c>(
    driver: &Driver,
    machine: &mut ReactMachine,
    log: &mut RunLog,
    watch: &mut Watch<'c>,
    context: &'c Context,
) -> Result<(), JournalError> {
    let open = machine.due_calls();
    let side_by_side = open.len() > 1 && machine.run_together(open.iter());
    let before = machine.window().usage();
    let notice = match machine.window().tool_gate(open.len()) {
        ToolGate::Warn(text) => Some(text),
        _ => None,
    };
    let trusting = decide::trusting(machine, context);
    let tools = trusting.as_ref().unwrap_or(context);
    let mut batch = Batch { driver, machine, log, watch, context, tools, notice, failed: BTreeMap::new() };
    if side_by_side {
        receive(batch.log, batch.machine).await?;
        // The machine settles the calls that are not started.
        if !open.iter().any(|call| batch.is_interrupted(call)) {
            batch.run_together(open).await?;
        }
    } else {
        let all = open.len();
        for (done, call) in open.into_iter().enumerate() {
            receive(batch.log, batch.machine).await?;
            if batch.is_interrupted(&call) || batch.is_blocked(done) || batch.machine.is_left_alone(&call) {
                break; // The machine settles the calls that were not started.
            }
            let id = call.id;
            batch.run_together(vec![call]).await?;
            if batch.machine.is_waiting(id) {
                break; // The calls behind it wait with it.
            }
            batch.watch_window(all - done - 1);
        }
    }
    if let Some(change) = machine.window().usage().change_since(before) {
        tracing::debug!(run = %context.run, "{change}");
    }
    let (urgency, reason) = machine.window().usage().urgency();
    if urgency > before.urgency().0 {
        tracing::info!(run = %context.run, ?urgency, "{reason}");
    }
    Ok(())
}

struct Batch<'a, 'c> {
    driver: &'a Driver,
    machine: &'a mut ReactMachine,
    log: &'a mut RunLog,
    watch: &'a mut Watch<'c>,
    context: &'c Context,
    /// The context for the tools.
    tools: &'a Context,
    /// A notice about the window, shown with the next call that starts.
    notice: Option<String>,
    /// The errors of calls that are tried again.
    failed: BTreeMap<CallId, String>,
}

impl Batch<'_, '_> {
    /// Returns true if the call must not start because of a cancel or a steer. After a steer, a call that a
    /// crash cut off still runs; a call in doubt is always handled.
    fn is_interrupted(&self, call: &CallState) -> bool {
        match call.stage {
            CallStage::Requested { attempts } => {
                self.context.cancel.is_cancelled() || (attempts == 0 && self.machine.is_steered())
            }
            CallStage::Waiting { .. } => self.context.cancel.is_cancelled() || self.machine.is_steered(),
            _ => false,
        }
    }

    /// Returns true if the window got full while the first `done` calls ran.
    fn is_blocked(&self, done: usize) -> bool {
        done > 0 && matches!(self.machine.window().tool_gate(1), ToolGate::Blocked(_))
    }

    /// Checks the usage of the window while `queued` calls wait.
    fn watch_window(&mut self, queued: usize) {
        match self.machine.window().queue_notice(queued) {
            Some(QueueNotice::Warning(text)) => self.notice = Some(text),
            Some(QueueNotice::Verbose(text)) => tracing::debug!(run = %self.context.run, "{text}"),
            None => {}
        }
    }

    /// Shows the notice about the window, if there is one.
    fn say_notice(&mut self, call: CallId) {
        let Some(text) = self.notice.take() else { return };
        tracing::warn!(run = %self.context.run, "{text}");
        self.say(call, text);
    }

    /// Shows a text about a call to those who watch the run.
    fn say(&self, call: CallId, text: String) {
        self.context.sink.emit(Event::Delta(Delta {
            run: self.context.run.clone(),
            command: call.command,
            attempt: 0,
            offset: 0,
            kind: DeltaKind::Progress { call, text },
        }));
    }

    async fn run_together(&mut self, calls: Vec<CallState>) -> Result<(), JournalError> {
        let mut ready = Vec::with_capacity(calls.len());
        for call in calls {
            if let Some(one) = self.prepare(call).await? {
                ready.push(one);
            }
        }
        for (ready, _) in &ready {
            delegate::grant(self.machine, self.log, ready.id).await?;
        }
        let starts = ready.iter().map(|(ready, attempt)| RecordBody::ToolStarted {
            call: ready.id,
            attempt: *attempt,
            effect: ready.effect,
            child_run: self.machine.lease(ready.id).map(|_| self.context.run.of_call(ready.id)),
        });
        for record in self.log.append(starts.collect()).await? {
            self.machine.apply(&record);
        }
        if let Some((first, _)) = ready.first() {
            self.say_notice(first.id);
        }
        for (ready, attempt) in &ready {
            if let Some(error) = self.failed.get(&ready.id) {
                self.say(ready.id, format!("Retry {attempt} after: {error}\n"));
            }
        }
        self.execute(ready.into_iter().map(|(ready, _)| ready).collect()).await
    }

    /// Executes calls concurrently. A call that does not stop within the grace period is dropped, with its
    /// work.
    async fn execute(&mut self, ready: Vec<ReadyCall>) -> Result<(), JournalError> {
        let hooked = hooked::context(self.driver.hooks.as_ref(), &ready, self.tools);
        let reports = Reports::default();
        let mut context = hooked.unwrap_or_else(|| self.tools.clone());
        context.processes = Some(reports.reporter());
        context.results = self.seen_by(&ready);
        context.under_way = Some(CallsUnderWay::new(ready.len()));
        let (toolbox, context) = (&self.driver.toolbox, &context);
        let calls: Calls = match self.driver.hooks {
            Some(_) => ready.iter().map(|ready| (ready.id, ready.call.clone())).collect(),
            None => Calls::new(),
        };
        let mut open: Vec<CallId> = ready.iter().map(|r| r.id).collect();
        let grace = self.grace(&open);
        let start = |ready: ReadyCall| {
            let id = ready.id;
            let own = delegate::context(self.driver, self.machine, id, context, reports.reporter());
            let own = own.map(Box::new);
            async move { (id, toolbox.execute(ready, own.as_deref().unwrap_or(context)).await) }
        };
        let mut running: FuturesUnordered<_> = ready.into_iter().map(start).collect();
        while !open.is_empty() {
            let next = std::future::poll_fn(|task| match running.poll_next_unpin(task) {
                Poll::Ready(Some((id, executed))) => Poll::Ready(Next::Ended(id, executed)),
                Poll::Ready(None) => Poll::Ready(Next::Nothing),
                Poll::Pending => match reports.poll(task) {
                    Poll::Ready(report) => Poll::Ready(Next::Reported(report)),
                    Poll::Pending => self.watch.poll(task, grace).map(Next::Stopped),
                },
            });
            match next.await {
                Next::Ended(id, executed) => {
                    open.retain(|other| *other != id);
                    let result = match executed {
                        Executed::Suspended(question) => {
                            self.waits_below(id, *question).await?;
                            continue;
                        }
                        Executed::Done(result) => self.marked(id, *result),
                        _ => ToolResult::error("the toolbox gave no result"),
                    };
                    if !self.will_try_again(id, &result).await? {
                        self.ended(id, result, &calls).await?;
                    }
                }
                Next::Reported(report) => self.reported(report).await?,
                Next::Nothing => break,
                Next::Stopped(cause) => {
                    running.clear();
                    for id in open.drain(..) {
                        let run = &self.context.run;
                        tracing::warn!(%run, call = %id, ?cause, "a tool call did not end in time and is dropped");
                        self.ended(id, stopped(cause), &calls).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Records what a call has started, unless the log has it already.
    async fn reported(&mut self, report: Report) -> Result<(), JournalError> {
        if !delegate::is_known(self.machine, &report.record) {
            step(self.log, self.machine, RecordBody::clone(&report.record)).await?;
        }
        report.logged();
        Ok(())
    }

    /// Returns the results that the model sees, if one of the calls gives results up.
    fn seen_by(&self, ready: &[ReadyCall]) -> Option<Arc<[SeenResult]>> {
        let gives_up = ready.iter().any(|ready| ready.call.name == CLEANUP_TOOL);
        gives_up.then(|| self.machine.window().results().into())
    }

    /// Returns the grace period of cancelled calls. Agents wait for their own calls, so they get more time
    /// for each level below.
    fn grace(&self, open: &[CallId]) -> Duration {
        let agents = open.iter().any(|call| self.machine.lease(*call).is_some());
        let levels = self.machine.config().limits.max_depth.saturating_sub(self.context.depth);
        if agents { TOOL_GRACE + LEVEL_GRACE * levels } else { TOOL_GRACE }
    }

    /// Prepares a call for execution. A call that cannot run is settled here.
    async fn prepare(&mut self, call: CallState) -> Result<Option<(ReadyCall, u32)>, JournalError> {
        // A call that hooks let through once is not put to them again at a retry.
        let is_let_through = matches!(call.stage, CallStage::Waiting { .. });
        if let CallStage::Waiting { result, .. } = &call.stage {
            let error = result.error_message.clone().unwrap_or_else(|| result.text());
            self.failed.insert(call.id, error);
        }
        let attempt = match call.stage {
            CallStage::Requested { attempts } | CallStage::Waiting { attempts, .. } => attempts,
            CallStage::InDoubt { .. } => {
                self.doubt(&call).await?;
                return Ok(None);
            }
            _ => return Ok(None),
        };
        if delegate::is_lost(self.driver, &self.context.run, &call).await? {
            self.doubt(&call).await?;
            return Ok(None);
        }
        let wanted = call.wanted();
        if let Some(result) = delegate::hidden(self.driver, self.machine, &call.call, self.context) {
            self.refuse(call.id, result).await?;
            return Ok(None);
        }
        // A given consent counts even if nobody can be asked any more.
        let specs = self.driver.toolbox.specs();
        let spec = decide::spec_in(&specs, &wanted.name);
        let agreed = call.consent.is_some().then(|| {
            let mut agreed = self.tools.clone();
            agreed.can_ask = true;
            agreed.agreed = spec.and_then(|spec| decide::agreed(spec, &call));
            agreed
        });
        let tools = agreed.as_ref().unwrap_or(self.tools);
        let prepared = match self.driver.toolbox.prepare(call.id, &wanted, tools).await {
            Prepared::Ask(request) => {
                let agreed = tools.agreed.as_deref();
                self.consent(&call, &wanted, spec, agreed, *request).await?
            }
            prepared => Some(prepared),
        };
        let Some(prepared) = prepared else { return Ok(None) };
        match prepared {
            Prepared::Ready(mut ready) if is_let_through || self.driver.may_run(&ready.call).await => {
                ready.started_before = attempt;
                return Ok(Some((ready, attempt)));
            }
            Prepared::Ready(ready) => {
                self.refuse(call.id, Box::new(hooked::skipped(&ready.call.name))).await?;
            }
            Prepared::Refused(result) => self.refuse(call.id, result).await?,
            _ => self.refuse(call.id, Box::new(ToolResult::error("the toolbox gave no verdict"))).await?,
        }
        Ok(None)
    }

    /// Handles a call that needs a person's consent. With a consent to exactly this call it is ready, even if
    /// the toolbox does not check consents; otherwise the question is recorded, or the call is refused if
    /// nobody can be asked.
    async fn consent(
        &mut self,
        call: &CallState,
        wanted: &ToolCall,
        spec: Option<&ToolSpec>,
        agreed: Option<&str>,
        request: ApprovalRequest,
    ) -> Result<Option<Prepared>, JournalError> {
        let request =
            decide::complete(request, spec, &wanted.arguments, (self.driver, self.machine), self.context);
        if agreed == Some(&*request.binding) {
            let annotations = spec.map(|spec| spec.annotations.clone()).unwrap_or_default();
            let mut ready = ReadyCall::new(call.id, wanted.clone(), annotations.effect);
            ready.concurrency_safe = annotations.concurrency_safe;
            return Ok(Some(Prepared::Ready(ready)));
        }
        if !self.context.can_ask {
            return Ok(Some(Prepared::Refused(Box::new(nobody_to_ask(&request)))));
        }
        step(self.log, self.machine, RecordBody::ToolAsked { call: call.id, request }).await?;
        Ok(None)
    }

    /// Handles a call in doubt: asks a person, if one can be asked.
    async fn doubt(&mut self, call: &CallState) -> Result<(), JournalError> {
        let name = &call.call.name;
        if !self.context.can_ask {
            return self.finish(call.id, in_doubt(name)).await;
        }
        let wanted = call.wanted();
        let id = self.context.ids.fresh("approval");
        let mut request = ApprovalRequest::in_doubt(id, name, &wanted.arguments);
        if let Some(summary) = call.consent.as_ref().and_then(|consent| consent.summary.as_deref()) {
            request = request.in_words(summary);
        }
        if call.is_begun {
            request = request.of_lost_run(&self.context.run.of_call(call.id));
        }
        let specs = self.driver.toolbox.specs();
        let spec = decide::spec_in(&specs, name);
        // Consent to a second execution is bound to the same call as the first consent.
        let agreed = spec.and_then(|spec| decide::agreed(spec, call));
        request.binding = agreed.map(|binding| binding.to_string()).unwrap_or_default();
        let request =
            decide::complete(request, spec, &wanted.arguments, (self.driver, self.machine), self.context);
        step(self.log, self.machine, RecordBody::ToolAsked { call: call.id, request }).await
    }

    /// Records that the child run of a call waits for a person, and the call with it.
    async fn waits_below(&mut self, id: CallId, said: ApprovalRequest) -> Result<(), JournalError> {
        let child = self.context.run.of_call(id);
        for request in questions_below(self.driver.journal.as_deref(), &child, id, said).await {
            step(self.log, self.machine, RecordBody::ToolAsked { call: id, request: Box::new(request) })
                .await?;
        }
        Ok(())
    }

    /// Redacts the result, since not every toolbox does. Counts the attempts, since a toolbox knows of its own
    /// only. Tells the model if a person changed the arguments of the call.
    fn marked(&self, id: CallId, mut result: ToolResult) -> ToolResult {
        self.context.redactor.clean_result(&mut result);
        let call = self.machine.calls().iter().find(|call| call.id == id);
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

    /// Records that a call failed, if it is retried; returns true then.
    async fn will_try_again(&mut self, id: CallId, result: &ToolResult) -> Result<bool, JournalError> {
        let now = self.context.clock.now();
        let failed = self.machine.tool_retry(id, result, now, || draw_jitter(self.context));
        let Some(failed) = failed else { return Ok(false) };
        tracing::warn!(run = %self.context.run, call = %id, error = %result.text(), "a tool failed and is tried again");
        step(self.log, self.machine, failed).await?;
        Ok(true)
    }

    /// Records the result of a call that ran, and runs the hook.
    async fn ended(&mut self, id: CallId, result: ToolResult, calls: &Calls) -> Result<(), JournalError> {
        let heard = self.driver.hooks.as_ref().zip(calls.get(&id)).map(|heard| (heard, result.clone()));
        self.finish(id, result).await?;
        if let Some(((hooks, call), result)) = heard {
            hooks.after_tool(call, &result).await;
        }
        Ok(())
    }

    async fn refuse(&mut self, call: CallId, result: Box<ToolResult>) -> Result<(), JournalError> {
        let refused = RecordBody::ToolRefused { call, result: Arc::from(result) };
        delegate::close(self.driver, self.machine, self.log, refused).await
    }

    async fn finish(&mut self, call: CallId, result: ToolResult) -> Result<(), JournalError> {
        let finished = RecordBody::ToolFinished { call, result: Arc::new(result) };
        delegate::close(self.driver, self.machine, self.log, finished).await
    }
}

/// The next event in a batch.
enum Next {
    Ended(CallId, Executed),
    Reported(Report),
    Stopped(Interrupt),
    Nothing,
}

fn stopped(cause: Interrupt) -> ToolResult {
    match cause {
        Interrupt::Cancelled => ToolResult::cancelled("Cancelled"),
        Interrupt::Deadline => ToolResult::cancelled("Cancelled: the run's time is up"),
    }
}

/// Returns the refusal of a call that needs consent when nobody can be asked.
fn nobody_to_ask(request: &ApprovalRequest) -> ToolResult {
    let text = format!(
        "Error: this needs a person's approval and nobody can be asked: {}. Go on without it.",
        request.action_summary
    );
    ToolResult::failed(ToolResultStatus::Error, text.clone(), text)
        .with_metadata("error_type", "permission_denied")
        .with_metadata(metadata::NOBODY_ASKED, request.rules.first().cloned().unwrap_or_default())
}

/// Grace period of a cancelled tool before it is dropped.
const TOOL_GRACE: Duration = Duration::from_millis(500);

/// Additional grace period for each level of agents that may be working.
const LEVEL_GRACE: Duration = Duration::from_millis(250);

/// The toolbox of an agent without tools.
#[derive(Debug, Default)]
pub(crate) struct NoTools(Arc<archon_types::Encoded<Vec<archon_types::ToolSpec>>>);

impl Toolbox for NoTools {
    fn specs(&self) -> Arc<archon_types::Encoded<Vec<archon_types::ToolSpec>>> {
        self.0.clone()
    }

    fn prepare<'a>(
        &'a self,
        _: CallId,
        call: &'a archon_types::ToolCall,
        _: &'a Context,
    ) -> archon_types::BoxFuture<'a, Prepared> {
        let text = format!("Tool '{}' not found. There are no tools; answer without one.", call.name);
        Box::pin(async { Prepared::Refused(Box::new(ToolResult::error(text))) })
    }

    fn execute<'a>(&'a self, _: ReadyCall, _: &'a Context) -> archon_types::BoxFuture<'a, Executed> {
        Box::pin(async { Executed::Done(Box::new(ToolResult::error("there are no tools"))) })
    }
}
