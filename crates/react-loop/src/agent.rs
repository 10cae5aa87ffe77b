//! The ReAct agent: how a run is started, continued and taken up again.

use std::sync::Arc;

use archon_types::{
    Agent, AgentId, AgentMessage, BoxFuture, CancellationToken, Context, ContextConfig, Encoded,
    EvaluationError, ExecutionLimits, HookPoint, Hooks, InputFilter, Journal, JournalError, LoopId, Message,
    ModelPrice, OpenMode, Origin, Outcome, OutcomeStatus, Provider, QueueMode, RecordBody, RequestOptions,
    RetryConfig, RunConfig, RunId, RunStarted, TenantId, ToolMode, Toolbox, TurnTrigger,
};

use crate::{
    Command, ContextParts, Driver, History, LlmJudge, Messages, Opening, ReactMachine, RunLog, fold,
    fold_chain, fold_with, fork::branch_id, is_paired, is_parallel, tool_batch::NoTools,
};

/// An agent that thinks and acts in turns, with every step in a journal.
#[derive(Clone)]
pub struct ReactAgent {
    driver: Driver,
    journal: Arc<dyn Journal>,
    options: ReactAgentOptions,
    context_parts: ContextParts,
    filters: Vec<Arc<dyn InputFilter>>,
}

/// What a [`ReactAgent`] works with; everything has a default but the model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReactAgentOptions {
    /// For people and for delegation.
    pub name: String,
    /// Stable for the agent's whole life.
    pub agent_id: AgentId,
    /// The model, as the provider names it.
    pub model: String,
    /// Standing instructions.
    pub system: Option<String>,
    /// How far a run may go.
    pub limits: ExecutionLimits,
    /// How failed model calls are retried; ignored where the provider retries by itself.
    pub retry: RetryConfig,
    /// How tools are spoken about; by default as the model can.
    pub tool_mode: Option<ToolMode>,
    /// Sampling, output length and so on.
    pub request: RequestOptions,
    /// What the answer should be.
    pub expected_output: Option<String>,
    /// What makes the first turn of a run that starts with a prompt.
    pub first_turn: TurnTrigger,
    /// How the conversation is kept within the model's window; `None` never compacts it.
    pub context: Option<ContextConfig>,
    /// What the model's tokens cost; a limit on money needs it.
    pub price: Option<ModelPrice>,
    /// How many steers the model reads at once.
    pub steers: QueueMode,
    /// How many follow-ups the model reads at once.
    pub follow_ups: QueueMode,
}

impl ReactAgentOptions {
    /// Defaults for a model.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            name: "agent".to_owned(),
            agent_id: AgentId::new("agent"),
            model: model.into(),
            system: None,
            limits: ExecutionLimits::default(),
            retry: RetryConfig::default(),
            tool_mode: None,
            request: RequestOptions::default(),
            expected_output: None,
            first_turn: TurnTrigger::default(),
            context: Some(ContextConfig::default()),
            price: None,
            steers: QueueMode::default(),
            follow_ups: QueueMode::default(),
        }
    }
}

/// Why a run could not be started or taken up. What goes wrong inside a run is an [`Outcome`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is nothing to work on.
    #[error("the prompt is empty: say what is to be done")]
    EmptyPrompt,
    /// The log is there and is not the log of a run.
    #[error("run {run} has a log that does not begin as a run's log does")]
    NotARun {
        /// The run.
        run: RunId,
    },
    /// The process died before the prompt was in the log.
    #[error("run {run} was cut off before its prompt was kept: start it again")]
    NothingAsked {
        /// The run.
        run: RunId,
    },
    /// The run has fewer turns.
    #[error("run {run} has {turns} turns: it cannot be forked after turn {asked}")]
    NoSuchTurn {
        /// The run.
        run: RunId,
        /// After which turn the fork was to be.
        asked: u32,
        /// The turns that the run has.
        turns: u32,
    },
    /// The conversation ends with an answer, so there is nothing to go on with.
    #[error("the conversation ends with the model's answer: say something to go on")]
    NothingToAnswer,
    /// A conversation from elsewhere holds a tool call without its result, or a result without its call.
    #[error("the messages cannot be restored: every tool call needs its result right behind it")]
    Unpaired,
    /// Money is limited and nobody knows what the model costs.
    #[error(
        "the run may cost {max_cost} millionths at most and the price of {model} is unknown: give its price"
    )]
    UnknownPrice {
        /// The model.
        model: String,
        /// The limit.
        max_cost: u64,
    },
    /// Agents called agents too often.
    #[error("a run at depth {depth} is not started: the limit is {max}")]
    TooDeep {
        /// The depth of the run that was to start.
        depth: u32,
        /// [`ExecutionLimits::max_depth`].
        max: u32,
    },
    /// A parallel loop was given no branch.
    #[error("a parallel loop needs at least one branch")]
    NoBranch,
    /// The strategy cannot choose among so many branches.
    #[error(transparent)]
    Evaluation(#[from] EvaluationError),
    /// The run is a parallel loop, which asks no model itself.
    #[error(
        "run {run} is a parallel loop: speak to the runs of its branches, and resume it with its branches"
    )]
    Parallel {
        /// The run.
        run: RunId,
    },
    /// The run is no parallel loop, or one with other branches.
    #[error("run {run} has {found} branches, and it was to be resumed with {given}")]
    OtherBranches {
        /// The run.
        run: RunId,
        /// The branches that its log names; 0 if it is no parallel loop.
        found: usize,
        /// The branches that were given.
        given: usize,
    },
    /// The run has its outcome.
    #[error("run {run} has ended: continue its session with a new prompt instead")]
    Ended {
        /// The run.
        run: RunId,
    },
}

impl ReactAgent {
    /// An agent without tools; see [`with_toolbox`](Self::with_toolbox).
    pub fn new(provider: Arc<dyn Provider>, journal: Arc<dyn Journal>, options: ReactAgentOptions) -> Self {
        let driver = Driver::new(provider, Arc::new(NoTools::default()));
        Self { driver, journal, options, context_parts: ContextParts::default(), filters: Vec::new() }
    }

    /// The same agent with tools.
    pub fn with_toolbox(mut self, toolbox: Arc<dyn Toolbox>) -> Self {
        self.driver.toolbox = toolbox;
        self
    }

    /// The same agent with a counter or a compaction strategy of the program's own.
    pub fn with_context_parts(mut self, parts: ContextParts) -> Self {
        self.context_parts = parts;
        self
    }

    /// The same agent with the program's own code at fixed places of every run.
    pub fn with_hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.driver.hooks = Some(hooks);
        self
    }

    /// The same agent with filters, which look in this order at what a run begins with.
    pub fn with_input_filters(mut self, filters: Vec<Arc<dyn InputFilter>>) -> Self {
        self.filters = filters;
        self
    }

    /// What the agent works with.
    pub fn options(&self) -> &ReactAgentOptions {
        &self.options
    }

    /// Starts the run that `context` names with prompts and drives it to its outcome.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
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
    /// The prompt is empty, there is nothing to go on with, a limit forbids the run, or the journal
    /// failed.
    pub async fn begin(
        &self,
        opening: Opening,
        origin: Origin,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        self.begin_branch(opening, origin, None, context).await
    }

    /// As [`begin`](Self::begin), for a branch of the `parallel` loop if there is one.
    pub(crate) async fn begin_branch(
        &self,
        opening: Opening,
        origin: Origin,
        parallel: Option<&RunId>,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        self.check(&opening, context)?;
        let context = &cancelled_alone(context);
        let (history, earlier) = fold_chain(&*self.journal, &origin).await?;
        let mut started = self.started(origin, earlier, parallel, context);
        if opening.is_continuation() {
            check_answerable(&opening, &history)?;
            started.first_turn = TurnTrigger::Continuation;
        }
        let mut driver = self.driver.clone();
        let mut bodies = vec![RecordBody::RunStarted(Box::new(started.clone()))];
        if driver.may_begin(&history, earlier).await {
            match opening.filtered(&self.filters).await {
                Ok(opening) => bodies.extend(opening.into_records()),
                Err(reason) => bodies.push(RecordBody::InputRejected { reason }),
            }
        } else {
            bodies.push(RecordBody::Vetoed { hook: HookPoint::BeforeLoop });
            driver.hooks = None; // A run that never began has no end to hear of.
        }
        let open = self.journal.open(&context.run, OpenMode::Create).await?;
        let mut log = RunLog::new(open.writer, 0, context.clone()).with_inbox(self.journal.inbox(), &[]);
        let records = log.append_all(bodies).await?;
        let parts = self.context_parts.clone();
        let mut machine = ReactMachine::with_parts(&started, records[0].at, history, parts);
        for record in &records[1..] {
            machine.apply(record);
        }
        Ok(driver.drive(&mut machine, &mut log, context).await?)
    }

    fn check(&self, opening: &Opening, context: &Context) -> Result<(), LoopError> {
        let limits = &self.options.limits;
        if !opening.is_continuation() && !opening.says_something() {
            return Err(LoopError::EmptyPrompt);
        }
        if !is_paired(&opening.restored) {
            return Err(LoopError::Unpaired);
        }
        if context.depth > limits.max_depth {
            return Err(LoopError::TooDeep { depth: context.depth, max: limits.max_depth });
        }
        match limits.max_cost {
            Some(max_cost) if self.options.price.is_none() => {
                Err(LoopError::UnknownPrice { model: self.options.model.clone(), max_cost })
            }
            _ => Ok(()),
        }
    }

    /// Takes up the run that `context` names where its log ends: after a crash, or after a cancel.
    ///
    /// The run keeps the model, the tools' descriptions and the limits that it was started with.
    ///
    /// # Errors
    /// The run is unknown, in use, or has ended, or the journal failed.
    pub async fn resume(&self, context: &Context) -> Result<Outcome, LoopError> {
        let open = self.journal.open(&context.run, OpenMode::Existing).await?;
        let origin = match open.records.first().map(|r| &r.body) {
            Some(RecordBody::RunStarted(started)) => started.origin.clone(),
            _ => return Err(LoopError::NotARun { run: context.run.clone() }),
        };
        if is_parallel(&open.records) {
            return Err(LoopError::Parallel { run: context.run.clone() });
        }
        let (history, _) = fold_chain(&*self.journal, &origin).await?;
        let parts = self.context_parts.clone();
        let mut machine = fold_with(&context.run, &open.records, history, parts)?;
        let may_go_on = |o: &Outcome| matches!(o.status, OutcomeStatus::Cancelled | OutcomeStatus::Failed);
        if machine.ended().is_some_and(|outcome| !may_go_on(outcome)) {
            return Err(LoopError::Ended { run: context.run.clone() });
        }
        if machine.next() == Command::WaitForPrompt {
            return Err(LoopError::NothingAsked { run: context.run.clone() });
        }
        let context = &cancelled_alone(context);
        let mut log = RunLog::new(open.writer, open.records.len() as u64, context.clone())
            .with_inbox(self.journal.inbox(), &open.records);
        log.step(&mut machine, RecordBody::Resumed).await?;
        if let Some((command, attempt)) = machine.open_request() {
            log.step(&mut machine, RecordBody::CallLost { command, attempt }).await?;
        }
        Ok(self.driver.drive(&mut machine, &mut log, context).await?)
    }

    /// The same agent with its runs in another journal.
    pub(crate) fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = journal;
        self
    }

    /// A judge that asks this agent's model, with its instructions, its window, its limits and its price.
    pub fn judge(&self) -> LlmJudge {
        LlmJudge::new(self.driver.provider.clone(), self.options.clone())
            .with_context_parts(self.context_parts.clone())
    }

    pub(crate) fn started(
        &self,
        origin: Origin,
        earlier: usize,
        parallel: Option<&RunId>,
        context: &Context,
    ) -> RunStarted {
        let options = &self.options;
        let capabilities = self.driver.provider.capabilities(&options.model);
        let mut config = RunConfig::default();
        self.driver.provider.id().clone_into(&mut config.provider);
        config.model.clone_from(&options.model);
        config.system = options.system.clone().map(|s| Arc::new(Encoded::new(s)));
        config.tools = self.driver.toolbox.specs();
        config.options = Arc::new(options.request.clone());
        config.limits = options.limits.clone();
        config.retry = if capabilities.retries { RetryConfig::none() } else { options.retry.clone() };
        config.tool_mode = options.tool_mode.unwrap_or(match capabilities.native_tools {
            true => ToolMode::Native,
            false => ToolMode::Text,
        });
        config.expected_output.clone_from(&options.expected_output);
        config.context.clone_from(&options.context);
        (config.price, config.steers, config.follow_ups) =
            (options.price, options.steers, options.follow_ups);
        let mut loop_id = loop_id(context, &config, earlier + 1);
        if parallel.is_some() {
            loop_id = branch_id(&loop_id, &context.run);
        }
        let mut started = RunStarted::new(
            context.run.clone(),
            context.session.clone(),
            options.agent_id.clone(),
            loop_id,
            config,
        );
        started.tenant = TenantId::clone(&context.tenant);
        started.origin = origin;
        started.parallel = parallel.cloned();
        started.first_turn = options.first_turn;
        started
    }
}

/// The same context with a token of its own: a cancel from the inbox ends this run alone.
pub(crate) fn cancelled_alone(context: &Context) -> Context {
    let mut own = context.clone();
    own.cancel = CancellationToken::child_token(&context.cancel);
    own
}

/// A run without anything new needs a conversation that does not end with an answer.
fn check_answerable(opening: &Opening, history: &History) -> Result<(), LoopError> {
    let last = opening.restored.last().or_else(|| history.messages().iter().last().map(|last| &**last));
    match last {
        Some(Message::User(_) | Message::ToolResult(_)) => Ok(()),
        _ => Err(LoopError::NothingToAnswer),
    }
}

/// `{session}.{provider-model}.{n}`; dots separate the parts, so a part has none.
fn loop_id(context: &Context, config: &RunConfig, n: usize) -> LoopId {
    let clean = |s: &str| s.replace(['.', '/', ':'], "-");
    LoopId::new(format!(
        "{}.{}-{}.{n}",
        clean(context.session.as_str()),
        clean(&config.provider),
        clean(&config.model)
    ))
}

impl Agent for ReactAgent {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let prompt = Message::user(task, context.clock.now()).into();
            match self.start(vec![prompt], Origin::Prompt, context).await {
                Ok(outcome) => outcome,
                Err(error) => Outcome::failed(context.run.clone(), error.to_string()),
            }
        })
    }
}

impl std::fmt::Debug for ReactAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReactAgent").field("options", &self.options).finish_non_exhaustive()
    }
}

/// The conversation that a run left, for whoever shows it.
///
/// # Errors
/// The run, or one that it continues, cannot be read.
pub async fn conversation(journal: &dyn Journal, run: &RunId) -> Result<Messages, LoopError> {
    let records = journal.read(run).await?;
    let origin = match records.first().map(|r| &r.body) {
        Some(RecordBody::RunStarted(started)) => started.origin.clone(),
        _ => return Err(LoopError::NotARun { run: run.clone() }),
    };
    let (history, _) = fold_chain(journal, &origin).await?;
    let machine = fold(run, &records, history)?;
    match machine.ended() {
        // With what the run that goes on from here is told of its end.
        Some(_) => Ok(machine.into_history().messages().clone()),
        None => Ok(machine.messages().clone()),
    }
}
