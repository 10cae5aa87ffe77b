//! Tests of random graphs with a virtual clock: the duration of a plan, and that no subtask starts before
//! its dependencies end.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use archon_planner::{Next, PlanGraph, PlanTask, invariants};
use archon_testkit::{Chance, cases, first_seed};
use archon_types::{CallId, OutcomeStatus, PlanRecord, PlanSettings, SubTask, SubTaskId, ToolResult};

use crate::support::{Fed, random_plan};

/// Follows a plan whose subtasks take their expected times, and returns the duration.
fn makespan(plan: &[SubTask], cap: u32) -> u64 {
    let mut settings = PlanSettings::default();
    settings.max_concurrent = cap;
    let length: HashMap<&SubTaskId, u64> =
        plan.iter().map(|s| (&s.id, s.rules.expected_ms.unwrap())).collect();
    let mut fed = Fed::following(settings, plan.to_vec());
    let mut under_way: BinaryHeap<Reverse<(u64, CallId2)>> = BinaryHeap::new();
    let mut ended: HashMap<SubTaskId, u64> = HashMap::new();
    let mut of_call: HashMap<CallId, SubTaskId> = HashMap::new();
    loop {
        match fed.machine.next() {
            Next::Do(PlanTask::Start { call }) => {
                let subtask = fed.machine.node(call).unwrap().subtask.clone();
                for dependency in subtask.dependencies() {
                    let end = ended.get(dependency).expect("a dependency is over before");
                    assert!(*end <= fed.now);
                }
                assert!(under_way.len() < cap as usize, "more side by side than allowed");
                under_way.push(Reverse((fed.now + length[&subtask.id], CallId2(call))));
                assert!(of_call.insert(call, subtask.id.clone()).is_none(), "no call begins twice");
                fed.start(call);
            }
            Next::Wait(None) => {
                let Reverse((at, CallId2(call))) = under_way.pop().expect("it waits for something");
                fed.now = at;
                assert!(ended.insert(of_call[&call].clone(), at).is_none(), "none is done twice");
                fed.finish(call, ToolResult::success("ok"));
            }
            Next::Do(PlanTask::Conclude { command }) => {
                fed.plan(PlanRecord::AnswerStarted { command });
                let answer = "done".to_owned();
                fed.plan(PlanRecord::AnswerFinished {
                    command,
                    answer,
                    citations: vec![],
                    spent: Default::default(),
                });
            }
            Next::Append(body) => fed.feed(body),
            Next::Done(outcome) => {
                assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ended.len(), plan.len());
    if plan.len() < 500 {
        assert_eq!(invariants(&fed.machine.task()), [""; 0]);
    }
    fed.now
}

/// A call id with an order.
#[derive(PartialEq, Eq)]
struct CallId2(CallId);

impl Ord for CallId2 {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.command, self.0.index).cmp(&(other.0.command, other.0.index))
    }
}

impl PartialOrd for CallId2 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

// spec: PL-10, PL-11
#[test]
fn random_graphs_keep_the_bound_of_list_scheduling_and_every_dependency() {
    let all = cases(40, 500);
    let (mut worst, mut nodes) = (0.0_f64, 0);
    for seed in 0..all {
        let mut chance = Chance(first_seed().wrapping_add(seed));
        // Between 10 and 10,000 subtasks, small ones as often as large ones.
        let size = (10.0 * 1000_f64.powf(seed as f64 / (all - 1) as f64)).round() as u64;
        let plan = random_plan(&mut chance, size);
        nodes += size;
        let length =
            |id: &SubTaskId| plan[id.as_str()[1..].parse::<usize>().unwrap()].rules.expected_ms.unwrap();
        let (path, critical) = PlanGraph::new(&plan).critical_path(length);
        assert_eq!(path.iter().map(length).sum::<u64>(), critical);
        let work: u64 = plan.iter().map(|s| length(&s.id)).sum();
        let cap = 1 + chance.below(64);
        let took = makespan(&plan, u32::try_from(cap).unwrap());
        // Graham's bound: work / m + (1 - 1 / m) * longest path.
        assert!(took * cap <= work + (cap - 1) * critical, "seed {seed}: {took} ms, cap {cap}");
        let least = critical.max(work.div_ceil(cap));
        assert!(took >= least);
        worst = worst.max(took as f64 / least as f64);
        let free = makespan(&plan, u32::try_from(size).unwrap());
        assert!(free as f64 <= critical as f64 * 1.001, "seed {seed}: {free} ms for a path of {critical} ms");
    }
    println!("{all} graphs, {nodes} subtasks; at most {worst:.3} of the lower bound");
}

// spec: PL-07
#[test]
fn plan_order_is_deterministic_and_topological() {
    for seed in 0..20 {
        let plan = random_plan(&mut Chance(seed), 200);
        let task = archon_types::Task::new("t", "g").with_subtasks(plan.clone());
        let derived = archon_planner::plan_of(&task);
        assert_eq!(derived, archon_planner::plan_of(&task));
        let place: HashMap<_, _> = derived.execution_order.iter().zip(0..).collect();
        assert_eq!(place.len(), plan.len());
        for subtask in &plan {
            for dependency in subtask.dependencies() {
                assert!(place[dependency] < place[&subtask.id]);
                // spec: PL-05
                assert!(derived.subtask_dag[dependency].contains(&subtask.id));
            }
        }
    }
}

// spec: PL-06
#[test]
fn cycle_check_handles_very_long_chains() {
    let after = |n: u32| n.checked_sub(1).map(|before| format!("s{before}"));
    let mut chain: Vec<SubTask> =
        (0..100_000).map(|n| SubTask::new(format!("s{n}"), "a step").after(after(n))).collect();
    assert!(PlanGraph::new(&chain).cycles().is_empty());
    chain[0] = SubTask::new("s0", "a step").after(["s99999"]);
    assert_eq!(PlanGraph::new(&chain).cycles()[0].len(), 100_001);
}
