//! Plans through the facade: made, followed, taken up; and never answered by the loop.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use archon_testkit::Ended as _;
use std::sync::Arc;

use archon::{
    Archon, OutcomeStatus, RunError, RunId, RunOptions,
    planner::{PlanFormat, ScriptedPlanner, fold, render},
    providers::{ScriptedProvider, Step},
    tool,
    types::{AgentState, CancellationToken, RunKind, RunStarted, SubTask},
};
use serde_json::json;

/// Adds two whole numbers and returns the sum.
#[tool(read_only)]
async fn add(a: i64, b: i64) -> String {
    (a + b).to_string()
}

fn agent(provider: &Arc<ScriptedProvider>) -> Archon {
    Archon::builder().provider(provider.clone(), "mock").tool(add).build().unwrap()
}

fn plan() -> Arc<ScriptedPlanner> {
    Arc::new(ScriptedPlanner::new(vec![
        SubTask::new("sum", "Add the numbers").with_tool("add", Some(json!({"a": 19, "b": 23}))),
        SubTask::new("say", "Say what it came to").after(["sum"]),
    ]))
}

// spec: PL-09
#[tokio::test]
async fn a_subtask_is_a_call_of_a_tool_or_a_run_of_the_agent() {
    let provider = Arc::new(ScriptedProvider::texts(["It came to 42."]));
    let agent = agent(&provider);
    let outcome = agent.planning(plan()).run("What is 19 + 23?").await.ended();
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "It came to 42.")
    );
    assert_eq!(provider.call_count(), 1, "the tool was called without a model");
    let asked = format!("{:?}", provider.history()[0]);
    assert!(asked.contains("42"), "the subtask knows what it depends on: {asked}");
    let log = agent.journal().read(&outcome.run).await.unwrap();
    assert_eq!(RunStarted::of(&log).map(|started| started.kind), Some(RunKind::Plan));
    let drawn = render(&fold(&log).unwrap().task(), PlanFormat::Text);
    assert!(drawn.contains("* completed say"), "{drawn}");
}

// spec: PL-01
#[tokio::test]
async fn the_agent_s_own_model_makes_the_plan() {
    let plan = json!({"subtasks": [{"id": "a", "description": "Think", "dependencies": []}]}).to_string();
    let provider =
        Arc::new(ScriptedProvider::new([Step::text(plan.clone()), Step::text("done"), Step::text(plan)]));
    let agent = agent(&provider);
    let planning = agent.planning(Arc::new(agent.planner()));
    assert_eq!(planning.run("Think").await.ended().last_text(), Some("done"));
    let draft = planning.draft("Think again").await.unwrap();
    assert_eq!((draft.task.subtasks.len(), draft.problems.len(), provider.call_count()), (1, 0, 3));
}

// spec: PL-21
#[tokio::test]
async fn a_task_is_planned_worked_and_answered_and_its_states_are_in_the_log() {
    let steps = json!([
        {"id": "a", "description": "Think", "dependencies": []},
        {"id": "b", "description": "Think again", "dependencies": ["a"]},
    ]);
    let plan = json!({ "subtasks": steps }).to_string();
    let said = [&plan, "41", "42", "It is 42 [b]."];
    let provider = Arc::new(ScriptedProvider::texts(said.map(str::to_owned)));
    let agent = agent(&provider);
    let outcome = agent.run_task("What is 19 + 23?").await.ended();
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "It is 42 [b].")
    );
    let log = agent.journal().read(&outcome.run).await.unwrap();
    let mut states: Vec<AgentState> = (1..=log.len()).map(|n| fold(&log[..n]).unwrap().state()).collect();
    states.dedup();
    assert_eq!(states, [AgentState::Idle, AgentState::Planning, AgentState::Executing, AgentState::Finished]);
}

#[tokio::test]
async fn plan_run_is_resumed_only_by_its_planning_agent() {
    let provider = Arc::new(ScriptedProvider::texts(["It came to 42."]));
    let agent = agent(&provider);
    let planning = agent.planning(plan());
    let (run, cancel) = (RunId::new("run_1"), CancellationToken::new());
    cancel.cancel();
    let mut options = RunOptions::default();
    (options.run, options.cancel) = (Some(run.clone()), Some(cancel));
    let outcome = planning.run_with("What is 19 + 23?", options).await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);

    let is_refused =
        |error: &RunError| matches!(error, RunError::Unsupported { run: named, .. } if *named == run);
    let error = agent.resume(run.clone()).await.unwrap().reply().await.unwrap_err();
    assert!(is_refused(&error) && error.advice().contains("the agent of its kind"), "{error:?}");
    assert_eq!(provider.call_count(), 0, "no model was asked for the goal");

    let outcome = planning.resume(run).await.unwrap().reply().await.ended();
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "It came to 42.")
    );
}

#[tokio::test]
async fn invalid_plan_is_an_error_and_starts_no_run() {
    let provider = Arc::new(ScriptedProvider::texts(["an answer"]));
    let agent = agent(&provider);
    let empty = agent.planning(plan()).run(" \n").await.unwrap_err();
    assert!(matches!(empty, RunError::EmptyPrompt), "{empty:?}");
    assert!(agent.newest_run(None).await.unwrap().is_none());

    let answered = agent.run("Hello").await.ended().run;
    let error = agent.planning(plan()).resume(answered).await.unwrap().reply().await.unwrap_err();
    assert!(
        error.to_string().contains("is not the run of a plan")
            && error.advice().contains("the agent that started it")
    );
}

// spec: PL-01
#[tokio::test]
async fn the_planner_and_the_conclusion_ask_with_the_keys_and_the_models_that_a_run_has() {
    use archon::types::ProviderError;
    let plan = json!({"subtasks": [{"id": "a", "description": "Think", "dependencies": []},
                                   {"id": "b", "description": "Say", "dependencies": ["a"]}]});
    let refused = || Step::error(ProviderError::Auth("no".into()));
    let down = || Step::error(ProviderError::Timeout("down".into()));
    // The first key is refused, the second gives no answer; the other model does all.
    let first = Arc::new(ScriptedProvider::new((0..20).map(|_| refused())));
    let second = Arc::new(ScriptedProvider::new((0..20).map(|_| down())));
    let other = Arc::new(ScriptedProvider::new([
        Step::text(plan.to_string()),
        Step::text("thought"),
        Step::text("said"),
        Step::text("I thought [a], and said [b]."),
    ]));
    let agent = Archon::builder()
        .provider_with_keys(first.clone(), [second.clone() as Arc<dyn archon::Provider>], "mock")
        .fallback_provider(archon::react_loop::Fallback::new(other.clone(), "other"))
        .retry(archon::types::RetryConfig::none())
        .build()
        .unwrap();
    let conclusion = Arc::new(agent.conclusion());
    let planning = agent.planning(Arc::new(agent.planner())).with(|agent| agent.with_conclusion(conclusion));
    let outcome = planning.run("Think and say").await.ended();
    assert_eq!(outcome.last_text(), Some("I thought [a], and said [b]."), "{outcome:?}");
    assert_eq!(other.call_count(), 4);
    assert!(first.call_count() > 0 && second.call_count() > 0);
    let log = agent.journal().read(&outcome.run).await.unwrap();
    let archon::types::RecordBody::RunStarted(started) = &log[0].body else { panic!("it begins") };
    let fallbacks = &started.config.failure_policy.as_ref().unwrap().fallbacks;
    assert_eq!(fallbacks[0].model, "other", "whoever takes the run up finds them");
}
