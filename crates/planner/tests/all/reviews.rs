//! Tests of the review of a subtask's result by a person before its dependents start.

use archon_planner::{Next, NodeState, PlanTask, fold};
use archon_types::{
    Answer, CallId, OnFailure, OutcomeStatus, PlanSettings, QuestionKind, RecordBody, SubTaskStatus,
    ToolResult, ToolResultStatus,
};

use crate::support::{Fed, rules, step};

/// Returns a run of three steps, the first of which is done and under review while another one works.
fn asking_plan() -> (Fed, CallId) {
    let look = step("look", &[]).with_rules(rules(|rules| rules.review = Some("Is this right?".into())));
    let mut fed =
        Fed::following(PlanSettings::default(), vec![look, step("use", &["look"]), step("other", &[])]);
    let begun = fed.begin_all();
    let call_of = |id: &str| begun.iter().find(|(begun, _)| begun == id).unwrap().1;
    assert_eq!(begun.len(), 2);
    fed.finish(call_of("look"), ToolResult::success("42"));
    let Next::Append(body) = fed.machine.next() else { panic!("{:?}", fed.machine.next()) };
    let RecordBody::ApprovalRequested { call, request } = &body else { panic!() };
    assert_eq!(
        (request.action_summary.as_str(), &request.details["result"]),
        ("Is this right?", &"42".into())
    );
    assert_eq!(request.request_id.as_str(), format!("run_1.{call}.result"));
    let call = *call;
    fed.feed(body);
    assert_eq!(fed.machine.task().subtasks[0].status(), SubTaskStatus::Completed);
    assert_eq!(fed.machine.next(), Next::Wait(None), "the other step goes on");
    fed.finish(call_of("other"), ToolResult::success("ok"));
    let Next::Append(RecordBody::Suspended { waiting }) = fed.machine.next() else { panic!() };
    assert_eq!(waiting, [call]);
    fed.feed(RecordBody::Suspended { waiting });
    assert_eq!(fed.machine.next(), Next::Suspend);
    // As another process finds it.
    fed.machine = fold(&fed.records).unwrap();
    fed.feed(RecordBody::Resumed);
    (fed, call)
}

// spec: AP-09
#[test]
fn reviewed_result_blocks_its_dependents_until_approved() {
    let (mut fed, call) = asking_plan();
    assert!(!fed.machine.may_change(&"look".into()), "it is done");
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    let begun = fed.begin_all();
    assert_eq!(begun[0].0, "use");
    fed.finish(begun[0].1, ToolResult::success("ok"));
    assert!(matches!(fed.machine.next(), Next::Do(PlanTask::Conclude { .. })));
    assert!(fed.machine.nodes().all(|node| node.state == NodeState::Done));
    assert_eq!(fed.machine.task().subtasks[0].result().unwrap().text(), "42");
}

// spec: AP-09
#[test]
fn denied_result_review_ends_the_run() {
    for (answer, why) in [
        (Answer::Cancel { reason: "it is 43".into() }, "it is 43"),
        (Answer::Cancel { reason: String::new() }, "no reason was given"),
    ] {
        let (mut fed, call) = asking_plan();
        fed.feed(RecordBody::ApprovalAnswered { call, answer });
        let Next::Append(RecordBody::RunFinished(outcome)) = fed.machine.next() else { panic!() };
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        assert_eq!(outcome.error.unwrap(), format!("the result of look was not approved: {why}"));
    }
}

#[test]
fn a_failure_is_not_reviewed_and_an_answer_to_nothing_changes_nothing() {
    let review = rules(|rules| {
        rules.review = Some("Is this right?".into());
        rules.max_attempts = Some(2);
    });
    let mut fed = Fed::following(PlanSettings::default(), vec![step("look", &[]).with_rules(review)]);
    let call = fed.begin_all()[0].1;
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    fed.finish(call, ToolResult::failed(ToolResultStatus::Error, "no", "no"));
    let again = fed.begin_all();
    assert_eq!(again[0].0, "look", "it is tried again, and nobody is asked");
    assert_ne!(again[0].1, call);
}

/// Returns a run of two steps as another process finds it: the first step failed, and a person is asked
/// how to continue.
fn failed() -> (Fed, CallId) {
    let ask = rules(|rules| (rules.on_failure, rules.max_attempts) = (OnFailure::Ask, Some(1)));
    let steps = vec![step("look", &[]).with_rules(ask), step("use", &["look"])];
    let mut fed = Fed::following(PlanSettings::default(), steps);
    let call = fed.begin_all()[0].1;
    fed.finish(call, ToolResult::error("the line is cut"));
    let Next::Append(body) = fed.machine.next() else { panic!("{:?}", fed.machine.next()) };
    let RecordBody::ApprovalRequested { call: asked, request } = &body else { panic!("{body:?}") };
    assert_eq!((*asked, request.kind), (call, QuestionKind::FailedStep));
    assert!(
        request.action_summary.starts_with("Step 'look' failed: the line is cut. Try it again?"),
        "{}",
        request.action_summary
    );
    fed.feed(body);
    assert!(!fed.machine.may_change(&"look".into()), "a person decides about it");
    let Next::Append(body) = fed.machine.next() else { panic!() };
    fed.feed(body);
    fed.machine = fold(&fed.records).unwrap();
    fed.feed(RecordBody::Resumed);
    (fed, call)
}

// spec: AP-09
#[test]
fn failed_step_with_ask_is_tried_again_after_a_yes() {
    let (mut fed, call) = failed();
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    let again = fed.begin_all();
    assert_eq!((again.len(), again[0].0.as_str()), (1, "look"));
    assert_ne!(again[0].1, call);
    // It fails once more, and a person is asked once more.
    fed.finish(again[0].1, ToolResult::failed(ToolResultStatus::Error, "no", "no"));
    let Next::Append(RecordBody::ApprovalRequested { call, .. }) = fed.machine.next() else { panic!() };
    assert_eq!(call, again[0].1);
}

// spec: AP-09
#[test]
fn failed_step_with_ask_takes_a_reply_as_its_result_and_an_empty_one_for_none() {
    for (text, state, result) in [("42", NodeState::Done, Some("42")), (" ", NodeState::DoneWithout, None)] {
        let (mut fed, call) = failed();
        fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Reply { text: text.into() } });
        assert_eq!(fed.begin_all()[0].0, "use");
        let node = fed.machine.node(call).unwrap();
        assert_eq!(node.state, state);
        if let Some(result) = result {
            assert_eq!(node.result.as_deref().unwrap().text(), result);
        }
    }
}

// spec: AP-09
#[test]
fn failed_step_with_ask_fails_for_good_after_a_refusal_and_makes_no_other_plan() {
    let long = "too dear ".repeat(40);
    for (answer, why) in [
        (Answer::Cancel { reason: "leave it".into() }, "leave it"),
        (Answer::Cancel { reason: long.clone() }, long.trim()),
        (Answer::Cancel { reason: String::new() }, "no reason was given"),
        (Answer::Expired, "nobody answered in time"),
    ] {
        let (mut fed, call) = failed();
        fed.feed(RecordBody::ApprovalAnswered { call, answer });
        assert_eq!(fed.begin_all(), []);
        let state = |id| fed.machine.nodes().find(|n| n.subtask.id.as_str() == id).unwrap().state.clone();
        assert_eq!((state("look"), state("use")), (NodeState::Failed, NodeState::Unreachable));
        let result = fed.machine.node(call).unwrap().result.clone().unwrap();
        assert!(result.text().starts_with("Error: the line is cut"), "{}", result.text());
        let Next::Append(RecordBody::RunFinished(outcome)) = fed.machine.next() else { panic!() };
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        let error = outcome.error.unwrap();
        let expected =
            format!("1 of 2 subtasks failed: look (the line is cut. It is not tried again: {why}). Not done");
        assert!(error.starts_with(&expected), "{error}");
    }
}
