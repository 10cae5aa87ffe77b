//! Tests of subtasks that do not run: those that a replan may not change, and those whose condition does
//! not hold.

use archon_planner::{Next, NodeState, PlanTask, check_diff, difference};
use archon_types::{PlanSettings, Task, ToolResult};
use serde_json::json;

use crate::support::{Fed, rules, step};

// spec: PL-19
#[test]
fn replan_may_not_change_independent_subtasks_that_have_not_started() {
    let mut settings = PlanSettings::default();
    settings.replan.same_subtask = 1;
    let plan = vec![step("slow", &[]), step("later", &["slow"]), step("bad", &[]), step("after", &["bad"])];
    let mut fed = Fed::following(settings, plan);
    let begun = fed.begin_all();
    let bad = begun.iter().find(|(id, _)| id == "bad").expect("it begins").1;
    fed.finish(bad, ToolResult::error("it does not work"));
    assert!(matches!(fed.machine.next(), Next::Do(PlanTask::MakePlan { .. })));
    assert!(fed.machine.may_change(&"later".into()), "it waits: only its place keeps it as it is");
    let wanted = Task::new("t", "g").with_subtasks(vec![step("later", &[]), step("other", &[])]);
    let (diff, remarks) = difference(&fed.machine, &wanted);
    assert!(diff.replace.is_empty(), "{diff:?}");
    assert_eq!(diff.remove, ["bad".into(), "after".into()]);
    let says: Vec<String> = remarks.iter().map(ToString::to_string).collect();
    assert!(says[0].contains("later") && says[0].contains("must stay as it is"), "{says:?}");
    let mut greedy = diff.clone();
    greedy.remove.push("later".into());
    let problems = check_diff(&fed.machine, &greedy, &Default::default());
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].subtask.as_ref().map(|id| id.as_str()), Some("later"));
    assert_eq!(check_diff(&fed.machine, &diff, &Default::default()), []);
}

// spec: EX-07, PL-10
#[test]
fn a_subtask_whose_condition_does_not_hold_is_passed_over_and_those_after_it_go_on() {
    let only_if = |condition: &str| rules(|rules| rules.when = Some(condition.into()));
    let plan = vec![
        step("kind", &[]),
        step("billing", &["kind"]).with_rules(only_if("{kind} == 'billing'")),
        step("other", &["kind"]).with_rules(only_if("not ({kind} == 'billing')")),
        step("end", &["billing", "other"]),
    ];
    let mut fed = Fed::following(PlanSettings::default(), plan);
    let first = fed.begin_all();
    fed.finish(first[0].1, ToolResult::success("billing"));
    let begun = fed.begin_all();
    assert_eq!(begun.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["billing"]);
    let state = |fed: &Fed, id: &str| {
        fed.machine.nodes().find(|node| node.subtask.id.as_str() == id).map(|node| node.state.clone())
    };
    assert_eq!(state(&fed, "other"), Some(NodeState::Skipped));
    assert_eq!(fed.machine.value("other"), Some(json!(null)));
    fed.finish(begun[0].1, ToolResult::success("paid back"));
    assert_eq!(fed.begin_all()[0].0, "end");
}
