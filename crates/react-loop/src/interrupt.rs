//! Ends waits when the run is cancelled or its time is up.

use std::{
    future::poll_fn,
    pin::pin,
    task::{Context as Task, Poll, ready},
    time::Duration,
};

use archon_types::{BoxFuture, Context, Timestamp};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};

/// The reason why work has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// The run was cancelled and the grace period is over.
    Cancelled,
    /// The deadline of the run has passed.
    Deadline,
}

/// Watches one run for a cancel and its deadline. One timer serves all waits, since a new one for each would
/// wake the runtime's timer thread twice in every turn.
pub(crate) struct Watch<'a> {
    context: &'a Context,
    /// Deadline and cancel. They are only checked when they wake the task, not with each delta.
    ends: FuturesUnordered<BoxFuture<'a, Fired>>,
    fired: Option<Fired>,
}

enum Fired {
    Deadline,
    /// Holds the end of the grace period that is running.
    Cancelled(Option<BoxFuture<'static, ()>>),
}

fn ends(context: &Context, deadline: Timestamp) -> FuturesUnordered<BoxFuture<'_, Fired>> {
    let deadline = context.clock.sleep_until(deadline).map(|()| Fired::Deadline).boxed();
    let cancelled = context.cancel.cancelled().map(|()| Fired::Cancelled(None)).boxed();
    FuturesUnordered::from_iter([deadline, cancelled])
}

impl<'a> Watch<'a> {
    pub(crate) fn new(context: &'a Context, deadline: Timestamp) -> Self {
        Self { context, ends: ends(context, deadline), fired: None }
    }

    /// Sets a new deadline.
    pub(crate) fn renew(&mut self, deadline: Timestamp) {
        if matches!(self.fired, Some(Fired::Deadline)) {
            self.fired = None;
        }
        self.ends = ends(self.context, deadline);
    }

    /// Returns the context of the watched run.
    pub(crate) fn context(&self) -> &'a Context {
        self.context
    }

    /// Ready at the deadline, or `grace` after a cancel. Work that watches the token ends by itself before
    /// that. Each wait has its own grace period.
    pub(crate) fn poll(&mut self, task: &mut Task<'_>, grace: Duration) -> Poll<Interrupt> {
        if self.fired.is_none() {
            self.fired = ready!(self.ends.poll_next_unpin(task));
        }
        let Some(Fired::Cancelled(waiting)) = &mut self.fired else {
            return Poll::Ready(Interrupt::Deadline);
        };
        let clock = &self.context.clock;
        let end = waiting.get_or_insert_with(|| clock.sleep_until(clock.now() + grace));
        ready!(end.as_mut().poll(task));
        *waiting = None;
        Poll::Ready(Interrupt::Cancelled)
    }

    /// Waits for `work`; returns `None` if the run is cancelled or its deadline passes first.
    pub(crate) async fn wait_for<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|task| match work.as_mut().poll(task) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => self.poll(task, Duration::ZERO).map(|_| None),
        })
        .await
    }

    /// Waits until `due`, or until the run is cancelled or its deadline passes.
    pub(crate) async fn wait_until(&mut self, due: Timestamp) {
        let _ = self.wait_for(self.context.clock.sleep_until(due)).await;
    }
}
