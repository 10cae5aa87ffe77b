//! Random faults: failures, timeouts, deaths of the process at any record, cancels, replans. No finished
//! subtask is repeated, no subtask waits forever, and the run ends.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use archon_planner::{NodeState, PlanRunError, PlanningAgent, PlanningAgentOptions, fold, open_questions};
use archon_testkit::{Chance, MortalJournal, SeededIds, VirtualClock, cases, first_seed};
use archon_types::{
    Agent, Answer, BoxFuture, CallId, Context, Effect, Encoded, Executed, FailureKind, OnFailure, Outcome,
    OutcomeStatus, PlanError, Planner, PlanningContext, Prepared, QuestionKind, ReadyCall, RecordBody, RunId,
    RunRefused, SubTask, SubTaskStatus, Task, ToolCall, ToolResult, ToolSpec, Toolbox,
};
use serde_json::json;

use crate::support::rules;

/// The world outside of the run, which outlives the process.
#[derive(Clone)]
struct World(Arc<Mutex<State>>);

struct State {
    chance: Chance,
    /// Runs of agents that have ended, with their outcomes, which a resumed run reads.
    ended: HashMap<RunId, Outcome>,
    /// Number of successful executions of each subtask, by the text of its task.
    done: HashMap<String, u32>,
    /// Number of calls of each tool call with an effect.
    effects: HashMap<CallId, u32>,
    failing: u64,
    plans: u64,
    cancel: Option<archon_types::CancellationToken>,
}

impl World {
    fn chance<T>(&self, draw: impl FnOnce(&mut Chance) -> T) -> T {
        draw(&mut self.0.lock().unwrap().chance)
    }

    /// Cancels the run with a probability of one percent.
    fn maybe_cancel(&self) {
        let mut state = self.0.lock().unwrap();
        if state.chance.percent(1)
            && let Some(cancel) = &state.cancel
        {
            cancel.cancel();
        }
    }

    async fn take_time(&self) {
        for _ in 0..self.chance(|c| c.below(4)) {
            tokio::task::yield_now().await;
        }
        self.maybe_cancel();
    }

    fn fails(&self) -> bool {
        let mut state = self.0.lock().unwrap();
        let failing = state.failing;
        state.chance.percent(failing)
    }
}

impl Agent for World {
    fn name(&self) -> &str {
        "worker"
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            if let Some(outcome) = self.0.lock().unwrap().ended.get(&context.run) {
                return outcome.clone();
            }
            assert!(context.delegation.as_ref().is_some_and(|d| d.child == context.run));
            self.take_time().await;
            if context.cancel.is_cancelled() {
                return Outcome::new(context.run.clone(), OutcomeStatus::Cancelled);
            }
            let mut outcome = Outcome::new(context.run.clone(), OutcomeStatus::Finished);
            outcome.set_answer("ok");
            outcome.usage.input = 10;
            if self.fails() {
                outcome = Outcome::failed(context.run.clone(), FailureKind::Other, "it did not work");
            } else {
                let step = task.lines().next().unwrap().to_owned();
                *self.0.lock().unwrap().done.entry(step).or_default() += 1;
            }
            self.0.lock().unwrap().ended.insert(context.run.clone(), outcome.clone());
            outcome
        })
    }
}

impl Toolbox for World {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        let spec = |name: &str| ToolSpec::new(name, "does it", json!({"type": "object"}));
        Arc::new(Encoded::new(vec![spec("look"), spec("write"), spec("other")]))
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        let effect = if call.name == "write" { Effect::SideEffect } else { Effect::ReadOnly };
        Box::pin(async move { Prepared::Ready(ReadyCall::new(id, call.clone(), effect)) })
    }

    fn execute<'a>(&'a self, ready: ReadyCall, _: &'a Context) -> BoxFuture<'a, Executed> {
        Box::pin(async move {
            if ready.effect == Effect::SideEffect {
                *self.0.lock().unwrap().effects.entry(ready.id).or_default() += 1;
            }
            self.take_time().await;
            let result = match (self.fails(), self.chance(|c| c.percent(30))) {
                (false, _) => ToolResult::success("{\"n\": 1}"),
                (true, true) => ToolResult::timeout(1.0),
                (true, false) => ToolResult::error("no"),
            };
            Executed::Done(Box::new(result))
        })
    }
}

impl World {
    fn plan(&self, prefix: &str) -> Vec<SubTask> {
        let size = self.chance(|c| 1 + c.below(14));
        (0..size).map(|n| self.subtask(prefix, n)).collect()
    }

    fn subtask(&self, prefix: &str, n: u64) -> SubTask {
        self.chance(|c| {
            let after: Vec<u64> = (0..n).filter(|_| c.percent(25)).collect();
            let mut step = SubTask::new(format!("{prefix}{n}"), format!("do {prefix}{n}"));
            let query = match after.first() {
                Some(first) if c.percent(50) => json!({"q": format!("{{{prefix}{first}}}")}),
                _ => json!({}),
            };
            match c.below(4) {
                0 => step = step.with_tool("look", Some(query)),
                1 => step = step.with_tool("write", Some(query)),
                _ => {}
            }
            step.critical = c.percent(10);
            let choice = c.below(10);
            step = step.with_rules(rules(|rules| match choice {
                0 => rules.on_failure = OnFailure::Skip,
                1 => rules.on_failure = OnFailure::Stop,
                2 => rules.fallback_tools = vec!["other".into()],
                3 => rules.max_attempts = Some(1),
                4 => rules.when = Some("1 == 2".into()),
                5 => rules.resources = vec!["desk".into()],
                6 => rules.on_failure = OnFailure::Ask,
                _ => {}
            }));
            step.after(after.iter().map(|d| format!("{prefix}{d}")))
        })
    }
}

impl Planner for World {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        self.take_time().await;
        Ok(Task::new("t", goal).with_subtasks(self.plan("s")))
    }

    async fn replan(&self, task: &Task, _: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        self.take_time().await;
        let plans = {
            let mut state = self.0.lock().unwrap();
            state.plans += 1;
            state.plans
        };
        let mut new = task.clone();
        match self.chance(|c| c.below(6)) {
            0 => return Err(PlanError::Unreadable { problem: "no idea".into() }),
            // Nothing else, which is refused.
            1 => new.subtasks.clear(),
            // One that cannot be followed.
            2 => new.subtasks.push(SubTask::new("x", "x").after(["nowhere"])),
            // What failed is tried once more.
            3 => {}
            // What failed goes away with all that depends on it; something else is done.
            _ => {
                let graph = archon_planner::PlanGraph::new(&task.subtasks);
                let failed = |s: &SubTask| s.status() == SubTaskStatus::Failed;
                let mut gone: Vec<_> =
                    task.subtasks.iter().filter(|s| failed(s)).map(|s| s.id.clone()).collect();
                for id in gone.clone() {
                    gone.extend(graph.downstream(&id).into_iter().cloned());
                }
                new.subtasks.retain(|s| !gone.contains(&s.id) || s.status() == SubTaskStatus::Completed);
                new.subtasks.extend(self.plan(&format!("p{plans}_")));
            }
        }
        Ok(new)
    }
}

fn agent(world: &World, journal: &MortalJournal, cap: u32) -> PlanningAgent {
    let mut options = PlanningAgentOptions::default();
    options.settings.max_concurrent = cap;
    options.settings.resources.insert("desk".into(), 1);
    PlanningAgent::new(Arc::new(world.clone()), Arc::new(world.clone()), Arc::new(journal.clone()), options)
        .with_toolbox(Arc::new(world.clone()))
}

#[derive(Default)]
struct Seen {
    deaths: u32,
    cancels: u32,
    replans: u32,
    finished: u32,
    failed: u32,
    /// Number of calls in doubt.
    doubts: u32,
    decisions: u32,
    /// Number of runs that died before their task was recorded, and were started again.
    unasked: u32,
}

/// Returns the commands of which a call started after another had succeeded.
fn begun_again(log: &[Arc<archon_types::Record>]) -> Vec<archon_types::CommandId> {
    let mut done = HashSet::new();
    let mut again = Vec::new();
    for record in log {
        match &record.body {
            RecordBody::ToolCallFinished { call, result } if !result.is_error() => {
                _ = done.insert(call.command)
            }
            RecordBody::ToolCallStarted { call, .. } if done.contains(&call.command) => {
                again.push(call.command)
            }
            _ => {}
        }
    }
    again
}

async fn one(seed: u64, seen: &mut Seen) {
    let mut chance = Chance(seed);
    let failing = [0, 10, 30, 60, 100][usize::try_from(chance.below(5)).unwrap()];
    let cap = u32::try_from(1 + chance.below(5)).unwrap();
    let state = State {
        chance: Chance(seed ^ 0xabcd),
        ended: HashMap::new(),
        done: HashMap::new(),
        effects: HashMap::new(),
        failing,
        plans: 0,
        cancel: None,
    };
    let world = World(Arc::new(Mutex::new(state)));
    let journal = MortalJournal::default();
    let clock = Arc::new(VirtualClock::new());
    let mut outcome = None;
    let mut run = "run_1".to_owned();
    for round in 0..400 {
        let context =
            Context::new(run.as_str().into(), "s".into(), clock.clone(), Arc::new(SeededIds::new(1)));
        world.0.lock().unwrap().cancel = Some(context.cancel.clone());
        match chance.percent(70) && round < 300 {
            true => journal.die_after(1 + chance.below(12), chance.percent(50)),
            false => journal.live(),
        }
        let agent = agent(&world, &journal, cap);
        let log = journal.log(&run);
        let is_begun = log.iter().any(|r| matches!(r.body, RecordBody::MessageAdded { .. }));
        let ran = match (log.is_empty(), is_begun) {
            (true, _) => agent.start("the goal", &context).await,
            (_, true) => match open_questions(&log).first() {
                // A person looks what became of a call that was cut off; the world knows.
                Some((call, asked)) => {
                    let has_failed = asked.kind == QuestionKind::FailedStep;
                    assert!(has_failed || asked.kind == QuestionKind::InDoubt, "seed {seed}");
                    if has_failed {
                        seen.decisions += 1
                    } else {
                        seen.doubts += 1
                    }
                    let is_it = |made: &CallId| made.command == call.command && made.index + 1 >= call.index;
                    let was_made = world.0.lock().unwrap().effects.keys().any(is_it);
                    let answer = match (chance.percent(50), was_made) {
                        (true, true) => Answer::Reply { text: "it happened".into() },
                        (true, false) => Answer::Approve,
                        (false, _) if has_failed && chance.percent(50) => {
                            Answer::Reply { text: String::new() }
                        }
                        (false, _) => Answer::Cancel { reason: String::new() },
                    };
                    agent.answer(*call, answer, &context).await
                }
                None => agent.resume(&context).await,
            },
            // What died before it was asked anything is of no use; a caller begins it anew.
            _ => {
                seen.unasked += 1;
                run = format!("run_{}", round + 2);
                continue;
            }
        };
        match ran {
            Ok(ended) if ended.status == OutcomeStatus::Cancelled => seen.cancels += 1,
            Ok(ended) if ended.status == OutcomeStatus::Suspended => {}
            Ok(ended) => {
                outcome = Some(ended);
                break;
            }
            Err(PlanRunError::Refused(RunRefused::Ended { .. })) => {
                // It died after the last record was written.
                let Some(RecordBody::RunFinished(ended)) = journal.log(&run).last().map(|r| r.body.clone())
                else {
                    panic!("seed {seed}: it ended without an outcome");
                };
                outcome = Some(*ended);
                break;
            }
            Err(PlanRunError::Journal(_)) => seen.deaths += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    let outcome = outcome.unwrap_or_else(|| panic!("seed {seed}: the run does not end"));
    let log = journal.log(&run);
    assert_eq!(begun_again(&log), [], "seed {seed}: done, and begun again");
    let machine = fold(&log).unwrap();
    let state = world.0.lock().unwrap();
    for (step, times) in &state.done {
        assert!(*times <= 1, "seed {seed}: {step:?} was done {times} times");
    }
    for (call, times) in &state.effects {
        assert!(*times <= 1, "seed {seed}: call {call} was made {times} times");
    }
    assert_eq!(machine.invariants(), [""; 0], "seed {seed}");
    for node in machine.nodes() {
        assert!(node.is_over(), "seed {seed}: {} is left in {:?}", node.subtask.id, node.state);
    }
    let all_done = machine.nodes().all(|node| node.lets_go());
    match outcome.status {
        OutcomeStatus::Finished => assert!(all_done && machine.nodes().count() > 0, "seed {seed}"),
        OutcomeStatus::Failed => {
            assert!(!all_done || machine.nodes().count() == 0, "seed {seed}: {:?}", outcome.error);
            let lost = machine.nodes().filter(|n| n.state == NodeState::Unreachable);
            for node in lost {
                let error = outcome.error.as_deref().unwrap();
                assert!(error.contains(node.subtask.id.as_str()), "seed {seed}: {error}");
            }
        }
        other => panic!("seed {seed}: {other:?}"),
    }
    assert!(machine.replans() <= 3);
    seen.replans += machine.replans();
    seen.finished += u32::from(outcome.is_finished());
    seen.failed += u32::from(!outcome.is_finished());
}

// spec: PL-10, PL-18, PL-19, PL-25
#[tokio::test]
async fn plan_random_failures_repeat_no_work_and_leave_nothing_waiting() {
    let mut seen = Seen::default();
    for seed in 0..cases(150, 1_000) {
        one(first_seed().wrapping_add(seed), &mut seen).await;
    }
    let Seen { deaths, cancels, replans, finished, failed, doubts, decisions, unasked } = seen;
    println!(
        "{finished} finished, {failed} failed; {deaths} deaths ({unasked} before the goal), {cancels} cancels, \
         {replans} replans, {doubts} doubts, {decisions} decisions"
    );
    assert_eq!(u64::from(finished + failed), cases(150, 1_000), "each has ended");
    assert!(doubts > 10 && decisions > 5, "{doubts} {decisions}");
    assert!(deaths > 100 && cancels > 0 && replans > 10 && finished > 10 && failed > 10);
}
