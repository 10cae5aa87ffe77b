//! Sets the parts of an agent: model, tools, memory, hooks, approver, limits.

use std::sync::Arc;

use archon_types::{
    Approver, BoxFuture, CallId, Context, DynApprover, Encoded, Executed, ExecutionLimits, Hooks,
    InputFilter, Instructions, Journal, Lease, OutputCheck, Prepared, Provider, ReadyCall, Redactor,
    ResponseFormat, RunMemory, ToolCall, ToolResult, ToolSpec, Toolbox, WorkspaceSnapshots,
};

use super::ReactAgent;
use crate::{ContextParts, Fallback};

archon_types::setters! {
impl ReactAgent {
    /// Sets the toolbox, which has the tools of the agent and runs their calls. Default: no tools.
    ///
    /// ```
    /// # use archon_react_loop::ReactAgent;
    /// fn with_tools(agent: ReactAgent, tools: std::sync::Arc<dyn archon_types::Toolbox>) -> ReactAgent {
    ///     agent.with_toolbox(tools)
    /// }
    /// ```
    pub fn with_toolbox(self, toolbox: Arc<dyn Toolbox>) -> Self { self.driver.toolbox = toolbox }

    /// Sets further keys for the model's service, as providers that differ only in their key.
    ///
    /// ```
    /// # use archon_react_loop::ReactAgent;
    /// fn with_key(agent: ReactAgent, second: std::sync::Arc<dyn archon_types::Provider>) -> ReactAgent {
    ///     agent.with_keys(vec![second])
    /// }
    /// ```
    pub fn with_keys(self, keys: Vec<Arc<dyn Provider>>) -> Self { self.driver.keys = keys }

    /// Sets fallback models, which are asked in this order if the agent's own model cannot answer.
    ///
    /// ```
    /// # use archon_react_loop::{Fallback, ReactAgent};
    /// fn or_local(agent: ReactAgent, local: std::sync::Arc<dyn archon_types::Provider>) -> ReactAgent {
    ///     agent.with_fallbacks(vec![Fallback::new(local, "qwen3")])
    /// }
    /// ```
    pub fn with_fallbacks(self, fallbacks: Vec<Fallback>) -> Self { self.driver.fallbacks = fallbacks }

    /// Sets the program's own token counter and compaction strategy.
    ///
    /// ```
    /// # fn example(agent: archon_react_loop::ReactAgent) {
    /// use archon_react_loop::{ContextParts, Trim};
    /// let mut parts = ContextParts::default();
    /// parts.strategy = Some(std::sync::Arc::new(Trim));
    /// let agent = agent.with_context_parts(parts);
    /// # }
    /// ```
    pub fn with_context_parts(self, parts: ContextParts) -> Self { self.context_parts = parts }

    /// Sets hooks, the program's own code that runs at fixed points of every run.
    ///
    /// ```
    /// # fn example(agent: archon_react_loop::ReactAgent) {
    /// use archon_types::FnHooks;
    /// let agent = agent.with_hooks(FnHooks::new().before_turn(|turn| async move { turn < 20 }));
    /// # }
    /// ```
    pub fn with_hooks(self, hooks: impl Hooks + 'static) -> Self { self.driver.hooks = Some(Arc::new(hooks)) }

    /// Sets the source of the project's instructions, which are read before each request. Child runs do
    /// not read them.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use archon_react_loop::ReactAgent;
    /// fn with_rules(agent: ReactAgent, rules: Arc<dyn archon_types::Instructions>) -> ReactAgent {
    ///     agent.with_instructions(rules)
    /// }
    /// ```
    pub fn with_instructions(self, source: Arc<dyn Instructions>) -> Self { self.driver.instructions = Some(source) }

    /// Sets the memory, which adds matching memories to prompts and stores conversations. Child runs do not use the
    /// memory.
    ///
    /// ```
    /// # use archon_react_loop::ReactAgent;
    /// fn with_past(agent: ReactAgent, memory: std::sync::Arc<dyn archon_types::RunMemory>) -> ReactAgent {
    ///     agent.with_memory(memory)
    /// }
    /// ```
    pub fn with_memory(self, memory: Arc<dyn RunMemory>) -> Self { self.driver.memory = Some(memory) }

    /// Sets the source of snapshots of the workspace, with which the effects of runs can be undone. Child runs take
    /// no snapshots: those of their caller include the effects of child runs.
    ///
    /// ```
    /// # use archon_react_loop::ReactAgent;
    /// # use archon_types::WorkspaceSnapshots;
    /// fn with_undo(agent: ReactAgent, source: std::sync::Arc<dyn WorkspaceSnapshots>) -> ReactAgent {
    ///     agent.with_snapshots(source)
    /// }
    /// ```
    pub fn with_snapshots(self, source: Arc<dyn WorkspaceSnapshots>) -> Self { self.driver.snapshots = Some(source) }

    /// Sets the system prompt. Default none.
    ///
    /// ```
    /// # fn example(agent: archon_react_loop::ReactAgent) {
    /// let agent = agent.with_system("You answer customers of the chair shop.");
    /// # }
    /// ```
    pub fn with_system(self, system: impl Into<String>) -> Self { self.options.system = Some(system.into()) }

    /// Sets the limits of each run. Default: 50 turns, a million tokens and ten minutes.
    ///
    /// ```
    /// # fn example(agent: archon_react_loop::ReactAgent) {
    /// let agent = agent.with_limits(archon_types::ExecutionLimits::default().with_max_turns(10));
    /// # }
    /// ```
    pub fn with_limits(self, limits: ExecutionLimits) -> Self { self.options.limits = limits }

    /// Sets the names of the tools that runs have; without this call, runs have all tools.
    ///
    /// ```
    /// # fn example(agent: archon_react_loop::ReactAgent) {
    /// let agent = agent.with_tools_named(vec!["stock".to_owned()]);
    /// # }
    /// ```
    pub fn with_tools_named(self, names: Vec<String>) -> Self { self.options.tools = Some(names) }

    /// Sets filters, which check the first messages of a run in this order. A filter may reject a message or add a
    /// warning to it.
    ///
    /// ```
    /// # use archon_react_loop::ReactAgent;
    /// fn with_filter(agent: ReactAgent, filter: std::sync::Arc<dyn archon_types::InputFilter>) -> ReactAgent {
    ///     agent.with_input_filters(vec![filter])
    /// }
    /// ```
    pub fn with_input_filters(self, filters: Vec<Arc<dyn InputFilter>>) -> Self { self.filters = filters }

    /// Sets the approver, which decides about calls that need an approval. Without an approver, such calls are refused,
    /// unless a run that called this run can ask a person.
    ///
    /// ```
    /// # fn example(agent: archon_react_loop::ReactAgent) {
    /// let agent = agent.with_approver(archon_types::AskLater); // each question suspends its run
    /// # }
    /// ```
    pub fn with_approver(self, approver: impl Approver + 'static) -> Self { self.driver.approver = Some(Arc::new(approver)) }

    /// Sets the journal, which stores the logs of runs.
    pub(crate) fn with_journal(self, journal: Arc<dyn Journal>) -> Self { self.journal = journal }
}
}

impl ReactAgent {
    /// Removes the memory from the agent.
    ///
    /// ```
    /// # fn example(agent: archon_react_loop::ReactAgent) {
    /// let for_all_tenants = agent.clone().without_memory();
    /// # }
    /// ```
    pub fn without_memory(mut self) -> Self {
        self.driver.memory = None;
        self
    }

    /// Returns the approver, which is asked about calls that need an approval.
    pub fn approver(&self) -> Option<&Arc<dyn DynApprover>> {
        self.driver.approver.as_ref()
    }

    /// Returns redactors that remove the API keys of every service that the agent may ask. A run with several agents
    /// must include these redactors in [`Context::redactor`] before anything is recorded. A run of this agent alone
    /// does so itself.
    pub fn secrets(&self) -> impl Iterator<Item = Redactor> {
        self.driver.secrets()
    }

    /// Sets a structured output: answers must be JSON that fits the schema of `format`. An answer that does
    /// not fit is sent back to the model, at most as often as `check` allows; then the run fails.
    ///
    /// ```
    /// # fn example(agent: archon_react_loop::ReactAgent) {
    /// use archon_types::{OutputCheck, ResponseFormat};
    /// let schema = serde_json::json!({ "type": "object", "required": ["city"] });
    /// let format = ResponseFormat { name: "City".to_owned(), schema };
    /// let agent = agent.with_output_schema(format, OutputCheck::new(2)); // at most 2 retries
    /// # }
    /// ```
    pub fn with_output_schema(mut self, format: ResponseFormat, check: OutputCheck) -> Self {
        self.options.request.response_format = Some(format);
        self.options.output_check = Some(check);
        self
    }

    /// Removes the structured output: answers may have any form again.
    ///
    /// ```
    /// # fn example(agent: archon_react_loop::ReactAgent) {
    /// let for_subtasks = agent.clone().without_output_schema();
    /// # }
    /// ```
    pub fn without_output_schema(mut self) -> Self {
        (self.options.request.response_format, self.options.output_check) = (None, None);
        self
    }

    /// Returns a copy of the agent, with limits that do not exceed the lease.
    pub(crate) fn leased(&self, lease: &Lease) -> Self {
        let mut own = self.clone();
        own.options.limits = lease.narrow(own.options.limits);
        own
    }
}

/// The toolbox of an agent without tools.
#[derive(Debug, Default)]
pub(crate) struct NoTools(Arc<Encoded<Vec<ToolSpec>>>);

impl Toolbox for NoTools {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        self.0.clone()
    }

    fn prepare<'a>(&'a self, _: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        let text = format!("Tool '{}' not found. There are no tools; answer without one.", call.name);
        Box::pin(async { Prepared::Refused(Box::new(ToolResult::error(text))) })
    }

    fn execute<'a>(&'a self, _: ReadyCall, _: &'a Context) -> BoxFuture<'a, Executed> {
        Box::pin(async { Executed::Done(Box::new(ToolResult::error("there are no tools"))) })
    }
}
