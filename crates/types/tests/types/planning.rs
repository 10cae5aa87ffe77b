//! Tasks, subtasks, plans and the planner trait.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Mutex,
};

use archon_types::{
    DynPlanner, IllegalTransition, Plan, PlanError, Planner, PlanningContext, ProviderError, SubTask,
    SubTaskId, SubTaskStatus, Task, ToolResult,
};
use expect_test::expect;
use serde_json::json;

use crate::support::{context, object, ready, round_trip};

fn ids(ids: &[&str]) -> HashSet<SubTaskId> {
    ids.iter().map(|id| SubTaskId::from(*id)).collect()
}

fn in_status(status: SubTaskStatus) -> SubTask {
    let json = json!({"id": "b", "description": "", "dependencies": ["a"], "status": status});
    serde_json::from_value(json).unwrap()
}

fn done(id: &str, description: &str) -> SubTask {
    let executing = SubTask::new(id, description).with_status(SubTaskStatus::Executing).unwrap();
    executing.with_result(ToolResult::success("ok")).unwrap()
}

// spec: T-21, T-33
#[test]
fn subtasks() {
    round_trip(
        &SubTask::new("a", "Search"),
        &expect![[
            r#"{"id":"a","description":"Search","dependencies":[],"status":"pending","critical":false}"#
        ]],
    );
    let mut full = SubTask::new("b", "Sum up").with_tool("text", Some(json!({"words": 500}))).after(["a"]);
    full.expected_output = Some("500 words".into());
    full.critical = true;
    round_trip(
        &full,
        &expect![[
            r#"{"id":"b","description":"Sum up","expected_output":"500 words","tool_name":"text","tool_args":{"words":500},"dependencies":["a"],"status":"blocked","critical":true}"#
        ]],
    );
    round_trip(
        &done("a", "Search"),
        &expect![[
            r#"{"id":"a","description":"Search","dependencies":[],"status":"completed","result":{"content":[{"type":"text","text":"ok"}],"status":"success"},"critical":false}"#
        ]],
    );
    let sparse = json!({"id": "a", "description": "Search"});
    assert_eq!(serde_json::from_value::<SubTask>(sparse).unwrap(), SubTask::new("a", "Search"));
}

// spec: T-21
#[test]
fn arguments_need_a_tool() {
    let json = json!({"id": "a", "description": "", "tool_args": {"x": 1}});
    let error = serde_json::from_value::<SubTask>(json).unwrap_err();
    assert_eq!(error.to_string(), "subtask a has tool_args and no tool_name");
    let tool = SubTask::new("a", "").with_tool("t", None);
    assert_eq!((tool.tool_name(), tool.tool_args()), (Some("t"), None));
}

// spec: T-22
#[test]
fn a_subtask_is_ready_when_it_waits_and_all_it_needs_is_done() {
    use SubTaskStatus::{Blocked, Completed, Executing, Failed, Pending};
    for status in [Pending, Blocked, Executing, Completed, Failed] {
        let waits = matches!(status, Pending | Blocked);
        assert_eq!(in_status(status).is_ready(&ids(&["a", "x"])), waits, "{status}");
        assert!(!in_status(status).is_ready(&ids(&["x"])), "{status}");
    }
    assert!(SubTask::new("a", "").is_ready(&ids(&[])));
}

// spec: T-23, T-24
#[test]
fn subtask_new_with_open_dependencies_is_blocked() {
    assert_eq!(SubTask::new("a", "").status(), SubTaskStatus::Pending);
    assert_eq!(SubTask::new("b", "").after(["a"]).status(), SubTaskStatus::Blocked);
    assert_eq!(SubTask::new("b", "").after([""; 0]).status(), SubTaskStatus::Pending);
    let json = json!({"id": "b", "description": "", "dependencies": ["a"]});
    assert_eq!(serde_json::from_value::<SubTask>(json).unwrap().status(), SubTaskStatus::Blocked);
}

// spec: T-23
#[test]
fn a_result_decides_between_completed_and_failed_and_the_original_stays() {
    let executing = SubTask::new("a", "").with_status(SubTaskStatus::Executing).unwrap();
    let table = [
        (ToolResult::success("ok"), SubTaskStatus::Completed),
        (ToolResult::error("no"), SubTaskStatus::Failed),
        (ToolResult::timeout(1.0), SubTaskStatus::Failed),
        (ToolResult::cancelled("no"), SubTaskStatus::Failed),
    ];
    for (result, status) in table {
        let after = executing.with_result(result.clone()).unwrap();
        assert_eq!((after.status(), after.result()), (status, Some(&result)));
    }
    assert_eq!((executing.status(), executing.result()), (SubTaskStatus::Executing, None));
}

// spec: T-24
#[test]
fn subtask_illegal_transition_error_names_both_states() {
    use SubTaskStatus::{Blocked, Completed, Executing, Failed, Pending};
    let all = [Pending, Executing, Completed, Failed, Blocked];
    for (from, to) in all.iter().flat_map(|from| all.iter().map(move |to| (*from, *to))) {
        let moved = in_status(from).with_status(to).map(|s| s.status());
        let IllegalTransition { id, from: f, to: t, .. } = match moved {
            Ok(status) => {
                assert!(from.may_become(to) && status == to);
                continue;
            }
            Err(error) => error,
        };
        assert!(!from.may_become(to));
        assert_eq!((id.as_str(), f, t), ("b", from, to));
    }
    let error = SubTask::new("a", "").with_result(ToolResult::success("ok")).unwrap_err();
    assert_eq!(error.to_string(), "subtask a is pending and cannot become completed");
}

// spec: T-25, T-33
#[test]
fn a_task_is_updated_by_copy() {
    let mut task = Task::new("task_1", "weather?").with_goal("Find the weather");
    task.subtasks = vec![SubTask::new("a", "Where?"), SubTask::new("b", "Weather").after(["a"])];
    task.context = object(json!({"city": "Tokyo"}));
    round_trip(
        &task,
        &expect![[
            r#"{"id":"task_1","original_query":"weather?","goal":"Find the weather","subtasks":[{"id":"a","description":"Where?","dependencies":[],"status":"pending","critical":false},{"id":"b","description":"Weather","dependencies":["a"],"status":"blocked","critical":false}],"context":{"city":"Tokyo"}}"#
        ]],
    );

    let after = task.update_subtask(done("a", "Where?")).unwrap();
    assert_eq!(after.get_subtask(&"a".into()).unwrap().status(), SubTaskStatus::Completed);
    assert_eq!(task.get_subtask(&"a".into()).unwrap().status(), SubTaskStatus::Pending);
    assert_eq!(task.get_subtask(&"x".into()), None);
    assert_eq!(task.update_subtask(SubTask::new("x", "")), None);

    let is_ready = |task: &Task, id: &str, completed: &[SubTaskId]| {
        task.get_subtask(&id.into()).unwrap().is_ready(&completed.iter().cloned().collect())
    };
    assert!(is_ready(&task, "a", &[]) && !is_ready(&task, "b", &[]));
    assert!(!is_ready(&after, "a", &["a".into()]) && is_ready(&after, "b", &["a".into()]));
}

// spec: T-26
#[test]
fn plans() {
    let dag = BTreeMap::from([("a".into(), vec!["b".into(), "c".into()]), ("b".into(), vec![])]);
    let plan = Plan::new("task_1".into(), dag, vec!["a".into(), "b".into(), "c".into()]);
    round_trip(
        &plan,
        &expect![[
            r#"{"task_id":"task_1","subtask_dag":{"a":["b","c"],"b":[]},"execution_order":["a","b","c"]}"#
        ]],
    );
}

#[test]
fn plan_error_text_and_advice_are_separate() {
    let cycle = PlanError::Cycle { path: ["a", "b", "a"].map(SubTaskId::from).into() };
    assert_eq!(cycle.to_string(), "Cycle detected in dependency graph: a → b → a");
    let invalid =
        PlanError::Invalid { id: "b".into(), problem: "depends on x, which the plan does not have".into() };
    assert_eq!(invalid.to_string(), "the plan's subtask b depends on x, which the plan does not have");
    let model = PlanError::from(ProviderError::Network("gone".into()));
    assert_eq!(
        (model.to_string().as_str(), model.advice()),
        ("the model gave no plan: network: gone", "try again later")
    );
}

/// The goal, why the plan before failed, and how many steps were completed.
type Told = (String, Option<String>, usize);

/// Plans from a script, and keeps what it was told.
struct Scripted {
    plan: Vec<SubTask>,
    told: Mutex<Vec<Told>>,
}

impl Planner for Scripted {
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        self.told.lock().unwrap().push((goal.to_owned(), context.failure.clone(), context.completed.len()));
        let task = Task::new("task_new", goal).with_subtasks(self.plan.clone());
        Ok(task)
    }
}

fn replan(old: &Task, plan: Vec<SubTask>) -> (Result<Task, PlanError>, Vec<Told>) {
    let scripted = Scripted { plan, told: Mutex::default() };
    let planner: &dyn DynPlanner = &scripted;
    let result = ready(planner.boxed_replan(old, "b broke", &PlanningContext::new(context())));
    (result, scripted.told.into_inner().unwrap())
}

#[test]
fn planner_default_replan_keeps_completed_subtasks() {
    let old = Task::new("task_1", "query").with_goal("goal");
    let mut old = old.with_subtasks(vec![done("a", "Search"), SubTask::new("b", "Broken").after(["a"])]);
    old.context = object(json!({"a": "ok"}));

    let fresh = vec![SubTask::new("a", "Search"), SubTask::new("c", "Other way").after(["a"])];
    let (task, told) = replan(&old, fresh);
    let kept = vec![done("a", "Search"), SubTask::new("c", "Other way").after(["a"])];
    assert_eq!(task.unwrap(), old.clone().with_subtasks(kept));
    assert_eq!(told, [("goal".to_owned(), Some("b broke".to_owned()), 1)]);

    let (clash, _) = replan(&old, vec![SubTask::new("a", "Something else")]);
    assert_eq!(clash, Err(PlanError::IdTaken { id: "a".into() }));
    let (twice, _) = replan(&old, vec![SubTask::new("c", "x"), SubTask::new("c", "x")]);
    assert_eq!(twice.unwrap_err().to_string(), "the plan's subtask c appears twice");
}
