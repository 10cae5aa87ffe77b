//! The audit trail as a view of a log.

use std::sync::Arc;

use archon_types::{
    AgentMessage, Answer, ApprovalRequest, CallId, CommandId, Content, Effect, LimitReached, Message,
    MoreLimits, Origin, OutcomeStatus, PlanRecord, PromptSource, Record, RecordBody, Speaker, Spending,
    ToolCall, ToolResult,
};
use archon_views::{AuditAction, AuditActor, AuditTrail};
use serde_json::json;

use crate::{
    samples::{answered, ended, finished, prompted, started},
    support::at,
};

fn log(bodies: Vec<RecordBody>) -> Vec<Arc<Record>> {
    let record = |(seq, body)| Arc::new(Record { seq, at: at(seq), body });
    (0..).zip(bodies).map(record).collect()
}

/// Returns an entry as a line: number, actor, action, target and outcome.
fn lines(trail: &AuditTrail) -> Vec<String> {
    let line = |entry: &archon_views::AuditEntry| {
        let json = json!(entry);
        let field = |name: &str| json[name].as_str().unwrap_or("-").to_owned();
        format!(
            "{} {} {} {} {}",
            entry.seq,
            field("actor"),
            field("action"),
            field("target"),
            field("outcome")
        )
    };
    trail.entries.iter().map(line).collect()
}

fn question(call: CallId, id: &str) -> RecordBody {
    let request = ApprovalRequest::new(id, "Pay it?", json!({ "tool": "pay" }));
    RecordBody::ApprovalRequested { call, request: Box::new(request) }
}

fn tool_call(id: &str, name: &str) -> Content {
    ToolCall::new(id, name, json!({})).into()
}

// spec: EX-12, EX-13
#[test]
fn audit_trail_has_people_calls_questions_and_the_end_in_the_order_of_the_log() {
    let call = |index| CallId::new(CommandId(0), index);
    let start = |index, attempt, effect| RecordBody::ToolCallStarted {
        call: call(index),
        attempt,
        effect,
        child_run: None,
    };
    let end = |index, result| RecordBody::ToolCallFinished { call: call(index), result: Arc::new(result) };
    let calls = vec![tool_call("a", "read"), tool_call("b", "pay"), tool_call("c", "send")];
    let trail = AuditTrail::of(&log(vec![
        RecordBody::RunStarted(Box::new(started())),
        prompted("hi", PromptSource::Prompt),
        answered(0, calls),
        start(0, 0, Effect::ReadOnly),
        question(call(1), "q1"),
        RecordBody::ToolCallRefused { call: call(2), result: ToolResult::error("a rule forbids it").into() },
        start(0, 1, Effect::ReadOnly),
        end(0, ToolResult::error("no such file")),
        RecordBody::ApprovalAnswered { call: call(1), answer: Answer::Cancel { reason: "too much".into() } },
        prompted("faster", PromptSource::Steer),
        RecordBody::CancelRequested { reason: "cancelled by ann".into() },
        ended(OutcomeStatus::Cancelled, None),
        RecordBody::LimitsRaised(MoreLimits::default().with_max_turns(60)),
        RecordBody::Resumed,
        RecordBody::LimitReached(LimitReached::Turns { max: 60 }),
        finished("done"),
    ]))
    .unwrap();
    assert_eq!(
        lines(&trail),
        [
            "0 person started agent_1 -",
            "1 person message_added prompt -",
            "3 model tool_called read error: no such file",
            "4 archon asked q1 cancel: too much",
            "5 model tool_called send refused, error: a rule forbids it",
            "8 person answered q1 cancel: too much",
            "9 person message_added steer -",
            "10 person cancel_requested - cancelled by ann",
            "11 archon ended - cancelled",
            "12 person limits_raised - max_turns 60",
            "13 archon resumed - -",
            "14 archon limit_reached - Max turns reached (60)",
            "15 archon ended - finished",
        ]
    );
    assert_eq!(trail.questions().collect::<Vec<_>>(), ["q1"]);
    let read = &trail.entries[2];
    assert_eq!((read.call.as_deref(), read.effect), (Some("0.0"), Some(Effect::ReadOnly)));
    assert_eq!(trail.entries.last().and_then(|entry| entry.spent), Some(Spending::new(45, 0)));
}

// spec: EX-12
#[test]
fn audit_trail_of_a_child_run_names_its_caller_and_of_a_question_without_an_answer_no_outcome() {
    let mut child = started();
    child.origin = Origin::CalledBy { run: "run_0".into(), call: CallId::new(CommandId(2), 1) };
    let call = CallId::new(CommandId(0), 0);
    let trail = AuditTrail::of(&log(vec![
        RecordBody::RunStarted(Box::new(child)),
        prompted("hi", PromptSource::Prompt),
        question(call, "q1"),
        RecordBody::ApprovalAnswered { call, answer: Answer::Expired },
        question(call, "q2"),
    ]))
    .unwrap();
    assert_eq!(
        lines(&trail),
        [
            "0 agent started agent_1 -",
            "1 agent message_added prompt -",
            "2 archon asked q1 expired",
            "3 archon answered q1 expired",
            "4 archon asked q2 -",
        ]
    );
    assert_eq!(trail.entries[0].run, Some("run_0".into()));
}

// spec: EX-12
#[test]
fn audit_trail_has_restored_messages_and_the_speakers_of_messages() {
    let message = |by: Option<Speaker>| {
        let message: AgentMessage = Message::user("hi", at(1)).into();
        let message = by.into_iter().fold(message, AgentMessage::with_speaker);
        RecordBody::MessageAdded { message, source: PromptSource::Prompt }
    };
    let mut bodies = vec![
        RecordBody::RunStarted(Box::new(started())),
        RecordBody::ConversationRestored { messages: vec![Message::user("earlier", at(1)); 2] },
        message(None),
    ];
    let speakers = [Speaker::Person, Speaker::Model, Speaker::Tool, Speaker::Program, Speaker::Unknown];
    bodies.extend(speakers.map(|by| message(Some(by))));
    assert_eq!(
        lines(&AuditTrail::of(&log(bodies)).unwrap())[1..],
        [
            "1 person message_added restored 2 messages",
            "2 person message_added prompt -",
            "3 person message_added prompt -",
            "4 agent message_added prompt -",
            "5 other message_added prompt -",
            "6 other message_added prompt -",
            "7 other message_added prompt -",
        ]
    );
}

// spec: EX-12
#[test]
fn audit_trail_has_the_steps_of_a_plan() {
    let bodies = [
        PlanRecord::FixedPlan { subtasks: Vec::new() },
        PlanRecord::Paused { reason: "lunch".into() },
        PlanRecord::Unpaused,
        PlanRecord::Skipped { call: CallId::new(CommandId(1), 0), reason: "nothing to do".into() },
    ];
    let bodies = bodies.into_iter().map(|plan| RecordBody::Plan(Box::new(plan)));
    let start = RecordBody::RunStarted(Box::new(started()));
    let trail = AuditTrail::of(&log(std::iter::once(start).chain(bodies).collect())).unwrap();
    assert_eq!(
        lines(&trail)[1..],
        [
            "1 person planned 0 subtasks -",
            "2 person plan_paused - lunch",
            "3 person plan_unpaused - -",
            "4 archon step_skipped - nothing to do",
        ]
    );
}

#[test]
fn audit_trail_of_a_log_without_a_start_is_none() {
    assert_eq!(AuditTrail::of(&[]), None);
    assert_eq!(AuditTrail::of(&log(vec![RecordBody::Resumed])), None);
}

#[test]
fn audit_trail_cuts_long_reasons() {
    let trail = AuditTrail::of(&log(vec![
        RecordBody::RunStarted(Box::new(started())),
        ended(OutcomeStatus::Failed, Some(&"é".repeat(1_000))),
    ]))
    .unwrap();
    let end = trail.entries.last().unwrap();
    assert_eq!((end.actor, end.action), (AuditActor::Archon, AuditAction::Ended));
    assert_eq!(end.outcome.as_deref(), Some(&*format!("failed: {}...", "é".repeat(300))));
}
