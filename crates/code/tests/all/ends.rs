//! Programs whose call is cancelled or dropped do not go on.

use std::{
    future::poll_fn,
    task::Poll,
    time::{Duration, Instant},
};

use archon_types::{Tool, ToolError};
use serde_json::json;

use crate::fixture::{LANGUAGES, context, echo, executor};

/// The threads of this process that run programs.
fn programs() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() == "archon-code").count()
}

/// Waits until no program is left; other tests have some, so this one runs by itself (`cargo test` names it alone).
async fn until_fewer(than: usize) -> bool {
    let began = Instant::now();
    while programs() >= than {
        if began.elapsed() > Duration::from_secs(20) {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

fn endless(language: &str) -> &'static str {
    if language == "python" { "while True: pass" } else { "for (;;);" }
}

// spec: TE-47
#[tokio::test]
async fn a_cancelled_call_is_over_at_once() {
    for language in LANGUAGES {
        let (tool, context) = (executor(), context());
        let call = tool.call(json!({ "language": language, "code": endless(language) }), &context);
        let cancel = async {
            tokio::task::yield_now().await;
            context.cancel.cancel();
        };
        let began = Instant::now();
        let (ended, ()) = tokio::join!(call, cancel);
        assert_eq!(ended, Err(ToolError::Cancelled));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

// spec: TE-47
#[tokio::test]
async fn cancelled_program_that_waits_for_a_tool_ends() {
    for (language, code) in [("python", "echo(1)"), ("javascript", "echo({a: 1})")] {
        let mut tools = echo();
        tools.hangs = true;
        let (tool, context) = (tools.executor(&["echo"]), context());
        let call = tool.call(json!({ "language": language, "code": code }), &context);
        let cancel = async {
            while tools.seen.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            context.cancel.cancel();
        };
        let (ended, ()) = tokio::join!(call, cancel);
        assert_eq!(ended, Err(ToolError::Cancelled), "{language}");
    }
}

// spec: TE-47
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dropped_call_leaves_no_program_behind() {
    for language in LANGUAGES {
        let (tool, context) = (executor(), context());
        // More than other tests start at once, so that theirs can come and go.
        let mut calls: Vec<_> = (0..24)
            .map(|_| tool.call(json!({ "language": language, "code": endless(language) }), &context))
            .collect();
        for call in &mut calls {
            let polled = poll_fn(|waker| Poll::Ready(call.as_mut().poll(waker).is_pending())).await;
            assert!(polled, "it goes on");
        }
        let began = Instant::now();
        while programs() < 24 && began.elapsed() < Duration::from_secs(20) {
            tokio::task::yield_now().await;
        }
        assert!(programs() >= 24);
        drop(calls);
        assert!(until_fewer(24).await, "{} programs are left", programs());
    }
}
