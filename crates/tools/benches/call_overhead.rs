//! What the engine costs a call that does nothing, and what 64 calls take side by side: `cargo bench -p
//! archon-tools`. The goals, 5 µs a call above the bare one and the time of the slowest, are checked by eye.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use archon_testkit::{SeededIds, VirtualClock};
use archon_tools::{ToolEngine, ToolRegistry, tool};
use archon_types::{CallId, CommandId, Context, Executed, Prepared, Tool, ToolCall, ToolContext, Toolbox};
use serde_json::json;

/// Takes arguments and does nothing with them.
#[tool(read_only)]
async fn no_op(path: String, line: Option<u32>) -> String {
    drop((path, line));
    String::new()
}

/// Takes 10 ms.
#[tool(read_only)]
async fn wait() -> String {
    tokio::time::sleep(Duration::from_millis(10)).await;
    String::new()
}

const CALLS: u32 = 200_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let run = Context::new(
        "run".into(),
        "session".into(),
        Arc::new(VirtualClock::new()),
        Arc::new(SeededIds::new(1)),
    );
    let registry = ToolRegistry::new();
    registry.register(no_op).unwrap();
    registry.register(wait).unwrap();
    let engine = ToolEngine::new(registry);
    let arguments = json!({ "path": "src/main.rs", "line": 12 });
    let call = ToolCall::new("call_1", "no_op", arguments.clone());
    let context = ToolContext::new(run.clone(), "call_1".into(), "no_op");

    runtime.block_on(async {
        let bare = Instant::now();
        for _ in 0..CALLS {
            black_box(no_op().call(arguments.clone(), &context).await.unwrap());
        }
        let bare = bare.elapsed() / CALLS;

        let guarded = Instant::now();
        for _ in 0..CALLS {
            let id = CallId::new(CommandId(1), 0);
            let Prepared::Ready(ready) = engine.prepare(id, &call, &run).await else { panic!("refused") };
            let Executed::Done(result) = engine.execute(ready, &run).await else { panic!("suspended") };
            black_box(result);
        }
        let guarded = guarded.elapsed() / CALLS;
        let waiting: Vec<_> =
            (0..64).map(|n| ToolCall::new(format!("call_{n}"), "wait", json!({}))).collect();
        let together = Instant::now();
        let calls = waiting.iter().enumerate().map(|(index, call)| {
            let id = CallId::new(CommandId(2), u32::try_from(index).unwrap());
            let (engine, run) = (&engine, &run);
            async move {
                let Prepared::Ready(ready) = engine.prepare(id, call, run).await else { panic!("refused") };
                engine.execute(ready, run).await
            }
        });
        black_box(futures_util::future::join_all(calls).await);
        println!("64 calls of 10 ms side by side: {:?}", together.elapsed());
        println!(
            "bare {bare:?}, through the engine {guarded:?}, overhead {:?}",
            guarded.saturating_sub(bare)
        );
    });
}
