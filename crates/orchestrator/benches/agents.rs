//! Measures the time that a team adds to the time of its models: `cargo bench -p archon-orchestrator
//! --bench agents`. 1,000 members work concurrently, each for 5 turns with a model that takes 2 s, in
//! real time. The lower bound is the 10 s of one member; the bench fails above 1.15 times that. The turns
//! are sleeps, so the bench measures the team, its log and its budget, not a loop.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use archon_orchestrator::{Team, TeamOptions};
use archon_testkit::{MortalJournal, RealClock, SeededIds};
use archon_types::{
    Agent, BoxFuture, Context, Member, Outcome, OutcomeStatus, PlanError, Planner, PlanningContext, RunId,
    SessionId, SubTask, SubTaskRules, Task, TeamRole, Usage,
};

const AGENTS: usize = 1_000;
const TURNS: u32 = 5;
const MODEL: Duration = Duration::from_secs(2);

/// A worker that takes its turns, and counts them.
struct Worker(Arc<AtomicUsize>);

impl Agent for Worker {
    fn name(&self) -> &str {
        "worker"
    }

    fn run<'a>(&'a self, _: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            for _ in 0..TURNS {
                tokio::time::sleep(MODEL).await;
                self.0.fetch_add(1, Ordering::Relaxed);
            }
            let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
            outcome.set_answer("done".to_owned());
            outcome.usage = Usage { input: 10, ..Usage::default() };
            outcome
        })
    }
}

/// A planner with one step for each agent; no step depends on another.
struct SideBySide;

impl Planner for SideBySide {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        let step = |n| {
            let mut rules = SubTaskRules::default();
            rules.role = Some("worker".to_owned());
            SubTask::new(format!("s{n}"), "work").with_rules(rules)
        };
        let steps: Vec<_> = (0..AGENTS).map(step).collect();
        Ok(Task::new("t", goal).with_subtasks(steps))
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    let turns = Arc::new(AtomicUsize::new(0));
    let mut options = TeamOptions::default();
    options.roles = vec![TeamRole::new("worker", "")];
    options.settings.max_concurrent = AGENTS as u32;
    options.settings.max_delegations = 4 * AGENTS as u32;
    options.settings.task_timeout_ms = 600_000;
    // A turn is silent, and a busy machine late.
    options.settings.heartbeat_ms = 0;
    options.limits.max_total_tokens = 1_000_000_000;
    options.limits.max_duration_ms = 600_000;
    let mut team = Team::new(Arc::new(SideBySide), Arc::new(MortalJournal::default()), options);
    for n in 0..AGENTS {
        team = team.with_member(Member::new(format!("m{n}"), "worker"), Arc::new(Worker(turns.clone())));
    }
    let context = Context::new(
        RunId::new("run_1"),
        SessionId::new("s"),
        Arc::new(RealClock::new()),
        Arc::new(SeededIds::new(1)),
    );
    let begun = Instant::now();
    let outcome = runtime.block_on(team.start("Do it", &context)).unwrap();
    let (took, bound) = (begun.elapsed(), MODEL * TURNS);
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
    assert_eq!(turns.load(Ordering::Relaxed), AGENTS * TURNS as usize, "nobody worked twice");
    let ratio = took.as_secs_f64() / bound.as_secs_f64();
    println!(
        "{AGENTS} agents of {TURNS} turns of {MODEL:?}: {took:.2?}, {ratio:.2} times the bound of {bound:?}"
    );
    assert!(ratio <= 1.15, "missed: 1.15 times the bound");
}
