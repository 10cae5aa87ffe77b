//! How many calls of one turn are made at once, through the whole loop.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    Archon, ToolContext, ToolError, ToolResult,
    tools::FnTool,
    types::{Json, Message, ToolAnnotations, ToolCall, ToolExecutionStrategy, ToolSpec},
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

use ToolExecutionStrategy::{Batched, Parallel, Sequential};

/// Six calls in one turn of a tool that may run beside itself. The third fails, and the one numbered `steers` says
/// something to its own run. Gives the most calls that were under way at once, and what the model reads of them.
async fn six(strategy: ToolExecutionStrategy, steers: u64) -> (usize, Vec<String>) {
    let agent = Arc::new(OnceLock::<Archon>::new());
    let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (own, peak) = (agent.clone(), most.clone());
    let work = move |arguments: Json, context: ToolContext| {
        let (agent, under_way, peak) = (own.clone(), under_way.clone(), peak.clone());
        async move {
            let n = arguments["n"].as_u64().unwrap();
            peak.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // All that may begin have begun, and they end in another order than they began in.
            for _ in 0..20 - 2 * n {
                tokio::task::yield_now().await;
            }
            if n == steers {
                agent.get().unwrap().steer(&context.run.run, "not those").await.unwrap();
            }
            under_way.fetch_sub(1, Ordering::SeqCst);
            match n {
                2 => Err(ToolError::Failed("no".into())),
                _ => Ok(ToolResult::success(format!("did {n}"))),
            }
        }
    };
    let spec = ToolSpec::new("work", "Works on a number.", json!({"type": "object"}))
        .with_annotations(ToolAnnotations::read_only());
    let model = FnProvider::new(|n, _| match n {
        0 => FnProvider::calls(
            (0..6).map(|n| ToolCall::new(format!("c{n}"), "work", json!({ "n": n }))).collect(),
        ),
        _ => FnProvider::text("done"),
    });
    let built = Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .tool(FnTool::new(spec, work))
        .tool_execution(strategy)
        .build()
        .unwrap();
    agent.set(built.clone()).ok();
    assert_eq!(built.run("Work.").await.ended().last_text(), Some("done"));
    let last = model.requests().pop().unwrap();
    let results = last.messages.iter().filter(|m| matches!(***m, Message::ToolResult(_))).map(|m| m.text());
    (most.load(Ordering::SeqCst), results.collect())
}

// spec: TE-28
#[tokio::test]
async fn tool_execution_strategy_limits_parallel_calls() {
    let all = ["did 0", "did 1", "Error: no", "did 3", "did 4", "did 5"];
    for (strategy, at_once) in [
        (Parallel, 6),
        (Sequential, 1),
        (Batched { size: 0 }, 1),
        (Batched { size: 2 }, 2),
        (Batched { size: 4 }, 4),
        (Batched { size: 9 }, 6),
    ] {
        let (most, results) = six(strategy, 99).await;
        assert_eq!(most, at_once, "{strategy:?}");
        assert_eq!(results, all, "{strategy:?}");
    }
}

// spec: TE-28
#[tokio::test]
async fn a_steer_is_read_between_two_batches_and_skips_those_behind_it() {
    for (strategy, ran) in
        [(Parallel, 6), (Sequential, 1), (Batched { size: 2 }, 2), (Batched { size: 4 }, 4)]
    {
        let (_, results) = six(strategy, 0).await;
        let skipped =
            results.iter().filter(|text| text.contains("Skipped due to queued user message")).count();
        assert_eq!((results.len(), skipped), (6, 6 - ran), "{strategy:?}: {results:?}");
    }
}
