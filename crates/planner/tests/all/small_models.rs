//! Tests of plans for models that are too small to choose the shape of a plan: the words of the goal make
//! the plan, and the model only names tool calls.

use std::sync::Arc;

use archon_planner::{
    CheckOptions, Conclude as _, ConclusionQuestion, LlmConclusion, LlmPlanner, LlmPlannerOptions, Shape,
    check,
};
use archon_testkit::{FnProvider, SeededIds, VirtualClock};
use archon_types::{
    BoxStream, CancellationToken, Capabilities, Context, Json, Lease, ModelEvent, PlanError, Planner,
    PlanningContext, Provider, ProviderError, Request, StopReason, SubTask, SubTaskStatus, Task, ToolCall,
    ToolDefinition, ToolResult,
};
use serde_json::json;

/// A model that its provider declares as small.
struct Small(FnProvider);

impl Provider for Small {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn capabilities(&self, _: &str) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.is_small = true;
        capabilities
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        self.0.stream(request, cancel)
    }
}

fn context() -> PlanningContext {
    let run =
        Context::new("run_1".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)));
    let mut context = PlanningContext::new(run);
    let tool = |name: &str, argument: &str| ToolDefinition {
        name: name.into(),
        description: format!("{name} does it."),
        parameters: json!({
            "type": "object", "properties": {argument: {"type": "string"}}, "required": [argument],
        }),
    };
    context.tools = vec![tool("calculator", "expression"), tool("read_file", "path")];
    context
}

/// A model that calls the calculator for expressions, reads names that end with `.txt`, and otherwise
/// answers with text.
fn model() -> FnProvider {
    FnProvider::new(|_, request| {
        let text = request.messages.last().unwrap().text();
        let words: Vec<&str> = text.trim_end_matches('.').split(' ').collect();
        let numbers: Vec<&str> =
            words.iter().copied().filter(|w| w.starts_with(|c: char| c.is_ascii_digit())).collect();
        let call = |tool: &str, arguments: Json| FnProvider::calls(vec![ToolCall::new("c", tool, arguments)]);
        match words.iter().find(|word| word.ends_with(".txt")) {
            Some(path) => call("read_file", json!({"path": path})),
            None if !numbers.is_empty() => call("calculator", json!({"expression": numbers.join(" + ")})),
            None => FnProvider::text("no idea"),
        }
    })
}

async fn plan_of(provider: FnProvider, goal: &str) -> Task {
    let planner = LlmPlanner::new(Arc::new(Small(provider)), "m");
    let task = planner.create_plan(goal, &context()).await.unwrap();
    let problems = check(&task, &CheckOptions::new(context().tools));
    assert!(!problems.iter().any(|problem| problem.is_error()), "{problems:?}");
    task
}

/// Returns id, tool, arguments and dependencies of each subtask.
fn shown(task: &Task) -> Vec<(String, String, Json, String)> {
    let shown = |s: &SubTask| {
        let after: Vec<_> = s.dependencies().iter().map(|id| id.as_str().to_owned()).collect();
        let tool = s.tool_name().unwrap_or("-").to_owned();
        (s.id.to_string(), tool, s.tool_args().cloned().unwrap_or_default(), after.join(" "))
    };
    task.subtasks.iter().map(shown).collect()
}

fn row(id: &str, tool: &str, arguments: Json, after: &str) -> (String, String, Json, String) {
    (id.into(), tool.into(), arguments, after.into())
}

// spec: PL-13
#[tokio::test]
async fn create_plan_for_a_small_model_adds_references_to_mentioned_results() {
    let task = plan_of(model(), "Compute 15 and 3, compute 23, then add both results").await;
    assert_eq!(
        shown(&task),
        [
            row("s1", "calculator", json!({"expression": "15 + 3"}), ""),
            row("s2", "calculator", json!({"expression": "23"}), ""),
            row("s3", "calculator", json!({"expression": "{s1} + {s2}"}), "s1 s2"),
        ]
    );
}

#[tokio::test]
async fn create_plan_for_a_small_model_lets_words_about_results_wait_for_all_that_is_open() {
    let provider = model();
    let task = plan_of(provider.clone(), "Read a.txt, read b.txt, then compare them").await;
    assert_eq!(
        shown(&task),
        [
            row("s1", "read_file", json!({"path": "a.txt"}), ""),
            row("s2", "read_file", json!({"path": "b.txt"}), ""),
            row("s3", "-", Json::Null, "s1 s2"),
        ]
    );
    assert_eq!(provider.requests().len(), 2, "nobody is asked about a step that only tells");
    assert!(provider.requests().iter().all(|request| request.system.is_none()), "and no more than needed");
}

#[tokio::test]
async fn create_plan_leaves_arguments_open_where_the_model_lost_the_result() {
    let loses = FnProvider::new(|at, request| {
        let text = request.messages.last().unwrap().text();
        assert!(at == 0 || text.contains("7001"), "{text}");
        FnProvider::calls(vec![ToolCall::new("c", "calculator", json!({"expression": "1 + 1"}))])
    });
    let task = plan_of(loses, "Compute 3, then double it").await;
    assert_eq!(shown(&task)[1], row("s2", "calculator", Json::Null, "s1"));
}

#[tokio::test]
async fn create_plan_takes_no_call_of_a_tool_that_is_not_there() {
    let strange =
        FnProvider::new(|_, _| FnProvider::calls(vec![ToolCall::new("c", "remove_all", json!({}))]));
    assert_eq!(shown(&plan_of(strange, "Clean up").await), [row("s1", "-", Json::Null, "")]);
}

#[tokio::test]
async fn create_plan_for_creative_work_requests_an_outline() {
    let outline = |text: &'static str| FnProvider::new(move |_, _| FnProvider::text(text));
    let whole = outline(r#"{"steps": ["Choose a lake", "Choose a tent", "Write the list"]}"#);
    let task = plan_of(whole, "Plan a week at a lake").await;
    let steps: Vec<_> = shown(&task).into_iter().map(|(id, _, _, after)| (id, after)).collect();
    assert_eq!(steps, [("s1", ""), ("s2", ""), ("s3", "s1 s2")].map(|(a, b)| (a.into(), b.into())));
    let broken = plan_of(outline("{\"steps\": [\"Choo"), "Plan a week at a lake").await;
    assert_eq!(shown(&broken), [row("s1", "-", Json::Null, "")]);
}

#[tokio::test]
async fn create_plan_for_a_large_model_requests_the_whole_plan_by_default() {
    let whole = FnProvider::new(|_, _| {
        FnProvider::text(r#"{"subtasks": [{"id": "a", "description": "Think", "dependencies": []}]}"#)
    });
    let planner = LlmPlanner::new(Arc::new(whole), "m");
    assert_eq!(planner.create_plan("Read a.txt", &context()).await.unwrap().subtasks[0].id.as_str(), "a");
    let mut options = LlmPlannerOptions::default();
    options.shape = Shape::StepByStep;
    let planner = LlmPlanner::new(Arc::new(model()), "m").with_options(options);
    assert_eq!(planner.create_plan("Read a.txt", &context()).await.unwrap().subtasks[0].id.as_str(), "s1");
}

#[tokio::test]
async fn replan_for_a_small_model_reopens_failed_arguments_once() {
    let planner = LlmPlanner::new(Arc::new(Small(model())), "m");
    let mut task = planner.create_plan("Read a.txt, read b.txt", &context()).await.unwrap();
    let failed = |subtask: &SubTask| {
        let begun = subtask.with_status(SubTaskStatus::Executing).unwrap();
        begun.with_result(ToolResult::error("no such file")).unwrap()
    };
    task.subtasks[1] = failed(&task.subtasks[1]);
    let mut again = planner.replan(&task, "no such file", &context()).await.unwrap();
    assert_eq!(
        shown(&again),
        [row("s1", "read_file", json!({"path": "a.txt"}), ""), row("s2", "read_file", Json::Null, "")]
    );
    again.subtasks[1] = failed(&again.subtasks[1]);
    let more = planner.replan(&again, "no such file", &context()).await;
    assert!(matches!(more, Err(PlanError::Fixed)), "{more:?}");
}

// spec: P-10
#[tokio::test]
async fn conclude_with_a_truncated_answer_is_marked() {
    let model = FnProvider::new(|_, _| {
        let mut events = FnProvider::text("One and");
        if let Some(Ok(ModelEvent::Done(message))) = events.last_mut() {
            message.stop_reason = StopReason::Length;
        }
        events
    });
    let done = SubTask::new("s1", "Say one.").with_status(SubTaskStatus::Executing).unwrap();
    let done = done.with_result(ToolResult::success("one")).unwrap();
    let task = Task::new(archon_types::TaskId::new("t"), "goal").with_subtasks(vec![done]);
    let conclusion = LlmConclusion::new(Arc::new(model), "m");
    let question = ConclusionQuestion::new(&task, Lease::new(100_000, 60_000));
    let answer = conclusion.conclude(question, &context().run).await.unwrap().answer;
    assert!(answer.starts_with("One and\n[Cut off: "), "{answer}");
}

#[tokio::test]
async fn conclude_of_a_small_model_takes_results_as_they_are() {
    let asked = model();
    let conclusion = LlmConclusion::new(Arc::new(Small(asked.clone())), "m");
    let done = |id: &str, text: &str| {
        let begun = SubTask::new(id, format!("Say {id}.")).with_status(SubTaskStatus::Executing).unwrap();
        begun.with_result(ToolResult::success(text)).unwrap()
    };
    let task = Task::new(archon_types::TaskId::new("t"), "goal")
        .with_subtasks(vec![done("s1", "one"), done("s2", "two")]);
    let run = context().run;
    let told = conclusion.conclude(ConclusionQuestion::new(&task, Lease::default()), &run).await.unwrap();
    assert_eq!(told.answer, "Say s1: one\nSay s2: two");
    assert!(asked.requests().is_empty());
}
