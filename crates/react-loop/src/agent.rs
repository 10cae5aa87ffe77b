//! The ReAct agent: how a run is started, continued and taken up again.

use std::sync::Arc;

use archon_types::{
    Agent, AgentId, AgentMessage, BoxFuture, Context, ContextConfig, Encoded, ExecutionLimits, Journal,
    JournalError, LoopId, Message, OpenMode, Origin, Outcome, OutcomeStatus, PromptSource, Provider,
    RecordBody, RequestOptions, RetryConfig, RunConfig, RunId, RunStarted, TenantId, ToolMode, Toolbox,
    TurnTrigger,
};

use crate::{
    Command, ContextParts, Driver, Messages, ReactMachine, RunLog, fold, fold_chain, fold_with,
    tool_batch::NoTools,
};

/// An agent that thinks and acts in turns, with every step in a journal.
#[derive(Clone)]
pub struct ReactAgent {
    driver: Driver,
    journal: Arc<dyn Journal>,
    options: ReactAgentOptions,
    context_parts: ContextParts,
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
        Self { driver, journal, options, context_parts: ContextParts::default() }
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

    /// What the agent works with.
    pub fn options(&self) -> &ReactAgentOptions {
        &self.options
    }

    /// Starts the run that `context` names and drives it to its outcome.
    ///
    /// # Errors
    /// The prompt is empty, or the journal failed.
    pub async fn start(
        &self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        context: &Context,
    ) -> Result<Outcome, LoopError> {
        let says_something = |p: &AgentMessage| {
            p.as_llm().is_some_and(|m| m.content().iter().any(|c| c.as_text() != Some("")))
        };
        if !prompts.iter().any(says_something) {
            return Err(LoopError::EmptyPrompt);
        }
        let (history, earlier) = fold_chain(&*self.journal, &origin).await?;
        let open = self.journal.open(&context.run, OpenMode::Create).await?;
        let mut log = RunLog::new(open.writer, 0, context.clone());
        let started = self.started(origin, earlier, context);
        let mut bodies = vec![RecordBody::RunStarted(Box::new(started.clone()))];
        bodies.extend(
            prompts.into_iter().map(|message| RecordBody::Prompted { message, source: PromptSource::Prompt }),
        );
        let records = log.append_all(bodies).await?;
        let parts = self.context_parts.clone();
        let mut machine = ReactMachine::with_parts(&started, records[0].at, history, parts);
        for record in &records[1..] {
            machine.apply(record);
        }
        Ok(self.driver.drive(&mut machine, &mut log, context).await?)
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
        let mut log = RunLog::new(open.writer, open.records.len() as u64, context.clone());
        log.step(&mut machine, RecordBody::Resumed).await?;
        if let Some((command, attempt)) = machine.open_request() {
            log.step(&mut machine, RecordBody::CallLost { command, attempt }).await?;
        }
        Ok(self.driver.drive(&mut machine, &mut log, context).await?)
    }

    fn started(&self, origin: Origin, earlier: usize, context: &Context) -> RunStarted {
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
        let loop_id = loop_id(context, &config, earlier + 1);
        let mut started = RunStarted::new(
            context.run.clone(),
            context.session.clone(),
            options.agent_id.clone(),
            loop_id,
            config,
        );
        started.tenant = TenantId::clone(&context.tenant);
        started.origin = origin;
        started.first_turn = options.first_turn;
        started
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
    Ok(fold(run, &records, history)?.messages().clone())
}
