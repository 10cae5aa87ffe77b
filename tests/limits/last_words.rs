//! A run whose time is up still says what it has found: a part of the time is kept for one more call.

use std::{sync::Arc, time::Duration};

use archon::{
    Archon, OutcomeStatus, RunOptions, ToolContext, ToolError, ToolResult,
    tools::FnTool,
    types::{Clock, ExecutionLimits, Json, LimitReached, OnLimit, ToolAnnotations, ToolSpec},
};
use archon_testkit::{Ended, FnProvider, VirtualClock};
use serde_json::json;

use crate::shared::stage::call;

// spec: R-15
#[tokio::test]
async fn time_limit_leaves_a_last_turn_without_tools() {
    for (on_limit, at, requests, said) in
        [(OnLimit::Stop, 100, 1, None), (OnLimit::ForceSummary, 90, 2, Some("So far: nothing."))]
    {
        let clock = Arc::new(VirtualClock::new());
        let began = clock.now();
        let mut annotations = ToolAnnotations::read_only();
        annotations.timeout_ms = Some(1_000_000);
        let spec = ToolSpec::new("digs", "Digs.", json!({"type": "object"})).with_annotations(annotations);
        let (begins, mut begun) = tokio::sync::mpsc::unbounded_channel();
        let digs = FnTool::new(spec, move |_: Json, _: ToolContext| {
            begins.send(()).ok();
            std::future::pending::<Result<ToolResult, ToolError>>()
        });
        let model = FnProvider::new(|n, request| match n {
            0 => call("c0", "digs", json!({})),
            _ => {
                assert!(request.tools.is_empty(), "last words need no tools");
                let asked = request.messages.iter().last().unwrap().text();
                assert!(asked.starts_with("You have executed enough steps."), "{asked}");
                FnProvider::text("So far: nothing.")
            }
        });
        let limits = ExecutionLimits::default().with_max_duration(Duration::from_secs(100));
        let agent = Archon::builder()
            .provider(Arc::new(model.clone()), "m")
            .tool(digs)
            .clock(clock.clone())
            .limits(limits.with_on_limit(on_limit))
            .build()
            .unwrap();
        let run = agent.start("Find gold.", RunOptions::default()).await.unwrap();
        begun.recv().await.unwrap();
        clock.advance(Duration::from_secs(at));
        let reply = tokio::time::timeout(Duration::from_secs(20), run.reply()).await.expect("it ends");
        let outcome = reply.ended();
        assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Duration { max_ms: 100_000 }));
        assert_eq!((clock.now().since(began).as_secs(), model.requests().len()), (at, requests));
        assert_eq!(outcome.last_text().filter(|said| !said.is_empty()), said, "{on_limit:?}");
    }
}
