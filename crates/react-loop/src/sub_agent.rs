//! A tool that runs another agent: each call is a child run.

use std::{sync::Arc, time::Duration};

use archon_types::{
    Agent, ApprovalRequest, BoxFuture, Context, Effect, Json, Outcome, OutcomeStatus, Tool, ToolAnnotations,
    ToolContext, ToolError, ToolResult, ToolSpec, metadata,
};
use serde_json::json;

/// A tool whose calls are runs of another agent.
///
/// The child run has its own session and log. The log is in the caller's journal, under an id that is
/// derived from the call: after a crash, a resumed caller finds the child run, and resumes it or reads
/// its answer. If the caller is cancelled, a child run at work ends. The child run never spends more than the
/// caller has left, and the caller's watchers see its events.
///
/// The model writes the task into the argument `task`. Some models know a similar tool and write the task into
/// `prompt`, which is accepted too.
///
/// ```
/// use std::time::Duration;
///
/// use archon_react_loop::{ReactAgent, SubAgentTool};
///
/// fn as_tool(researcher: ReactAgent) -> SubAgentTool {
///     SubAgentTool::new("research", researcher)
///         .with_description("Finds sources for a question. Give it the whole question.")
///         .with_max_turns(8)
///         .with_time_limit(Duration::from_secs(60))
/// }
/// ```
pub struct SubAgentTool {
    spec: ToolSpec,
    agent: Arc<dyn Agent>,
    max_turns: Option<u32>,
}

/// Key of [`ToolResult::metadata`] for the cost of the child run, in millionths of a currency unit.
pub(crate) const COST: &str = "cost";

/// Default time limit of a child run.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Extra time of the call over the child run's own limit, so that a run ends by its own limit with an
/// answer. Only a run that hangs is stopped by the call's limit.
const TO_END: Duration = Duration::from_secs(5);

archon_types::setters! {
impl SubAgentTool {
    /// Sets the description, which should tell the model the purpose of the agent.
    pub fn with_description(self, description: impl Into<String>) -> Self { self.spec.description = description.into() }

    /// Sets the maximum number of turns of each child run. The agent's own limit of turns stays in force.
    pub fn with_max_turns(self, turns: u32) -> Self { self.max_turns = Some(turns) }

    /// Sets the time limit of the child runs. Default 120 s.
    pub fn with_time_limit(self, limit: Duration) -> Self {
        self.spec.annotations.timeout_ms = Some(millis(limit.saturating_add(TO_END)))
    }
}
}

impl SubAgentTool {
    /// Creates a tool of this name for an agent. The time limit of a child run is 120 s.
    pub fn new(name: impl Into<String>, agent: impl Agent + 'static) -> Self {
        let description = format!(
            "Hands a task to the agent '{}', which works on it alone and returns its answer. It knows \
             nothing of this conversation: say everything that it needs to know.",
            agent.name()
        );
        let mut annotations = ToolAnnotations::default();
        // The same call finds the same child run, so no work is done twice.
        annotations.effect = Effect::Idempotent;
        annotations.concurrency_safe = true;
        annotations.agent = true;
        let spec = ToolSpec::new(name, description, parameters()).with_annotations(annotations);
        Self { spec, agent: Arc::new(agent), max_turns: None }.with_time_limit(TIME_LIMIT)
    }

    /// Returns the context of the child run, with the limits of this tool.
    fn context(&self, call: &ToolContext) -> Context {
        let mut child = call.child();
        if let Some(delegation) = &mut child.delegation {
            let own = Arc::make_mut(delegation);
            own.max_turns = self.max_turns;
            if let Some(limit) = self.spec.annotations.timeout() {
                own.lease.duration_ms = own.lease.duration_ms.min(millis(limit.saturating_sub(TO_END)));
            }
        }
        child
    }
}

impl Tool for SubAgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let task = task(&arguments)?;
            let child = self.context(context);
            let outcome = self.agent.run(task, &child).await;
            // A run that delegates can be suspended together with its call.
            if outcome.status == OutcomeStatus::Suspended && context.run.delegation.is_some() {
                return Err(ToolError::Suspended(Box::new(waits(&outcome, self.agent.name()))));
            }
            Ok(result(&outcome, self.agent.name()))
        })
    }
}

/// Returns the question that represents a suspended child run. The child run's own questions are in its
/// log.
fn waits(outcome: &Outcome, agent: &str) -> ApprovalRequest {
    let details = json!({ "agent": agent, "run": outcome.run });
    let summary = format!("The agent '{agent}' waits for a person");
    let mut request = ApprovalRequest::new(format!("{}-waits", outcome.run), summary, details);
    agent.clone_into(&mut request.agent_name);
    request
}

archon_types::debug_fields!(SubAgentTool: spec);

/// Returns the schema of the tool's arguments. The schema does not require `task`, because the other form
/// of arguments has no `task`, and services refuse schemas with alternatives.
fn parameters() -> Json {
    json!({
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "description": "What the agent is to do, with everything that it needs to know. Required.",
            },
        },
        "minProperties": 1,
    })
}

fn task(arguments: &Json) -> Result<&str, ToolError> {
    let text = |key: &str| arguments.get(key).and_then(Json::as_str).filter(|text| !text.trim().is_empty());
    text("task").or_else(|| text("prompt")).ok_or_else(|| {
        ToolError::InvalidArgs("`task` is missing or empty: say in it what the agent is to do".into())
    })
}

fn result(outcome: &Outcome, agent: &str) -> ToolResult {
    let said = outcome.last_text().unwrap_or_default().trim();
    let result = match outcome.status {
        OutcomeStatus::Finished if said.is_empty() => {
            ToolResult::success(format!("The agent '{agent}' ended without an answer."))
        }
        OutcomeStatus::Finished => ToolResult::success(outcome.last_text().unwrap_or_default()),
        OutcomeStatus::Limit(limit) if said.is_empty() => {
            ToolResult::error(format!("the agent '{agent}' was stopped before it had an answer: {limit}"))
        }
        OutcomeStatus::Limit(limit) => {
            ToolResult::success(format!("{said}\n[Agent stopped: {limit}; the answer may not be complete]"))
        }
        OutcomeStatus::Cancelled => ToolResult::cancelled("Cancelled"),
        OutcomeStatus::Suspended => ToolResult::error(format!(
            "the agent '{agent}' waits for a person, who cannot be asked from here: {said}"
        )),
        _ => {
            let why = outcome.error.as_deref().unwrap_or("it says no reason");
            ToolResult::error(format!("the agent '{agent}' failed: {why}"))
        }
    };
    let spent = outcome.spending();
    let mut result = result
        .with_metadata("agent", agent)
        .with_metadata("turns", outcome.turns)
        .with_metadata(metadata::TOKEN_USAGE, spent.tokens)
        .with_metadata(COST, spent.cost_micros);
    result.child_run = Some(outcome.run.clone());
    result
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
