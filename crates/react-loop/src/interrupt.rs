//! What ends a wait from outside: the run was cancelled, or its time is up.

use std::{
    future::poll_fn,
    pin::pin,
    task::{Context as Task, Poll, ready},
    time::Duration,
};

use archon_types::{BoxFuture, Context, Timestamp};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};

/// Why something that was under way has to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// The run was cancelled and the grace is over.
    Cancelled,
    /// The run's time is up.
    Deadline,
}

/// Watches one run from its first wait to its last. There is one timer for all waits: setting one up
/// for each would wake the runtime's timer thread twice in every turn.
pub(crate) struct Watch<'a> {
    context: &'a Context,
    /// The end of the time, and the cancel. They are looked at when they wake the task, not with each delta that does.
    ends: FuturesUnordered<BoxFuture<'a, Fired>>,
    fired: Option<Fired>,
}

enum Fired {
    Deadline,
    /// With the end of the grace that is running.
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

    /// The time is up later than was known.
    pub(crate) fn renew(&mut self, deadline: Timestamp) {
        if matches!(self.fired, Some(Fired::Deadline)) {
            self.fired = None;
        }
        self.ends = ends(self.context, deadline);
    }

    /// The run that is watched.
    pub(crate) fn context(&self) -> &'a Context {
        self.context
    }

    /// Ready when the time is up, or `grace` after the cancel: who watches the token ends by itself
    /// before that. Each wait has a grace of its own.
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

    /// Waits for something that has no end of its own; none if the run is cancelled or its time is up before.
    pub(crate) async fn wait_for<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|task| match work.as_mut().poll(task) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => self.poll(task, Duration::ZERO).map(|_| None),
        })
        .await
    }

    /// Waits for `due`, unless the run is cancelled or its time is up before.
    pub(crate) async fn wait_until(&mut self, due: Timestamp) {
        let _ = self.wait_for(self.context.clock.sleep_until(due)).await;
    }
}
