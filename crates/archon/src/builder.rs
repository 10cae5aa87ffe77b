//! The builder of an agent. Each part of an agent is a trait object that can be replaced.

use std::sync::Arc;

#[cfg(feature = "named-models")]
use archon_providers::HttpOptions;
use archon_react_loop::{ContextParts, Fallback, ReactAgentOptions};
use archon_tools::{CallGuard, EngineOptions, IntoTool};
use archon_types::{
    AgentId, ApprovalSettings, Approver, CALL_TOOL, CircuitBreaker, Clock, ContextConfig, CredentialStore,
    DynApprover, DynHooks, ExecutionLimits, GoalCheck, Hooks, Ids, InputFilter, Instructions, Journal,
    ModelPrice, OnStorageFailure, Provider, QueueMode, RequestOptions, RetryConfig, RunMemory, Secret,
    TOOL_SEARCH, Tool, ToolExecutionStrategy, ToolMode, Toolbox, WorkspaceSnapshots,
};

#[cfg(feature = "tool-search")]
use archon_types::Embedder;

use crate::{AutoSave, BuildError, ProcessMemoryLimit};

#[cfg(feature = "hooks")]
mod event_hooks;
#[cfg(feature = "memory")]
mod facts;
#[cfg(feature = "skills")]
mod file_agents;
#[cfg(feature = "openapi")]
mod openapi;
mod runs;
#[cfg(feature = "skills")]
mod skills;

#[cfg(feature = "skills")]
pub use file_agents::FileAgents;
pub(crate) use runs::Runs;

/// Collects the parts of an agent. Only the model is required.
///
/// A clone has the same parts, so one builder can build agents that differ in some parts:
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
/// A setter that is called again replaces its value, except for setters that add (`tool`, `fallback`, `guard`
/// and others). Shared parts stay shared between agents: a journal, the database of `sqlite`, providers,
/// tools. Without a journal each agent keeps its runs in memory, separately.
#[derive(Clone, Default)]
#[must_use]
pub struct ArchonBuilder {
    pub(crate) model: Option<Model>,
    pub(crate) keys: Vec<Secret>,
    pub(crate) fallbacks: Vec<FallbackChoice>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    #[cfg(feature = "tool-search")]
    pub(crate) definition_budget: Option<u64>,
    #[cfg(feature = "tool-search")]
    pub(crate) always_defined: std::collections::BTreeSet<String>,
    #[cfg(feature = "tool-search")]
    pub(crate) tool_embedder: Option<Arc<dyn Embedder>>,
    pub(crate) toolbox: Option<Arc<dyn Toolbox>>,
    pub(crate) journal: Option<Runs>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) ids: Option<Arc<dyn Ids>>,
    /// The options of the agent; `build` sets the model in them.
    pub(crate) options: ReactAgentOptions,
    pub(crate) agent_id: Option<AgentId>,
    /// The configuration of the context window. `None`: the size that the provider reports. `Some(None)`: no
    /// compaction.
    pub(crate) context: Option<Option<ContextConfig>>,
    pub(crate) context_parts: Option<ContextParts>,
    pub(crate) hooks: Option<Arc<dyn DynHooks>>,
    #[cfg(feature = "hooks")]
    pub(crate) event_hooks: Option<archon_hooks::EventHooks>,
    #[cfg(feature = "skills")]
    pub(crate) file_agents: Option<FileAgents>,
    pub(crate) filters: Vec<Arc<dyn InputFilter>>,
    pub(crate) auto_save: Option<AutoSave>,
    pub(crate) instructions: Option<Arc<dyn Instructions>>,
    pub(crate) snapshots: Option<Arc<dyn WorkspaceSnapshots>>,
    pub(crate) approver: Option<Arc<dyn DynApprover>>,
    pub(crate) engine: Option<EngineOptions>,
    pub(crate) guards: Vec<Arc<dyn CallGuard>>,
    pub(crate) memory_limit: Option<ProcessMemoryLimit>,
    /// The HTTP options; `None` for the default ones.
    pub(crate) http: Option<Http>,
    pub(crate) run_memory: Option<Arc<dyn RunMemory>>,
    #[cfg(feature = "skills")]
    pub(crate) skills: Option<Arc<archon_skills::SkillSet>>,
    pub(crate) credentials: Option<Arc<dyn CredentialStore>>,
}

#[derive(Clone)]
pub(crate) enum Model {
    #[cfg(feature = "named-models")]
    Named(String),
    /// One copy of the provider for each of its keys, and the name of the model.
    Given(Vec<Arc<dyn Provider>>, String),
}

#[derive(Clone)]
pub(crate) enum FallbackChoice {
    #[cfg(feature = "named-models")]
    Named(String),
    Given(Fallback),
}

archon_types::setters! {
impl ArchonBuilder {
    /// Sets the model as `provider:name`, for instance `ollama:qwen3`, or
    /// `openai-compatible@http://127.0.0.1:8080/v1:name` for any other server. The API key comes from the environment
    /// variable that the provider's own tools use. To set a value that implements
    /// [`Provider`](archon_types::Provider), call [`provider`](Self::provider) instead.
    ///
    /// ```
    /// let builder = archon::Archon::builder().model("ollama:qwen3");
    /// ```
    #[cfg(feature = "named-models")]
    pub fn model(self, name: impl Into<String>) -> Self { self.model = Some(Model::Named(name.into())) }

    /// Sets the HTTP options of models that are set by [name](Self::model): time limits, a proxy,
    /// certificates. All models of an agent share one connection pool, and so do agents with clones of the
    /// same options: use one value per process.
    ///
    /// ```
    /// use archon::{Archon, providers::HttpOptions};
    /// let http = HttpOptions::default().with_proxy("http://proxy.example:3128");
    /// let builder = Archon::builder().model("openai:gpt-5-mini").http(http);
    /// ```
    #[cfg(feature = "named-models")]
    pub fn http(self, http: HttpOptions) -> Self { self.http = Some(http) }

    /// Sets a toolbox in place of the built-in tool registry. The toolbox has its own tools, guards and options:
    /// [`build`](Self::build) fails if this builder has some too.
    ///
    /// ```
    /// use archon::{Archon, ToolEngine, ToolRegistry};
    /// let tools = ToolRegistry::new();
    /// let builder = Archon::builder().toolbox(std::sync::Arc::new(ToolEngine::new(tools)));
    /// ```
    pub fn toolbox(self, toolbox: Arc<dyn Toolbox>) -> Self { self.toolbox = Some(toolbox) }

    /// Sets the credential store for the accounts that tools use, separate for each tenant. Tools get the
    /// credentials from [`ToolContext::credentials`](archon_types::ToolContext::credentials). Default none.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use archon::{Archon, SystemClock, store::InMemoryCredentials};
    /// let store = InMemoryCredentials::new(Arc::new(SystemClock));
    /// let builder = Archon::builder().credentials(Arc::new(store));
    /// ```
    pub fn credentials(self, store: Arc<dyn CredentialStore>) -> Self { self.credentials = Some(store) }

    /// Sets the journal, which stores the logs of runs. Default: in memory.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use archon::{Archon, store::InMemoryJournal};
    /// let journal = Arc::new(InMemoryJournal::new());
    /// let (desk, stock) = (Archon::builder().journal(journal.clone()), Archon::builder().journal(journal));
    /// ```
    pub fn journal(self, journal: Arc<dyn Journal>) -> Self { self.journal = Some(Runs::Given(journal)) }

    /// Stores runs in files in this directory, which [`build`](Self::build) creates.
    ///
    /// ```
    /// let builder = archon::Archon::builder().data_dir("data");
    /// ```
    #[cfg(feature = "jsonl")]
    pub fn data_dir(self, dir: impl AsRef<std::path::Path>) -> Self {
        self.journal =
            Some(Runs::at(dir.as_ref(), |dir| Ok(Arc::new(archon_store::JsonlJournal::open(dir)?))))
    }

    /// Stores runs in the SQLite database at this path, which [`build`](Self::build) creates. Agents from
    /// clones of this builder share the database. Agents from other builders share it if each gets a clone of
    /// one [`SqliteJournal`](archon_store::SqliteJournal) with [`journal`](Self::journal).
    ///
    /// ```
    /// let builder = archon::Archon::builder().sqlite("data/runs.db");
    /// ```
    #[cfg(feature = "sqlite")]
    pub fn sqlite(self, path: impl AsRef<std::path::Path>) -> Self {
        self.journal =
            Some(Runs::at(path.as_ref(), |path| Ok(Arc::new(archon_store::SqliteJournal::open(path)?))))
    }

    /// Sets the name of the agent for people, which questions show
    /// ([`ApprovalRequest::agent_name`](archon_types::ApprovalRequest::agent_name)).
    ///
    /// ```
    /// let builder = archon::Archon::builder().name("Refund desk");
    /// ```
    pub fn name(self, name: impl Into<String>) -> Self { self.options.name = name.into() }

    /// Sets the id of the agent. The log of a run names it, and a later process needs an agent with the same id to
    /// resume the run. Default: a new id.
    ///
    /// ```
    /// let builder = archon::Archon::builder().agent_id("desk");
    /// ```
    pub fn agent_id(self, id: impl Into<AgentId>) -> Self { self.agent_id = Some(id.into()) }

    /// Sets the name of this configuration in the display names of runs, `{session}.{config}.{n}`. By default
    /// the name is made from the model and its thinking level.
    ///
    /// ```
    /// let builder = archon::Archon::builder().config_id("desk-v2");
    /// ```
    pub fn config_id(self, id: impl Into<String>) -> Self { self.options.config_id = Some(id.into()) }

    /// Sets the standing instructions (the system text).
    ///
    /// ```
    /// let builder = archon::Archon::builder().system("You answer customers of the chair shop.");
    /// ```
    pub fn system(self, instructions: impl Into<String>) -> Self {
        self.options.system = Some(instructions.into())
    }

    /// Names the folder in which the tools work, for the log of each run. The tools themselves get their folder when
    /// they are created. Permission rules that a person trusts for a session apply only in this folder.
    ///
    /// ```
    /// let builder = archon::Archon::builder().workspace("projects/shop");
    /// ```
    pub fn workspace(self, folder: impl AsRef<std::path::Path>) -> Self {
        self.options.workspace = Some(folder.as_ref().display().to_string())
    }

    /// Sets the source of workspace snapshots, with which the changes of runs can be undone. With the feature `undo`,
    /// `Undo` is such a source. A run takes a snapshot before the first call of a turn that may change something, and
    /// after the last such call. By default runs take no snapshots.
    ///
    /// ```
    /// # #[cfg(all(unix, feature = "undo"))]
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use archon::{Archon, Undo};
    /// let undo = Undo::open("data/snapshots", "projects/shop")?;
    /// let builder = Archon::builder().workspace("projects/shop").snapshots(std::sync::Arc::new(undo));
    /// # Ok(()) }
    /// ```
    pub fn snapshots(self, source: Arc<dyn WorkspaceSnapshots>) -> Self { self.snapshots = Some(source) }

    /// Sets the limits of each run. Default: 50 turns, a million tokens and ten minutes.
    ///
    /// ```
    /// use archon::{Archon, types::ExecutionLimits};
    /// let limits = ExecutionLimits::default().with_max_turns(10).with_max_total_tokens(50_000);
    /// let builder = Archon::builder().limits(limits);
    /// ```
    pub fn limits(self, limits: ExecutionLimits) -> Self { self.options.limits = limits }

    /// Sets the retries of failed model calls. Default: 3 retries, after about 1, 2 and 4 seconds.
    ///
    /// ```
    /// use archon::{Archon, types::RetryConfig};
    /// let mut retry = RetryConfig::default();
    /// (retry.max_retries, retry.max_delay_ms) = (5, 30_000);
    /// let builder = Archon::builder().retry(retry);
    /// ```
    pub fn retry(self, retry: RetryConfig) -> Self { self.options.retry = retry }

    /// Sets the retries of tool calls that may be repeated, after a failure that may pass: a timeout, or a
    /// failure of a network tool. Default 2 retries, and 1 after a timeout.
    ///
    /// ```
    /// let builder = archon::Archon::builder().tool_retry(archon::types::RetryConfig::none());
    /// ```
    pub fn tool_retry(self, retry: RetryConfig) -> Self { self.options.tool_retry = retry }

    /// Sets the circuit breaker, which disables a tool for a while if the tool keeps failing. `None`: no circuit
    /// breaker. Default: a tool is disabled for 60 s after 5 failures in a row.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use archon::{Archon, types::CircuitBreaker};
    /// let builder = Archon::builder().circuit_breaker(CircuitBreaker::new(3, Duration::from_secs(120)));
    /// ```
    pub fn circuit_breaker(self, breaker: impl Into<Option<CircuitBreaker>>) -> Self {
        self.options.breaker = breaker.into()
    }

    /// Sets the behaviour of a run whose journal fails when the run begins. By default the run does not
    /// begin.
    ///
    /// ```
    /// use archon::{Archon, types::OnStorageFailure};
    /// let builder = Archon::builder().on_storage_failure(OnStorageFailure::Ephemeral);
    /// ```
    pub fn on_storage_failure(self, what: OnStorageFailure) -> Self { self.options.on_storage_failure = what }

    /// Sets the form of tool calls: the native form of the provider, or text for models without tool calling.
    /// Default: native if the model supports it.
    ///
    /// ```
    /// let builder = archon::Archon::builder().tool_mode(archon::types::ToolMode::Text);
    /// ```
    pub fn tool_mode(self, mode: ToolMode) -> Self { self.options.tool_mode = Some(mode) }

    /// Sets the options of model requests: sampling, output length and others.
    ///
    /// ```
    /// use archon::{Archon, types::RequestOptions};
    /// let options = RequestOptions::default().with_max_tokens(2_000).with_temperature(0.2);
    /// let builder = Archon::builder().request_options(options);
    /// ```
    pub fn request_options(self, options: RequestOptions) -> Self { self.options.request = options }

    /// Describes the expected answer, for [`goal_check`](Self::goal_check). Without this check the description has an
    /// effect only in text mode, in which the model reads it with the task.
    ///
    /// ```
    /// let builder = archon::Archon::builder().expected_output("One sentence with a price in euros.");
    /// ```
    pub fn expected_output(self, expected: impl Into<String>) -> Self {
        self.options.expected_output = Some(expected.into())
    }

    /// Compares each answer with the [expected output](Self::expected_output). An answer that does not meet it is
    /// sent back to the model, at most twice. Disabled by default.
    ///
    /// ```
    /// use archon::{Archon, types::GoalCheck};
    /// let builder = Archon::builder().expected_output("A price in euros.").goal_check(GoalCheck::Model);
    /// ```
    pub fn goal_check(self, check: GoalCheck) -> Self { self.options.goal_check = Some(check) }

    /// Sets the context window and its compaction; `None` disables compaction. Default: the window that the
    /// provider reports, or 100,000 tokens.
    ///
    /// ```
    /// use archon::{Archon, types::ContextConfig};
    /// let builder = Archon::builder().context(ContextConfig::new(32_768)); // tokens
    /// ```
    pub fn context(self, context: impl Into<Option<ContextConfig>>) -> Self {
        self.context = Some(context.into())
    }

    /// Sets a token counter or a compaction strategy of your own.
    ///
    /// ```
    /// use archon::{Archon, react_loop::ContextParts, types::TokenEstimate};
    /// let mut parts = ContextParts::default();
    /// parts.counter = Some(std::sync::Arc::new(TokenEstimate)); // or your own `TokenCounter`
    /// let builder = Archon::builder().context_parts(parts);
    /// ```
    pub fn context_parts(self, parts: ContextParts) -> Self { self.context_parts = Some(parts) }

    /// Sets the price of the model's tokens. Outcomes then have a cost, and
    /// [`ExecutionLimits::max_cost_micros`] can be set.
    ///
    /// ```
    /// use archon::{Archon, types::ModelPrice};
    /// // Millionths of a dollar for a million tokens: 0.25 dollars of input, 2 dollars of output.
    /// let builder = Archon::builder().price(ModelPrice::new(250_000, 2_000_000));
    /// ```
    pub fn price(self, price: ModelPrice) -> Self { self.options.price = Some(price) }

    /// Sets the strategy for the tool calls of one turn. Default: the calls run in parallel if all their tools allow
    /// it, otherwise one after the other.
    ///
    /// ```
    /// use archon::{Archon, types::ToolExecutionStrategy};
    /// let builder = Archon::builder().tool_execution(ToolExecutionStrategy::Sequential);
    /// ```
    pub fn tool_execution(self, strategy: ToolExecutionStrategy) -> Self {
        self.options.tool_execution = strategy
    }

    /// Sets hooks, which are the program's own code at fixed points of every run.
    ///
    /// ```
    /// use archon::{Archon, types::FnHooks};
    /// let hooks = FnHooks::new().on_error(|error| async move { eprintln!("{error}") });
    /// let builder = Archon::builder().hooks(hooks);
    /// ```
    pub fn hooks(self, hooks: impl Hooks + 'static) -> Self { self.hooks = Some(Arc::new(hooks)) }

    /// Sets the approver, which decides about calls that need a person's approval: calls of tools that are
    /// destructive or require confirmation, unless the [engine's options](Self::engine_options) differ.
    /// Without an approver such calls are refused. An approver that returns
    /// [`Decision::Later`](archon_types::Decision::Later) suspends the run: see
    /// [`Archon::approvals`](crate::Archon::approvals). A question waits for 30 minutes, unless the
    /// [settings](Self::approval_settings) differ.
    ///
    /// ```
    /// use archon::{Archon, types::AskLater};
    /// let builder = Archon::builder().approver(AskLater); // each question suspends its run
    /// ```
    pub fn approver(self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver))
    }

    /// Sets the time that questions wait for people, by default 30 minutes, and the consequence of a refusal. An
    /// expired question accepts no answer. When its run is resumed, the run continues without the call.
    /// [`Runs::keep_sweeping`](crate::Runs::keep_sweeping) and [`sweep`](archon_types::AnswerRuns::sweep) resume such
    /// runs.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use archon::{Archon, types::ApprovalSettings};
    /// let settings = ApprovalSettings::default().with_timeout(Duration::from_secs(24 * 60 * 60));
    /// let builder = Archon::builder().approval_settings(settings);
    /// ```
    pub fn approval_settings(self, settings: ApprovalSettings) -> Self { self.options.approvals = settings }

    /// Sets the permissions of tools, and which calls need an approval. A [`toolbox`](Self::toolbox) has its
    /// own options.
    ///
    /// ```
    /// use archon::{Archon, tools::{Ask, EngineOptions}};
    /// let builder = Archon::builder().engine_options(EngineOptions::default().asking(Ask::BeforeChanges));
    /// ```
    pub fn engine_options(self, options: EngineOptions) -> Self { self.engine = Some(options) }

    /// Sets the clock, for tests. Default [`SystemClock`](crate::SystemClock).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// let clock = Arc::new(archon_testkit::VirtualClock::new());
    /// let builder = archon::Archon::builder().clock(clock);
    /// ```
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self { self.clock = Some(clock) }

    /// Sets the source of new ids, for tests. Default [`RandomIds`](crate::RandomIds).
    ///
    /// ```
    /// let builder = archon::Archon::builder().ids(std::sync::Arc::new(archon_testkit::SeededIds::new(1)));
    /// ```
    pub fn ids(self, ids: Arc<dyn Ids>) -> Self { self.ids = Some(ids) }

    /// Refuses new runs while the process uses more memory than this limit.
    ///
    /// ```
    /// use archon::{Archon, ProcessMemoryLimit};
    /// let builder = Archon::builder().process_memory_limit(ProcessMemoryLimit::new(2 << 30)); // 2 GiB
    /// ```
    pub fn process_memory_limit(self, limit: ProcessMemoryLimit) -> Self { self.memory_limit = Some(limit) }

    /// Saves the session of every run into a store while the run works; see [`AutoSave`].
    ///
    /// ```
    /// # #[cfg(feature = "jsonl")] {
    /// # use std::sync::Arc;
    /// use archon::{Archon, AutoSave, store::FileSystemSessionStore};
    /// let saver = AutoSave::new(Arc::new(FileSystemSessionStore::new("data/sessions")));
    /// let builder = Archon::builder().save_sessions(saver);
    /// # }
    /// ```
    pub fn save_sessions(self, saver: AutoSave) -> Self { self.auto_save = Some(saver) }

    /// Sets the long-term memory. Memories that match a prompt are added to the prompt. The messages of a run are
    /// stored when the run ends, or earlier if they leave the context window.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use archon::{Archon, RandomIds, SystemClock, memory::{InMemoryStore, Memory}};
    /// let store = Arc::new(InMemoryStore::new());
    /// let memory = Memory::new(store, Arc::new(SystemClock), Arc::new(RandomIds));
    /// let builder = Archon::builder().memory(memory);
    /// ```
    #[cfg(feature = "memory")]
    pub fn memory(self, memory: impl Into<archon_memory::AgentMemory>) -> Self {
        self.run_memory = Some(Arc::new(crate::agent_memory::Remembering::new(memory.into())))
    }
}
}

impl ArchonBuilder {
    /// Sets a provider, and the model by the name that the provider uses.
    ///
    /// ```
    /// use archon::{Archon, providers::ScriptedProvider};
    /// let model = std::sync::Arc::new(ScriptedProvider::texts(["Hello."]));
    /// let builder = Archon::builder().provider(model, "scripted");
    /// ```
    pub fn provider(self, provider: Arc<dyn Provider>, model: impl Into<String>) -> Self {
        self.provider_with_keys(provider, [], model)
    }

    /// Sets a provider, the same provider with further keys, and the model. The keys are tried in this order: when a
    /// key is refused or has reached its quota, the run goes on with the next key.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use archon::{Archon, ArchonBuilder, Provider};
    /// fn desk(first: Arc<dyn Provider>, second: Arc<dyn Provider>) -> ArchonBuilder {
    ///     Archon::builder().provider_with_keys(first, [second], "gpt-5-mini")
    /// }
    /// ```
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

    /// Sets the keys of a model that is set by [name](Self::model), in the order in which to try them. They
    /// replace the key in the environment. A [`provider`](Self::provider) has its own keys.
    ///
    /// ```
    /// let keys = ["sk-first", "sk-second"]; // from your store of secrets
    /// let builder = archon::Archon::builder().model("openai:gpt-5-mini").api_keys(keys);
    /// ```
    #[cfg(feature = "named-models")]
    pub fn api_keys<K: Into<Secret>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a fallback model by [name](Self::model). A run asks the fallback model if the models that were set before
    /// cannot answer, and then keeps the fallback model until it ends.
    ///
    /// ```
    /// let builder = archon::Archon::builder().model("openai:gpt-5-mini").fallback("ollama:qwen3");
    /// ```
    #[cfg(feature = "named-models")]
    pub fn fallback(mut self, name: impl Into<String>) -> Self {
        self.fallbacks.push(FallbackChoice::Named(name.into()));
        self
    }

    /// Adds a fallback model with any provider, several keys or a price; otherwise the same as
    /// [`fallback`](Self::fallback).
    ///
    /// ```
    /// use archon::{Archon, providers::ScriptedProvider, react_loop::Fallback};
    /// let local = std::sync::Arc::new(ScriptedProvider::texts(["Hello."]));
    /// let builder = Archon::builder().fallback_provider(Fallback::new(local, "scripted"));
    /// ```
    pub fn fallback_provider(mut self, fallback: Fallback) -> Self {
        self.fallbacks.push(FallbackChoice::Given(fallback));
        self
    }

    /// Adds a tool: a function with [`#[tool]`](macro@crate::tool), such a function with its state, or an
    /// implementation of [`Tool`].
    ///
    /// ```
    /// /// Adds two numbers.
    /// #[archon::tool(read_only)]
    /// fn add(left: f64, right: f64) -> f64 {
    ///     left + right
    /// }
    ///
    /// let builder = archon::Archon::builder().tool(add);
    /// ```
    pub fn tool<How>(mut self, tool: impl IntoTool<How>) -> Self {
        self.tools.push(tool.into_tool());
        self
    }

    /// Adds several tools.
    ///
    /// ```
    /// # #[cfg(feature = "files")]
    /// # fn example() -> Result<(), archon::tools::ToolSetupError> {
    /// use archon::{Archon, tools::{Workspace, builtin::file_tools}};
    /// let builder = Archon::builder().tools(file_tools(&Workspace::new("projects/shop")?));
    /// # Ok(()) }
    /// ```
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds the tools of MCP servers. Waits until each server is connected or has failed, at most for `limit`. If a
    /// server is not connected by then, the tools known from an earlier connection (its pinned tools) are added. If
    /// none are known, the model can find the tools with a search once the server is connected.
    ///
    /// Start all servers of an agent with one [`McpServers::start`](archon_mcp::McpServers::start). If an agent gets
    /// two `McpServers` that offer resources, both add tools with the same names, and [`build`](Self::build) fails.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # async fn example() -> Result<(), archon::mcp::McpError> {
    /// use archon::{Archon, SystemClock, mcp::{FilePins, McpOptions, McpServer, McpServers}};
    /// let options = McpOptions::new(Arc::new(SystemClock), Arc::new(FilePins::new("data/pins")));
    /// let time = McpServer::stdio("uvx", ["mcp-server-time"]);
    /// let servers = McpServers::start([("time".to_owned(), time)], &options)?;
    /// let builder = Archon::builder().mcp(&servers, Duration::from_secs(10)).await;
    /// # drop(servers);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "mcp")]
    pub async fn mcp(self, servers: &archon_mcp::McpServers, limit: std::time::Duration) -> Self {
        self.tools(servers.tools(limit).await)
    }

    /// Sets the maximum number of tokens that the definitions of
    /// [deferrable](archon_types::ToolAnnotations::deferrable) tools, such as those of MCP servers, may have in a
    /// request. If they have more, tools are deferred: the model finds them with the tool `tool_search` and calls
    /// them with `call_tool`. All other tools stay in each request. Default 2,000. With `u64::MAX`, tools are
    /// deferred only if their server has not listed its tools yet.
    ///
    /// A run with a selection of tools ([`RunOptions::tools`](crate::RunOptions::tools)) defers none of them.
    ///
    /// ```
    /// let builder = archon::Archon::builder().definition_budget(4_000); // tokens
    /// ```
    #[cfg(feature = "tool-search")]
    pub fn definition_budget(mut self, tokens: u64) -> Self {
        self.definition_budget = Some(tokens);
        self
    }

    /// Sets the names of deferrable tools that are never deferred: every request has their definitions.
    ///
    /// ```
    /// let builder = archon::Archon::builder().always_defined(["github__search_issues"]);
    /// ```
    #[cfg(feature = "tool-search")]
    pub fn always_defined<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.always_defined = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the embedder with which a search finds deferred tools also by meaning, not only by words. Its vectors
    /// must have the length 1. A search compares the query with at most 50 tools: first those that share words with
    /// the query, then others. It embeds the query, and the definition of each of these tools that has no vector yet.
    ///
    /// ```
    /// # use archon::{Archon, ArchonBuilder, types::Embedder};
    /// fn by_meaning(embedder: std::sync::Arc<dyn Embedder>) -> ArchonBuilder {
    ///     Archon::builder().tool_embedder(embedder)
    /// }
    /// ```
    #[cfg(feature = "tool-search")]
    pub fn tool_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.tool_embedder = Some(embedder);
        self
    }

    /// Sets the number of waiting steering messages and follow-ups that the model reads at once: one or all.
    /// Default one.
    ///
    /// ```
    /// use archon::{Archon, types::QueueMode};
    /// let builder = Archon::builder().queue_modes(QueueMode::All, QueueMode::OneAtATime);
    /// ```
    pub fn queue_modes(mut self, steers: QueueMode, follow_ups: QueueMode) -> Self {
        (self.options.steers, self.options.follow_ups) = (steers, follow_ups);
        self
    }

    /// Adds a filter, which may reject a prompt or add a warning to it. Filters run in the order of these calls.
    ///
    /// ```
    /// # use archon::{Archon, ArchonBuilder, types::InputFilter};
    /// fn with_filter(filter: std::sync::Arc<dyn InputFilter>) -> ArchonBuilder {
    ///     Archon::builder().input_filter(filter)
    /// }
    /// ```
    pub fn input_filter(mut self, filter: Arc<dyn InputFilter>) -> Self {
        self.filters.push(filter);
        self
    }

    /// Adds a guard. It checks each call before the call runs: after the guards of the engine, and before a person is
    /// asked. It also checks each result before the model reads the result. A [`toolbox`](Self::toolbox) has its own
    /// guards.
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

    /// Returns an error for settings that would have no effect.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let refuse = |setting, beside| Err(BuildError::NoEffect { setting, beside });
        let of_toolbox = [
            ("tool", !self.tools.is_empty()),
            ("engine_options", self.engine.is_some()),
            ("guard", !self.guards.is_empty()),
            #[cfg(feature = "skills")]
            ("skills", self.skills.is_some()),
            #[cfg(feature = "skills")]
            ("file_agents", self.file_agents.is_some()),
            #[cfg(feature = "tool-search")]
            ("definition_budget", self.definition_budget.is_some()),
            #[cfg(feature = "tool-search")]
            ("always_defined", !self.always_defined.is_empty()),
            #[cfg(feature = "tool-search")]
            ("tool_embedder", self.tool_embedder.is_some()),
        ];
        if let Some((setting, _)) =
            of_toolbox.into_iter().find(|(_, is_set)| *is_set && self.toolbox.is_some())
        {
            return refuse(setting, "toolbox");
        }
        let is_reserved = |tool: &&Arc<dyn Tool>| [TOOL_SEARCH, CALL_TOOL].contains(&&*tool.spec().name);
        if let Some(tool) = self.tools.iter().find(is_reserved) {
            return Err(BuildError::ReservedName { tool: tool.spec().name.clone() });
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

    pub(crate) fn has_named_fallback(&self) -> bool {
        self.fallbacks.iter().any(|fallback| !matches!(fallback, FallbackChoice::Given(_)))
    }
}

/// The HTTP options for models that are set by name; empty in builds without such models.
#[cfg(feature = "named-models")]
pub(crate) type Http = HttpOptions;
#[cfg(not(feature = "named-models"))]
pub(crate) type Http = ();

impl Model {
    pub(crate) fn ready(
        self,
        keys: &[Secret],
        http: &Http,
    ) -> Result<(Vec<Arc<dyn Provider>>, String), BuildError> {
        let _ = (keys, http);
        match self {
            #[cfg(feature = "named-models")]
            Self::Named(name) => named(&name, keys, http),
            Self::Given(providers, model) => Ok((providers, model)),
        }
    }
}

impl FallbackChoice {
    pub(crate) fn ready(self, http: &Http) -> Result<Fallback, BuildError> {
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

/// Returns one provider for each key, or one provider with the key in the environment; and the model.
#[cfg(feature = "named-models")]
fn named(
    name: &str,
    keys: &[Secret],
    http: &HttpOptions,
) -> Result<(Vec<Arc<dyn Provider>>, String), BuildError> {
    use archon_providers::{ConnectOptions, resolve};
    let variable = |name: &str| std::env::var(name).ok();
    // Clones share one connection pool.
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
