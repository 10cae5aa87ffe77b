//! Tests of runs that failed without a plan and continue when they are resumed.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon_planner::{PlanRunError, PlanningAgent, PlanningAgentOptions, fold};
use archon_testkit::{MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, BoxFuture, Context, FailureKind, Outcome, OutcomeStatus, PlanError, Planner, PlanningContext,
    ProviderError, RunRefused, Task,
};

use crate::support::step;

struct Done;

impl Agent for Done {
    fn name(&self) -> &str {
        "done"
    }

    fn run<'a>(&'a self, _: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        let outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished).with_answer("done");
        Box::pin(async { outcome })
    }
}

/// A planner that has no plan at the first request.
struct Later(fn() -> PlanError, AtomicUsize);

impl Planner for Later {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        match self.1.fetch_add(1, Ordering::Relaxed) {
            0 => Err(self.0()),
            _ => Ok(Task::new("task_1", goal).with_subtasks(vec![step("a", &[])])),
        }
    }
}

fn context() -> Context {
    Context::new("run_1".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

fn planning(journal: &MortalJournal, planner: impl Planner + 'static) -> PlanningAgent {
    let options = PlanningAgentOptions::default();
    PlanningAgent::new(planner, Arc::new(Done), Arc::new(journal.clone()), options)
}

#[tokio::test]
async fn run_whose_planner_was_not_reached_is_resumed_and_one_without_a_plan_is_not() {
    let unreachable = || PlanError::Model(ProviderError::Auth("no key".into()));
    let (journal, context) = (MortalJournal::default(), context());
    let agent = planning(&journal, Later(unreachable, AtomicUsize::new(0)));
    let outcome = agent.start("Go", &context).await.unwrap();
    assert_eq!(outcome.failure_kind(), Some(FailureKind::Auth));
    let outcome = agent.resume(&context).await.unwrap();
    assert_eq!((outcome.status, outcome.answer()), (OutcomeStatus::Finished, Some("done")));
    assert_eq!(fold(&journal.log("run_1")).unwrap().ended(), Some(&outcome));

    let (journal, fixed) = (MortalJournal::default(), || PlanError::Fixed);
    let agent = planning(&journal, Later(fixed, AtomicUsize::new(0)));
    assert_eq!(agent.start("Go", &context).await.unwrap().failure_kind(), Some(FailureKind::Plan));
    let again = agent.resume(&context).await;
    assert!(matches!(again, Err(PlanRunError::Refused(RunRefused::Ended { .. }))), "{again:?}");
}
