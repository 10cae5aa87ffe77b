//! The settings of an agent.

use archon_types::{
    AgentId, ApprovalSettings, CircuitBreaker, ContextConfig, ExecutionLimits, FailurePolicy, GoalCheck,
    ModelPrice, OnStorageFailure, OutputCheck, QueueMode, RequestOptions, ResponseFormat, RetryConfig,
    ToolExecutionStrategy, ToolMode, TurnTrigger,
};

#[cfg(doc)]
use super::ReactAgent;

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
    pub form_check: Option<OutputCheck>,
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
    pub fn output_format(&self) -> Option<&ResponseFormat> {
        self.form_check.and(self.request.response_format.as_ref())
    }
}
