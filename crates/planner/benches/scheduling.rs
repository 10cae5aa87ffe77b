//! Measures the cost of scheduling: `cargo bench -p archon-planner`. Prints µs for each subtask, from the
//! adoption of the plan to the end of the last subtask. The bench fails above 2 µs at 10,000 subtasks,
//! and if a subtask at 100,000 takes more than 6 times as long as at 10,000. A plan of 100,000 exceeds
//! the caches; quadratic time would be 10 times as long.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use archon_planner::{Next, PlanMachine, PlanTask};
use archon_types::{
    AgentId, CommandId, Effect, LoopId, Message, PlanRecord, PlanSettings, PromptSource, Record, RecordBody,
    RunConfig, RunId, RunStarted, SessionId, SubTask, Task, Timestamp, ToolResult,
};

fn main() {
    let mut missed = Vec::new();
    let mut at_10_000 = [0.0; 3];
    for size in [10, 100, 1_000, 10_000, 100_000] {
        for (at_10_000, cap) in at_10_000.iter_mut().zip([1, 4, 64]) {
            let rounds = (200_000 / size).clamp(3, 2_000);
            let mut best = (f64::MAX, 0.0);
            for _ in 0..rounds {
                let (adopted, followed) = follow(size, cap);
                if adopted + followed < best.0 + best.1 {
                    best = (adopted, followed);
                }
            }
            let each = |seconds: f64| seconds * 1e6 / size as f64;
            println!(
                "{size:>7} subtasks, cap {cap:>2}: {:.3} µs each to adopt, {:.3} µs each to schedule",
                each(best.0),
                each(best.1)
            );
            let both = each(best.0 + best.1);
            match size {
                10_000 if both > 2.0 => missed.push(format!("2 µs a subtask at 10,000, cap {cap}")),
                10_000 => *at_10_000 = both,
                100_000 if both > 6.0 * *at_10_000 => {
                    missed.push(format!("6 times of what a subtask of 10,000 takes at 100,000, cap {cap}"));
                }
                _ => {}
            }
        }
    }
    assert!(missed.is_empty(), "missed: {missed:?}");
}

/// Returns the seconds in which a machine adopts a plan, and in which it completes the plan.
fn follow(size: usize, cap: u32) -> (f64, f64) {
    let step = |n: usize| {
        let dependencies =
            [7, 31, 64].into_iter().filter(|back| n >= *back && !n.is_multiple_of(3)).map(|back| n - back);
        SubTask::new(format!("s{n}"), "a step").after(dependencies.map(|d| format!("s{d}")))
    };
    let task = Task::new("run_1", "g").with_subtasks((0..size).map(step).collect());
    let mut config = RunConfig::default();
    config.limits.max_duration_ms = u64::MAX / 4;
    let started = RunStarted::new(
        RunId::new("run_1"),
        SessionId::new("s"),
        AgentId::new("a"),
        LoopId::new("l"),
        config,
    );
    let at = Timestamp::from_millis(0);
    let mut machine = PlanMachine::new(&started, at);
    let mut settings = PlanSettings::default();
    settings.max_concurrent = cap;
    let mut seq = 0;
    let mut record = |body| {
        seq += 1;
        Record { seq, at, body }
    };
    let plan = |plan| RecordBody::Plan(Box::new(plan));
    machine.apply(&record(plan(PlanRecord::Settings(settings))));
    let message = Message::user("g", at).into();
    machine.apply(&record(RecordBody::MessageAdded { message, source: PromptSource::Prompt }));
    let made = PlanRecord::Planned { command: CommandId(0), task: Box::new(task), warnings: vec![] };
    let made = record(plan(made));
    let begin = Instant::now();
    machine.apply(&made);
    let adopted = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let mut under_way = std::collections::VecDeque::new();
    loop {
        match machine.next() {
            Next::Do(PlanTask::Start { call, .. }) => {
                under_way.push_back(call);
                let body = RecordBody::ToolCallStarted {
                    call,
                    attempt: 0,
                    effect: Effect::ReadOnly,
                    child_run: None,
                };
                machine.apply(&record(body));
            }
            Next::Wait(_) => {
                let call = under_way.pop_front().unwrap();
                let result = Box::new(ToolResult::success("ok"));
                machine.apply(&record(RecordBody::ToolCallFinished { call, result: result.into() }));
            }
            _ => break,
        }
    }
    let followed = begin.elapsed().as_secs_f64();
    assert!(matches!(machine.next(), Next::Do(PlanTask::Conclude { .. })));
    (adopted, followed)
}
