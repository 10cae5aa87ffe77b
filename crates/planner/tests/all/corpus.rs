//! The corpus of invalid plans: each is refused with the right problem, and an agent executes no part of
//! it, whether its planner returns the plan or the plan is fixed.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use archon_planner::{
    CheckOptions, LlmPlanner, PlanBudget, PlanProblem, PlanningAgent, PlanningAgentOptions, Reading, check,
    read_plan,
};
use archon_testkit::{FnProvider, MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, BoxFuture, CallId, Context, Effect, Encoded, Executed, Json, Outcome, OutcomeStatus, PlanRecord,
    Prepared, ReadyCall, Record, RecordBody, Task, ToolCall, ToolDefinition, ToolResult, ToolSpec, Toolbox,
};
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

/// Returns the problems of a plan's text, errors and warnings.
fn problems(text: &str, case: &Json) -> Vec<PlanProblem> {
    let read = match read_plan(text, Reading::Strict) {
        Ok(read) => read,
        Err(problems) => return problems,
    };
    let mut task = Task::new("task_1", read.goal.unwrap_or_default()).with_subtasks(read.subtasks);
    task.context.insert("city".into(), "Tokyo".into());
    let mut options = CheckOptions::new(tools());
    options.settings.resources.insert("editor".into(), 1);
    options.missing_tools.insert("telescope".into(), "build with telescopes".into());
    let mut budget = PlanBudget::new(case["tokens"].as_u64().unwrap_or(1_000_000), 60_000);
    budget.cost = case["cost"].as_u64();
    budget.cost_each = case["cost_each"].as_u64().unwrap_or_default();
    options.budget = Some(budget);
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

/// Tools and a worker that count their calls.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicU32>);

impl Toolbox for Hands {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        let spec = |t: ToolDefinition| ToolSpec::new(t.name, t.description, t.parameters);
        Arc::new(Encoded::new(tools().into_iter().map(spec).collect()))
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        let ready = ReadyCall::new(id, call.clone(), Effect::ReadOnly);
        Box::pin(async move { Prepared::Ready(ready) })
    }

    fn execute<'a>(&'a self, _: ReadyCall, _: &'a Context) -> BoxFuture<'a, Executed> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Executed::Done(Box::new(ToolResult::success("{\"number\": 1}"))) })
    }
}

impl Agent for Hands {
    fn name(&self) -> &str {
        "hands"
    }

    fn run<'a>(&'a self, _: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
        outcome.set_answer("{\"number\": 1}".to_owned());
        Box::pin(async move { outcome })
    }
}

/// Returns the result of an agent that gets a plan: its outcome, its log, and the number of calls of its
/// tools and its worker.
async fn followed(goal: &str, text: String, case: &Json, is_fixed: bool) -> (Outcome, Vec<Arc<Record>>, u32) {
    let mut options = PlanningAgentOptions::default();
    options.values.insert("city".into(), "Tokyo".into());
    options.settings.resources.insert("editor".into(), 1);
    options.limits.max_total_tokens = case["tokens"].as_u64().unwrap_or(1_000_000);
    options.limits.max_duration_ms = 60_000;
    if is_fixed {
        options.plan = Some(read_plan(&text, Reading::Strict).unwrap().subtasks);
    }
    let (hands, journal) = (Hands::default(), MortalJournal::default());
    let planner = LlmPlanner::new(Arc::new(FnProvider::new(move |_, _| FnProvider::text(&text))), "m");
    let agent =
        PlanningAgent::new(Arc::new(planner), Arc::new(hands.clone()), Arc::new(journal.clone()), options)
            .with_toolbox(Arc::new(hands.clone()));
    let ids = Arc::new(SeededIds::new(1));
    let context = Context::new("run_1".into(), "s".into(), Arc::new(VirtualClock::new()), ids);
    let outcome = agent.start(goal, &context).await.unwrap();
    (outcome, journal.log("run_1"), hands.0.load(Ordering::Relaxed))
}

/// Checks that no subtask started, and that the log and the outcome name problems.
fn assert_not_begun(at: &str, outcome: &Outcome, log: &[Arc<Record>], done: u32) {
    assert_eq!(outcome.status, OutcomeStatus::Failed, "{at}");
    assert!(!outcome.error.as_deref().unwrap_or_default().is_empty(), "{at}: it does not say why");
    assert_eq!(done, 0, "{at}: something was done");
    let is_start = |r: &&Arc<Record>| matches!(r.body, RecordBody::ToolCallStarted { .. });
    assert_eq!(log.iter().filter(is_start).count(), 0, "{at}: something began");
    let names_problems = |r: &Arc<Record>| match &r.body {
        RecordBody::Plan(plan) => {
            matches!(&**plan, PlanRecord::Rejected { problems, .. } if !problems.is_empty())
        }
        _ => false,
    };
    assert!(log.iter().any(names_problems), "{at}");
}

/// Cases that a model may write around a plan (PL-03), and a goal that the model may leave out.
const FOUND_ANYWAY: [&str; 3] = ["trailing text", "trailing bracket", "an empty goal"];

// spec: PL-03, PL-04, PL-06
#[tokio::test]
async fn invalid_plan_from_any_planner_starts_nothing() {
    let corpus: Json = serde_json::from_str(CORPUS).unwrap();
    let goal = "A report about Tokyo";
    let (mut by_models, mut fixed) = (0, 0);
    let whole = corpus["plan"].to_string();
    let (outcome, _, done) = followed(goal, whole, &json!({}), false).await;
    assert!(outcome.is_finished() && done == 5, "the plan itself is followed: {:?}", outcome.error);
    for case in corpus["broken"].as_array().unwrap() {
        let (name, text) = (case["name"].as_str().unwrap(), text_of(case, &corpus["plan"]));
        if case["cost_each"].is_u64() {
            // No agent says what a subtask costs.
            continue;
        }
        let (outcome, log, done) = followed(goal, text.clone(), case, false).await;
        if FOUND_ANYWAY.contains(&name) {
            assert!(outcome.is_finished() && done > 0, "{name}: {:?}", outcome.error);
        } else {
            assert_not_begun(name, &outcome, &log, done);
            by_models += 1;
        }
        if name != "an empty goal" && read_plan(&text, Reading::Strict).is_ok() {
            let (outcome, log, done) = followed(goal, text, case, true).await;
            assert_not_begun(&format!("{name}, fixed"), &outcome, &log, done);
            fixed += 1;
        }
    }
    println!("{by_models} by a model, {fixed} fixed");
    assert!(by_models >= 60 && fixed >= 20, "{by_models}, {fixed}");
}

// spec: PL-08
#[test]
fn valid_but_unusual_plan_has_warnings() {
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
        // Almost JSON, with a list inside that looks like a plan.
        "```json\n{goal: 'g', 'subtasks': [{\"id\": \"a\", \"description\": \"Search\", \"dependencies\": [], \
         \"tool_name\": \"t\", \"tool_args\": {\"rows\": [{\"id\": \"b\", \"description\": \"c\", \"dependencies\": []}]},},],}\n```"
            .to_owned(),
    ] {
        let read = read_plan(&text, Reading::Lenient).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        assert_eq!(read.subtasks.len(), 1, "{text}");
        assert_eq!(read.subtasks[0].id.as_str(), "a");
    }
    for text in
        ["", "no plan at all", "[{'id': 'a', 'description': 'x", "[1, 2]", "{\"x\": 1}", &"{[".repeat(50_000)]
    {
        assert!(read_plan(text, Reading::Lenient).is_err());
    }
    let numbered = r#"[{"id": 1, "description": "x", "dependencies": []}, {"id": 2, "description": "y", "tool_name": "", "dependencies": [1], "tool_args": null}]"#;
    let read = read_plan(numbered, Reading::Lenient).unwrap();
    assert_eq!(read.subtasks[1].dependencies()[0].as_str(), "1");
    assert_eq!(read.subtasks[1].tool_name(), None);
}
