//! What may end a wait for bytes: cancellation and the time limits.
//!
//! It is asked only while nothing has come, so a fast answer pays nothing for it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use archon_types::CancellationToken;
use tokio::time::{Instant, Sleep, sleep_until};

use super::Timeouts;

/// Why a wait ended without bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Cancelled,
    /// Nothing came for this long.
    Idle(Duration),
    /// The whole answer took longer than this.
    Total(Duration),
}

/// Watches one exchange.
pub(crate) struct Watch {
    cancel: CancellationToken,
    cancelled: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Whom both wake.
    wakes: Option<Waker>,
    /// When bytes came last; read from the clock at the first wait after them.
    since: Option<Instant>,
    patience: Duration,
    idle: Duration,
    total: Option<(Instant, Duration)>,
}

impl Watch {
    /// Starts the clock of an exchange.
    pub(crate) fn new(cancel: CancellationToken, timeouts: Timeouts) -> Self {
        let total = timeouts.total.map(|limit| (Instant::now() + limit, limit));
        Self {
            cancel,
            cancelled: None,
            timer: None,
            wakes: None,
            since: None,
            patience: timeouts.first_byte,
            idle: timeouts.idle,
            total,
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Bytes came: patience begins anew.
    pub(crate) fn touch(&mut self) {
        self.since = None;
        self.patience = self.idle;
    }

    /// Nothing has come. Says whether to go on waiting.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Interrupt> {
        let idle_end = *self.since.get_or_insert_with(Instant::now) + self.patience;
        let end = self.total.map_or(idle_end, |(total, _)| total.min(idle_end));
        // Both wake this task already: with each delta that does, they need not be asked again.
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
        // The timer is moved when it fires, not with every piece: moving it costs more than the piece.
        // It fires too late only if the limit shrank, from the first byte's to the idle one.
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
                _ => Interrupt::Idle(self.patience),
            });
        }
        Poll::Pending
    }
}
