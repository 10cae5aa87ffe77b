//! Execution: time limits, cancellation, panics and errors, all of which end as results.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Poll, Waker},
    time::Duration,
};

use archon_testkit::{RealClock, VirtualClock};
use archon_tools::{CallRate, EngineOptions, builtin::Calculator};
use archon_types::{
    BoxFuture, CancellationToken, Clock, Context, DeltaKind, Event, Timestamp, Tool, ToolAnnotations,
    ToolCall, ToolError, ToolResult, ToolResultStatus, ToolSpec,
};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::fixture::{DropCounter, context, context_at, engine, run_call, show, spec, tool};

fn with_timeout(timeout_ms: Option<u64>) -> ToolSpec {
    let mut annotations = ToolAnnotations::default();
    annotations.timeout_ms = timeout_ms;
    spec("slow").with_annotations(annotations)
}

fn blocking(name: &str) -> ToolSpec {
    let mut annotations = ToolAnnotations::default();
    annotations.blocking = true;
    spec(name).with_annotations(annotations)
}

fn paused() -> Context {
    context_at(Arc::new(RealClock::new()))
}

async fn call(tool: Arc<dyn Tool>, run: &Context) -> ToolResult {
    let call = ToolCall::new("c1", tool.spec().name.clone(), json!({}));
    run_call(&engine([tool]), &call, run).await
}

// spec: A-27, TE-08
#[tokio::test(start_paused = true)]
async fn a_tool_that_sleeps_is_stopped_at_its_limit_and_dropped() {
    let drops = DropCounter::default();
    let guards = drops.clone();
    let sleeper = tool(with_timeout(Some(500)), move |context| {
        let guard = guards.guard();
        async move {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            drop((guard, context));
            Ok("woke up".into())
        }
    });
    let started = tokio::time::Instant::now();
    let result = call(sleeper, &paused()).await;
    assert_eq!(started.elapsed(), Duration::from_millis(500));
    assert_eq!(drops.count(), 1);
    expect![[r#"
        Timeout
        Tool execution timed out after 0.5 seconds
        It may have taken effect: check what it did before you call it again.
        detail: Tool execution timed out after 0.5 seconds
        {"error_type":"timeout","validation_time_ms":0,"execution_time_ms":500,"attempts":1,"tool_version":"1.0.0"}
    "#]].assert_eq(&show(&result));
}

// spec: TE-08
#[tokio::test(start_paused = true)]
async fn every_call_has_a_limit() {
    for (own, options, seconds) in [
        (None, EngineOptions::default(), 30),
        (None, EngineOptions::for_agent_tools(), 120),
        (Some(7_000), EngineOptions::for_agent_tools(), 7),
        (Some(600_000), EngineOptions::default(), 600),
    ] {
        let engine = engine([tool(with_timeout(own), |_| std::future::pending())]).with_options(options);
        let started = tokio::time::Instant::now();
        let result = run_call(&engine, &ToolCall::new("c", "slow", json!({})), &paused()).await;
        assert_eq!(result.status, ToolResultStatus::Timeout);
        assert_eq!(started.elapsed(), Duration::from_secs(seconds));
    }
}

// spec: TE-08
#[tokio::test(start_paused = true)]
async fn a_tool_that_is_done_in_time_is_not_disturbed() {
    let quick = tool(with_timeout(Some(500)), |_| async {
        tokio::time::sleep(Duration::from_millis(499)).await;
        Ok("done".into())
    });
    let result = call(quick, &paused()).await;
    assert_eq!(result.text(), "done");
    assert_eq!(result.metadata["execution_time_ms"], 499);
}

/// Counts who sleeps on it.
#[derive(Default)]
struct CountingClock(AtomicUsize);

impl Clock for CountingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn sleep_until(&self, _: Timestamp) -> BoxFuture<'static, ()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::pending())
    }
}

// spec: TE-08
#[test]
fn a_tool_that_answers_at_once_needs_neither_timer_nor_runtime() {
    let clock = Arc::new(CountingClock::default());
    let run = context_at(clock.clone());
    let call = ToolCall::new("c", "calculator", json!({ "expression": "6*7" }));
    let engine = engine([Arc::new(Calculator::new()) as Arc<dyn Tool>]);
    let mut work = std::pin::pin!(run_call(&engine, &call, &run));
    let Poll::Ready(result) = work.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop())) else {
        panic!("it waits")
    };
    assert_eq!(result.text(), "42");
    assert_eq!(clock.0.load(Ordering::SeqCst), 0);
}

// spec: TE-08, TE-30
#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_is_dropped() {
    let drops = DropCounter::default();
    let guards = drops.clone();
    let stopper = tool(spec("slow"), move |context| {
        let guard = guards.guard();
        // The run is cancelled while the tool waits.
        context.run.cancel.cancel();
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok("never".into())
        }
    });
    let run = context();
    expect![[r#"
        Cancelled
        Cancelled
        It may have taken effect: check what it did before you call it again.
        detail: Cancelled
        {"error_type":"cancelled","validation_time_ms":0,"execution_time_ms":0,"attempts":1,"tool_version":"1.0.0"}
    "#]].assert_eq(&show(&call(stopper.clone(), &run).await));
    assert_eq!(drops.count(), 1);
    expect![[r#"
        Cancelled
        Cancelled before it started
        {"error_type":"cancelled","validation_time_ms":0,"execution_time_ms":0,"attempts":1,"tool_version":"1.0.0"}
    "#]]
    .assert_eq(&show(&call(stopper, &run).await));
    assert_eq!(drops.count(), 1, "a call of a cancelled run does not start");
}

async fn check_panic(tool: Arc<dyn Tool>, expected: Expect) {
    expected.assert_eq(&show(&call(tool, &context()).await));
}

// spec: TE-09
#[tokio::test]
async fn tool_panic_anywhere_becomes_an_error_result() {
    check_panic(tool(spec("p"), |_| async { panic!("at {}", "first poll") }), expect![[r#"
        Error
        Error: Tool 'p' failed because of a bug in the tool. Try another way.
        detail: Tool 'p' panicked: at first poll
        {"error_type":"panic","validation_time_ms":0,"execution_time_ms":0,"attempts":1,"tool_version":"1.0.0"}
    "#]]).await;
    check_panic(
        tool(spec("p"), |_| -> BoxFuture<'static, Result<ToolResult, ToolError>> { panic!("before the future") }),
        expect![[r#"
            Error
            Error: Tool 'p' failed because of a bug in the tool. Try another way.
            detail: Tool 'p' panicked: before the future
            {"error_type":"panic","validation_time_ms":0,"execution_time_ms":0,"attempts":1,"tool_version":"1.0.0"}
        "#]],
    )
    .await;
    check_panic(
        tool(spec("p"), |_| async {
            tokio::task::yield_now().await;
            std::panic::panic_any(7)
        }),
        expect![[r#"
            Error
            Error: Tool 'p' failed because of a bug in the tool. Try another way.
            detail: Tool 'p' panicked: a panic without a message
            {"error_type":"panic","validation_time_ms":0,"execution_time_ms":0,"attempts":1,"tool_version":"1.0.0"}
        "#]],
    )
    .await;
    check_panic(tool(blocking("p"), |_| async { panic!("on another thread") }), expect![[r#"
        Error
        Error: Tool 'p' failed because of a bug in the tool. Try another way.
        detail: Tool 'p' panicked: on another thread
        {"error_type":"panic","validation_time_ms":0,"execution_time_ms":0,"attempts":1,"tool_version":"1.0.0"}
    "#]]).await;
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

// spec: TE-09
#[tokio::test(start_paused = true)]
async fn a_panic_while_a_late_tool_is_dropped_stays_inside() {
    let nasty = tool(with_timeout(Some(10)), |_| async {
        let _guard = PanicsWhenDropped;
        std::future::pending().await
    });
    let result = call(nasty, &paused()).await;
    assert_eq!(result.status, ToolResultStatus::Timeout);
}

// spec: TE-09
#[tokio::test]
async fn an_error_is_short_for_the_model_and_whole_for_people() {
    for (error, status, kind) in [
        (ToolError::Failed("disk full".to_owned()), ToolResultStatus::Error, "execution_error"),
        (ToolError::NotFound("no such row".to_owned()), ToolResultStatus::Error, "not_found"),
        (ToolError::InvalidArgs("odd".to_owned()), ToolResultStatus::Error, "invalid_parameters"),
        (ToolError::PermissionDenied("no".to_owned()), ToolResultStatus::Error, "permission_denied"),
        (ToolError::Resource("quota".to_owned()), ToolResultStatus::Error, "resource_error"),
    ] {
        let text = error.to_string();
        let failing = tool(spec("f"), move |_| std::future::ready(Err(error.clone())));
        let result = call(failing, &context()).await;
        assert_eq!((result.status, result.text()), (status, format!("Error: {text}")));
        assert_eq!(result.metadata["error_type"], kind);
        assert_eq!(result.error_message, Some(text));
    }
    let long = "ä".repeat(5_000);
    let detail = long.clone();
    let failing = tool(spec("f"), move |_| std::future::ready(Err(ToolError::Failed(long.clone()))));
    let result = call(failing, &context()).await;
    assert_eq!(result.text().chars().count(), 1_001);
    assert_eq!(result.error_message, Some(detail));
}

// spec: TE-08
#[tokio::test]
async fn a_tool_that_blocks_has_a_thread_of_its_own_which_is_left_behind_when_its_time_is_up() {
    let clock = VirtualClock::new();
    let run = context_at(Arc::new(clock.clone()));
    let (release, wait) = mpsc::channel::<()>();
    let (ended, was_told) = mpsc::channel();
    let (wait, ended) = (Mutex::new(wait), Mutex::new(ended));
    let stuck = tool(blocking("stuck"), move |context| {
        let _ = wait.lock().unwrap().recv();
        ended.lock().unwrap().send(context.cancel.is_cancelled()).unwrap();
        std::future::ready(Ok("late".into()))
    });
    let calling = tokio::spawn(async move { call(stuck, &run).await });
    clock.until_asleep(1).await;
    clock.advance(Duration::from_secs(30));
    let result = calling.await.unwrap();
    expect![[r#"
        Timeout
        Tool execution timed out after 30 seconds
        It runs on a thread that cannot be stopped, so it may still be at work.
        It may have taken effect: check what it did before you call it again.
        detail: Tool execution timed out after 30 seconds
        {"left_behind":true,"error_type":"timeout","validation_time_ms":0,"execution_time_ms":30000,"attempts":1,"tool_version":"1.0.0"}
    "#]].assert_eq(&show(&result));
    release.send(()).unwrap();
    assert!(was_told.recv().unwrap(), "the token tells the thread to stop");
}

// spec: TE-08
#[tokio::test]
async fn a_tool_that_blocks_does_not_block_the_run() {
    let here = std::thread::current().id();
    let elsewhere = tool(blocking("t"), move |_| async move {
        Ok(ToolResult::success(if std::thread::current().id() == here { "here" } else { "elsewhere" }))
    });
    assert_eq!(call(elsewhere, &context()).await.text(), "elsewhere");
}

// spec: TE-01
#[tokio::test]
async fn tool_progress_reaches_the_watchers_of_the_run() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    let mut run = context();
    run.sink = Arc::new(move |event| sink.lock().unwrap().push(event));
    let talkative = tool(spec("t"), |context| async move {
        context.on_progress("half");
        context.on_update(ToolResult::success("so far"));
        Ok("done".into())
    });
    call(talkative, &run).await;
    let heard: Vec<(u64, &str, String)> = heard
        .lock()
        .unwrap()
        .iter()
        .map(|event: &Event| match event {
            Event::Delta(delta) => match &delta.kind {
                DeltaKind::ToolProgress { text, .. } => (delta.offset, "progress", text.clone()),
                DeltaKind::ToolPartialResult { result, .. } => (delta.offset, "partial", result.text()),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(heard, [(0, "progress", "half".to_owned()), (0, "partial", "so far".to_owned())]);
}

// spec: R-05
#[tokio::test]
async fn update_after_a_dropped_call_is_ignored() {
    let heard = Arc::new(Mutex::new(0));
    let count = heard.clone();
    let mut run = context();
    run.sink = Arc::new(move |_: Event| *count.lock().unwrap() += 1);
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let waits = tool(spec("t"), move |context| {
        *keep.lock().unwrap() = Some(context);
        std::future::pending()
    });
    assert!(futures_util::FutureExt::now_or_never(call(waits, &run)).is_none());
    let left = kept.lock().unwrap().take().unwrap();
    left.on_update(ToolResult::success("too late"));
    assert_eq!(*heard.lock().unwrap(), 0);
}

// spec: R-05
#[tokio::test]
async fn update_of_a_detached_task_is_ignored() {
    let heard = Arc::new(Mutex::new(0));
    let count = heard.clone();
    let mut run = context();
    run.sink = Arc::new(move |_: Event| *count.lock().unwrap() += 1);
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let leaves = tool(spec("t"), move |context| {
        context.on_update(ToolResult::success("so far"));
        *keep.lock().unwrap() = Some(context);
        std::future::ready(Ok("done".into()))
    });
    call(leaves, &run).await;
    let left = kept.lock().unwrap().take().unwrap();
    left.on_update(ToolResult::success("too late"));
    left.on_progress("too late");
    assert_eq!(*heard.lock().unwrap(), 1);
}

// spec: ER-11
#[tokio::test(start_paused = true)]
async fn calls_beyond_a_tools_rate_wait_in_order_and_their_time_limit_with_them() {
    let began = tokio::time::Instant::now();
    let run = context_at(Arc::new(RealClock::new()));
    let starts = Arc::new(Mutex::new(Vec::new()));
    let noted = starts.clone();
    let limited = tool(spec("limited"), move |_| {
        noted.lock().unwrap().push(began.elapsed().as_secs());
        std::future::ready(Ok("done".into()))
    });
    let free = tool(spec("free"), |_| std::future::ready(Ok("done".into())));
    let rate = CallRate::new(2, Duration::from_secs(100));
    let engine = engine([limited, free]).with_options(EngineOptions::default().limiting("limited", rate));
    let call = |name: &str| ToolCall::new("c", name, json!({}));
    let mut given_up = run.clone();
    given_up.cancel = CancellationToken::new();
    let (cancelled, of) = (call("limited"), call("limited"));
    let results = tokio::join!(
        run_call(&engine, &of, &run),
        run_call(&engine, &of, &run),
        run_call(&engine, &cancelled, &given_up),
        run_call(&engine, &of, &run),
        run_call(&engine, &of, &run),
        async {
            assert_eq!(run_call(&engine, &call("free"), &run).await.text(), "done");
            assert_eq!(began.elapsed(), Duration::ZERO, "other tools do not wait");
            given_up.cancel.cancel();
        },
    );
    assert_eq!(starts.lock().unwrap()[..], [0, 0, 50, 100], "later than the 30 seconds that a call may take");
    assert_eq!(results.2.text(), "Cancelled before it started");
    assert!([results.0, results.1, results.3, results.4].iter().all(|r| r.text() == "done"));
}
