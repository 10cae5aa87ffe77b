//! Ends a wait for bytes: on a cancel or at a timeout.
//!
//! The watch is polled only while no bytes were received, so a fast answer has no cost.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use archon_types::CancellationToken;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Pending, Timeouts};

/// The reason why a wait ended without bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Cancelled,
    /// No bytes were received for this long.
    Idle(Duration),
    /// The whole answer took longer than this.
    Total(Duration),
}

/// Watches the cancel and the timeouts of one exchange.
pub(crate) struct Watch {
    cancel: CancellationToken,
    cancelled: Option<Pending<()>>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The task that the cancel and the timer wake.
    wakes: Option<Waker>,
    /// The time of the last bytes, which is read from the clock at the first wait after them.
    since: Option<Instant>,
    /// The current maximum time without bytes: `first_byte` until the first bytes come, then `idle`.
    limit: Duration,
    idle: Duration,
    total: Option<(Instant, Duration)>,
}

impl Watch {
    /// Starts the timeouts of an exchange.
    pub(crate) fn new(cancel: CancellationToken, timeouts: Timeouts) -> Self {
        let total = timeouts.total.map(|limit| (Instant::now() + limit, limit));
        Self {
            cancel,
            cancelled: None,
            timer: None,
            wakes: None,
            since: None,
            limit: timeouts.first_byte,
            idle: timeouts.idle,
            total,
        }
    }

    /// Polls a future. Returns an error if a cancel or a timeout comes before the future is ready.
    pub(crate) fn poll_for<T>(
        &mut self,
        future: &mut Pending<T>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, Interrupt>> {
        if self.cancel.is_cancelled() {
            return Poll::Ready(Err(Interrupt::Cancelled));
        }
        match future.as_mut().poll(cx) {
            Poll::Pending => self.poll(cx).map(Err),
            ready => ready.map(Ok),
        }
    }

    /// Restarts the idle timeout after bytes were received.
    pub(crate) fn touch(&mut self) {
        self.since = None;
        self.limit = self.idle;
    }

    /// Returns `Pending` while the wait may continue.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Interrupt> {
        let idle_end = *self.since.get_or_insert_with(Instant::now) + self.limit;
        let end = self.total.map_or(idle_end, |(total, _)| total.min(idle_end));
        // Both already wake this task. This case is checked first, since it comes with each delta.
        if self.wakes.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()))
            && !self.cancel.is_cancelled()
            && self.timer.as_ref().is_some_and(|timer| !timer.is_elapsed() && timer.deadline() <= end)
        {
            return Poll::Pending;
        }
        self.wakes = Some(cx.waker().clone());
        let cancel = &self.cancel;
        let cancelled = self.cancelled.get_or_insert_with(|| Box::pin(cancel.clone().cancelled_owned()));
        if cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Interrupt::Cancelled);
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        // The timer is reset when it fires, not with every piece, since a reset costs more than a piece. It
        // would fire too late only when the limit shrinks, from that of the first byte to the idle limit.
        if timer.deadline() > end {
            timer.as_mut().reset(end);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() < end {
                timer.as_mut().reset(end);
                continue;
            }
            return Poll::Ready(match self.total {
                Some((total, limit)) if total <= idle_end => Interrupt::Total(limit),
                _ => Interrupt::Idle(self.limit),
            });
        }
        Poll::Pending
    }
}
