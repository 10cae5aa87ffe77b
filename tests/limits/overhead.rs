//! The cost of the loop itself: processor time, against a yardstick in the same process, and waits, of which it has none.

use std::{
    future::poll_fn,
    hint::black_box,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use archon::{
    Archon, ToolContext, ToolResult,
    tools::FnTool,
    types::{Json, ToolAnnotations, ToolSpec},
};
use archon_testkit::{Ended, FnProvider};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::shared::stage::call;

const TURNS: usize = 40;

/// Steps of the yardstick: in a build for tests they take about 7 ms of a processor's time, and less in any other,
/// which is far below the 100 ms that a turn may take.
const STEPS: u64 = 1_000_000;

/// Returns the processor time in nanoseconds that this thread has used.
fn used() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Returns the processor time of the yardstick: steps of which each needs the one before.
fn yardstick() -> u64 {
    let (began, mut word, mut step) = (used(), black_box(1_u64), 0);
    while step < STEPS {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        step += 1;
    }
    black_box(word);
    used() - began
}

// spec: R-40
#[tokio::test(start_paused = true)]
async fn turn_of_the_loop_takes_a_small_part_of_100_ms_of_processor_time_and_never_waits() {
    // At each request: how often the run had been polled, and how much time had passed.
    let polls = Arc::new(AtomicUsize::new(0));
    let at_request = Arc::new(std::sync::Mutex::new(Vec::new()));
    let began = tokio::time::Instant::now();
    let (seen, told) = (polls.clone(), at_request.clone());
    let model = FnProvider::new(move |n, _| {
        told.lock().unwrap().push((seen.load(Ordering::Relaxed), began.elapsed()));
        match n {
            TURNS => FnProvider::text("done"),
            _ => call(&format!("c{n}"), "look", json!({ "n": n })),
        }
    });
    let spec = ToolSpec::new("look", "Looks.", json!({"type": "object"}))
        .with_annotations(ToolAnnotations::read_only());
    let look = FnTool::new(spec, |_: Json, _: ToolContext| async { Ok(ToolResult::success("seen")) });
    let agent = Archon::builder().provider(Arc::new(model), "m").tool(look).build().unwrap();
    let mut run = pin!(agent.run("Look around."));
    let outcome = poll_fn(|task| {
        polls.fetch_add(1, Ordering::Relaxed);
        run.as_mut().poll(task)
    });
    let before = used();
    assert_eq!(outcome.await.ended().last_text(), Some("done"));
    // All tasks of this runtime work on this thread.
    let (turn, yard) = ((used() - before) / (TURNS as u64 + 1), yardstick());
    assert!(turn <= yard, "a turn took {turn} ns of processor time, and {STEPS} steps of a loop {yard} ns");
    let at_request = at_request.lock().unwrap();
    assert_eq!(at_request.len(), TURNS + 1);
    assert!(at_request.iter().all(|(_, passed)| passed.is_zero()), "the loop slept: {at_request:?}");
    // With a model and a tool that answer at once, a turn is done in few steps, and the last is as the second.
    let steps: Vec<_> = at_request.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(steps.iter().all(|steps| *steps <= 4), "{steps:?}");
    assert_eq!(steps[1], steps[TURNS - 1], "{steps:?}");
}
