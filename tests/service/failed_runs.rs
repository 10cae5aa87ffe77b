//! A run that failed is an error, whatever kind of run it is and however it was started: with the kind of failure, the
//! run and what to do about it.

use std::sync::Arc;

use archon::{
    Archon, FailureKind, Reply, RunError, RunId, RunOptions, Runs,
    orchestrator::{Assistant, InMemoryPoolIndex, Incoming},
    react_loop::PickFirst,
    store::InMemoryJournal,
    types::{
        AskLater, ExecutionLimits, Json, LimitReached, Member, OnLimit, PlanError, Planner, PlanningContext,
        ProviderError, StartRun, StartRuns, SubTask, Task, ToolCall,
    },
};
use archon_testkit::{FnProvider, SeededIds, VirtualClock};
use serde_json::json;

const UNREACHABLE: &str = "nobody listens at 127.0.0.1:9";

fn agent_of(model: FnProvider) -> Archon {
    Archon::builder()
        .provider(Arc::new(model), "m")
        .journal(Arc::new(InMemoryJournal::new()))
        .clock(Arc::new(VirtualClock::new()))
        .ids(Arc::new(SeededIds::new(1)))
        .approver(Arc::new(AskLater))
        .build()
        .unwrap()
}

/// An agent whose model is not there.
fn agent() -> Archon {
    agent_of(FnProvider::new(|_, _| vec![Err(ProviderError::Unreachable(UNREACHABLE.into()))]))
}

/// The error has the kind, names the run in its text, and says what to do.
fn check<T: std::fmt::Debug>(how: &str, result: Result<T, RunError>, kind: FailureKind) -> RunId {
    let error = result.expect_err(how);
    assert_eq!(error.kind(), Some(kind), "{how}: {error}");
    let run = error.run().cloned().expect("the run");
    let text = error.to_string();
    assert!(text.contains(run.as_str()) && text.contains(UNREACHABLE), "{how}: {text}");
    assert_eq!(error.advice(), kind.advice(), "{how}");
    assert!(kind != FailureKind::Unreachable || error.advice().contains("resume the run"), "{how}");
    // As a `main` that returns it prints it.
    assert_eq!(format!("{error:?}"), format!("{error} ({})", kind.advice()));
    run
}

#[tokio::test]
async fn unreachable_model_is_an_error_for_every_way_to_start() {
    let agent = agent();
    let kind = FailureKind::Unreachable;
    let run = check("run", agent.run("Hi").await, kind);
    check("run_with", agent.run_with("Hi", RunOptions::in_session("s".into())).await, kind);
    check("typed", agent.run_typed::<Vec<u8>>("Paris?").await, kind);
    let handle = agent.start("Hi", RunOptions::default()).await.unwrap();
    let id = handle.run_id().clone();
    assert_eq!(check("handle", handle.reply().await, kind), id);
    let handle = agent.start("Hi", RunOptions::default()).await.unwrap();
    check("handle.typed", handle.typed::<Vec<u8>>().await, kind);
    let again = agent.resume(run.clone()).await.unwrap().reply().await;
    assert_eq!(check("resume", again, kind), run);
    let talk = agent.conversation();
    check("conversation", talk.prompt("Hi").await.unwrap().reply().await, kind);
    check("continue_loop", talk.continue_loop().await.unwrap().reply().await, kind);

    let runs = Runs::new(agent);
    let started = runs.start(StartRun::new("Hi")).await.unwrap();
    assert_eq!(check("service", runs.reply(&started.run).await, kind), started.run);
    assert_eq!(check("service, again", runs.reply(&started.run).await, kind), started.run);
}

#[tokio::test]
async fn parallel_loop_of_unreachable_models_fails_as_they_do() {
    let boss = agent();
    let both = boss.parallel([agent(), agent()], Arc::new(PickFirst)).unwrap();
    let run = check("parallel", both.run("Hi").await, FailureKind::Unreachable);
    let again = both.resume(run.clone(), RunOptions::default()).await;
    assert_eq!(check("resume", again, FailureKind::Unreachable), run);
}

struct Steps;

impl Planner for Steps {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        let task = Task::new("t", goal).with_subtasks(vec![SubTask::new("a", "Think")]);
        Ok(task)
    }
}

#[tokio::test]
async fn plan_and_team_of_an_unreachable_model_are_errors() {
    let agent = agent();
    // The planner cannot be asked.
    check("plan", agent.run_task("Compare rivers").await, FailureKind::Unreachable);
    let team = agent
        .team(Arc::new(agent.planner()))
        .member(Member::new("ada", "researcher"), Arc::new(agent.clone()));
    check("team", team.run("Compare rivers").await, FailureKind::Unreachable);
    // Who works on the subtasks cannot.
    let planning = agent.planning(Arc::new(Steps));
    let run = check("subtasks", planning.run("Think").await, FailureKind::Subtasks);
    let handle = planning.start("Think", RunOptions::default()).await.unwrap();
    check("handle", handle.reply().await, FailureKind::Subtasks);
    let team = agent.team(Arc::new(Steps)).member(Member::new("ada", "researcher"), Arc::new(agent.clone()));
    check("members", team.run("Think").await, FailureKind::Subtasks);
    assert!(agent.journal().read(&run).await.unwrap().len() > 1, "the log stays");
}

#[tokio::test]
async fn assistant_with_an_unreachable_model_returns_an_error() {
    let agent = agent();
    let pool = agent.pool(Arc::new(InMemoryPoolIndex::default()));
    let desk = Assistant::new("You help.", Arc::new(agent), pool, Arc::new(VirtualClock::new()));
    let error = desk.handle_message(Incoming::person("ann".into(), "Hi")).await.unwrap_err();
    assert!(error.to_string().contains(UNREACHABLE), "{error}");
    assert_eq!(error.advice(), FailureKind::Unreachable.advice());
}

#[tokio::test]
async fn suspended_or_limited_run_is_a_reply_and_into_text_is_an_error() {
    let asks =
        agent_of(FnProvider::new(|_, _| FnProvider::calls(vec![ToolCall::new("c1", "drop", json!({}))])));
    let drop = {
        use archon::{
            tools::FnTool,
            types::{ToolAnnotations, ToolSpec},
        };
        let mut annotations = ToolAnnotations::default();
        annotations.requires_confirmation = true;
        let spec =
            ToolSpec::new("drop", "Drops it.", json!({"type": "object"})).with_annotations(annotations);
        FnTool::new(spec, |_: Json, _: archon::ToolContext| async {
            Ok(archon::ToolResult::success("dropped"))
        })
    };
    let asks = asks.to_builder().tool(drop).build().unwrap();
    let waits = asks.run("Drop it.").await.unwrap();
    let run = waits.run().clone();
    assert!(
        matches!(&waits, Reply::Waiting(rest) if rest.run() == &run && rest.partial().is_none()),
        "{waits:?}"
    );
    let error = waits.into_text().unwrap_err();
    assert_eq!((error.kind(), error.run()), (None, Some(&run)));
    assert!(error.to_string().ends_with("waits for a person or a timer"), "{error}");

    let mut limits = ExecutionLimits::default().with_max_turns(1);
    limits.on_limit = OnLimit::Stop;
    let short =
        agent_of(FnProvider::new(|_, _| FnProvider::calls(vec![ToolCall::new("c1", "no", json!({}))])))
            .to_builder()
            .limits(limits.clone())
            .build()
            .unwrap();
    let met = short.run("Look.").await.unwrap();
    assert!(matches!(&met, Reply::AtLimit(LimitReached::Turns { max: 1 }, _)), "{met:?}");
    let error = met.into_text().unwrap_err();
    assert!(error.to_string().contains("Max turns reached (1)") && error.advice().contains("larger limits"));
    // A limit that is to be an error is one.
    limits.on_limit = OnLimit::Error;
    let strict = short.to_builder().limits(limits).build().unwrap();
    let error = strict.run("Look.").await.unwrap_err();
    assert_eq!(error.kind(), Some(FailureKind::Limit));
}
