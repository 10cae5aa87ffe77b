//! An agent as a tool with typed fields, which can ask a person for missing fields and for an approval.

mod input;
mod work;

use std::{sync::Arc, time::Duration};

use archon_types::{
    Agent, BoxFuture, CallId, CommandId, Context, Effect, FailureKind, Json, Outcome, OutcomeStatus, Tool,
    ToolAnnotations, ToolContext, ToolError, ToolResult, ToolResultStatus, ToolSpec, metadata,
};
use serde_json::Map;

use self::work::Call;
use crate::fields::{Filled, INSTRUCTION, InputField, fill, parameters, version};

/// A tool whose calls are runs of an agent that needs certain fields.
///
/// Each call is a run with its own log. The run asks a person for required fields that the model did not
/// fill, and for an approval if [`needs_approval`](Self::needs_approval) is set. While the run waits for the
/// answer, it is suspended, and so is its caller when the other calls of the turn are done. The answer
/// resumes the run. Then the agent works in a child run; [`fields_of`] reads the fields from its task.
///
/// ```
/// # use std::sync::Arc;
/// # use archon_assistant::{AgentTool, FieldKind, InputField};
/// # fn letters(agent: Arc<dyn archon_types::Agent>) -> AgentTool {
/// AgentTool::new("SendEmailAgent", "Writes and sends an email.", agent)
///     .field(
///         InputField::required("recipient", FieldKind::Text, "Email address of the recipient.")
///             .with_validator("must contain @", |value| value.as_str().is_some_and(|text| text.contains('@'))),
///     )
///     .field(InputField::optional("subject", FieldKind::Text, "Subject line.").with_default("Hello"))
///     .needs_approval()
/// # }
/// ```
#[derive(Clone)]
pub struct AgentTool {
    pub(crate) parts: Arc<Parts>,
}

#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) spec: ToolSpec,
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) fields: Vec<InputField>,
    pub(crate) needs_approval: bool,
    /// The maximum time in ms that a question waits for a person.
    pub(crate) wait_ms: u64,
    is_exposed: bool,
}

/// Default time in ms that a question waits for a person; approvals of tool calls have the same default.
const WAIT_MS: u64 = 30 * 60 * 1_000;
/// Time limit of a run, without the time in which the run waits for people.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// The only call of a run: the agent's work, after the questions to a person.
pub(crate) const WORK: CallId = CallId { command: CommandId(0), index: 0 };
const CONFIRMED: &str = " [Requires user confirmation before execution]";

impl AgentTool {
    /// Creates a tool for an agent, without fields. A call may take 120 s, not counting waits for people.
    pub fn new(name: impl Into<String>, description: impl Into<String>, agent: Arc<dyn Agent>) -> Self {
        let mut annotations = ToolAnnotations::default();
        // A repeated call finds the same run, so nothing is done twice.
        annotations.effect = Effect::Idempotent;
        annotations.concurrency_safe = true;
        annotations.agent = true;
        annotations.timeout_ms = u64::try_from(TIME_LIMIT.as_millis()).ok();
        let mut spec = ToolSpec::new(name, description, parameters(&[])).with_annotations(annotations);
        spec.version = version(&[]);
        let (fields, needs_approval, wait_ms, is_exposed) = (Vec::new(), false, WAIT_MS, true);
        Self { parts: Arc::new(Parts { spec, agent, fields, needs_approval, wait_ms, is_exposed }) }
    }

    /// Adds an input field.
    ///
    /// ```
    /// # fn example(tool: archon_assistant::AgentTool) {
    /// use archon_assistant::{FieldKind, InputField};
    /// let tool = tool.field(InputField::required("cents", FieldKind::Integer, "Amount in cents."));
    /// # }
    /// ```
    pub fn field(self, field: InputField) -> Self {
        self.changed(|parts| {
            parts.fields.push(field);
            parts.spec.parameters = parameters(&parts.fields);
            parts.spec.version = version(&parts.fields);
        })
    }

    /// Requires a person's approval of the final fields before the agent works.
    ///
    /// ```
    /// # fn example(tool: archon_assistant::AgentTool) {
    /// let tool = tool.needs_approval();
    /// # }
    /// ```
    pub fn needs_approval(self) -> Self {
        self.changed(|parts| {
            if !std::mem::replace(&mut parts.needs_approval, true) {
                parts.spec.description.push_str(CONFIRMED);
            }
        })
    }

    /// Sets the maximum time that a question waits for a person. Default 30 minutes.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn example(tool: archon_assistant::AgentTool) {
    /// let tool = tool.waits_for(Duration::from_secs(24 * 60 * 60));
    /// # }
    /// ```
    pub fn waits_for(self, wait: Duration) -> Self {
        self.changed(|parts| parts.wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    }

    /// Hides the tool from models: [`exposed`] leaves it out. A program can still call the tool.
    ///
    /// ```
    /// # fn example(tool: archon_assistant::AgentTool) {
    /// let tool = tool.hidden();
    /// # }
    /// ```
    pub fn hidden(self) -> Self {
        self.changed(|parts| parts.is_exposed = false)
    }

    /// Returns the tool's name.
    pub fn name(&self) -> &str {
        &self.parts.spec.name
    }

    /// Returns the hash of the fields. A waiting call whose question was asked with another hash is refused,
    /// not resumed.
    pub fn schema_version(&self) -> &str {
        &self.parts.spec.version
    }

    /// Returns the input fields.
    pub fn fields(&self) -> &[InputField] {
        &self.parts.fields
    }

    fn changed(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::make_mut(&mut self.parts));
        self
    }

    /// Runs a call without a journal. Such a call cannot wait for a person, so a missing field is an error.
    async fn at_once(&self, given: &Map<String, Json>, context: &Context) -> Outcome {
        let filled = fill(&self.parts.fields, given);
        if let Some(problem) = self.parts.cannot_begin(&filled, false) {
            return Outcome::failed(context.run.clone(), FailureKind::Refused, problem);
        }
        self.parts.agent.run(&task_of(given, &filled.values), context).await
    }
}

impl Parts {
    /// Returns the reason why a call with these fields cannot start; `None` if it can. `can_ask` is true if a
    /// person can be asked.
    pub(crate) fn cannot_begin(&self, filled: &Filled, can_ask: bool) -> Option<String> {
        let name = &self.spec.name;
        let (problems, missing) = (filled.problems.join("; "), filled.missing.join("`, `"));
        if !problems.is_empty() {
            return Some(format!("{problems}. Call `{name}` again with values that fit."));
        }
        if can_ask {
            return None;
        }
        if !missing.is_empty() {
            return Some(format!(
                "`{name}` needs `{missing}`, and nobody can be asked here. Call it again with that."
            ));
        }
        self.needs_approval.then(|| {
            format!("`{name}` needs a person's approval and nobody can be asked. It was not run. Go on without it.")
        })
    }
}

impl Tool for AgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.parts.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let Json::Object(given) = arguments else {
                return Err(ToolError::InvalidArgs("the arguments must be a JSON object".to_owned()));
            };
            let child = context.child();
            let Some(by) = child.called_by() else {
                return Ok(result(&self.at_once(&given, &child).await, self.name()));
            };
            let outcome = Call { parts: &self.parts, by }.run(given, &child).await;
            match outcome.status {
                OutcomeStatus::Suspended => {
                    Err(ToolError::Suspended(Box::new(outcome.to_question(WORK, self.name()))))
                }
                _ => Ok(result(&outcome, self.name())),
            }
        })
    }
}

/// Returns the tool result of an outcome. For a failed run this is the error text, which advises the model.
fn result(outcome: &Outcome, name: &str) -> ToolResult {
    let (OutcomeStatus::Failed, Some(why)) = (&outcome.status, &outcome.error) else {
        return outcome.to_result(name);
    };
    let mut result = ToolResult::failed(ToolResultStatus::Error, why.as_str(), why.as_str());
    result.child_run = Some(outcome.run.clone());
    result.with_metadata("agent", name).with_metadata(metadata::TOKEN_USAGE, outcome.spending().tokens)
}

archon_types::debug_fields!(AgentTool: spec = parts.spec);

/// Returns the agents that are not hidden from models.
pub fn exposed(agents: &[AgentTool]) -> Vec<AgentTool> {
    agents.iter().filter(|agent| agent.parts.is_exposed).cloned().collect()
}

const FIELDS: &str = "Fields:\n";

/// Returns the task of an agent: the model's instruction, and the fields as a JSON object.
pub(crate) fn task_of(given: &Map<String, Json>, values: &Map<String, Json>) -> String {
    task_with_fields(instruction(given).unwrap_or_default(), values)
}

/// Returns the task that an [`AgentTool`] gives its agent: an instruction, and the values of the fields. For runs
/// of the agent that no tool starts, such as those of a trigger.
///
/// ```
/// use archon_assistant::{fields_of, task_with_fields};
///
/// let values = serde_json::Map::from_iter([("cents".to_owned(), 250.into())]);
/// let task = task_with_fields("Pay the bill.", &values);
/// assert_eq!(fields_of(&task), Some(values));
/// ```
pub fn task_with_fields(instruction: &str, values: &Map<String, Json>) -> String {
    let fields = serde_json::to_string_pretty(values).unwrap_or_default();
    let gap = if instruction.is_empty() { "" } else { "\n\n" };
    format!("{instruction}{gap}{FIELDS}{fields}")
}

/// Returns the model's instruction, if the call has one that is not empty.
pub(crate) fn instruction(given: &Map<String, Json>) -> Option<&str> {
    given.get(INSTRUCTION).and_then(Json::as_str).map(str::trim).filter(|text| !text.is_empty())
}

/// Reads the fields from a task that an [`AgentTool`] gave its agent; `None` if the task has none. For agents whose
/// work is done by code, not by a model.
pub fn fields_of(task: &str) -> Option<Map<String, Json>> {
    let at = task.rfind(FIELDS)? + FIELDS.len();
    serde_json::from_str(task.get(at..)?).ok()
}
