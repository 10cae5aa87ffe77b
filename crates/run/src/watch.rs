//! Ends waits when the run is cancelled or its deadline has passed.

use std::{
    future::poll_fn,
    pin::pin,
    sync::Arc,
    task::{Context as Task, Poll, ready},
    time::Duration,
};

use archon_types::{BoxFuture, CancellationToken, Clock, Context, Timestamp};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};

/// The reason why work must stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The run was cancelled and the grace period is over.
    Cancelled,
    /// The deadline of the run has passed.
    Deadline,
}

/// Watches one run for a cancel and for its deadline. One timer serves all waits, since a new timer for each
/// wait would wake the runtime's timer thread twice in every turn.
pub struct InterruptWatch {
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    /// Futures that complete at the deadline and at a cancel. They are polled only when they wake the task,
    /// not with each delta.
    ends: FuturesUnordered<BoxFuture<'static, Fired>>,
    fired: Option<Fired>,
}

enum Fired {
    Deadline,
    /// The run was cancelled. The future is the grace period of the current wait.
    Cancelled(Option<BoxFuture<'static, ()>>),
}

impl InterruptWatch {
    /// Creates a watch for the run that `context` names. Without a deadline it watches only for a cancel.
    pub fn new(context: &Context, deadline: Option<Timestamp>) -> Self {
        let (clock, cancel) = (context.clock.clone(), context.cancel.clone());
        let mut watch = Self { clock, cancel, ends: FuturesUnordered::new(), fired: None };
        watch.await_ends(deadline);
        watch
    }

    /// Sets a new deadline for the run.
    pub fn renew(&mut self, deadline: Timestamp) {
        if matches!(self.fired, Some(Fired::Deadline)) {
            self.fired = None;
        }
        self.await_ends(Some(deadline));
    }

    fn await_ends(&mut self, deadline: Option<Timestamp>) {
        let cancelled = self.cancel.clone().cancelled_owned().map(|()| Fired::Cancelled(None)).boxed();
        let deadline = deadline.map(|end| self.clock.sleep_until(end).map(|()| Fired::Deadline).boxed());
        self.ends = deadline.into_iter().chain([cancelled]).collect();
    }

    /// Polls for the interrupt: ready at the deadline, or `grace` after a cancel. Work that watches the
    /// cancellation token ends by itself before the grace period is over. Each wait has its own grace period.
    pub fn poll(&mut self, task: &mut Task<'_>, grace: Duration) -> Poll<Interrupt> {
        if self.fired.is_none() {
            self.fired = ready!(self.ends.poll_next_unpin(task));
        }
        let Some(Fired::Cancelled(waiting)) = &mut self.fired else {
            return Poll::Ready(Interrupt::Deadline);
        };
        let clock = &self.clock;
        let end = waiting.get_or_insert_with(|| clock.sleep_until(clock.now() + grace));
        ready!(end.as_mut().poll(task));
        *waiting = None;
        Poll::Ready(Interrupt::Cancelled)
    }

    /// Waits for `work` and returns its output; `None` if the run is cancelled or its deadline passes first.
    pub async fn wait_for<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|task| match work.as_mut().poll(task) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => self.poll(task, Duration::ZERO).map(|_| None),
        })
        .await
    }

    /// Waits until the time `due`, or until the run is cancelled or its deadline passes.
    pub async fn wait_until(&mut self, due: Timestamp) {
        let _ = self.wait_for(self.clock.sleep_until(due)).await;
    }
}

impl std::fmt::Debug for InterruptWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InterruptWatch").field("has_fired", &self.fired.is_some()).finish_non_exhaustive()
    }
}
