//! The builder: every part of an agent is a trait object that can be swapped.

use std::sync::Arc;

#[cfg(feature = "named-models")]
use archon_providers::HttpOptions;
use archon_react_loop::{ContextParts, Fallback, ReactAgent, ReactAgentOptions};
use archon_store::MemoryJournal;
use archon_tools::{CallGuard, EngineOptions, IntoTool, ToolEngine, ToolRegistry};
use archon_types::{
    AgentId, ApprovalSettings, Approver, CircuitBreaker, Clock, ContextConfig, CredentialStore, DynApprover,
    DynHooks, ExecutionLimits, GoalCheck, Hooks, Ids, InputFilter, Instructions, Journal, ModelPrice,
    OnStorageFailure, Provider, QueueMode, RequestOptions, RetryConfig, RunMemory, Secret, Tool,
    ToolExecutionStrategy, ToolMode, Toolbox,
};

use crate::{Archon, AutoSave, BuildError, MemoryLimit, RandomIds, SystemClock};

mod runs;

use runs::Runs;

/// Collects the parts of an agent. Only the model is needed.
///
/// A clone has the same parts, so agents that differ in some come from one builder:
///
/// ```
/// # fn main() -> Result<(), archon::BuildError> {
/// use std::sync::Arc;
///
/// use archon::{Archon, providers::ScriptedProvider, types::ExecutionLimits};
///
/// let model = Arc::new(ScriptedProvider::texts(["Hello."]));
/// let desk = Archon::builder().provider(model, "scripted").system("You answer customers.");
/// let free = desk.clone().limits(ExecutionLimits::default().with_max_turns(5)).build()?;
/// let paid = desk.build()?;
/// assert_eq!((free.limits().max_turns, paid.limits().max_turns), (5, 50));
/// # Ok(())
/// # }
/// ```
///
/// A setter that is called again replaces what it set; those that add (`tool`, `fallback`, `guard`) say so. Parts that are
/// shared stay shared: a journal, the database of `sqlite`, providers, tools. Without a
/// journal each agent that is built has one of its own in memory.
#[derive(Clone)]
#[must_use]
pub struct ArchonBuilder {
    model: Option<Model>,
    keys: Vec<Secret>,
    fallbacks: Vec<Standby>,
    tools: Vec<Arc<dyn Tool>>,
    toolbox: Option<Arc<dyn Toolbox>>,
    journal: Option<Runs>,
    clock: Option<Arc<dyn Clock>>,
    ids: Option<Arc<dyn Ids>>,
    /// What the agent works with; its model is known at the end.
    options: ReactAgentOptions,
    agent_id: Option<AgentId>,
    /// `None` is as large as the model's, `Some(None)` no window at all.
    context: Option<Option<ContextConfig>>,
    context_parts: Option<ContextParts>,
    hooks: Option<Arc<dyn DynHooks>>,
    filters: Vec<Arc<dyn InputFilter>>,
    auto_save: Option<AutoSave>,
    pub(crate) instructions: Option<Arc<dyn Instructions>>,
    approver: Option<Arc<dyn DynApprover>>,
    engine: Option<EngineOptions>,
    guards: Vec<Arc<dyn CallGuard>>,
    pub(crate) memory_limit: Option<MemoryLimit>,
    /// None is as services are reached by default.
    http: Option<Http>,
    pub(crate) run_memory: Option<Arc<dyn RunMemory>>,
    credentials: Option<Arc<dyn CredentialStore>>,
}

impl Default for ArchonBuilder {
    fn default() -> Self {
        Self {
            model: None,
            keys: Vec::new(),
            fallbacks: Vec::new(),
            tools: Vec::new(),
            toolbox: None,
            journal: None,
            clock: None,
            ids: None,
            options: ReactAgentOptions::new(""),
            agent_id: None,
            context: None,
            context_parts: None,
            hooks: None,
            filters: Vec::new(),
            auto_save: None,
            instructions: None,
            approver: None,
            engine: None,
            guards: Vec::new(),
            memory_limit: None,
            http: None,
            run_memory: None,
            credentials: None,
        }
    }
}

#[derive(Clone)]
enum Model {
    #[cfg(feature = "named-models")]
    Named(String),
    /// The provider with each of its keys, at least one.
    Given(Vec<Arc<dyn Provider>>, String),
}

#[derive(Clone)]
enum Standby {
    #[cfg(feature = "named-models")]
    Named(String),
    Given(Fallback),
}

impl ArchonBuilder {
    /// The model as `provider:name`, for instance `ollama:qwen3`, or
    /// `openai-compatible@http://127.0.0.1:8080/v1:name` for any other server. The key comes from the
    /// environment variable that the provider's own tools use.
    #[cfg(feature = "named-models")]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(Model::Named(name.into()));
        self
    }

    /// How services are reached whose models are given by [name](Self::model): time limits, a proxy, certificates.
    /// All models of an agent share one pool of connections, and so do the agents that are given clones of the
    /// same options: one value per process is best.
    #[cfg(feature = "named-models")]
    pub fn http(mut self, http: HttpOptions) -> Self {
        self.http = Some(http);
        self
    }

    /// Any provider, and the model as it names it.
    pub fn provider(self, provider: Arc<dyn Provider>, model: impl Into<String>) -> Self {
        self.provider_with_keys(provider, [], model)
    }

    /// Any provider, the same with further keys in the order in which they are tried, and the model as it
    /// names it. When a key is refused or spent, the run goes on with the next.
    pub fn provider_with_keys(
        mut self,
        provider: Arc<dyn Provider>,
        further: impl IntoIterator<Item = Arc<dyn Provider>>,
        model: impl Into<String>,
    ) -> Self {
        let providers = std::iter::once(provider).chain(further).collect();
        self.model = Some(Model::Given(providers, model.into()));
        self
    }

    /// The keys of a model that is given by its [name](Self::model), in the order in which they are
    /// tried, instead of the one in the environment. A whole [`provider`](Self::provider) has its own.
    #[cfg(feature = "named-models")]
    pub fn api_keys<K: Into<Secret>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// A model to ask when the one before it cannot answer, by [name](Self::model); after those that were
    /// added before. The run then stays with it.
    #[cfg(feature = "named-models")]
    pub fn fallback(mut self, name: impl Into<String>) -> Self {
        self.fallbacks.push(Standby::Named(name.into()));
        self
    }

    /// As [`fallback`](Self::fallback), with any provider, several keys, a price.
    pub fn fallback_provider(mut self, fallback: Fallback) -> Self {
        self.fallbacks.push(Standby::Given(fallback));
        self
    }

    /// Adds a tool: a function with [`#[tool]`](macro@crate::tool), one that was made with its state, or anything that
    /// implements [`Tool`].
    pub fn tool<How>(mut self, tool: impl IntoTool<How>) -> Self {
        self.tools.push(tool.into_tool());
        self
    }

    /// Adds several tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Another door to tools instead of the registry and its guards; it has its own tools and options.
    pub fn toolbox(mut self, toolbox: Arc<dyn Toolbox>) -> Self {
        self.toolbox = Some(toolbox);
        self
    }

    /// The accounts that tools act with, each tenant's apart; tools reach them by
    /// [`ToolContext::credentials`](archon_types::ToolContext::credentials). By default there are none.
    pub fn credentials(mut self, store: Arc<dyn CredentialStore>) -> Self {
        self.credentials = Some(store);
        self
    }

    /// Where runs are kept; in memory by default.
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(Runs::Given(journal));
        self
    }

    /// Keeps runs in files in this directory, which [`build`](Self::build) makes if it is not there.
    #[cfg(feature = "jsonl")]
    pub fn data_dir(mut self, dir: impl AsRef<std::path::Path>) -> Self {
        self.journal =
            Some(Runs::at(dir.as_ref(), |dir| Ok(Arc::new(archon_store::JsonlJournal::open(dir)?))));
        self
    }

    /// Keeps runs in the SQLite database at this path, which [`build`](Self::build) makes if it is not there; clones of
    /// this builder share it. Agents that
    /// work at the same time share a journal better than a path: give each of them a clone of one
    /// [`SqliteJournal`](archon_store::SqliteJournal) with [`journal`](Self::journal).
    #[cfg(feature = "sqlite")]
    pub fn sqlite(mut self, path: impl AsRef<std::path::Path>) -> Self {
        self.journal =
            Some(Runs::at(path.as_ref(), |path| Ok(Arc::new(archon_store::SqliteJournal::open(path)?))));
        self
    }

    /// The agent's name, for people; questions say it
    /// ([`ApprovalRequest::agent_name`](archon_types::ApprovalRequest::agent_name)).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// The agent's id, which stays the same for its whole life; a fresh one by default. Give an agent that
    /// outlives the process one of its own.
    pub fn agent_id(mut self, id: impl Into<AgentId>) -> Self {
        self.agent_id = Some(id.into());
        self
    }

    /// Names this configuration in the names of loops, `{session}.{config}.{n}`; by default the model and
    /// how much it thinks do.
    pub fn config_id(mut self, id: impl Into<String>) -> Self {
        self.options.config_id = Some(id.into());
        self
    }

    /// Standing instructions.
    pub fn system(mut self, instructions: impl Into<String>) -> Self {
        self.options.system = Some(instructions.into());
        self
    }

    /// The folder that the tools work in. It stands in the log of each run: rules that a person gives for a session hold there
    /// only, and whoever resumes a run can find it.
    pub fn workspace(mut self, folder: impl AsRef<std::path::Path>) -> Self {
        self.options.workspace = Some(folder.as_ref().display().to_string());
        self
    }

    /// How far a run may go.
    pub fn limits(mut self, limits: ExecutionLimits) -> Self {
        self.options.limits = limits;
        self
    }

    /// How failed model calls are retried.
    pub fn retry(mut self, retry: RetryConfig) -> Self {
        self.options.retry = retry;
        self
    }

    /// How calls are tried again that may be repeated and whose tools failed in a way that may pass: a
    /// time-out, or a failure of a tool that works over the network. By default twice, a time-out once.
    pub fn tool_retry(mut self, retry: RetryConfig) -> Self {
        self.options.tool_retry = retry;
        self
    }

    /// When a tool that keeps failing is left alone, and for how long; `None` never leaves one alone. By
    /// default for 60 seconds after 5 failures in a row.
    pub fn circuit_breaker(mut self, breaker: impl Into<Option<CircuitBreaker>>) -> Self {
        self.options.breaker = breaker.into();
        self
    }

    /// What happens to a run that cannot be kept because the storage fails when it begins; by default it
    /// does not begin.
    pub fn on_storage_failure(mut self, what: OnStorageFailure) -> Self {
        self.options.on_storage_failure = what;
        self
    }

    /// How tools are spoken about; by default as the model can.
    pub fn tool_mode(mut self, mode: ToolMode) -> Self {
        self.options.tool_mode = Some(mode);
        self
    }

    /// Sampling, output length and so on.
    pub fn request_options(mut self, options: RequestOptions) -> Self {
        self.options.request = options;
        self
    }

    /// What the answer should be.
    pub fn expected_output(mut self, expected: impl Into<String>) -> Self {
        self.options.expected_output = Some(expected.into());
        self
    }

    /// Compares answers with what was expected, and sends those back that fall short; off by default.
    pub fn goal_check(mut self, check: GoalCheck) -> Self {
        self.options.goal_check = Some(check);
        self
    }

    /// How the conversation is kept within the model's context window; `None` never compacts it. By
    /// default 100,000 tokens, or the window that the provider names.
    pub fn context(mut self, context: impl Into<Option<ContextConfig>>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// A token counter or a compaction strategy of your own.
    pub fn context_parts(mut self, parts: ContextParts) -> Self {
        self.context_parts = Some(parts);
        self
    }

    /// What the model's tokens cost: with it outcomes say what a run cost, and
    /// [`ExecutionLimits::max_cost`] can be set.
    pub fn price(mut self, price: ModelPrice) -> Self {
        self.options.price = Some(price);
        self
    }

    /// How many of the calls of one turn are made at once; by default all whose tools allow it.
    pub fn tool_execution(mut self, strategy: ToolExecutionStrategy) -> Self {
        self.options.tool_execution = strategy;
        self
    }

    /// How many of the steers and of the follow-ups that wait the model reads at once; one of each by
    /// default.
    pub fn queue_modes(mut self, steers: QueueMode, follow_ups: QueueMode) -> Self {
        (self.options.steers, self.options.follow_ups) = (steers, follow_ups);
        self
    }

    /// Your own code at fixed places of every run.
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks = Some(Arc::new(hooks));
        self
    }

    /// Adds a filter that looks at what a run begins with, after those that were added before.
    pub fn input_filter(mut self, filter: Arc<dyn InputFilter>) -> Self {
        self.filters.push(filter);
        self
    }

    /// Sets the approver. It is asked about calls that need a person's consent: those of tools that are destructive or
    /// want it each time, unless the [engine's options](Self::engine_options) say otherwise. Without one the answer is no. One that says
    /// [`Decision::Later`](archon_types::Decision::Later) lets the run suspend: see [`Archon::approvals`]. A question waits
    /// for 30 minutes, unless the [settings](Self::approval_settings) say otherwise.
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// How long questions to people wait, by default 30 minutes, and what follows a no. Afterwards a question takes no
    /// answer; its run goes on without the call when it is next taken up: [`Runs::keep_sweeping`](crate::Runs::keep_sweeping)
    /// and [`sweep`](archon_types::AnswerRuns::sweep) do that.
    pub fn approval_settings(mut self, settings: ApprovalSettings) -> Self {
        self.options.approvals = settings;
        self
    }

    /// What tools may do, and which of their calls people are asked about. A whole
    /// [`toolbox`](Self::toolbox) has its own.
    pub fn engine_options(mut self, options: EngineOptions) -> Self {
        self.engine = Some(options);
        self
    }

    /// Adds a guard of the program's own: it sees each call before it runs, behind the guards of the engine and before a
    /// person is asked, and each result before the model does. A whole [`toolbox`](Self::toolbox) has its own.
    ///
    /// ```
    /// use archon::{Archon, prelude::FnGuard};
    ///
    /// let agent = Archon::builder().guard(FnGuard::new(|call| match call.tool.name.as_str() {
    ///     "send_email" => Err("No mail is sent on Sundays.".to_owned()),
    ///     _ => Ok(()),
    /// }));
    /// ```
    pub fn guard(mut self, guard: impl CallGuard + 'static) -> Self {
        self.guards.push(Arc::new(guard));
        self
    }

    /// Time, for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Identity, for tests.
    pub fn ids(mut self, ids: Arc<dyn Ids>) -> Self {
        self.ids = Some(ids);
        self
    }

    /// Keeps every run's session in a store while the run works; see [`AutoSave`].
    pub fn save_sessions(mut self, saver: AutoSave) -> Self {
        self.auto_save = Some(saver);
        self
    }

    /// Remembers: what fits is told to the model with each question, and what is said is kept, in any case before it
    /// leaves the model's window.
    #[cfg(feature = "memory")]
    pub fn memory(mut self, memory: impl Into<crate::AgentMemory>) -> Self {
        self.run_memory = Some(Arc::new(crate::agent_memory::Remembering::new(memory.into())));
        self
    }

    /// Puts the agent together.
    ///
    /// # Errors
    /// No model was given or its name leads nowhere, two tools have one name, the journal's
    /// directory or database cannot be used, or a part has no effect: [`BuildError::NoEffect`],
    /// [`BuildError::Needs`].
    pub fn build(self) -> Result<Archon, BuildError> {
        self.check()?;
        let mut parts = self.clone();
        let http = &self.http.unwrap_or_default();
        let (mut providers, model) = self.model.ok_or(BuildError::NoModel)?.ready(&self.keys, http)?;
        let keys = providers.split_off(1);
        let provider = providers.swap_remove(0);
        let ready = |standby: Standby| standby.ready(http);
        let fallbacks: Vec<Fallback> = self.fallbacks.into_iter().map(ready).collect::<Result<_, _>>()?;
        let toolbox = match self.toolbox {
            Some(toolbox) => toolbox,
            None => registry_of(self.tools, self.engine.unwrap_or_default(), self.guards)?,
        };
        let journal = match &self.journal {
            Some(journal) => journal.opened()?,
            None => Arc::new(MemoryJournal::new()),
        };
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemClock));
        let ids = self.ids.unwrap_or_else(|| Arc::new(RandomIds));
        parts.journal = Some(Runs::Given(journal.clone()));
        (parts.clock, parts.ids) = (Some(clock.clone()), Some(ids.clone()));
        let mut options = self.options;
        options.model = model;
        options.agent_id = self.agent_id.unwrap_or_else(|| AgentId::new(ids.fresh("agent")));
        fit_window(self.context, &mut options, &*provider);
        #[cfg(feature = "planner")]
        let questions =
            crate::planning::Questions::new((&provider, &keys), &fallbacks, &options.retry, (&clock, &ids));
        let mut agent = ReactAgent::new(provider, journal.clone(), options)
            .with_keys(keys)
            .with_fallbacks(fallbacks)
            .with_toolbox(toolbox.clone())
            .with_context_parts(self.context_parts.unwrap_or_default())
            .with_input_filters(self.filters);
        if let Some(hooks) = self.hooks {
            agent = agent.with_hooks(hooks);
        }
        if let Some(approver) = self.approver {
            agent = agent.with_approver(approver);
        }
        if let Some(memory) = self.run_memory {
            agent = agent.with_memory(memory);
        }
        if let Some(instructions) = self.instructions {
            agent = agent.with_instructions(instructions);
        }
        Ok(Archon {
            agent,
            parts: Arc::new(parts),
            #[cfg(feature = "planner")]
            questions,
            toolbox,
            journal,
            clock,
            ids,
            auto_save: self.auto_save,
            memory_limit: self.memory_limit,
            credentials: self.credentials,
        })
    }
}

impl ArchonBuilder {
    /// Refuses what would be ignored.
    fn check(&self) -> Result<(), BuildError> {
        let refuse = |setting, beside| Err(BuildError::NoEffect { setting, beside });
        if self.toolbox.is_some() && !self.tools.is_empty() {
            return refuse("tool", "toolbox");
        }
        if self.toolbox.is_some() && self.engine.is_some() {
            return refuse("engine_options", "toolbox");
        }
        if self.toolbox.is_some() && !self.guards.is_empty() {
            return refuse("guard", "toolbox");
        }
        if self.context_parts.is_some() && self.context.as_ref().is_some_and(Option::is_none) {
            return refuse("context_parts", "context(None)");
        }
        if self.options.goal_check.is_some() && self.options.expected_output.is_none() {
            return Err(BuildError::Needs { setting: "goal_check", needs: "expected_output" });
        }
        match &self.model {
            Some(Model::Given(..)) if !self.keys.is_empty() => refuse("api_keys", "provider"),
            Some(Model::Given(..)) if self.http.is_some() && !self.has_named_fallback() => {
                refuse("http", "provider")
            }
            _ => Ok(()),
        }
    }

    fn has_named_fallback(&self) -> bool {
        self.fallbacks.iter().any(|fallback| !matches!(fallback, Standby::Given(_)))
    }

    /// What an agent has that its own builder did not say.
    pub(crate) fn take_over(&mut self, archon: &Archon) {
        let own = archon.agent.options();
        self.options.request.response_format.clone_from(&own.request.response_format);
        self.options.form_check = own.form_check;
    }
}

/// How the conversation is kept within the model's window: as the program says, or as large as the model's.
fn fit_window(
    context: Option<Option<ContextConfig>>,
    options: &mut ReactAgentOptions,
    provider: &dyn Provider,
) {
    match (context, &mut options.context) {
        (Some(context), _) => options.context = context,
        (None, Some(config)) => {
            let window = provider.capabilities(&options.model).context_window;
            config.max_context_tokens = window.unwrap_or(config.max_context_tokens);
        }
        (None, None) => {}
    }
}

fn registry_of(
    tools: Vec<Arc<dyn Tool>>,
    options: EngineOptions,
    guards: Vec<Arc<dyn CallGuard>>,
) -> Result<Arc<dyn Toolbox>, BuildError> {
    let registry = ToolRegistry::new();
    registry.register_all(tools)?;
    Ok(Arc::new(ToolEngine::new(registry).with_options(options).with_guards(guards)))
}

/// How services are reached, where there are any.
#[cfg(feature = "named-models")]
type Http = HttpOptions;
#[cfg(not(feature = "named-models"))]
type Http = ();

impl Model {
    fn ready(self, keys: &[Secret], http: &Http) -> Result<(Vec<Arc<dyn Provider>>, String), BuildError> {
        let _ = (keys, http);
        match self {
            #[cfg(feature = "named-models")]
            Self::Named(name) => named(&name, keys, http),
            Self::Given(providers, model) => Ok((providers, model)),
        }
    }
}

impl Standby {
    fn ready(self, http: &Http) -> Result<Fallback, BuildError> {
        let _ = http;
        match self {
            #[cfg(feature = "named-models")]
            Self::Named(name) => {
                let (mut providers, model) = named(&name, &[], http)?;
                Ok(Fallback::new(providers.swap_remove(0), model))
            }
            Self::Given(fallback) => Ok(fallback),
        }
    }
}

/// The model's service once with each key, or with the key in the environment.
#[cfg(feature = "named-models")]
fn named(
    name: &str,
    keys: &[Secret],
    http: &HttpOptions,
) -> Result<(Vec<Arc<dyn Provider>>, String), BuildError> {
    use archon_providers::{ConnectOptions, resolve};
    let variable = |name: &str| std::env::var(name).ok();
    // Clones share one pool of connections.
    let options = ConnectOptions::default().with_http(http.clone());
    let with_key = |key: &Secret| options.clone().with_api_key(key.clone());
    let Some((first, further)) = keys.split_first() else {
        let found = resolve(name, variable, options)?;
        return Ok((vec![found.provider], found.model));
    };
    let found = resolve(name, variable, with_key(first))?;
    let mut providers = vec![found.provider];
    for key in further {
        providers.push(resolve(name, variable, with_key(key))?.provider);
    }
    Ok((providers, found.model))
}
