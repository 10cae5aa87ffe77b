//! The corpus of broken plans: each is refused with the right problem.

use archon_planner::{CheckOptions, PlanBudget, PlanProblem, Reading, check, read_plan};
use archon_types::{Json, Task, ToolDefinition};
use serde_json::json;

const CORPUS: &str = include_str!("corpus.json");

fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str, parameters: Json| ToolDefinition {
        name: name.into(),
        description: format!("Does a {name}"),
        parameters,
    };
    vec![
        tool(
            "web_search",
            json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "limit": {"type": "integer", "minimum": 1},
                    "kind": {"enum": ["news", "papers"]},
                    "filter": {"type": "object"},
                },
                "required": ["query"],
                "additionalProperties": false,
            }),
        ),
        tool(
            "calculator",
            json!({
                "type": "object",
                "properties": {"expression": {"type": "string"}, "digits": {"type": "integer"}},
                "required": ["expression"],
            }),
        ),
    ]
}

/// The problems of a plan's text, errors and remarks.
fn problems(text: &str, case: &Json) -> Vec<PlanProblem> {
    let read = match read_plan(text, Reading::Strict) {
        Ok(read) => read,
        Err(problems) => return problems,
    };
    let mut task = Task::new("task_1", read.goal.unwrap_or_default()).with_subtasks(read.subtasks);
    task.context.insert("city".into(), "Tokyo".into());
    let mut options = CheckOptions::new(tools());
    options.settings.resources.insert("editor".into(), 1);
    options.budget = Some(PlanBudget::new(case["tokens"].as_u64().unwrap_or(1_000_000), 60_000));
    check(&task, &options)
}

fn text_of(case: &Json, plan: &Json) -> String {
    if let Some(text) = case["text"].as_str() {
        return text.to_owned();
    }
    if let Some(text) = case["repeat"].as_str() {
        return text.repeat(100_000);
    }
    let mut plan = plan.clone();
    if let Some(steps) = case["steps"].as_u64() {
        let step = |n| json!({"id": format!("s{n}"), "description": "a step", "dependencies": []});
        plan["subtasks"] = (0..steps).map(step).collect();
    }
    for (pointer, value) in case["set"].as_object().into_iter().flatten() {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match plan.pointer_mut(parent).unwrap() {
            Json::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
            parent => parent[key] = value.clone(),
        }
    }
    for pointer in case["remove"].as_array().into_iter().flatten() {
        let (parent, key) = pointer.as_str().unwrap().rsplit_once('/').unwrap();
        plan.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key).unwrap();
    }
    plan.to_string()
}

fn check_all(cases: &Json, plan: &Json, errors: bool) {
    for case in cases.as_array().unwrap() {
        let name = &case["name"];
        let text = text_of(case, plan);
        let mut found = problems(&text, case);
        assert_eq!(found.iter().any(PlanProblem::is_error), errors, "{name}: {found:?}");
        for expected in case["expect"].as_array().unwrap() {
            let expected = expected.as_str().unwrap();
            let place = found.iter().position(|problem| problem.to_string().contains(expected));
            let place = place.unwrap_or_else(|| panic!("{name}: no {expected:?} in {:#?}", texts(&found)));
            let problem = found.remove(place);
            assert!(!problem.remedy().is_empty());
            if let Some(remedy) = case["remedy"].as_str() {
                assert!(problem.remedy().contains(remedy), "{name}: {}", problem.remedy());
            }
        }
        assert_eq!(texts(&found), [""; 0], "{name}: more than was expected");
    }
}

fn texts(problems: &[PlanProblem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

// spec: PL-04, PL-06, PL-13, A-30
#[test]
fn every_broken_plan_is_refused_with_the_right_problem() {
    let corpus: Json = serde_json::from_str(CORPUS).unwrap();
    let plan = &corpus["plan"];
    assert_eq!(texts(&problems(&plan.to_string(), &json!({}))), [""; 0], "the plan itself is in order");
    assert!(corpus["broken"].as_array().unwrap().len() >= 60);
    check_all(&corpus["broken"], plan, true);
}

// spec: PL-08
#[test]
fn what_is_odd_and_can_be_followed_is_remarked_upon() {
    let corpus: Json = serde_json::from_str(CORPUS).unwrap();
    check_all(&corpus["remarks"], &corpus["plan"], false);
}

// spec: PL-03
#[test]
fn a_plan_is_found_in_a_fence_and_in_prose() {
    let plan = r#"[{"id": "a", "description": "Search", "dependencies": []}]"#;
    for text in [
        plan.to_owned(),
        format!("```json\n{plan}\n```"),
        format!("Here is [my] plan {{as asked}}:\n\n{plan}\n\nShall I begin?"),
        format!("{{\"goal\": \"g\", \"subtasks\": {plan}}} Done."),
        format!("I thought of [1, 2] and {{\"x\": 1}} first.\n{plan}"),
    ] {
        let read = read_plan(&text, Reading::Lenient).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        assert_eq!(read.subtasks.len(), 1, "{text}");
        assert_eq!(read.subtasks[0].id.as_str(), "a");
    }
    for text in ["", "no plan at all", "[1, 2]", "{\"x\": 1}", &"{[".repeat(50_000)] {
        assert!(read_plan(text, Reading::Lenient).is_err());
    }
    let numbered = r#"[{"id": 1, "description": "x", "dependencies": []}, {"id": 2, "description": "y", "tool_name": "", "dependencies": [1], "tool_args": null}]"#;
    let read = read_plan(numbered, Reading::Lenient).unwrap();
    assert_eq!(read.subtasks[1].dependencies()[0].as_str(), "1");
    assert_eq!(read.subtasks[1].tool_name(), None);
}
