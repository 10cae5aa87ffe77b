//! The settings of an agent.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use archon_types::{
    AgentId, ApprovalSettings, CircuitBreaker, ContextConfig, ExecutionLimits, FailurePolicy, GoalCheck,
    ModelPrice, OnStorageFailure, OutputCheck, QueueMode, RequestOptions, ResponseFormat, RetryConfig,
    ToolExecutionStrategy, ToolMode, ToolSpec, TurnTrigger,
};

#[cfg(doc)]
use super::ReactAgent;

/// Settings of a [`ReactAgent`]. All except the model have a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReactAgentOptions {
    /// Name of the agent, for people and for delegation. Default `agent`.
    pub name: String,
    /// Id of the agent, which must stay the same for its whole life. Default `agent`.
    pub agent_id: AgentId,
    /// Name of this configuration in loop ids, the display names `{session}.{config}.{n}` of runs. Default:
    /// provider, model and level of thinking.
    pub config_id: Option<String>,
    /// The model, by the provider's name for it.
    pub model: String,
    /// The system prompt. Default none.
    pub system: Option<String>,
    /// Notes for the system prompt, by the name of a tool. Each run that has the tool gets the note after its system
    /// prompt. Default none.
    pub tool_notes: BTreeMap<String, String>,
    /// The folder in which the tools work; see [`RunConfig::workspace`](archon_types::RunConfig::workspace). Default
    /// none.
    pub workspace: Option<String>,
    /// Names of the tools that runs have; `None` for the whole toolbox. A tool that calls other tools,
    /// such as an agent, keeps the tools with which it was made. A tool of a [source](archon_types::ToolSource)
    /// is left out if it is not known when a run begins.
    pub tools: Option<Vec<String>>,
    /// Names of the deferred tools. Requests do not define these tools, so the toolbox needs a tool that searches
    /// them, and the tool [`CALL_TOOL`](archon_types::CALL_TOOL), which calls them. Without effect if `tools` is
    /// set, because tools that the run names are never deferred.
    pub deferred_tools: Arc<BTreeSet<String>>,
    /// Specs for the toolbox's [sources](archon_types::ToolSource), whose tools are deferred too. Each spec has the
    /// name `PREFIX*` and the annotations for tools of the source that are not known yet. Without effect if `tools`
    /// is set.
    pub tool_sources: Arc<[ToolSpec]>,
    /// Limits of each run. Default: 50 turns, a million tokens and ten minutes.
    pub limits: ExecutionLimits,
    /// Retries of failed model calls; ignored if the provider retries by itself. Default 3.
    pub retry: RetryConfig,
    /// Retries of tool calls that may be repeated, after failures that may pass. Default 2, and 1 after a timeout.
    pub tool_retry: RetryConfig,
    /// Settings of the circuit breaker, which blocks a tool that keeps failing. `None` for no breaker. Default: a tool
    /// is blocked for 60 s after 5 failures in a row.
    pub breaker: Option<CircuitBreaker>,
    /// Reaction if the log of a run cannot be created. By default the run does not begin.
    pub on_storage_failure: OnStorageFailure,
    /// Native tool calls or tool calls as text. `None` (the default) for native calls if the model supports them.
    pub tool_mode: Option<ToolMode>,
    /// Sampling, output length and other options of requests.
    pub request: RequestOptions,
    /// Description of the expected answer, for `goal_check`. In text mode, the model also reads it with the task.
    /// Default none.
    pub expected_output: Option<String>,
    /// The check that compares an answer with `expected_output`. Default none.
    pub goal_check: Option<GoalCheck>,
    /// The check of answers against the schema in `request` (structured output). Default none.
    pub output_check: Option<OutputCheck>,
    /// The trigger that the log names for the first turn of a run that starts with a prompt. Default: a person.
    pub first_turn: TurnTrigger,
    /// Settings of questions to people, if a person can be asked.
    pub approvals: ApprovalSettings,
    /// Settings of the context window. With `None`, the conversation is never compacted.
    pub context: Option<ContextConfig>,
    /// Price of the model's tokens, if its provider does not know it. A cost limit needs the price.
    pub price: Option<ModelPrice>,
    /// The way in which the calls of a turn run: concurrently, in batches or one after the other. Default: concurrently
    /// if all their tools allow it, otherwise one after the other.
    pub tool_execution: ToolExecutionStrategy,
    /// The number of steering messages that the model reads at once: one (the default) or all.
    pub steers: QueueMode,
    /// The number of follow-ups that the model reads at once: one (the default) or all.
    pub follow_ups: QueueMode,
}

impl ReactAgentOptions {
    /// Creates the default settings, with this model.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            name: "agent".to_owned(),
            agent_id: AgentId::new("agent"),
            config_id: None,
            model: model.into(),
            system: None,
            tool_notes: BTreeMap::new(),
            workspace: None,
            tools: None,
            deferred_tools: Arc::default(),
            tool_sources: Arc::default(),
            limits: ExecutionLimits::default(),
            retry: RetryConfig::default(),
            tool_retry: FailurePolicy::default().tool_retry,
            breaker: Some(CircuitBreaker::default()),
            on_storage_failure: OnStorageFailure::default(),
            tool_mode: None,
            request: RequestOptions::default(),
            expected_output: None,
            goal_check: None,
            output_check: None,
            first_turn: TurnTrigger::default(),
            approvals: ApprovalSettings::default(),
            context: Some(ContextConfig::default()),
            price: None,
            tool_execution: ToolExecutionStrategy::default(),
            steers: QueueMode::default(),
            follow_ups: QueueMode::default(),
        }
    }

    /// Returns the schema that answers are checked against; `None` if answers are not checked.
    pub fn output_format(&self) -> Option<&ResponseFormat> {
        self.output_check.and(self.request.response_format.as_ref())
    }
}

impl Default for ReactAgentOptions {
    /// Returns the default settings without a model, which must be set.
    fn default() -> Self {
        Self::new("")
    }
}
