//! A person who sees the result of a subtask before others go on with it.

use archon_planner::{NodeState, PlanCommand, fold};
use archon_types::{
    Answer, CallId, OutcomeStatus, PlanSettings, RecordBody, SubTaskStatus, ToolResult, ToolResultStatus,
};

use crate::support::{Fed, rules, step};

/// A run of three steps, the first of which is done and is asked about while the one beside it goes on.
fn asked() -> (Fed, CallId) {
    let look = step("look", &[]).with_rules(rules(|rules| rules.review = Some("Is this right?".into())));
    let mut fed =
        Fed::following(PlanSettings::default(), vec![look, step("use", &["look"]), step("other", &[])]);
    let begun = fed.begin_all();
    let call_of = |id: &str| begun.iter().find(|(begun, _)| begun == id).unwrap().1;
    assert_eq!(begun.len(), 2);
    fed.finish(call_of("look"), ToolResult::success("42"));
    let PlanCommand::Append(body) = fed.machine.next() else { panic!("{:?}", fed.machine.next()) };
    let RecordBody::ToolAsked { call, request } = &body else { panic!() };
    assert_eq!(
        (request.action_summary.as_str(), &request.details["result"]),
        ("Is this right?", &"42".into())
    );
    assert_eq!(request.request_id.as_str(), format!("run_1.{call}.result"));
    let call = *call;
    fed.feed(body);
    assert_eq!(fed.machine.task().subtasks[0].status(), SubTaskStatus::Completed);
    assert_eq!(fed.machine.next(), PlanCommand::Wait { until: None }, "the other step goes on");
    fed.finish(call_of("other"), ToolResult::success("ok"));
    let PlanCommand::Append(RecordBody::Suspended { waiting }) = fed.machine.next() else { panic!() };
    assert_eq!(waiting, [call]);
    fed.feed(RecordBody::Suspended { waiting });
    assert_eq!(fed.machine.next(), PlanCommand::Suspend);
    // As another process finds it.
    fed.machine = fold(&fed.records).unwrap();
    fed.feed(RecordBody::Resumed);
    (fed, call)
}

// spec: AP-09
#[test]
fn who_depends_on_a_result_waits_until_a_person_has_seen_it() {
    let (mut fed, call) = asked();
    assert!(!fed.machine.may_change(&"look".into()), "it is done");
    fed.feed(RecordBody::ToolAnswered { call, answer: Answer::Approve });
    let begun = fed.begin_all();
    assert_eq!(begun[0].0, "use");
    fed.finish(begun[0].1, ToolResult::success("ok"));
    assert!(matches!(fed.machine.next(), PlanCommand::Conclude { .. }));
    assert!(fed.machine.nodes().all(|node| node.state == NodeState::Done));
    assert_eq!(fed.machine.task().subtasks[0].result().unwrap().text(), "42");
}

// spec: AP-09
#[test]
fn a_no_to_a_result_ends_the_run() {
    for (answer, why) in [
        (Answer::Cancel { reason: "it is 43".into() }, "it is 43"),
        (Answer::Cancel { reason: String::new() }, "no reason was given"),
    ] {
        let (mut fed, call) = asked();
        fed.feed(RecordBody::ToolAnswered { call, answer });
        let PlanCommand::Append(RecordBody::RunFinished(outcome)) = fed.machine.next() else { panic!() };
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
    fed.feed(RecordBody::ToolAnswered { call, answer: Answer::Approve });
    fed.finish(call, ToolResult::failed(ToolResultStatus::Error, "no", "no"));
    let again = fed.begin_all();
    assert_eq!(again[0].0, "look", "it is tried again, and nobody is asked");
    assert_ne!(again[0].1, call);
}
