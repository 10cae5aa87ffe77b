//! The errors of a run, for people and monitors. They are computed from the run's log and not stored.

use std::{collections::BTreeMap, fmt, sync::Arc};

use archon_types::{
    CallId, FailureKind, Json, MemoryError, ModelErrorCode, ModelFailure, Outcome, OutcomeStatus, PlanRecord,
    Record, RecordBody, RunId, TeamRecord, Timestamp, ToolResult, ToolResultStatus, metadata,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The part of the system in which a failure occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureGroup {
    /// The model, or the service that runs it.
    Llm,
    /// A tool.
    Tool,
    /// Planning.
    Planning,
    /// Memory.
    Memory,
    /// The cooperation of several agents.
    MultiAgent,
    /// The process, its storage or its network.
    System,
}

/// The severity of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorSeverity {
    /// No action is needed: the model reads the error and corrects itself.
    Low,
    /// The component can recover without help.
    #[default]
    Medium,
    /// Other components must help.
    High,
    /// A person must help.
    Critical,
}

impl fmt::Display for FailureGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Llm => "model",
            Self::Tool => "tool",
            Self::Planning => "planning",
            Self::Memory => "memory",
            Self::MultiAgent => "agents",
            Self::System => "system",
        })
    }
}

impl fmt::Display for ErrorSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        })
    }
}

/// One error of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorContext {
    /// The component that failed.
    pub component: FailureGroup,
    /// The type of the error: the [`code`](ModelFailure::code) of a model failure, the `error_type` of a tool
    /// result, or a name such as `process_died`.
    pub error_type: String,
    /// The severity.
    pub severity: ErrorSeverity,
    /// The time of the error.
    pub timestamp: Timestamp,
    /// The message of the error, and further data.
    pub details: Json,
    /// The number of retries before this error; 0 for the first failure of a call.
    pub recovery_attempts: u32,
    /// The id of the run.
    pub correlation_id: Option<RunId>,
}

impl ErrorContext {
    /// Returns the errors of a run, oldest first. An error has at least the severity [`ErrorSeverity::High`]
    /// if three of the nine errors before it have the same component and type. The end of a failed run is
    /// [`ErrorSeverity::Critical`]. A cancelled call is not an error.
    pub fn of(records: &[Arc<Record>]) -> Vec<Self> {
        let (mut run, mut errors) = (None, Vec::<Self>::new());
        let mut starts = BTreeMap::new();
        for record in records {
            match &record.body {
                RecordBody::RunStarted(started) => run = Some(started.run.clone()),
                RecordBody::ToolCallStarted { call, attempt, .. } => _ = starts.insert(*call, *attempt),
                _ => {}
            }
            let Some(mut error) = of_record(&record.body, &starts) else { continue };
            (error.timestamp, error.correlation_id) = (record.at, run.clone());
            let recent = errors.iter().rev().take(RECENT - 1);
            if recent.filter(|other| other.is_like(&error)).count() >= MANY {
                error.severity = error.severity.max(ErrorSeverity::High);
            }
            errors.push(error);
        }
        errors
    }

    /// Creates an error from a `MemoryError`. The log has no such errors, because the run goes on without its memories.
    pub fn of_memory(error: &MemoryError, run: RunId, at: Timestamp) -> Self {
        let (error_type, severity) = match error {
            MemoryError::Storage { .. } => ("storage", ErrorSeverity::High),
            MemoryError::Corrupt { .. } => ("corrupt", ErrorSeverity::High),
            MemoryError::Embedding { .. } => ("embedding", ErrorSeverity::Medium),
            MemoryError::Model { .. } => ("model", ErrorSeverity::Medium),
            _ => ("other", ErrorSeverity::Low),
        };
        let details = json!({ "message": error.to_string(), "advice": error.advice() });
        let error = Self::new(FailureGroup::Memory, error_type, severity, details);
        Self { timestamp: at, correlation_id: Some(run), ..error }
    }

    /// Creates an error without a time and without a run.
    fn new(component: FailureGroup, error_type: &str, severity: ErrorSeverity, details: Json) -> Self {
        Self {
            component,
            error_type: error_type.to_owned(),
            severity,
            timestamp: Timestamp::default(),
            details,
            recovery_attempts: 0,
            correlation_id: None,
        }
    }

    fn after(self, recovery_attempts: u32) -> Self {
        Self { recovery_attempts, ..self }
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.component, &self.error_type) == (other.component, &other.error_type)
    }
}

/// The number of errors that are compared, including the current one.
const RECENT: usize = 10;

/// The number of similar earlier errors that raises the severity of an error.
const MANY: usize = 3;

/// Converts a record into an error; `None` if the record is not an error. `starts` has the last attempt of
/// each call, because a result does not name its attempt.
fn of_record(body: &RecordBody, starts: &BTreeMap<CallId, u32>) -> Option<ErrorContext> {
    match body {
        RecordBody::ModelCallFailed { attempt, failure, .. } => of_model(*attempt, failure),
        RecordBody::ToolCallFinished { call, result } | RecordBody::ToolCallRefused { call, result } => {
            of_tool(&call.to_string(), starts.get(call).copied().unwrap_or(0), result)
        }
        RecordBody::ToolCallFailed { call, attempt, result, .. } => {
            of_tool(&call.to_string(), *attempt, result)
        }
        RecordBody::ModelCallLost { attempt, .. } => {
            let details = json!({ "message": "the process died while the model answered" });
            let error = ErrorContext::new(FailureGroup::System, "process_died", ErrorSeverity::High, details);
            Some(error.after(*attempt))
        }
        RecordBody::Plan(record) => of_plan(record),
        RecordBody::Team(record) => of_team(record),
        RecordBody::LogUnavailable { reason } => {
            let details = json!({ "message": reason });
            Some(ErrorContext::new(FailureGroup::System, "log_unavailable", ErrorSeverity::High, details))
        }
        RecordBody::RunFinished(outcome) => of_run(outcome),
        _ => None,
    }
}

fn of_plan(record: &PlanRecord) -> Option<ErrorContext> {
    let (error_type, severity, message, attempt) = match record {
        PlanRecord::Rejected { problems, retryable, attempt, .. } => {
            let severity = if *retryable { ErrorSeverity::Medium } else { ErrorSeverity::High };
            ("plan_rejected", severity, problems.join("; "), *attempt)
        }
        PlanRecord::AnswerFailed { problem, .. } => {
            ("not_concluded", ErrorSeverity::High, problem.clone(), 0)
        }
        _ => return None,
    };
    let details = json!({ "message": message });
    Some(ErrorContext::new(FailureGroup::Planning, error_type, severity, details).after(attempt))
}

fn of_team(record: &TeamRecord) -> Option<ErrorContext> {
    let (error_type, severity, details) = match record {
        TeamRecord::PlanningFailed { .. } => ("not_planned", ErrorSeverity::High, json!(record)),
        TeamRecord::DelegationFailed { .. } => ("undeliverable", ErrorSeverity::High, json!(record)),
        TeamRecord::DelegationRevoked { .. } => ("taken_back", ErrorSeverity::Medium, json!(record)),
        TeamRecord::LateAnswer { .. } => ("late", ErrorSeverity::Low, json!(record)),
        _ => return None,
    };
    Some(ErrorContext::new(FailureGroup::MultiAgent, error_type, severity, details))
}

/// Converts the outcome of a failed run into an error; `None` for any other outcome.
fn of_run(outcome: &Outcome) -> Option<ErrorContext> {
    if outcome.status != OutcomeStatus::Failed {
        return None;
    }
    let kind = outcome.failure.unwrap_or(FailureKind::Other);
    let details = json!({ "message": outcome.error });
    Some(ErrorContext::new(FailureGroup::of(kind), kind.as_str(), ErrorSeverity::Critical, details))
}

fn of_model(attempt: u32, failure: &ModelFailure) -> Option<ErrorContext> {
    let severity = match failure.code {
        ModelErrorCode::Cancelled => return None,
        _ if failure.retryable => ErrorSeverity::Medium,
        ModelErrorCode::ContextOverflow => ErrorSeverity::Medium,
        _ => ErrorSeverity::High,
    };
    let details = json!({"message": failure.message});
    Some(ErrorContext::new(FailureGroup::Llm, failure.code.as_str(), severity, details).after(attempt))
}

fn of_tool(call: &str, attempt: u32, result: &ToolResult) -> Option<ErrorContext> {
    let unnamed = match result.status {
        ToolResultStatus::Success | ToolResultStatus::Cancelled => return None,
        ToolResultStatus::Timeout => "timeout",
        _ => "execution_error",
    };
    let named = result.metadata.get(metadata::ERROR_TYPE).and_then(Json::as_str);
    let error_type = named.unwrap_or(unnamed);
    let severity = match error_type {
        "validation_error" | "invalid_parameters" | "not_found" => ErrorSeverity::Low,
        "permission_denied" | "resource_error" | "in_doubt" => ErrorSeverity::High,
        _ => ErrorSeverity::Medium,
    };
    let message = result.error_message.clone().unwrap_or_else(|| result.text());
    let details = json!({"message": message, "call": call});
    Some(ErrorContext::new(FailureGroup::Tool, error_type, severity, details).after(attempt))
}

impl FailureGroup {
    /// Returns the part of the system in which failures of this kind occur.
    pub const fn of(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Unreachable
            | FailureKind::Overloaded
            | FailureKind::Auth
            | FailureKind::Rejected
            | FailureKind::ContextOverflow
            | FailureKind::Model
            | FailureKind::UnparsableAnswer
            | FailureKind::StructuredOutput
            | FailureKind::Declined => Self::Llm,
            FailureKind::Plan | FailureKind::Subtasks => Self::Planning,
            FailureKind::NoBranch => Self::MultiAgent,
            _ => Self::System,
        }
    }
}
