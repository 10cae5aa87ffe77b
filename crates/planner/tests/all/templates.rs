//! Tests of templates in place of subtasks: the rules of the subtask apply to the steps, and other
//! subtasks need no change.

use archon_planner::{CheckOptions, TemplatePlanner, TemplateRegistry, WorkflowTemplate, check};
use archon_types::{Json, OnFailure, PlanError, SubTask, SubTaskId, SubTaskRules, Task, ToolDefinition};
use serde_json::json;

use crate::support::step;

/// Returns a plan with one subtask that names a template, and one that reports on its result.
fn with_template(steps: Json, change: impl FnOnce(&mut SubTask)) -> Result<Task, PlanError> {
    let mut registry = TemplateRegistry::new();
    registry.add(serde_json::from_value(json!({"name": "flow", "steps": steps})).unwrap());
    let mut whole = step("do", &[]).with_tool("flow", None);
    change(&mut whole);
    let report = step("report", &["do"]).with_tool("mail", Some(json!({"body": "{do}", "n": "{do.n}"})));
    TemplatePlanner::new(registry).expand(Task::new("t", "g").with_subtasks(vec![whole, report]))
}

fn checked(task: &Task) {
    let mut options = CheckOptions::default();
    options.settings.resources.insert("db".into(), 1);
    options.tools = ["a", "b", "c", "mail"]
        .map(|name| ToolDefinition { name: name.into(), description: String::new(), parameters: json!({}) })
        .into();
    assert_eq!(check(task, &options), []);
}

// spec: EX-08
#[test]
fn template_steps_inherit_the_rules_of_their_subtask() {
    let steps = json!([
        {"tool": "a"},
        {"tool": "b", "attempts": 5, "approve": "And this?", "after": []},
        {"tool": "c", "save_as": "inner", "after": ["step1", "step2"]},
    ]);
    let task = with_template(steps, |whole| {
        whole.critical = true;
        whole.expected_output = Some("A number".into());
        let rules = &mut whole.rules;
        (rules.gate, rules.save_as) = (Some("May it be done?".into()), Some("done".into()));
        (rules.max_attempts, rules.role, rules.expected_ms) = (Some(2), Some("writer".into()), Some(7));
        (rules.resources, rules.on_failure) = (vec!["db".into()], OnFailure::Stop);
    })
    .unwrap();
    checked(&task);
    let rules: Vec<&SubTaskRules> = task.subtasks.iter().map(|s| &s.rules).collect();
    let gates: Vec<_> = rules.iter().map(|r| r.gate.as_deref()).collect();
    assert_eq!(gates, [Some("May it be done?"), Some("May it be done? And this?"), None, None]);
    let attempts: Vec<_> = rules.iter().map(|r| r.max_attempts).collect();
    assert_eq!(attempts, [Some(2), Some(5), Some(2), None]);
    let of_result = &task.subtasks[2];
    assert_eq!((of_result.id.as_str(), of_result.rules.save_as.as_deref()), ("do", Some("done")));
    assert_eq!(
        (of_result.expected_output.as_deref(), of_result.rules.expected_ms),
        (Some("A number"), Some(7))
    );
    for step in &task.subtasks[..3] {
        assert_eq!((step.critical, step.rules.on_failure), (true, OnFailure::Stop), "{}", step.id);
        assert_eq!((step.rules.role.as_deref(), step.rules.resources.len()), (Some("writer"), 1));
    }
}

// spec: EX-08
#[test]
fn dependents_of_a_template_wait_for_all_its_ends_and_read_the_existing_result() {
    let choice = json!([{"if": "1 == 2", "then": [{"tool": "a"}], "else": [{"tool": "b"}]}]);
    let in_place =
        json!([{"tool": "a", "save_as": "x", "on_error": [{"tool": "b", "args": {"x": "{{x}}"}}]}]);
    let list = json!([{"for_each": [1, 2], "do": [{"tool": "a", "args": {"n": "{{item}}"}}]}]);
    for (steps, name, waits_for, reads) in [
        (choice.clone(), None, vec!["do_step1_else1", "do_step1_then1"], "{do}"),
        (choice, Some("end"), vec!["do_step1_else1", "do_step1_then1"], "{end}"),
        (in_place, None, vec!["do_step1_error1"], "{do}"),
        (list, None, vec!["do_step1_1_1", "do"], "{do}"),
    ] {
        let task = with_template(steps, |whole| whole.rules.save_as = name.map(str::to_owned)).unwrap();
        checked(&task);
        let report = task.subtasks.last().unwrap();
        let dependencies: Vec<&str> = report.dependencies().iter().map(SubTaskId::as_str).collect();
        assert_eq!(dependencies, waits_for);
        let part = reads.replace('}', ".n}");
        assert_eq!(report.tool_args().unwrap(), &json!({"body": reads, "n": part}));
        let named = reads.trim_matches(['{', '}']);
        let of_result = |s: &&SubTask| s.id.as_str() == named || s.rules.save_as.as_deref() == Some(named);
        assert_eq!(
            task.subtasks.iter().filter(of_result).count(),
            if named == "do" && waits_for.contains(&"do") { 1 } else { 2 }
        );
    }
}

// spec: EX-08
#[test]
fn subtask_settings_that_a_template_cannot_honour_are_refused() {
    let two = || json!([{"tool": "a", "on_error": "skip"}, {"tool": "b"}]);
    type Change = fn(&mut SubTask);
    let cases: [(Change, &str); 4] = [
        (|whole| whole.rules.fallback_tools = vec!["c".into()], "fallback_tools"),
        (|whole| whole.rules.on_failure = OnFailure::Skip, "on_failure: skip"),
        (|whole| whole.rules.on_failure = OnFailure::Ask, "on_failure: ask"),
        (|whole| whole.rules.gate = Some("May it?".into()), "set `approve` in the template"),
    ];
    for (change, says) in cases {
        let problem = with_template(two(), change).unwrap_err().to_string();
        assert!(
            problem.contains("subtask do sets `") && problem.contains("for the template flow that it runs"),
            "{problem}"
        );
        assert!(problem.contains(says), "{problem}");
    }
    let one =
        with_template(json!([{"tool": "a"}]), |whole| whole.rules.on_failure = OnFailure::Skip).unwrap();
    assert_eq!(one.subtasks[0].rules.on_failure, OnFailure::Skip);
}

// spec: EX-06, A-56
#[test]
fn a_template_may_stand_under_the_word_workflow() {
    let json = |text: &str| WorkflowTemplate::from_json(text).map_err(|problem| problem.to_string());
    let alone = json(r#"{"name": "flow", "steps": [{"tool": "a"}]}"#).unwrap();
    assert_eq!(json(r#"{"workflow": {"name": "flow", "steps": [{"tool": "a"}]}}"#).unwrap(), alone);
    for (text, says) in [
        (r#"{"workflow": {"name": "flow", "stepz": []}}"#, "unknown field `stepz`"),
        (r#"{"workflow": {"name": "flow", "steps": []}, "more": 1}"#, "unknown field `more`"),
        (
            r#"{"name": "flow", "steps": [{"workflow": {}}]}"#,
            "unknown field `workflow`, expected one of `id`",
        ),
    ] {
        let problem = json(text).unwrap_err();
        assert!(problem.contains(says), "{text}: {problem}");
    }
    #[cfg(feature = "yaml")]
    {
        let yaml = "
workflow:
  name: \"flow\"
  steps:
    - tool: \"a\"
";
        assert_eq!(WorkflowTemplate::from_yaml(yaml).unwrap(), alone);
        let problem = WorkflowTemplate::from_yaml("workflow:\n  name: x\n  stepz: []\n").unwrap_err();
        assert!(problem.to_string().starts_with("3:3: unknown field"), "{problem}");
    }
}
