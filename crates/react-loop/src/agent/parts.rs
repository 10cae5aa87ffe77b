//! Sets the parts of an agent: model, tools, memory, hooks, approver, limits.

use std::sync::Arc;

use archon_types::{
    Approver, CallId, Context, DynApprover, Executed, ExecutionLimits, Hooks, InputFilter, Instructions,
    Journal, Lease, OutputCheck, Prepared, Provider, ReadyCall, Redactor, ResponseFormat, RunMemory,
    ToolResult, Toolbox,
};

use super::ReactAgent;
use crate::{ContextParts, Fallback};

impl ReactAgent {
    /// Sets the tools of the agent.
    pub fn with_toolbox(mut self, toolbox: Arc<dyn Toolbox>) -> Self {
        self.driver.toolbox = toolbox;
        self
    }

    /// Sets further keys for the model's service, as providers that differ only in their key.
    pub fn with_keys(mut self, keys: Vec<Arc<dyn Provider>>) -> Self {
        self.driver.keys = keys;
        self
    }

    /// Sets fallback models, which are asked in this order if the agent's own model cannot answer.
    pub fn with_fallbacks(mut self, fallbacks: Vec<Fallback>) -> Self {
        self.driver.fallbacks = fallbacks;
        self
    }

    /// Sets the program's own token counter and compaction strategy.
    pub fn with_context_parts(mut self, parts: ContextParts) -> Self {
        self.context_parts = parts;
        self
    }

    /// Sets hooks, the program's own code that runs at fixed points of every run.
    pub fn with_hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.driver.hooks = Some(Arc::new(hooks));
        self
    }

    /// Sets the source of the project's instructions, which are read before each request. Child runs do
    /// not read them.
    pub fn with_instructions(mut self, instructions: Arc<dyn Instructions>) -> Self {
        self.driver.instructions = Some(instructions);
        self
    }

    /// Sets the memory that stores conversations. Child runs do not use the memory.
    pub fn with_memory(mut self, memory: Arc<dyn RunMemory>) -> Self {
        self.driver.memory = Some(memory);
        self
    }

    /// Removes the memory.
    pub fn without_memory(mut self) -> Self {
        self.driver.memory = None;
        self
    }

    /// Sets the system prompt.
    pub fn with_system(mut self, system: impl Into<String>) -> Self {
        self.options.system = Some(system.into());
        self
    }

    /// Sets the limits of runs.
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

    /// Sets the approver, which is asked about calls that need an approval.
    pub fn with_approver(mut self, approver: impl Approver + 'static) -> Self {
        self.driver.approver = Some(Arc::new(approver));
        self
    }

    /// Returns the approver, which is asked about calls that need an approval.
    pub fn approver(&self) -> Option<&Arc<dyn DynApprover>> {
        self.driver.approver.as_ref()
    }

    /// Returns redactors for the keys of every service that the agent may ask. A run with several agents
    /// must include them in [`Context::redactor`] before anything is recorded; a run of this agent alone
    /// includes them itself.
    pub fn secrets(&self) -> impl Iterator<Item = Redactor> {
        self.driver.secrets()
    }

    /// Sets a structured output: answers must be JSON that fits the schema of `form`. An answer that does
    /// not fit is sent back to the model, at most as often as `check` allows; then the run fails.
    pub fn with_output_schema(mut self, form: ResponseFormat, check: OutputCheck) -> Self {
        self.options.request.response_format = Some(form);
        self.options.form_check = Some(check);
        self
    }

    /// Removes the structured output: answers may have any form again.
    pub fn without_output_schema(mut self) -> Self {
        (self.options.request.response_format, self.options.form_check) = (None, None);
        self
    }

    /// Sets the journal.
    pub(crate) fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = journal;
        self
    }

    /// Returns a copy of the agent whose limits are narrowed to a lease, the part of the budget for one
    /// run.
    pub(crate) fn leased(&self, lease: &Lease) -> Self {
        let mut own = self.clone();
        own.options.limits = lease.narrow(own.options.limits);
        own
    }
}

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
