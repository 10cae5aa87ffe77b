//! What the loop itself costs, counted: it waits for nobody but the model and the tools, and a turn late in a run takes
//! no more steps than an early one.

use std::{
    future::poll_fn,
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
use serde_json::json;

use crate::shared::stage::call;

// spec: R-40
#[tokio::test(start_paused = true)]
async fn the_loop_waits_for_nothing_of_its_own_and_late_turns_take_no_more_steps() {
    const TURNS: usize = 40;
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
    assert_eq!(outcome.await.ended().last_text(), Some("done"));
    let at_request = at_request.lock().unwrap();
    assert_eq!(at_request.len(), TURNS + 1);
    assert!(at_request.iter().all(|(_, passed)| passed.is_zero()), "the loop slept: {at_request:?}");
    // With a model and a tool that answer at once, a turn is done in few steps, and the last is as the second.
    let steps: Vec<_> = at_request.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(steps.iter().all(|steps| *steps <= 4), "{steps:?}");
    assert_eq!(steps[1], steps[TURNS - 1], "{steps:?}");
}
