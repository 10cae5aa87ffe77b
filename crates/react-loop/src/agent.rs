//! The ReAct agent: starts, continues and resumes runs.

mod called;
mod started;

use std::{panic::AssertUnwindSafe, sync::Arc};

use archon_run::{cancelled_alone, left_behind};
use archon_types::{
    Agent, AgentId, AgentMessage, ApprovalSettings, Approver, Attributed, BoxFuture, CarriedResult,
    CircuitBreaker, Context, ContextConfig, ContinuationKind, DynApprover, ExecutionLimits, FailurePolicy,
    FormCheck, GoalCheck, HookPoint, Hooks, InputFilter, Instructions, Journal, JournalError, Lease, Message,
    ModelPrice, MoreLimits, OnStorageFailure, OpenMode, Origin, Outcome, OutcomeStatus, Provider, QueueMode,
    Record, RecordBody, Redactor, RequestOptions, ResponseFormat, RetryConfig, RunConfig, RunId, RunKind,
    RunMemory, Spending, ToolExecutionStrategy, ToolMode, Toolbox, TurnTrigger, check_called,
};
use futures_util::FutureExt;
use tracing::Instrument as _;

use crate::{
    Command, ContextParts, Driver, EarlierRuns, Fallback, History, LlmJudge, LoopError, Messages, Opening,
    ReactMachine, RunLog, delegate,
    drive::panic_text,
    fold, fold_before, fold_chain, fold_with, is_paired,
    resume::{seen_files, spoken, started},
    run_log::step,
    tool_batch::NoTools,
};

/// An agent that lets a model and its tools take turns, with every step in a journal.
#[derive(Clone)]
pub struct ReactAgent {
    driver: Driver,
    journal: Arc<dyn Journal>,
    options: ReactAgentOptions,
    context_parts: ContextParts,
    filters: Vec<Arc<dyn InputFilter>>,
}

/// Settings of a [`ReactAgent`]. Everything but the model has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReactAgentOptions {
    /// The name, for people and for delegation.
    pub name: String,
    /// The id of the agent, which must stay the same for its whole life.
    pub agent_id: AgentId,
    /// The name of this configuration in loop ids. Default: provider, model and level of thinking.
    pub config_id: Option<String>,
    /// The model, by the provider's name for it.
    pub model: String,
    /// The system prompt.
    pub system: Option<String>,
    /// See [`RunConfig::workspace`](archon_types::RunConfig::workspace).
    pub workspace: Option<String>,
    /// Names of the tools that runs have; `None` for the whole toolbox. A tool that calls other tools, such
    /// as an agent, keeps the tools it was made with.
    pub tools: Option<Vec<String>>,
    /// Limits of each run.
    pub limits: ExecutionLimits,
    /// Retries of failed model calls; ignored if the provider retries by itself.
    pub retry: RetryConfig,
    /// Retries of tool calls after failures that may pass.
    pub tool_retry: RetryConfig,
    /// Settings of the circuit breaker, which blocks a tool that keeps failing; `None` for no breaker.
    pub breaker: Option<CircuitBreaker>,
    /// The reaction when the log of a run cannot be created.
    pub on_storage_failure: OnStorageFailure,
    /// Native or textual tool calls; `None` for what the model supports.
    pub tool_mode: Option<ToolMode>,
    /// Sampling, output length and other options of requests.
    pub request: RequestOptions,
    /// A description of the expected answer.
    pub expected_output: Option<String>,
    /// The check that compares an answer with `expected_output`; none by default.
    pub goal_check: Option<GoalCheck>,
    /// The check of answers against the schema that `request` asks for (structured output); none by default.
    pub form_check: Option<FormCheck>,
    /// The trigger that is recorded for the first turn of a run that starts with a prompt.
    pub first_turn: TurnTrigger,
    /// Handling of questions to people, if somebody can be asked.
    pub approvals: ApprovalSettings,
    /// Settings of the context window; `None` never compacts the conversation.
    pub context: Option<ContextConfig>,
    /// The price of the model's tokens, if its provider does not know it. A cost limit needs it.
    pub price: Option<ModelPrice>,
    /// Number of calls of a turn that run at once.
    pub tool_execution: ToolExecutionStrategy,
    /// Number of steers that the model reads at once.
    pub steers: QueueMode,
    /// Number of follow-ups that the model reads at once.
    pub follow_ups: QueueMode,
}

impl ReactAgentOptions {
    /// Returns the defaults for a model.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            name: "agent".to_owned(),
            agent_id: AgentId::new("agent"),
            config_id: None,
            model: model.into(),
            system: None,
            workspace: None,
            tools: None,
            limits: ExecutionLimits::default(),
            retry: RetryConfig::default(),
            tool_retry: FailurePolicy::default().tool_retry,
            breaker: Some(CircuitBreaker::default()),
            on_storage_failure: OnStorageFailure::default(),
            tool_mode: None,
            request: RequestOptions::default(),
            expected_output: None,
            goal_check: None,
            form_check: None,
            first_turn: TurnTrigger::default(),
            approvals: ApprovalSettings::default(),
            context: Some(ContextConfig::default()),
            price: None,
            tool_execution: ToolExecutionStrategy::default(),
            steers: QueueMode::default(),
            follow_ups: QueueMode::default(),
        }
    }
}

impl ReactAgentOptions {
    /// Returns the schema that answers are checked against, if they are checked.
    pub fn form(&self) -> Option<&ResponseFormat> {
        self.form_check.and(self.request.response_format.as_ref())
    }
}

impl ReactAgent {
    /// Makes an agent without tools; see [`with_toolbox`](Self::with_toolbox).
    pub fn new(provider: Arc<dyn Provider>, journal: Arc<dyn Journal>, options: ReactAgentOptions) -> Self {
        let mut driver = Driver::new(provider, Arc::new(NoTools::default()));
        driver.journal = Some(journal.clone());
        driver.agent_name.clone_from(&options.name);
        Self { driver, journal, options, context_parts: ContextParts::default(), filters: Vec::new() }
    }

    /// Sets the tools.
    pub fn with_toolbox(mut self, toolbox: Arc<dyn Toolbox>) -> Self {
        self.driver.toolbox = toolbox;
        self
    }

    /// Adds further keys for the model's service: providers that differ only in their key.
    pub fn with_keys(mut self, keys: Vec<Arc<dyn Provider>>) -> Self {
        self.driver.keys = keys;
        self
    }

    /// Sets fallback models, which are asked in this order when the agent's own model cannot answer.
    pub fn with_fallbacks(mut self, fallbacks: Vec<Fallback>) -> Self {
        self.driver.fallbacks = fallbacks;
        self
    }

    /// Sets the program's own token counter and compaction strategy.
    pub fn with_context_parts(mut self, parts: ContextParts) -> Self {
        self.context_parts = parts;
        self
    }

    /// Sets the program's own code that runs at fixed points of every run.
    pub fn with_hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.driver.hooks = Some(Arc::new(hooks));
        self
    }

    /// Sets the project's instructions, which are read before each request. Child runs do not read them.
    pub fn with_instructions(mut self, instructions: Arc<dyn Instructions>) -> Self {
        self.driver.instructions = Some(instructions);
        self
    }

    /// Sets the memory that keeps conversations. Child runs do not use it.
    pub fn with_memory(mut self, memory: Arc<dyn RunMemory>) -> Self {
        self.driver.memory = Some(memory);
        self
    }

    /// Removes the memory.
    pub fn without_memory(mut self) -> Self {
        self.driver.memory = None;
        self
    }

    /// Replaces the system prompt.
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.options.system = Some(system.into());
        self
    }

    /// Replaces the limits of runs.
    pub fn with_limits(mut self, limits: ExecutionLimits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Limits the tools of runs to those with these names.
    pub fn with_tools_named(mut self, names: Vec<String>) -> Self {
        self.options.tools = Some(names);
        self
    }

    /// Sets filters, which check the first messages of a run in this order.
    pub fn with_input_filters(mut self, filters: Vec<Arc<dyn InputFilter>>) -> Self {
        self.filters = filters;
        self
    }

    /// Sets the approver, which is asked about calls that need a person's consent.
    pub fn with_approver(mut self, approver: impl Approver + 'static) -> Self {
        self.driver.approver = Some(Arc::new(approver));
        self
    }

    /// Returns the approver, which is asked about calls that need a person's consent.
    pub fn approver(&self) -> Option<&Arc<dyn DynApprover>> {
        self.driver.approver.as_ref()
    }

    /// Returns redactors that know the keys of every service that the agent may ask. A run with several
    /// agents must include them in [`Context::redactor`] before anything is recorded; a run of this agent
    /// alone does so itself.
    pub fn secrets(&self) -> impl Iterator<Item = Redactor> {
        self.driver.secrets()
    }

    /// Requires answers that are JSON of `form` (structured output). `check` says how often an answer that
    /// does not fit is sent back.
    pub fn with_form(mut self, form: ResponseFormat, check: FormCheck) -> Self {
        self.options.request.response_format = Some(form);
        self.options.form_check = Some(check);
        self
    }

    /// Allows answers of any form again.
    pub fn without_form(mut self) -> Self {
        (self.options.request.response_format, self.options.form_check) = (None, None);
        self
    }

    /// Returns the settings.
    pub fn options(&self) -> &ReactAgentOptions {
        &self.options
    }

    /// Starts the run that `context` names with prompts, and drives it to its outcome.
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

    /// Starts the run that `context` names and drives it to its outcome.
    ///
    /// # Errors
    /// The prompt is empty, the conversation has nothing to answer, a limit forbids the run, or the journal
    /// failed.
    pub async fn begin(
        &self,
        opening: Opening,
        origin: Origin,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        self.begin_branch(opening, origin, None, context).await
    }

    /// Starts a run like [`begin`](Self::begin), as a branch of the `parallel` loop if that is given.
    pub(crate) async fn begin_branch(
        &self,
        opening: Opening,
        origin: Origin,
        parallel: Option<&RunId>,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        self.check(&opening, context)?;
        let context = &self.own(context);
        let journal = self.journal(context);
        let chain = fold_chain(&**journal, &origin).await?;
        let (carried, EarlierRuns { history, runs: earlier, .. }) = (chain.due(&context.redactor), chain);
        self.recall(&history.seen, context);
        let mut started = self.started(origin, earlier, parallel, context);
        self.check_tools(&started.config)?;
        if opening.is_continuation() {
            check_answerable(&opening, &history)?;
            started.first_turn = TurnTrigger::Continuation;
        }
        let mut driver = self.driver(context);
        let mut bodies = vec![RecordBody::RunStarted(Box::new(started.clone()))];
        if driver.may_begin(&history, earlier).await {
            bodies.extend(self.opened(Some(opening), history.in_full(), context).await);
            // After the prompt, because lists of runs look for the prompt.
            bodies.extend(carried.map(|carried| RecordBody::Carried(Box::new(carried))));
        } else {
            bodies.push(RecordBody::Vetoed { hook: HookPoint::BeforeLoop });
            driver.hooks = None; // A run that never began has no end to hear of.
        }
        let (mut log, records) = self.open_log(bodies, context).await?;
        let parts = self.context_parts.clone();
        if let RecordBody::RunStarted(kept) = &records[0].body {
            // Without secrets, as a later fold of the log sees it.
            started.clone_from(kept);
        }
        let mut machine = ReactMachine::with_parts(&started, records[0].at, history, parts);
        for record in &records[1..] {
            machine.apply(record);
        }
        drive(&driver, &mut machine, &mut log, context).await
    }

    /// Creates the log of a new run with its first records; on failure see [`OnStorageFailure`].
    async fn open_log(
        &self,
        mut bodies: Vec<RecordBody>,
        context: &Context,
    ) -> Result<(RunLog, Vec<Arc<Record>>), JournalError> {
        let error = match self.kept_log(bodies.clone(), context).await {
            Err(error @ JournalError::Storage { .. })
                if self.options.on_storage_failure == OnStorageFailure::Ephemeral =>
            {
                error
            }
            kept => return kept,
        };
        // If some records reached the journal although it failed, the run could be resumed and everything
        // would be done twice.
        let harmless = usize::from(bodies.first().is_some_and(needs_its_prompt));
        match self.journal(context).read(&context.run).await {
            Err(JournalError::UnknownRun { .. }) => {}
            Ok(records) if records.len() <= harmless => {}
            _ => return Err(error),
        }
        tracing::warn!(run = %context.run, %error, "the run is not kept");
        bodies.insert(1, RecordBody::NotKept { reason: error.to_string() });
        let mut log = RunLog::not_kept(context.clone());
        let records = log.append(bodies).await?;
        Ok((log, records))
    }

    async fn kept_log(
        &self,
        bodies: Vec<RecordBody>,
        context: &Context,
    ) -> Result<(RunLog, Vec<Arc<Record>>), JournalError> {
        let journal = self.journal(context);
        let open = journal.open(&context.run, OpenMode::Create).await?;
        let mut log = RunLog::resume(&**journal, open, context.clone());
        let records = log.append(bodies).await?;
        Ok((log, records))
    }

    fn check(&self, opening: &Opening, context: &Context) -> Result<(), LoopError> {
        let limits = self.limits(context);
        if !opening.is_continuation() && !opening.says_something() {
            return Err(LoopError::EmptyPrompt);
        }
        if !is_paired(&opening.restored) {
            return Err(LoopError::Unpaired);
        }
        if context.depth > limits.max_depth {
            return Err(LoopError::TooDeep { depth: context.depth, max: limits.max_depth });
        }
        if let Some(problem) = self.options.form().and_then(ResponseFormat::schema_problem) {
            return Err(LoopError::Form { problem });
        }
        let model = &self.options.model;
        let price = self.options.price.or_else(|| self.driver.provider.capabilities(model).price);
        let others = self.driver.fallbacks.iter().map(|f| (&f.model, f.price()));
        let mut models = [(model, price)].into_iter().chain(others);
        match (limits.max_cost, models.find(|(_, price)| price.is_none())) {
            (Some(max_cost), Some((model, _))) => {
                Err(LoopError::UnknownPrice { model: model.clone(), max_cost })
            }
            _ => Ok(()),
        }
    }

    /// Checks that every model supports tools as `config` needs them.
    fn check_tools(&self, config: &RunConfig) -> Result<(), LoopError> {
        let needs_tools = config.tool_mode == ToolMode::Native && !config.tools.is_empty();
        let cannot = |f: &&Fallback| !f.provider.capabilities(&f.model).native_tools;
        match self.driver.fallbacks.iter().find(|f| needs_tools && cannot(f)) {
            Some(Fallback { provider, model, .. }) => Err(LoopError::FallbackWithoutTools {
                provider: provider.id().to_owned(),
                model: model.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Resumes the run that `context` names from the end of its log, after a crash or a cancel.
    ///
    /// The run keeps the model, the descriptions of tools and the limits that it was started with. If the
    /// agent has a memory, a run that has ended returns its outcome after the memory has kept its
    /// conversation.
    ///
    /// # Errors
    /// The run is unknown, in use, or has ended and there is no memory; processes that it started cannot be
    /// ended; or the journal failed.
    pub async fn resume(&self, context: &Context) -> Result<Outcome, LoopError> {
        self.resume_with(&MoreLimits::default(), context).await
    }

    /// Resumes a run like [`resume`](Self::resume), with larger limits from now on, so that a run at its
    /// limit goes on.
    ///
    /// # Errors
    /// See [`resume`](Self::resume); also, the run is at a limit that `more` does not raise enough.
    pub async fn resume_with(&self, more: &MoreLimits, context: &Context) -> Result<Outcome, LoopError> {
        self.take_up(None, more, context).await
    }

    /// Resumes a run like [`resume`](Self::resume). `opening` is used if the run was cut off before its first
    /// input was recorded.
    pub(crate) async fn take_up(
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
        // A run that had ended begins once more, which hooks may refuse.
        let begins_again = has_ended(&context.run, &open.records)?.then(|| history.clone());
        self.recall(&history.seen, context);
        self.recall(&seen_files(&open.records), context);
        let (parts, window) = (self.context_parts.clone(), history.in_full());
        let mut machine = fold_with(&context.run, &open.records, history, parts)?;
        if let Err(refused) = may_go_on(&machine, more, context) {
            let context = open.context(&self.own(context));
            // Frees the log first, so that the memory does not delay the next message of the session.
            drop(open);
            return self.keep_ended(&machine, refused, &context).await;
        }
        check_called(&**journal, &open.records).await?;
        let opening = match machine.next() {
            Command::WaitForPrompt => Some(opening.ok_or_else(|| unasked(&context.run))?),
            _ => None,
        };
        // The resumed run keeps the tenant that it was started for.
        let context = &open.context(&self.own(context));
        let driver = self.driver(context);
        if let (Some(history), Some(outcome)) = (begins_again, machine.ended())
            && !driver.may_begin(&history, earlier).await
        {
            return Ok(outcome.clone());
        }
        let groups = left_behind(&open.records);
        if !groups.is_empty() {
            let left = driver.toolbox.end_processes(&groups, context).await;
            if let Some(group) = left.first() {
                return Err(LoopError::ProcessesLeft { run: context.run.clone(), group: group.id });
            }
        }
        let mut log = RunLog::resume(&**journal, open, context.clone());
        let raised = (!more.is_empty()).then_some(RecordBody::LimitsRaised(*more));
        for record in log.append(raised.into_iter().chain([RecordBody::Resumed]).collect()).await? {
            machine.apply(&record);
        }
        for body in self.opened(opening, window, context).await {
            step(&mut log, &mut machine, body).await?;
        }
        if let Some((command, attempt)) = machine.open_request() {
            step(&mut log, &mut machine, RecordBody::CallLost { command, attempt }).await?;
        }
        drive(&driver, &mut machine, &mut log, context).await
    }

    /// Handles a run that has ended and is not resumed. If its process died before the memory had kept the
    /// conversation, the memory keeps it now.
    async fn keep_ended(
        &self,
        machine: &ReactMachine,
        refused: LoopError,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        let driver = self.driver(context);
        driver.remember(machine, context, None).await;
        match (refused, machine.ended()) {
            (LoopError::Ended { .. }, Some(outcome)) if driver.memory.is_some() => Ok(outcome.clone()),
            (refused, _) => Err(refused),
        }
    }

    /// Tells the tools which files earlier calls of the session have read or written.
    fn recall(&self, seen: &[CarriedResult], context: &Context) {
        let recall = |told: &CarriedResult| {
            self.driver.toolbox.recall(&context.session, &told.tool, &told.result);
        };
        seen.iter().for_each(recall);
    }

    /// Returns the context of a run of this agent.
    fn own(&self, context: &Context) -> Context {
        let mut own = cancelled_alone(context);
        own.can_ask |= self.driver.approver.is_some();
        // Done before anything is recorded: a call that a crash cut off may read a key before any model is
        // asked.
        self.secrets().for_each(|secrets| own.redactor.include(&secrets));
        own
    }

    /// Returns the journal of a run: the caller's, or this agent's own.
    fn journal<'a>(&'a self, context: &'a Context) -> &'a Arc<dyn Journal> {
        context.journal(&self.journal)
    }

    fn driver(&self, context: &Context) -> Driver {
        let mut driver = self.driver.clone();
        driver.journal = Some(self.journal(context).clone());
        if context.called_by().is_some() {
            driver.instructions = None;
            driver.memory = None;
        }
        driver
    }

    /// Returns the records of the first input, or the record that a filter rejected it. `window` holds the
    /// messages that the model sees before that input.
    async fn opened(
        &self,
        opening: Option<Opening>,
        window: Vec<Attributed>,
        context: &Context,
    ) -> Vec<RecordBody> {
        let Some(opening) = opening else { return Vec::new() };
        match opening.filtered(&self.filters).await {
            Ok(opening) => {
                let memory = self.driver.memory.as_deref().filter(|_| context.called_by().is_none());
                let span = tracing::info_span!("run", run = %context.run, session = %context.session);
                opening.recalled(memory, window, context).instrument(span).await.into_records().collect()
            }
            Err(reason) => vec![RecordBody::InputRejected { reason }],
        }
    }

    /// Replaces the journal.
    pub(crate) fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = journal;
        self
    }

    /// Returns a copy of the agent whose limits are narrowed to a lease.
    pub(crate) fn leased(&self, lease: &Lease) -> Self {
        let mut own = self.clone();
        own.options.limits = lease.narrow(own.options.limits);
        own
    }

    /// Makes a judge with this agent's model, instructions, window, limits, price, further keys and
    /// fallbacks.
    pub fn judge(&self) -> LlmJudge {
        LlmJudge::new(self.driver.provider.clone(), self.options.clone())
            .with_keys(self.driver.keys.clone())
            .with_fallbacks(self.driver.fallbacks.clone())
            .with_context_parts(self.context_parts.clone())
    }
}

/// Drives a run. A panic, for instance of a hook, ends the run and not the process.
async fn drive(
    driver: &Driver,
    machine: &mut ReactMachine,
    log: &mut RunLog,
    context: &Context,
) -> Result<Outcome, LoopError> {
    match AssertUnwindSafe(driver.drive(machine, log, context)).catch_unwind().await {
        Ok(outcome) => Ok(outcome?),
        Err(panic) => Err(LoopError::Panicked { run: context.run.clone(), message: panic_text(&*panic) }),
    }
}

/// Returns true if the log ends with an outcome.
///
/// # Errors
/// [`NothingAsked`](LoopError::NothingAsked): hooks refused the run before its prompt was recorded.
fn has_ended(run: &RunId, records: &[Arc<Record>]) -> Result<bool, LoopError> {
    let is_refused = |body: &RecordBody| matches!(body, RecordBody::Vetoed { hook: HookPoint::BeforeLoop });
    if records.iter().any(|record| is_refused(&record.body)) {
        return Err(unasked(run));
    }
    Ok(records.last().is_some_and(|last| matches!(last.body, RecordBody::RunFinished(_))))
}

fn unasked(run: &RunId) -> LoopError {
    LoopError::NothingAsked { run: run.clone() }
}

/// Checks that a run can be resumed with larger limits: it has not ended, or its outcome allows more.
fn may_go_on(machine: &ReactMachine, more: &MoreLimits, context: &Context) -> Result<(), LoopError> {
    let run = || context.run.clone();
    match machine.ended().map(|outcome| outcome.status) {
        None | Some(OutcomeStatus::Cancelled | OutcomeStatus::Failed) => Ok(()),
        Some(OutcomeStatus::Limit(_)) => match machine.ended_at(more) {
            Some(limit) => Err(LoopError::AtLimit { run: run(), limit }),
            None => Ok(()),
        },
        Some(_) => Err(LoopError::Ended { run: run() }),
    }
}

/// Returns true if a run whose log has only this first record can never be resumed: it does not answer the
/// end of its conversation, and no caller gives it the prompt again.
fn needs_its_prompt(first: &RecordBody) -> bool {
    let RecordBody::RunStarted(started) = first else { return false };
    let is_told_again = started.parallel.is_some() || matches!(started.origin, Origin::CalledBy { .. });
    let is_fork =
        matches!(started.origin, Origin::Continues { continuation: ContinuationKind::Branch { .. }, .. });
    !is_told_again && !is_fork && started.first_turn != TurnTrigger::Continuation
}

/// Checks that a run without new input has something to answer: its conversation must not end with an answer.
fn check_answerable(opening: &Opening, history: &History) -> Result<(), LoopError> {
    let last = opening.restored.last().or_else(|| history.messages().iter().last().map(|last| &**last));
    match last {
        Some(Message::User(_) | Message::ToolResult(_)) => Ok(()),
        _ => Err(LoopError::NothingToAnswer),
    }
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
        Some(self.config_with(self.options.limits.clone(), self.tools(true)))
    }

    fn in_form(&self, form: &ResponseFormat) -> Option<Arc<dyn Agent>> {
        // In text mode an answer is more than its JSON, so the form has to be told in the task.
        let mode = self.config()?.tool_mode;
        (mode == ToolMode::Native).then(|| {
            let mut agent = self.clone().without_form();
            agent.options.request.response_format = Some(form.clone());
            Arc::new(agent) as Arc<dyn Agent>
        })
    }

    fn used<'a>(&'a self, run: &'a RunId, journal: &'a dyn Journal) -> BoxFuture<'a, Option<Spending>> {
        Box::pin(delegate::used(journal, run))
    }
}

impl std::fmt::Debug for ReactAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReactAgent").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Returns the conversation after a run, to show it.
///
/// # Errors
/// The run, or one that it continues, cannot be read.
pub async fn conversation(journal: &dyn Journal, run: &RunId) -> Result<Messages, LoopError> {
    let records = journal.read(run).await?;
    let history = fold_before(journal, run, &records).await?.history;
    if matches!(spoken(run, &records)?.kind, RunKind::Plan | RunKind::Team) {
        return Ok(history.after(&records).messages().clone());
    }
    let machine = fold(run, &records, history)?;
    match machine.ended() {
        // Includes the note about an interruption that the next run would read.
        Some(_) => Ok(machine.into_history().messages().clone()),
        None => Ok(machine.messages().clone()),
    }
}
