//! Tests of the machine's decisions, record by record.

use archon_planner::{Next, NodeState, PlanMachine, PlanTask, check_diff, difference, fold, show_diff};
use archon_types::{
    AgentState, Answer, CommandId, Confirm, Effect, OnFailure, OutcomeStatus, PlanDiff, PlanRecord,
    PlanSettings, QuestionKind, RecordBody, SubTask, SubTaskStatus, Task, ToolResult, ToolResultStatus,
    metadata,
};
use expect_test::expect;
use serde_json::json;

use crate::support::{Fed, rules, step};

fn cap(n: u32) -> PlanSettings {
    let mut settings = PlanSettings::default();
    settings.max_concurrent = n;
    settings
}

fn ok() -> ToolResult {
    ToolResult::success("ok")
}

fn no() -> ToolResult {
    ToolResult::error("no")
}

fn names(begun: &[(String, archon_types::CallId)]) -> Vec<&str> {
    begun.iter().map(|(id, _)| id.as_str()).collect()
}

fn state<'a>(fed: &'a Fed, id: &str) -> &'a NodeState {
    &fed.machine.nodes().find(|n| n.subtask.id.as_str() == id).unwrap().state
}

/// Returns the error of a run that ends now.
fn error(fed: &Fed) -> String {
    match fed.machine.next() {
        Next::Append(RecordBody::RunFinished(outcome)) => outcome.error.unwrap(),
        other => panic!("{other:?}"),
    }
}

// spec: PL-11, PL-10
#[test]
fn the_longest_way_goes_first_up_to_the_cap_and_a_failure_stops_no_sibling() {
    let plan =
        vec![step("short", &[]), step("a", &[]), step("b", &["a"]), step("c", &["b"]), step("other", &[])];
    let mut settings = cap(2);
    settings.replan.max_replans = 0;
    settings.replan.same_subtask = 1;
    let mut fed = Fed::following(settings, plan);
    let begun = fed.begin_all();
    assert_eq!(names(&begun), ["a", "short"]);
    assert_eq!(*state(&fed, "b"), NodeState::Waiting);
    let told = |fed: &Fed, id: &str| fed.machine.task().get_subtask(&id.into()).unwrap().status();
    assert_eq!((told(&fed, "b"), told(&fed, "other")), (SubTaskStatus::Blocked, SubTaskStatus::Pending));
    fed.finish(begun[0].1, no());
    assert_eq!(*state(&fed, "c"), NodeState::Unreachable, "nobody waits for what will never come");
    assert_eq!(told(&fed, "c"), SubTaskStatus::Blocked);
    let next = fed.begin_all();
    assert_eq!(names(&next), ["other"]);
    fed.finish(begun[1].1, ok());
    fed.finish(next[0].1, ok());
    expect!["1 of 5 subtasks failed: a (no). Not done because of that: b, c. A simpler goal may work: the same without 'Do a'."]
        .assert_eq(&error(&fed));
    let Next::Append(RecordBody::RunFinished(outcome)) = fed.machine.next() else { panic!() };
    // spec: PL-20
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Failed, "[short] ok\n\n[other] ok")
    );
}

// spec: PL-11
#[test]
fn plan_resource_limit_blocks_only_its_users() {
    let uses = |id: &str, what: &[&str]| {
        step(id, &[]).with_rules(rules(|r| r.resources = what.iter().map(|w| (*w).to_owned()).collect()))
    };
    let mut settings = cap(4);
    settings.resources.insert("browser".into(), 1);
    settings.resources.insert("search".into(), 1);
    let plan = vec![
        uses("w1", &["browser"]),
        uses("w2", &["browser"]),
        uses("w3", &["browser"]),
        step("t1", &[]).with_tool("search", Some(json!({}))),
        step("t2", &[]).with_tool("search", Some(json!({}))),
        step("free", &[]),
    ];
    let mut fed = Fed::following(settings, plan);
    let begun = fed.begin_all();
    assert_eq!(names(&begun), ["w1", "t1", "free"]);
    fed.finish(begun[0].1, ok());
    let next = fed.begin_all();
    assert_eq!(names(&next), ["w2"]);
    fed.finish(begun[1].1, ok());
    fed.finish(next[0].1, ok());
    assert_eq!(names(&fed.begin_all()), ["w3", "t2"]);
}

// spec: PL-16
#[test]
fn a_subtask_is_tried_three_times_and_then_there_is_another_plan() {
    let mut fed = Fed::following(cap(1), vec![step("a", &[]), step("b", &["a"])]);
    for attempt in 0..3 {
        let begun = fed.begin_all();
        assert_eq!((names(&begun), begun[0].1.index), (vec!["a"], attempt), "each try is a call of its own");
        fed.finish(begun[0].1, no());
    }
    let Next::Do(PlanTask::MakePlan { attempt: 0, reason: Some(reason), .. }) = fed.machine.next() else {
        panic!()
    };
    expect!["subtask a (Do a) failed 3 times: no. Break it down into smaller steps, or go another way."]
        .assert_eq(&reason);
    assert_eq!(fed.machine.state(), AgentState::Replanning);
    assert_eq!(*state(&fed, "b"), NodeState::Waiting, "another plan may still bring it");
}

// spec: PL-08
#[test]
fn subtask_that_failed_all_of_its_own_tries_is_to_be_broken_down() {
    let twice = rules(|rules| rules.max_attempts = Some(2));
    let mut fed = Fed::following(cap(1), vec![step("a", &[]).with_rules(twice)]);
    for _ in 0..2 {
        let call = fed.begin_all()[0].1;
        fed.finish(call, no());
    }
    let Next::Do(PlanTask::MakePlan { reason: Some(reason), .. }) = fed.machine.next() else { panic!() };
    assert!(reason.contains("failed 2 times: no. Break it down into smaller steps"), "{reason}");
}

// spec: PL-16, PL-17
#[test]
fn a_critical_subtask_and_one_for_which_many_wait_lead_to_another_plan_at_once() {
    let mut critical = step("a", &[]);
    critical.critical = true;
    for plan in
        [vec![critical], vec![step("a", &[]), step("b", &["a"]), step("c", &["a"]), step("d", &["a"])]]
    {
        let mut fed = Fed::following(cap(1), plan);
        let begun = fed.begin_all();
        fed.finish(begun[0].1, no());
        assert!(matches!(fed.machine.next(), Next::Do(PlanTask::MakePlan { .. })));
    }
    let mut fed = Fed::following(cap(2), vec![step("a", &[]), step("b", &[])]);
    let begun = fed.begin_all();
    fed.finish(begun[0].1, no());
    assert!(matches!(fed.machine.next(), Next::Do(PlanTask::Start { .. })), "it is tried again");
    fed.finish(begun[1].1, no());
    assert_eq!(*state(&fed, "b"), NodeState::Troubled, "the second in a row");
}

// spec: ER-13
#[test]
fn a_time_out_is_tried_again_where_it_may_be_and_leads_to_another_plan_where_it_may_not() {
    let late = || ToolResult::failed(ToolResultStatus::Timeout, "Timeout", "it took too long");
    let mut fed = Fed::following(cap(1), vec![step("a", &[])]);
    let begun = fed.begin_all();
    fed.finish(begun[0].1, late());
    assert_eq!(names(&fed.begin_all()), ["a"], "nothing was done that cannot be done again");

    let mut fed = Fed::following(cap(1), vec![step("a", &[])]);
    let Next::Do(PlanTask::Start { call }) = fed.machine.next() else { panic!() };
    fed.feed(RecordBody::ToolCallStarted { call, attempt: 0, effect: Effect::SideEffect, child_run: None });
    fed.finish(call, late());
    let Next::Do(PlanTask::MakePlan { reason: Some(reason), .. }) = fed.machine.next() else { panic!() };
    assert!(reason.contains("it took too long"), "{reason}");
}

// spec: PL-16
#[test]
fn result_below_the_required_confidence_counts_as_failure() {
    let mut settings = cap(1);
    settings.replan.confidence = Some(0.5);
    let mut fed = Fed::following(settings, vec![step("a", &[])]);
    let begun = fed.begin_all();
    fed.finish(begun[0].1, ok().with_metadata(metadata::CONFIDENCE_SCORE, 0.2));
    assert_eq!(names(&fed.begin_all()), ["a"]);
}

// spec: PL-18
#[test]
fn after_three_other_plans_the_run_fails_and_names_them() {
    let mut fed =
        Fed::following(cap(1), vec![step("a", &[]).with_rules(rules(|r| r.max_attempts = Some(1)))]);
    for _ in 0..3 {
        let begun = fed.begin_all();
        fed.finish(begun[0].1, no());
        let Next::Do(PlanTask::MakePlan { command, .. }) = fed.machine.next() else { panic!() };
        let mut diff = PlanDiff::default();
        diff.replace = vec![step("a", &[]).with_rules(rules(|r| r.max_attempts = Some(1)))];
        fed.plan(PlanRecord::Replanned { command, diff: Box::new(diff), warnings: vec![] });
    }
    let begun = fed.begin_all();
    fed.finish(begun[0].1, no());
    let error = error(&fed);
    assert_eq!(error.matches("subtask a (Do a) failed").count(), 3, "{error}");
    assert!(error.ends_with(". A simpler goal may work: a part of this one."), "{error}");
    assert_eq!(fed.machine.replans(), 3);
}

// spec: PL-19
#[test]
fn replan_diff_changes_only_failed_subtasks_and_their_dependents() {
    let plan = vec![step("done", &[]), step("bad", &["done"]), step("after", &["bad"]), step("beside", &[])];
    let mut settings = cap(2);
    settings.replan.same_subtask = 1;
    let mut fed = Fed::following(settings, plan);
    let begun = fed.begin_all();
    assert_eq!(names(&begun), ["done", "beside"]);
    fed.finish(begun[0].1, ok());
    let bad = fed.begin_all();
    fed.finish(bad[0].1, no());
    let Next::Do(PlanTask::MakePlan { command, .. }) = fed.machine.next() else { panic!() };
    let wanted = Task::new("t", "g").with_subtasks(vec![
        SubTask::new("done", "something else"),
        step("other_way", &["done"]),
        step("after", &["other_way"]),
    ]);
    let (diff, remarks) = difference(&fed.machine, &wanted);
    expect![[r#"
        - bad
        ~ after: Do after (after other_way)
        + other_way: Do other_way (after done)"#]]
    .assert_eq(&show_diff(&diff));
    assert_eq!(remarks.len(), 1, "what is done is not done again");
    assert_eq!(check_diff(&fed.machine, &diff, &Default::default()), []);
    let mut greedy = diff.clone();
    greedy.remove.extend(["beside".into(), "done".into(), "nobody".into()]);
    let problems: Vec<String> =
        check_diff(&fed.machine, &greedy, &Default::default()).iter().map(ToString::to_string).collect();
    expect![[r#"
        subtask beside: the change replaces or removes this subtask, which can no longer change (status executing)
        subtask done: the change replaces or removes this subtask, which can no longer change (status completed)
        subtask nobody: the change replaces or removes this subtask, which the plan does not have
        subtask other_way: the subtask depends on done, which the plan does not have"#]]
    .assert_eq(&problems.join("\n"));
    fed.plan(PlanRecord::PlanningStarted { command, attempt: 0, reason: None });
    fed.plan(PlanRecord::Replanned { command, diff: Box::new(diff), warnings: vec![] });
    assert!(fed.machine.node(begun[0].1).is_some_and(|n| n.state == NodeState::Done));
    let begun_again = fed.begin_all();
    assert_eq!(names(&begun_again), ["other_way"]);
    fed.finish(begun_again[0].1, ok());
    assert_eq!(names(&fed.begin_all()), ["after"]);
    let task = fed.machine.task();
    assert_eq!(task.subtasks.len(), 4);
    assert_eq!((task.id.as_str(), task.original_query.as_str()), ("run_1", "Do it"));
}

#[test]
fn failed_tool_uses_its_fallback_and_optional_subtasks_are_skipped() {
    let tool = step("a", &[]).with_tool("one", Some(json!({}))).with_rules(rules(|r| {
        r.fallback_tools = vec!["two".into()];
        r.max_attempts = Some(2);
        r.on_failure = OnFailure::Skip;
    }));
    let mut fed = Fed::following(cap(1), vec![tool, step("b", &["a"])]);
    let mut tried = Vec::new();
    while let Next::Do(PlanTask::Start { call }) = fed.machine.next()
        && let Some(tool) = fed.machine.node(call).and_then(|node| node.tool())
    {
        tried.push(tool.to_owned());
        fed.start(call);
        fed.finish(call, no());
    }
    assert_eq!(tried, ["one", "one", "two", "two"]);
    assert_eq!(names(&fed.begin_all()), ["b"]);
    assert_eq!(fed.machine.value("a"), Some(json!(null)));
}

#[test]
fn call_in_doubt_is_repeated_only_after_approval() {
    let mut fed = Fed::following(cap(1), vec![step("a", &[]).with_tool("pay", Some(json!({})))]);
    let Next::Do(PlanTask::Start { call }) = fed.machine.next() else { panic!() };
    fed.feed(RecordBody::ToolCallStarted { call, attempt: 0, effect: Effect::SideEffect, child_run: None });
    fed.finish(call, ToolResult::timeout(1.0));
    assert!(matches!(fed.machine.next(), Next::Do(PlanTask::MakePlan { .. })));
    let mut fed = Fed::following(cap(1), vec![step("a", &[]).with_tool("pay", Some(json!({})))]);
    let Next::Do(PlanTask::Start { call }) = fed.machine.next() else { panic!() };
    fed.feed(RecordBody::ToolCallStarted { call, attempt: 0, effect: Effect::SideEffect, child_run: None });
    fed.feed(RecordBody::CancelRequested { reason: "enough".into() });
    fed.finish(call, ToolResult::cancelled("Cancelled"));
    fed.feed(RecordBody::Resumed);
    let Next::Append(RecordBody::ApprovalRequested { call: asked, request }) = fed.machine.next() else {
        panic!("nobody knows whether it was paid")
    };
    assert_eq!((request.kind, asked.index), (QuestionKind::InDoubt, call.index + 1));
}

#[test]
fn plan_time_limit_applies_in_every_phase_except_waiting_for_people() {
    let mut first = crate::support::started();
    first.config.limits.max_duration_ms = 1_000;
    let mut fed =
        Fed::following(cap(1), vec![step("a", &[]).with_rules(rules(|r| r.gate = Some("Go?".into())))]);
    let mut machine = PlanMachine::new(&first, archon_types::Timestamp::from_millis(0));
    fed.records[1..].iter().for_each(|record| machine.apply(record));
    fed.machine = machine;
    let begun = fed.begin_all();
    assert!(begun.is_empty());
    fed.feed(RecordBody::Suspended { waiting: vec![] });
    fed.now = 1_000_000;
    let Next::Suspend = fed.machine.next() else { panic!() };
    fed.feed(RecordBody::Resumed);
    let call = fed.machine.nodes().next().unwrap().call();
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    assert_eq!(names(&fed.begin_all()), ["a"]);
    fed.now += 1_000;
    fed.feed(RecordBody::ClockRead);
    let Next::Append(RecordBody::LimitReached(limit)) = fed.machine.next() else { panic!() };
    fed.feed(RecordBody::LimitReached(limit));
    let Next::Append(RecordBody::RunFinished(outcome)) = fed.machine.next() else { panic!() };
    assert_eq!(outcome.status, OutcomeStatus::Limit(archon_types::LimitReached::Duration { max_ms: 1_000 }));
}

// spec: PL-12, PL-13, PL-14
#[test]
fn references_are_filled_from_results_and_the_initial_context() {
    let search = step("search", &[]).with_rules(rules(|r| r.save_as = Some("hits".into())));
    let calc = step("calc", &["search"])
        .with_tool("calculator", Some(json!({"a": "{search.n}", "t": "{hits.n} it"})));
    let mut fed = Fed::new(cap(1));
    let values = json!({"unit": "km", "a": 5}).as_object().cloned().unwrap();
    fed.plan(PlanRecord::Inputs { context: values, memories: vec![], background: String::new() });
    let task = Box::new(Task::new("run_1", "Do it").with_subtasks(vec![search, calc]));
    fed.plan(PlanRecord::Planned { command: CommandId(0), task, warnings: vec![] });
    let begun = fed.begin_all();
    fed.finish(begun[0].1, ToolResult::success("{\"n\": 7}"));
    let Next::Do(PlanTask::Start { call }) = fed.machine.next() else { panic!() };
    let properties = json!({"a": {"type": "integer"}, "t": {"type": "string"}, "unit": {"type": "string"}});
    let tool = archon_types::ToolDefinition {
        name: "calculator".into(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": properties}),
    };
    let arguments = fed.machine.arguments(call, Some(&tool)).unwrap().unwrap();
    assert_eq!(arguments, json!({"a": 7, "t": "7 it", "unit": "km"}), "what the plan says wins");
    let context = fed.machine.task().context;
    assert_eq!((&context["search"], &context["hits"]), (&json!({"n": 7}), &json!({"n": 7})));
}

// spec: PL-13
#[test]
fn a_reference_into_a_result_that_is_not_there_fails_before_the_start() {
    let calc = step("calc", &["a"]).with_tool("calculator", Some(json!({"x": "{a.number}"})));
    let mut fed = Fed::following(cap(1), vec![step("a", &[]), calc]);
    let begun = fed.begin_all();
    fed.finish(begun[0].1, ToolResult::success("no number"));
    let Next::Do(PlanTask::Start { call }) = fed.machine.next() else { panic!() };
    let why = fed.machine.arguments(call, None).unwrap_err().to_string();
    assert_eq!(why, "{a.number} refers to a missing part: the value is text");
    fed.feed(RecordBody::ToolCallRefused { call, result: ToolResult::error(why).into() });
    assert!(matches!(fed.machine.next(), Next::Do(PlanTask::MakePlan { .. })), "the same would fail again");
}

// spec: PL-23
#[test]
fn paused_plan_finishes_running_calls_and_starts_none() {
    let mut fed = Fed::following(cap(1), vec![step("a", &[]), step("b", &["a"])]);
    let begun = fed.begin_all();
    fed.plan(PlanRecord::Paused { reason: "lunch".into() });
    assert!(matches!(fed.machine.next(), Next::Wait(None)));
    fed.finish(begun[0].1, ok());
    assert!(matches!(fed.machine.next(), Next::Append(RecordBody::Suspended { .. })));
    fed.feed(RecordBody::Suspended { waiting: vec![] });
    assert!(matches!(fed.machine.next(), Next::Suspend));
    fed.feed(RecordBody::Resumed);
    fed.plan(PlanRecord::Unpaused);
    assert_eq!(names(&fed.begin_all()), ["b"]);
}

// spec: EX-07
#[test]
fn plan_gate_asks_for_approval_without_blocking_other_subtasks() {
    let gated = step("pay", &[]).with_rules(rules(|r| r.gate = Some("Pay 100 EUR?".into())));
    let mut fed = Fed::following(cap(4), vec![gated, step("beside", &[]), step("after", &["pay"])]);
    let begun = fed.begin_all();
    assert_eq!(names(&begun), ["beside"]);
    let asked = fed.records.iter().find_map(|r| match &r.body {
        RecordBody::ApprovalRequested { call, request } => Some((*call, request.action_summary.clone())),
        _ => None,
    });
    let (call, text) = asked.unwrap();
    assert_eq!(text, "Pay 100 EUR?");
    fed.finish(begun[0].1, ok());
    let Next::Append(RecordBody::Suspended { waiting }) = fed.machine.next() else { panic!() };
    assert_eq!(waiting, [call]);
    let before = serde_json::to_value(&fed.machine).unwrap();
    fed.feed(RecordBody::Suspended { waiting });
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    assert_eq!(names(&fed.begin_all()), ["pay"]);
    // The same with a no, from the state as it was written.
    fed.machine = serde_json::from_value(before).unwrap();
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Cancel { reason: "too much".into() } });
    let Next::Do(PlanTask::MakePlan { reason: Some(reason), .. }) = fed.machine.next() else { panic!() };
    assert!(reason.contains("it was not approved: too much"), "{reason}");
}

// spec: PL-24
#[test]
fn a_person_sees_the_plan_first_and_may_edit_or_refuse_it() {
    let mut settings = cap(1);
    settings.confirm = Confirm::First;
    let asked = || {
        let mut fed = Fed::following(settings.clone(), vec![step("a", &[])]);
        let Next::Append(body) = fed.machine.next() else { panic!() };
        let RecordBody::ApprovalRequested { call, request } = &body else { panic!() };
        assert_eq!(request.action_summary, "Follow this plan of 1 subtasks?");
        assert_eq!(request.details["subtasks"][0]["id"], "a");
        let call = *call;
        fed.feed(body);
        assert!(matches!(fed.machine.next(), Next::Append(RecordBody::Suspended { .. })));
        assert_eq!(fed.machine.state(), AgentState::Planning);
        (fed, call)
    };
    let (mut fed, call) = asked();
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Approve });
    assert_eq!(names(&fed.begin_all()), ["a"]);
    let (mut fed, call) = asked();
    let edited = Task::new("t", "Do it").with_subtasks(vec![step("b", &[]), step("c", &["b"])]);
    let arguments = serde_json::to_value(&edited).unwrap();
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Edit { arguments } });
    assert_eq!(names(&fed.begin_all()), ["b"]);
    let (mut fed, call) = asked();
    fed.feed(RecordBody::ApprovalAnswered { call, answer: Answer::Cancel { reason: String::new() } });
    assert_eq!(error(&fed), "the plan was not approved: no reason was given");
}

#[test]
fn plan_machine_ignores_unrelated_records_and_survives_a_broken_log() {
    let circle = vec![step("a", &["b"]), step("b", &["a"])];
    let fed = Fed::following(cap(1), circle);
    assert!(error(&fed).contains("Cycle detected"), "{}", error(&fed));
    let mut fed = Fed::following(cap(1), vec![step("a", &[])]);
    let begun = fed.begin_all();
    fed.finish(begun[0].1, ok());
    let before = serde_json::to_value(&fed.machine).unwrap();
    fed.start(begun[0].1);
    fed.finish(begun[0].1, no());
    fed.finish(archon_types::CallId::new(CommandId(99), 0), no());
    fed.plan(PlanRecord::Planned {
        command: CommandId(0),
        task: Box::new(Task::new("t", "x")),
        warnings: vec![],
    });
    assert_eq!(serde_json::to_value(&fed.machine).unwrap(), before);
}

// spec: OB-01
#[test]
fn plan_graph_is_readable_and_serializable_at_every_record() {
    let plan = vec![step("a", &[]), step("b", &["a"]), step("c", &[])];
    let mut fed = Fed::following(cap(2), plan);
    let begun = fed.begin_all();
    fed.finish(begun[0].1, ok());
    for end in 1..=fed.records.len() {
        let machine = fold(&fed.records[..end]).unwrap();
        let written = serde_json::to_string(&machine).unwrap();
        let read: PlanMachine = serde_json::from_str(&written).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), written);
        assert_eq!(format!("{:?}", read.next()), format!("{:?}", machine.next()));
    }
    let mut newer = serde_json::to_value(&fed.machine).unwrap();
    newer["version"] = json!(2);
    let refused = serde_json::from_value::<PlanMachine>(newer).unwrap_err().to_string();
    assert_eq!(refused, "the serialized machine of a plan has version 2, and only version 1 can be read");
    let statuses: Vec<SubTaskStatus> = fed.machine.task().subtasks.iter().map(SubTask::status).collect();
    assert_eq!(statuses, [SubTaskStatus::Completed, SubTaskStatus::Pending, SubTaskStatus::Executing]);
}

/// Returns the machine after its serialized form was changed and deserialized.
fn damaged(machine: &PlanMachine, change: impl FnOnce(&mut serde_json::Value)) -> PlanMachine {
    let mut written = serde_json::to_value(machine).unwrap();
    change(&mut written);
    serde_json::from_value(written).unwrap()
}

// spec: PL-10
#[test]
fn plan_deadlock_ends_the_run_and_names_the_waiting_subtasks() {
    let fed = Fed::following(cap(1), vec![step("a", &[]), step("b", &["a"])]);
    let machine = damaged(&fed.machine, |written| written["nodes"]["ready"] = json!([]));
    let Next::Append(RecordBody::RunFinished(outcome)) = machine.next() else { panic!() };
    assert_eq!(outcome.error.unwrap(), "deadlock: these wait and nothing can begin: a, b");
}

// spec: PL-25
#[test]
fn plan_invariant_running_subtask_has_a_start_time() {
    let mut fed = Fed::following(cap(1), vec![step("a", &[])]);
    fed.begin_all();
    assert_eq!(fed.machine.invariants(), [""; 0]);
    let machine = damaged(&fed.machine, |written| {
        written["nodes"]["graph"]["nodes"][0]["started_at"] = json!(null);
    });
    assert_eq!(machine.invariants(), ["a is executing and has no start time"]);
}

// spec: PL-19
#[test]
fn requested_replan_may_change_only_its_targets() {
    let plan = vec![step("a", &[]), step("b", &["a"]), step("c", &["b"]), step("d", &["a"])];
    let mut fed = Fed::following(cap(1), plan);
    let begun = fed.begin_all();
    fed.finish(begun[0].1, ok());
    fed.plan(PlanRecord::ReplanRequested { reason: "it rains".into(), targets: vec!["b".into()] });
    let Next::Do(PlanTask::MakePlan { command, reason: Some(reason), .. }) = fed.machine.next() else {
        panic!()
    };
    assert_eq!(reason, "it rains");
    assert_eq!(fed.machine.targets(), ["b".into()]);
    let wanted = Task::new("t", "g").with_subtasks(vec![step("a", &[]), step("other", &["a"])]);
    let (diff, _) = difference(&fed.machine, &wanted);
    expect![[r#"
        - b
        - c
        + other: Do other (after a)"#]]
    .assert_eq(&show_diff(&diff));
    assert_eq!(check_diff(&fed.machine, &diff, &Default::default()), []);
    fed.plan(PlanRecord::PlanningStarted { command, attempt: 0, reason: None });
    let mut begun = fed.begin_all();
    assert_eq!(names(&begun), ["d"], "b has the longer way and waits for the other plan");
    fed.plan(PlanRecord::Replanned { command, diff: Box::new(diff), warnings: vec![] });
    while let Some((_, call)) = begun.pop() {
        fed.finish(call, ok());
        begun.extend(fed.begin_all());
    }
    let ids: Vec<String> = fed.machine.task().subtasks.iter().map(|s| s.id.to_string()).collect();
    assert_eq!(ids, ["a", "d", "other"]);
    assert!(matches!(fed.machine.next(), Next::Do(PlanTask::Conclude { .. })), "nothing was given up");
}

// spec: EX-07
#[test]
fn a_tool_that_answers_null_has_not_failed() {
    let template: archon_planner::WorkflowTemplate = serde_json::from_value(json!({
        "name": "t",
        "steps": [{"tool": "look", "attempts": 1, "on_error": [{"tool": "alarm"}]}],
    }))
    .unwrap();
    let task = template.instantiate("t", "g", &Default::default()).unwrap();
    for (result, next) in [(ToolResult::success("null"), None), (no(), Some("step1_error1"))] {
        let mut fed = Fed::following(cap(1), task.subtasks.clone());
        let begun = fed.begin_all();
        fed.finish(begun[0].1, result);
        assert_eq!(names(&fed.begin_all()).first().copied(), next);
    }
}

// spec: PL-20
#[test]
fn ended_at_of_a_limit_does_not_count_open_leases() {
    let mut limits = archon_types::ExecutionLimits::default();
    (limits.max_total_tokens, limits.max_duration_ms) = (1_000, 5_000);
    let mut started = crate::support::started();
    started.config.limits = limits;
    let mut fed = Fed::of(&started, PlanSettings::default()).follow(vec![step("a", &[])]);
    let Next::Do(PlanTask::Start { call }) = fed.machine.next() else { panic!() };
    let lease = fed.machine.lease(call).unwrap();
    assert_eq!(lease.tokens, 1_000, "it may use all there is");
    fed.feed(RecordBody::LeaseGranted { call, child_run: "run_1.a".into(), lease });
    let child_run = Some("run_1.a".into());
    fed.feed(RecordBody::ToolCallStarted { call, attempt: 0, effect: Effect::Idempotent, child_run });
    fed.now = 6_000;
    fed.feed(RecordBody::ClockRead);
    let Next::Append(reached) = fed.machine.next() else { panic!() };
    fed.feed(reached);
    let Next::Append(end) = fed.machine.next() else { panic!() };
    fed.feed(end);
    let mut more = archon_types::MoreLimits::default();
    assert!(fed.machine.ended_at(&more).is_some());
    more.max_duration_ms = Some(60_000);
    assert_eq!(fed.machine.ended_at(&more), None, "nothing is free, and nothing more is needed");
}
