//! Tests of fixed plans: every resume follows the plan, and no planner is asked.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use archon_planner::{PlanRunError, PlanningAgent, PlanningAgentOptions, ScriptedPlanner, fold};
use archon_testkit::{MortalJournal, SeededIds, VirtualClock};
use archon_types::{
    Agent, BoxFuture, Context, FailureKind, Outcome, OutcomeStatus, PlanError, PlanRecord, Planner,
    PlanningContext, RecordBody, RunRefused, SubTask, Task,
};

use crate::support::step;

/// A planner that counts its requests; there must be none.
#[derive(Clone, Default)]
struct Unasked(Arc<AtomicU32>);

impl Planner for Unasked {
    async fn create_plan(&self, _: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(PlanError::Cancelled)
    }
}

/// An agent that repeats its task, and fails at `wrong`.
struct Echo;

impl Agent for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        let line = task.lines().next().unwrap_or_default();
        let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
        outcome.set_answer(line.to_owned());
        if line.contains("wrong") {
            outcome = Outcome::failed(context.run.clone(), FailureKind::Other, "it does not work");
        }
        Box::pin(async { outcome })
    }
}

fn agent(planner: &Unasked, journal: &MortalJournal, plan: Option<Vec<SubTask>>) -> PlanningAgent {
    let mut options = PlanningAgentOptions::default();
    options.plan = plan;
    PlanningAgent::new(Arc::new(planner.clone()), Arc::new(Echo), Arc::new(journal.clone()), options)
}

fn context() -> Context {
    Context::new("run_1".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)))
}

// spec: EX-06, PL-19
#[tokio::test]
async fn fixed_plan_killed_at_any_record_is_resumed_by_any_process() {
    let plan = || vec![step("a", &[]), step("b", &["a"])];
    let planner = Unasked::default();
    let mut deaths = 0;
    for (appends, is_written) in (1..40).flat_map(|n| [(n, false), (n, true)]) {
        let journal = MortalJournal::default();
        journal.die_after(appends, is_written);
        let begun = agent(&planner, &journal, Some(plan())).start("Do it", &context()).await;
        journal.live();
        let at = format!("append {appends}, written: {is_written}");
        let is_asked = journal.log("run_1").iter().any(|r| matches!(r.body, RecordBody::MessageAdded { .. }));
        deaths += u32::from(begun.is_err());
        // Who takes it up knows of no plan but the one in the log.
        let outcome = match (begun, is_asked) {
            (Ok(outcome), _) => outcome,
            (Err(_), false) => continue,
            (Err(_), true) => match agent(&planner, &journal, None).resume(&context()).await {
                Err(PlanRunError::Refused(RunRefused::Ended { .. })) => {
                    fold(&journal.log("run_1")).unwrap().ended().unwrap().clone()
                }
                outcome => outcome.expect(&at),
            },
        };
        assert_eq!(
            (outcome.status, outcome.last_text().unwrap_or_default()),
            (OutcomeStatus::Finished, "Do b"),
            "{at}"
        );
    }
    assert!(deaths > 15, "{deaths}");
    assert_eq!(planner.0.load(Ordering::Relaxed), 0, "a planner was asked");
}

// spec: EX-06, PL-18
#[tokio::test]
async fn fixed_plan_failure_causes_no_replan() {
    let (planner, journal) = (Unasked::default(), MortalJournal::default());
    let mut critical = SubTask::new("a", "Do what is wrong");
    critical.critical = true;
    let plan = vec![critical, step("b", &["a"])];
    let outcome = agent(&planner, &journal, Some(plan)).start("Do it", &context()).await.unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    let log = journal.log("run_1");
    let tries = log.iter().filter(|r| matches!(r.body, RecordBody::ToolCallStarted { .. })).count();
    assert_eq!((tries, planner.0.load(Ordering::Relaxed)), (3, 0), "it is tried three times");
    assert_eq!(fold(&log).unwrap().replans(), 0);
}

// spec: EX-06
#[tokio::test]
async fn a_fixed_plan_that_cannot_be_followed_is_refused_once_and_nothing_of_it_begins() {
    let (planner, journal) = (Unasked::default(), MortalJournal::default());
    let plan = vec![step("a", &["b"]), step("b", &["a"])];
    let outcome = agent(&planner, &journal, Some(plan.clone())).start("Do it", &context()).await.unwrap();
    assert!(outcome.error.as_deref().is_some_and(|error| error.contains("a → b → a")), "{outcome:?}");
    let asked = |r: &Arc<archon_types::Record>| matches!(&r.body, RecordBody::Plan(plan) if matches!(**plan, PlanRecord::PlanningStarted { .. }));
    assert_eq!(journal.log("run_1").iter().filter(|r| asked(r)).count(), 1);
    let draft = agent(&planner, &journal, Some(plan)).draft("Do it", &context()).await.unwrap();
    assert!(draft.problems.iter().any(|problem| problem.is_error()));
    // Without a plan the planner is asked.
    let other = MortalJournal::default();
    let asking = PlanningAgent::new(
        Arc::new(ScriptedPlanner::new(vec![step("a", &[])])),
        Arc::new(Echo),
        Arc::new(other),
        PlanningAgentOptions::default(),
    );
    assert_eq!(asking.start("Do it", &context()).await.unwrap().last_text().unwrap_or_default(), "Do a");
    assert_eq!(planner.0.load(Ordering::Relaxed), 0);
}
