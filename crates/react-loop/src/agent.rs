//! The ReAct agent: starts, continues and resumes runs.

mod called;
mod checks;
mod forks;
mod options;
mod parts;
mod recall;
mod started;

use std::{panic::AssertUnwindSafe, sync::Arc};

use archon_run::{cancelled_alone, surviving_groups};
use archon_types::{
    Agent, AgentMessage, Attributed, BoxFuture, Context, HookPoint, InputFilter, Journal, JournalError,
    Message, MoreLimits, OnStorageFailure, OpenMode, Origin, Outcome, Provider, Record, RecordBody,
    ResponseFormat, RunConfig, RunId, RunKind, RunRefused, RunStarted, SharedMode, Spending, ToolMode,
    TurnTrigger, check_called, may_resume,
};
use futures_util::FutureExt;
use tracing::Instrument as _;

pub(crate) use checks::check_media;
use checks::{check_answerable, needs_its_prompt};
pub use options::ReactAgentOptions;
use parts::NoTools;

use crate::{
    ContextParts, Driver, EarlierRuns, LoopError, Machine, Next, Opening, ReactMachine, RunLog, delegate,
    fold_before, fold_chain, fold_with,
    panic_text::panic_text,
    resume::{is_finished, started},
};

/// An agent in which a model and its tools take turns, with every step in a journal.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_react_loop::{ReactAgent, ReactAgentOptions};
/// use archon_types::{Journal, Provider};
///
/// fn desk(model: Arc<dyn Provider>, journal: Arc<dyn Journal>) -> ReactAgent {
///     let mut options = ReactAgentOptions::new("gpt-5-mini");
///     options.name = "Refund desk".to_owned();
///     ReactAgent::new(model, journal, options).with_system("You answer customers of the chair shop.")
/// }
/// ```
#[derive(Clone)]
pub struct ReactAgent {
    pub(crate) driver: Driver,
    journal: Arc<dyn Journal>,
    pub(crate) options: ReactAgentOptions,
    pub(crate) context_parts: ContextParts,
    filters: Vec<Arc<dyn InputFilter>>,
}

impl ReactAgent {
    /// Creates an agent without tools; see [`with_toolbox`](Self::with_toolbox).
    pub fn new(provider: Arc<dyn Provider>, journal: Arc<dyn Journal>, options: ReactAgentOptions) -> Self {
        let mut driver = Driver::new(provider, Arc::new(NoTools::default()));
        driver.journal = Some(journal.clone());
        driver.agent_name.clone_from(&options.name);
        Self { driver, journal, options, context_parts: ContextParts::default(), filters: Vec::new() }
    }

    /// Returns the settings of the agent.
    pub fn options(&self) -> &ReactAgentOptions {
        &self.options
    }

    /// Starts the run that `context` names, with `prompts` as its first input; otherwise the same as
    /// [`begin`](Self::begin).
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    pub async fn start(
        &self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        if prompts.is_empty() {
            return Err(LoopError::EmptyPrompt);
        }
        self.begin(Opening::new(prompts), origin, context).await
    }

    /// Starts the run that `context` names, and drives the run until it ends or is suspended.
    ///
    /// # Errors
    /// The prompt is empty; the conversation has nothing to answer; a restored conversation is incomplete;
    /// the run is nested too deeply; the cost is limited and a price is unknown; the schema is invalid; a
    /// fallback model does not support native tool calling; or the journal failed.
    pub async fn begin(
        &self,
        opening: Opening,
        origin: Origin,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        self.begin_branch(opening, origin, None, context).await
    }

    /// Starts a run like [`begin`](Self::begin). If `parallel` is given, the run is a branch of that
    /// parallel loop.
    pub(crate) async fn begin_branch(
        &self,
        mut opening: Opening,
        origin: Origin,
        parallel: Option<&RunId>,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        self.check(&opening, context)?;
        let context = &self.own(context);
        let journal = self.journal(context);
        let chain = fold_chain(&**journal, &origin).await?;
        let (snapshot, EarlierRuns { history, runs: earlier, .. }) = (chain.due(&context.redactor), chain);
        self.recall(&history.seen, context);
        opening.mode = opening.mode.filter(|mode| *mode != history.mode);
        let mut started = self.started(origin, earlier, parallel, context);
        self.check_tools(&started.config)?;
        check_media(&opening.prompts, &started.config)?;
        if opening.is_continuation() {
            check_answerable(&opening, &history)?;
            started.first_trigger = TurnTrigger::Continuation;
        }
        let mut driver = self.driver(context);
        let mut first = Vec::new();
        if driver.may_begin(&history, earlier).await {
            first = self.opened(Some(opening), history.in_full(), context).await;
            // After the prompt, because lists of runs look for the prompt.
            first.extend(snapshot.map(|snapshot| RecordBody::SessionSnapshot(Box::new(snapshot))));
        } else {
            first.push(RecordBody::StoppedByHook { hook: HookPoint::BeforeLoop });
            driver.hooks = None; // A run that never began has no end to hear of.
        }
        self.recall_marks(&first, context);
        let (log, records) = self.open_log(started, first, context).await?;
        // From the recorded configuration, which has no secrets, as in a later fold of the log.
        let machine = fold_with(&context.run, &records, history, self.context_parts.clone())?;
        drive(&driver, machine, log).await
    }

    /// Creates the log of a new run with its first records. If the journal cannot store them, [`OnStorageFailure`]
    /// determines if the run works without a log.
    async fn open_log(
        &self,
        started: RunStarted,
        rest: Vec<RecordBody>,
        context: &Context,
    ) -> Result<(RunLog, Vec<Arc<Record>>), JournalError> {
        let journal = self.journal(context);
        let is_ephemeral = self.options.on_storage_failure == OnStorageFailure::Ephemeral;
        let error = match RunLog::begin(&**journal, started.clone(), rest.clone(), context).await {
            Err(error @ JournalError::Storage { .. }) if is_ephemeral => error,
            log => return log,
        };
        // If some records reached the journal although it failed, the run could be resumed, and all work
        // would be done twice.
        let harmless = usize::from(needs_its_prompt(&started));
        match journal.read(&context.run).await {
            Err(JournalError::UnknownRun { .. }) => {}
            Ok(records) if records.len() <= harmless => {}
            _ => return Err(error),
        }
        tracing::warn!(run = %context.run, %error, "the run is not stored");
        let unavailable = RecordBody::LogUnavailable { reason: error.to_string() };
        let first = [RecordBody::RunStarted(Box::new(started)), unavailable];
        let mut log = RunLog::unstored(context.clone());
        let records = log.append(first.into_iter().chain(rest).collect()).await?;
        Ok((log, records))
    }

    /// Resumes the run that `context` names from the end of its log, after a crash or a cancel.
    ///
    /// The run keeps the model, the descriptions of tools and the limits with which it was started. If the agent
    /// has a memory and the run has ended, the memory stores the conversation, and the outcome is returned.
    ///
    /// # Errors
    /// The run is unknown, in use, or has ended and the agent has no memory; processes that the run
    /// started cannot be ended; or the journal failed.
    pub async fn resume(&self, context: &Context) -> Result<Outcome, LoopError> {
        self.resume_with(&MoreLimits::default(), context).await
    }

    /// Raises the limits of a run and resumes the run like [`resume`](Self::resume), so that a run that ended
    /// at a limit continues.
    ///
    /// # Errors
    /// See [`resume`](Self::resume); or the run has reached a limit that `more` does not raise enough.
    pub async fn resume_with(&self, more: &MoreLimits, context: &Context) -> Result<Outcome, LoopError> {
        self.resume_run(None, more, context).await
    }

    /// Resumes a run like [`resume`](Self::resume). If the process died before it recorded the first input of
    /// the run, `opening` becomes this input.
    pub(crate) async fn resume_run(
        &self,
        opening: Option<Opening>,
        more: &MoreLimits,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        let journal = self.journal(context);
        let open = journal.open(&context.run, OpenMode::Existing).await?;
        let started = started(&context.run, &open.records)?;
        if started.kind != RunKind::Loop {
            return Err(LoopError::OtherKind { run: context.run.clone(), kind: started.kind });
        }
        let EarlierRuns { history, runs: earlier, .. } =
            fold_before(&**journal, &context.run, &open.records).await?;
        // A run that had ended starts again, which hooks may refuse.
        let begins_again = has_ended(&context.run, &open.records)?.then(|| history.clone());
        self.recall_for_resume(&history, &open.records, context);
        let (parts, window) = (self.context_parts.clone(), history.in_full());
        let mut machine = fold_with(&context.run, &open.records, history, parts)?;
        if let Err(refused) = may_resume(&context.run, machine.ended(), machine.ended_at(more), || true) {
            let context = open.context(&self.own(context));
            // Frees the log first, so that the memory does not delay the next message of the session.
            drop(open);
            return self.keep_ended(&machine, refused, &context).await;
        }
        check_called(&**journal, &open.records).await?;
        let opening = match machine.next() {
            Next::AwaitPrompt => Some(opening.ok_or_else(|| unasked(&context.run))?),
            _ => None,
        };
        // The resumed run keeps the tenant for which it was started.
        let context = &open.context(&self.own(context));
        let driver = self.driver(context);
        if let (Some(history), Some(outcome)) = (begins_again, machine.ended())
            && !driver.may_begin(&history, earlier).await
        {
            return Ok(outcome.clone());
        }
        let groups = surviving_groups(&open.records);
        if !groups.is_empty() {
            let running = driver.toolbox.end_processes(&groups, context).await;
            if let Some(group) = running.first() {
                return Err(LoopError::ProcessesLeft { run: context.run.clone(), group: group.id });
            }
        }
        let mut log = RunLog::resume(&**journal, open, context.clone());
        let raised = (!more.is_empty()).then_some(RecordBody::LimitsRaised(*more));
        let resumed = raised.into_iter().chain([RecordBody::Resumed]).collect();
        log.step(resumed, |record| machine.apply(record)).await?;
        let opened = self.opened(opening, window, context).await;
        self.recall_marks(&opened, context);
        for body in opened {
            log.step(vec![body], |record| machine.apply(record)).await?;
        }
        if let Some((command, attempt)) = machine.open_request() {
            let lost = vec![RecordBody::ModelCallLost { command, attempt }];
            log.step(lost, |record| machine.apply(record)).await?;
        }
        drive(&driver, machine, log).await
    }

    /// Gives the conversation of a run that has ended to the memory, because the process may have died before the
    /// memory stored it. Returns the outcome. Returns the error `refused` if there is no memory, or if a limit ended
    /// the run.
    async fn keep_ended(
        &self,
        machine: &ReactMachine,
        refused: RunRefused,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        let driver = self.driver(context);
        driver.remember(machine, context, None).await;
        match (refused, machine.ended()) {
            (RunRefused::Ended { .. }, Some(outcome)) if driver.memory.is_some() => Ok(outcome.clone()),
            (refused, _) => Err(refused.into()),
        }
    }

    /// Returns the context of a run of this agent. The context has a cancellation token of its own, the secrets to
    /// redact, and, unless another run called this run, a mode of its own. If the agent has an approver, the run can
    /// ask people.
    fn own(&self, context: &Context) -> Context {
        let mut own = cancelled_alone(context);
        if own.depth == 0 {
            own.mode = SharedMode::default();
        }
        own.can_ask |= self.driver.approver.is_some();
        // Done before anything is recorded, because a call that a crash cut off may read a key before any
        // model is asked.
        self.secrets().for_each(|secrets| own.redactor.include(&secrets));
        own
    }

    /// Returns the journal for a run: for a child run the journal of its caller, otherwise this agent's own.
    fn journal<'a>(&'a self, context: &'a Context) -> &'a Arc<dyn Journal> {
        context.journal(&self.journal)
    }

    fn driver(&self, context: &Context) -> Driver {
        let mut driver = self.driver.clone();
        driver.journal = Some(self.journal(context).clone());
        if context.called_by().is_some() {
            driver.instructions = None;
            driver.memory = None;
            // The snapshots of the caller are taken before and after the whole call.
            driver.snapshots = None;
        }
        driver
    }

    /// Returns the records of the first input, or the record that a filter rejected the input. `window`
    /// has the messages that the model sees before that input.
    async fn opened(
        &self,
        opening: Option<Opening>,
        window: Vec<Attributed>,
        context: &Context,
    ) -> Vec<RecordBody> {
        let Some(opening) = opening else { return Vec::new() };
        // Filters and hooks do not need the keys, so the input is redacted first.
        match opening.redacted(&context.redactor).filtered(&self.filters).await {
            Ok(opening) => {
                let memory = self.driver.memory.as_deref().filter(|_| context.called_by().is_none());
                let span = tracing::info_span!("run", run = %context.run, session = %context.session);
                opening.recalled(memory, window, context).instrument(span).await.into_records().collect()
            }
            Err(reason) => vec![RecordBody::InputRejected { reason }],
        }
    }
}

/// Drives a run. A panic, for instance of a hook, ends the run and not the process.
async fn drive(driver: &Driver, machine: ReactMachine, log: RunLog) -> Result<Outcome, LoopError> {
    let run = log.run().clone();
    match AssertUnwindSafe(driver.drive(machine, log)).catch_unwind().await {
        Ok(outcome) => Ok(outcome?),
        Err(panic) => Err(LoopError::Panicked { run, message: panic_text(&*panic) }),
    }
}

/// Returns true if the log ends with an outcome.
///
/// # Errors
/// [`NothingAsked`](LoopError::NothingAsked): hooks refused the run before its prompt was recorded.
fn has_ended(run: &RunId, records: &[Arc<Record>]) -> Result<bool, LoopError> {
    let is_refused =
        |body: &RecordBody| matches!(body, RecordBody::StoppedByHook { hook: HookPoint::BeforeLoop });
    if records.iter().any(|record| is_refused(&record.body)) {
        return Err(unasked(run));
    }
    Ok(is_finished(records))
}

fn unasked(run: &RunId) -> LoopError {
    LoopError::NothingAsked { run: run.clone() }
}

impl Agent for ReactAgent {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let outcome = match context.called_by() {
                Some(by) => self.called(task, by, context).await,
                None => {
                    let prompt = Message::user(task, context.clock.now()).into();
                    self.start(vec![prompt], Origin::Prompt, context).await
                }
            };
            match outcome {
                Ok(outcome) => outcome,
                Err(error) => Outcome::failed(context.run.clone(), error.kind(), error.to_string()),
            }
        })
    }

    fn config(&self) -> Option<RunConfig> {
        Some(self.config_with(self.options.limits.clone(), true))
    }

    fn with_output_format(&self, form: &ResponseFormat) -> Option<Arc<dyn Agent>> {
        // In text mode an answer is more than its JSON, so the task must state the schema.
        let mode = self.config()?.tool_mode;
        (mode == ToolMode::Native).then(|| {
            let mut agent = self.clone().without_output_schema();
            agent.options.request.response_format = Some(form.clone());
            Arc::new(agent) as Arc<dyn Agent>
        })
    }

    fn spending_of<'a>(
        &'a self,
        run: &'a RunId,
        journal: &'a dyn Journal,
    ) -> BoxFuture<'a, Option<Spending>> {
        Box::pin(delegate::spending_of(journal, run))
    }
}

archon_types::debug_fields!(ReactAgent: options);
