//! Executes one call of a tool, with time limit, cancellation and protection from panics.

use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::{Context as Waker, Poll},
    time::Duration,
};

use archon_types::{
    ApprovalRequest, BoxFuture, Clock, Effect, Json, Tool, ToolContext, ToolError, ToolResult,
    ToolResultStatus,
};
use futures_util::future::{Either, select};
use tokio::runtime::Handle;

use crate::{arguments::clip, output};

/// Maximum number of characters of an error that the model reads; the result's `error_message` has the
/// whole text.
const ERROR_SHOWN: usize = 1_000;

/// The future of a tool's call: its result, or the message of its panic.
type Work<'a> = BoxFuture<'a, Result<Result<ToolResult, ToolError>, Panic>>;

/// The message of a panic.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Panic(String);

/// The way in which the execution of a tool ended.
enum Ended {
    Returned(Result<ToolResult, ToolError>),
    Panicked(Panic),
    TimedOut,
    Cancelled,
}

/// Runs the tool until it ends, times out or is cancelled. In each case there is a result, with one
/// exception: an agent tool that was suspended returns its question.
pub(crate) async fn execute(
    tool: &Arc<dyn Tool>,
    arguments: Json,
    context: &ToolContext,
    limit: Duration,
) -> Result<ToolResult, Box<ApprovalRequest>> {
    if context.cancel.is_cancelled() {
        return Ok(output::cancelled_result("Cancelled before it started"));
    }
    // Without a runtime there are no other threads, so the tool runs here.
    let thread = Handle::try_current().ok().filter(|_| tool.spec().annotations.blocking);
    let on_thread = thread.is_some();
    let work = match thread {
        Some(runtime) => on_own_thread(tool.clone(), arguments, context.clone(), runtime),
        None => in_place(&**tool, arguments, context),
    };
    // An agent tool ends by itself after a cancel, so that its log is complete.
    let ends_itself = tool.spec().annotations.agent;
    let ended = finish(Contained(Some(work)), context, limit, ends_itself).await;
    if matches!(ended, Ended::TimedOut) {
        // A thread cannot be dropped like a future; the token asks it to stop.
        context.cancel.cancel();
    }
    match ended {
        Ended::Returned(Err(ToolError::Suspended(question)))
            if ends_itself || (question.is_of_tool() && context.may_suspend()) =>
        {
            Err(question)
        }
        ended => {
            let effect = tool.spec().annotations.effect;
            Ok(ended.into_result(&context.tool_name, limit, on_thread, effect))
        }
    }
}

fn in_place<'a>(tool: &'a dyn Tool, arguments: Json, context: &'a ToolContext) -> Work<'a> {
    match contain(|| tool.call(arguments, context)) {
        Ok(mut call) => Box::pin(poll_fn(move |waker| match contain(|| call.as_mut().poll(waker)) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        })),
        Err(panic) => Box::pin(std::future::ready(Err(panic))),
    }
}

fn on_own_thread(
    tool: Arc<dyn Tool>,
    arguments: Json,
    context: ToolContext,
    runtime: Handle,
) -> Work<'static> {
    let span = tracing::Span::current();
    let thread = tokio::task::spawn_blocking(move || {
        let _entered = span.enter();
        contain(|| {
            let stopped = context.cancel.clone();
            // The async parts of the tool stop with the token.
            runtime.block_on(async {
                match select(pin!(stopped.cancelled()), tool.call(arguments, &context)).await {
                    Either::Left(_) => Err(ToolError::Cancelled),
                    Either::Right((returned, _)) => returned,
                }
            })
        })
    });
    Box::pin(async move { thread.await.unwrap_or_else(|e| Err(Panic(e.to_string()))) })
}

/// Waits until the tool ends, times out or is cancelled. The tool's future is polled once before a timer is
/// made, so that a tool with an immediate result needs no timer.
async fn finish(mut work: Contained<'_>, context: &ToolContext, limit: Duration, ends_itself: bool) -> Ended {
    let clock: &dyn Clock = &*context.run.clock;
    let deadline = clock.now() + limit;
    if let Poll::Ready(ended) = poll_fn(|waker| Poll::Ready(work.poll(waker))).await {
        return ended;
    }
    let mut cancelled = pin!(context.cancel.cancelled());
    let mut time_up = clock.sleep_until(deadline);
    poll_fn(|waker| {
        // The work is polled first: a finished result counts even if it is late.
        if let Poll::Ready(ended) = work.poll(waker) {
            return Poll::Ready(ended);
        }
        if !ends_itself && cancelled.as_mut().poll(waker).is_ready() {
            return Poll::Ready(Ended::Cancelled);
        }
        time_up.as_mut().poll(waker).map(|()| Ended::TimedOut)
    })
    .await
}

/// The future of a tool's call. A panic is caught also when the future is dropped, because a tool's
/// destructors may panic.
struct Contained<'a>(Option<Work<'a>>);

impl Contained<'_> {
    fn poll(&mut self, waker: &mut Waker<'_>) -> Poll<Ended> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        work.as_mut().poll(waker).map(|ended| match ended {
            Ok(returned) => Ended::Returned(returned),
            Err(panic) => Ended::Panicked(panic),
        })
    }
}

impl Drop for Contained<'_> {
    fn drop(&mut self) {
        let work = self.0.take();
        if let Err(Panic(message)) = contain(move || drop(work)) {
            tracing::error!(target: "archon::tools", "a tool panicked while it was dropped: {message}");
        }
    }
}

pub(crate) fn contain<T>(f: impl FnOnce() -> T) -> Result<T, Panic> {
    // After a panic the tool's future is dropped and not used again; shared state is the tool's own
    // responsibility.
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| Panic::from_payload(&*payload))
}

impl Panic {
    fn from_payload(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self(text.unwrap_or("a panic without a message").to_owned())
    }
}

impl Ended {
    fn into_result(self, tool: &str, limit: Duration, on_thread: bool, effect: Effect) -> ToolResult {
        match self {
            Self::Returned(Ok(result)) => result,
            Self::Returned(Err(error)) => shortened(error.into()),
            Self::Panicked(Panic(message)) => ToolResult::failed(
                ToolResultStatus::Error,
                format!("Error: Tool '{tool}' failed because of a bug in the tool. Try another way."),
                format!("Tool '{tool}' panicked: {message}"),
            )
            .with_metadata("error_type", "panic"),
            Self::TimedOut => {
                let mut result = mark_detached(ToolResult::timeout(limit.as_secs_f64()), on_thread);
                let advice = if effect.may_repeat() { TRY_LESS } else { CHECK_FIRST };
                result.content.push(advice.into());
                result.with_metadata("error_type", "timeout")
            }
            Self::Cancelled => {
                let mut result = mark_detached(output::cancelled_result("Cancelled"), on_thread);
                if !effect.may_repeat() {
                    result.content.push(CHECK_FIRST.into());
                }
                result
            }
        }
    }
}

/// Advice for the model after the timeout of a call that may be repeated.
const TRY_LESS: &str = "Try it with less, or go on without it.";

/// Advice for the model after a call that was stopped and may have had a side effect.
const CHECK_FIRST: &str = "It may have taken effect: check what it did before you call it again.";

/// Shortens the text of an error for the model; the result's `error_message` stays complete.
fn shortened(mut result: ToolResult) -> ToolResult {
    for block in &mut result.content {
        if let archon_types::Content::Text { text } = block {
            *text = clip(text, ERROR_SHOWN);
        }
    }
    result
}

/// Adds a note to the result of a tool that ran on its own thread (`on_thread`): the thread could not be
/// stopped and may still have effects.
fn mark_detached(mut result: ToolResult, on_thread: bool) -> ToolResult {
    if on_thread {
        result.content.push("It runs on a thread that cannot be stopped, so it may still be at work.".into());
        result.metadata.insert("left_behind".to_owned(), true.into());
    }
    result
}
