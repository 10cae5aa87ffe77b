//! Tests of the check whether a plan fits its goal: the request, the reaction, and the cost.

use std::sync::{Arc, Mutex};

use archon_planner::{
    CheckedPlanner, LlmPlanCheck, LlmPlanner, PlanCheck, PlanningAgent, PlanningAgentOptions, fold,
};
use archon_testkit::{FnProvider, MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, BoxFuture, Context, FailureKind, Outcome, OutcomeStatus, PlanError, PlanRecord, Planner,
    PlanningContext, ProviderError, RecordBody, Spending, SubTask, Task, ToolResult, Usage,
};

use crate::support::step;

fn context() -> Context {
    Context::new("run_1".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

/// An agent that repeats its task at no cost.
struct Echo;

impl Agent for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
            outcome.set_answer(task.lines().next().unwrap_or_default().to_owned());
            outcome
        })
    }
}

const LOOK: &str = r#"{"subtasks": [{"id": "look", "description": "Look it up", "dependencies": []}]}"#;
const WRITE: &str = r#"{"subtasks": [{"id": "look", "description": "Look it up", "dependencies": []},
    {"id": "write", "description": "Write it down", "dependencies": ["look"]}]}"#;

/// Runs a plan whose planner and check get these answers in turn, and returns the outcome.
async fn run(provider: &FnProvider) -> (Outcome, MortalJournal) {
    let provider = Arc::new(provider.clone());
    let checked =
        CheckedPlanner::new(LlmPlanner::new(provider.clone(), "m"), LlmPlanCheck::new(provider, "m"));
    let (journal, options) = (MortalJournal::default(), PlanningAgentOptions::default());
    let agent = PlanningAgent::new(checked, Arc::new(Echo), Arc::new(journal.clone()), options);
    (agent.start("Report on Rome", &context()).await.unwrap(), journal)
}

// spec: PL-24
#[tokio::test]
async fn plan_check_rejects_an_incomplete_plan_and_tells_the_planner_what_is_missing() {
    let missing = "NOT MET: nobody writes the report";
    let provider = FnProvider::new(move |n, _| FnProvider::text([LOOK, missing, WRITE, "MET"][n]));
    let (outcome, journal) = run(&provider).await;
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
    let asked = |n: usize| provider.requests()[n].messages.last().unwrap().text();
    assert!(asked(1).contains("<goal>\nReport on Rome\n</goal>"), "{}", asked(1));
    assert!(asked(1).contains("look: Look it up"), "{}", asked(1));
    let heard = "An earlier plan did not work: the plan does not fit its goal: nobody writes the report";
    assert!(asked(2).contains(heard), "{}", asked(2));
    let log = journal.log("run_1");
    let refused = |body: &RecordBody| match body {
        RecordBody::Plan(plan) => match &**plan {
            PlanRecord::Rejected { problems, retryable, .. } => Some((problems.clone(), *retryable)),
            _ => None,
        },
        _ => None,
    };
    let why = "the plan does not fit its goal: nobody writes the report \
               (say the goal in other words, or use a stronger model)";
    let refused: Vec<_> = log.iter().filter_map(|record| refused(&record.body)).collect();
    assert_eq!(refused, [(vec![why.to_owned()], true)]);
    assert_eq!(fold(&log).unwrap().task().subtasks.len(), 2);
}

// spec: PL-24
#[tokio::test]
async fn no_plan_is_followed_if_none_fits_its_goal() {
    let provider = FnProvider::new(|n, _| FnProvider::text([LOOK, "NOT MET"][n % 2]));
    let (outcome, journal) = run(&provider).await;
    assert_eq!((outcome.status, outcome.failure), (OutcomeStatus::Failed, Some(FailureKind::Plan)));
    let error = outcome.error.unwrap();
    assert!(error.contains("does not fit its goal: the model did not say what"), "{error}");
    assert_eq!(provider.requests().len(), 4, "each of the two plans was looked at");
    let begun = |body: &RecordBody| matches!(body, RecordBody::ToolCallStarted { .. });
    assert!(!journal.log("run_1").iter().any(|record| begun(&record.body)));
}

// spec: PL-24
#[tokio::test]
async fn plan_check_without_a_verdict_accepts_the_plan_and_counts_its_spending() {
    for silent in [true, false] {
        let provider = FnProvider::new(move |n, _| match (n, silent) {
            (0, _) => FnProvider::text(LOOK),
            (_, true) => vec![Err(ProviderError::Protocol("cut off".into()))],
            (_, false) => {
                let mut events = FnProvider::text("Perhaps");
                for event in events.iter_mut().flatten() {
                    if let archon_types::ModelEvent::Done(answer) = event {
                        answer.usage = Usage { input: 7, ..Usage::default() };
                    }
                }
                events
            }
        });
        let (outcome, _) = run(&provider).await;
        assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
        assert_eq!(provider.requests().len(), 2);
        let spent = if silent { Spending::default() } else { Spending::new(7, 0) };
        assert_eq!(outcome.child_spending, spent);
    }
}

/// A planner that returns one subtask, and another one for a replan.
struct Other;

impl Planner for Other {
    async fn create_plan(&self, _: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        Ok(Task::new("t", "The goal as the planner says it").with_subtasks(vec![step("a", &[])]))
    }

    async fn replan(&self, task: &Task, _: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        Ok(task.clone().with_subtasks(vec![step("b", &[])]))
    }
}

/// A check that misses a letter in the plan, and records its requests.
#[derive(Clone, Default)]
struct Letter(Arc<Mutex<Vec<String>>>);

impl PlanCheck for Letter {
    async fn lacks(
        &self,
        plan: &Task,
        query: &str,
        _: &PlanningContext,
    ) -> Result<Option<String>, PlanError> {
        let ids: Vec<&str> = plan.subtasks.iter().map(|s: &SubTask| s.id.as_str()).collect();
        self.0.lock().unwrap().push(format!("{query}: {}", ids.join(" ")));
        Ok((ids == ["b"]).then(|| "c".to_owned()))
    }
}

// spec: PL-24
#[tokio::test]
async fn plan_check_compares_a_replan_with_the_original_goal() {
    let check = Letter::default();
    let planner = CheckedPlanner::new(Other, check.clone());
    let planning = PlanningContext::new(context());
    let mut task = planner.create_plan("What I asked", &planning).await.unwrap();
    task.original_query = "What I asked".to_owned();
    let failed = task.subtasks[0].clone().with_status(archon_types::SubTaskStatus::Executing).unwrap();
    task.subtasks = vec![failed.with_result(ToolResult::error("no")).unwrap()];
    let unfit = planner.replan(&task, "a failed", &planning).await.unwrap_err();
    assert_eq!(unfit, PlanError::Unfit { problem: "c".to_owned() });
    assert_eq!(*check.0.lock().unwrap(), ["What I asked: a", "What I asked: b"]);
}
