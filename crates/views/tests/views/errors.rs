//! The errors of a run as a view of its log.

use std::sync::Arc;

use archon_types::{
    CallId, CommandId, Effect, FailureKind, MemoryError, ModelFailure, Outcome, PlanRecord, ProviderError,
    Record, RecordBody, TeamRecord, ToolError, ToolResult,
};
use archon_views::{ErrorContext, ErrorSeverity, FailureGroup};
use expect_test::expect;

use crate::{samples::started, support::at};

fn model(error: &ProviderError) -> RecordBody {
    RecordBody::ModelCallFailed { command: CommandId(0), attempt: 2, failure: ModelFailure::new(error, 0.0) }
}

fn tool(error: ToolError) -> RecordBody {
    let result = Box::new(ToolResult::from(error));
    RecordBody::ToolCallFinished { call: CallId::new(CommandId(0), 1), result: result.into() }
}

fn errors(bodies: Vec<RecordBody>) -> Vec<ErrorContext> {
    let record = |(seq, body)| Arc::new(Record { seq, at: at(seq), body });
    ErrorContext::of(&(0..).zip(bodies).map(record).collect::<Vec<_>>())
}

// spec: ER-01, ER-02
#[test]
fn error_context_names_the_component_and_the_severity() {
    let found = errors(vec![
        model(&ProviderError::Network("reset".into())),
        model(&ProviderError::Auth("no".into())),
        model(&ProviderError::Cancelled),
        tool(ToolError::InvalidArgs("n is no number".into())),
        tool(ToolError::Timeout(std::time::Duration::from_secs(1))),
        tool(ToolError::PermissionDenied("no".into())),
        tool(ToolError::Cancelled),
        RecordBody::ModelCallLost { command: CommandId(0), attempt: 0 },
        RecordBody::RunStarted(Box::new(crate::samples::started())),
        RecordBody::RunFinished(Box::new(Outcome::failed("run_1".into(), FailureKind::Auth, "no key"))),
    ]);
    let lines = found.iter().map(|e| serde_json::to_string(e).unwrap() + "\n");
    expect![[r#"
        {"component":"llm","error_type":"network","severity":"medium","timestamp":0,"details":{"message":"network: reset"},"recovery_attempts":2,"correlation_id":null}
        {"component":"llm","error_type":"auth","severity":"high","timestamp":1,"details":{"message":"not authorised: no"},"recovery_attempts":2,"correlation_id":null}
        {"component":"tool","error_type":"invalid_parameters","severity":"low","timestamp":3,"details":{"message":"n is no number","call":"0.1"},"recovery_attempts":0,"correlation_id":null}
        {"component":"tool","error_type":"timeout","severity":"medium","timestamp":4,"details":{"message":"Tool execution timed out after 1 seconds","call":"0.1"},"recovery_attempts":0,"correlation_id":null}
        {"component":"tool","error_type":"permission_denied","severity":"high","timestamp":5,"details":{"message":"no","call":"0.1"},"recovery_attempts":0,"correlation_id":null}
        {"component":"system","error_type":"process_died","severity":"high","timestamp":7,"details":{"message":"the process died while the model answered"},"recovery_attempts":0,"correlation_id":null}
        {"component":"llm","error_type":"auth","severity":"critical","timestamp":9,"details":{"message":"no key"},"recovery_attempts":0,"correlation_id":"run_1"}
    "#]]
    .assert_eq(&lines.collect::<String>());
}

// spec: ER-02
#[test]
fn error_context_of_repeated_failures_counts_earlier_attempts() {
    let (call, other) = (CallId::new(CommandId(0), 1), CallId::new(CommandId(0), 2));
    let failure = || Arc::new(ToolResult::from(ToolError::Failed("reset".into())));
    let start = |call, attempt| RecordBody::ToolCallStarted {
        call,
        attempt,
        effect: Effect::ReadOnly,
        child_run: None,
    };
    let failed = |attempt| RecordBody::ToolCallFailed { call, attempt, result: failure(), jitter: 0.0 };
    let found = errors(vec![
        RecordBody::RunStarted(Box::new(started())),
        start(call, 0),
        failed(0),
        start(call, 1),
        start(other, 0),
        failed(1),
        start(call, 2),
        RecordBody::ToolCallFinished { call, result: failure() },
        RecordBody::ToolCallFinished { call: other, result: failure() },
    ]);
    let told: Vec<_> = found.iter().map(|e| (e.details["call"].as_str(), e.recovery_attempts)).collect();
    assert_eq!(told, [(Some("0.1"), 0), (Some("0.1"), 1), (Some("0.1"), 2), (Some("0.2"), 0)]);
    assert!(found.iter().all(|e| e.correlation_id == Some("run_1".into())), "{found:?}");
}

// spec: ER-04
#[test]
fn error_context_fourth_equal_error_among_ten_has_high_severity() {
    let invalid = || tool(ToolError::InvalidArgs("x".into()));
    let severities = |bodies| errors(bodies).iter().map(|e| e.severity).collect::<Vec<_>>();
    let (low, medium, high) = (ErrorSeverity::Low, ErrorSeverity::Medium, ErrorSeverity::High);
    assert_eq!(severities((0..5).map(|_| invalid()).collect()), [low, low, low, high, high]);
    // Three of them, seven of another kind, and one more: only two of the three are within ten.
    let mut bodies: Vec<_> = (0..3).map(|_| invalid()).collect();
    bodies.extend((0..7).map(|_| model(&ProviderError::Network("reset".into()))));
    bodies.push(invalid());
    let found = severities(bodies);
    assert_eq!((found[2], found[3], found[10]), (low, medium, low));
    assert_eq!(errors(vec![invalid()])[0].component, FailureGroup::Tool);
    // A time-out of the model and a failure of a tool are of one type or of one component, not of both.
    let timeout = || tool(ToolError::Timeout(std::time::Duration::from_secs(1)));
    let mut bodies: Vec<_> = (0..3).map(|_| timeout()).collect();
    bodies.extend([model(&ProviderError::Timeout("no data".into())), invalid(), timeout()]);
    assert_eq!(severities(bodies)[3..], [medium, low, high]);
}

// spec: ER-01
#[test]
fn errors_come_from_six_groups_and_the_end_of_a_failed_run_needs_a_person() {
    let rejected = |retryable| {
        RecordBody::Plan(Box::new(PlanRecord::Rejected {
            command: CommandId(0),
            attempt: 1,
            problems: vec!["a depends on b".into(), "b depends on a".into()],
            retryable,
            failure: None,
        }))
    };
    let unplanned = TeamRecord::PlanningFailed {
        problem: "no".into(),
        failure: None,
        spent: archon_types::Spending::default(),
    };
    let failed = |kind| RecordBody::RunFinished(Box::new(Outcome::failed("r".into(), kind, "it broke")));
    let found = errors(vec![
        rejected(true),
        rejected(false),
        RecordBody::Team(Box::new(unplanned)),
        failed(FailureKind::Auth),
        failed(FailureKind::Subtasks),
        failed(FailureKind::NoBranch),
        failed(FailureKind::Panicked),
    ]);
    let lines = found.iter().map(|e| format!("{} {} {}\n", e.component, e.error_type, e.severity));
    expect![[r#"
        planning plan_rejected medium
        planning plan_rejected high
        agents not_planned high
        model auth critical
        planning subtasks critical
        agents no_branch critical
        system panicked critical
    "#]]
    .assert_eq(&lines.collect::<String>());
    let storage = MemoryError::Storage { action: "write", place: "m.db".into(), source: "full".into() };
    let lost = ErrorContext::of_memory(&storage, "r".into(), at(3));
    assert_eq!((lost.component, lost.severity), (FailureGroup::Memory, ErrorSeverity::High));
    assert_eq!(lost.details["message"], "cannot write memory at m.db: full");
}
