//! Combines several attempts into one answer, for the wrappers that send a request more than once.
//!
//! An attempt may be replaced only while none of its deltas was passed on: deltas cannot be taken back, so a
//! failure in the middle of an answer goes to the caller.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use archon_types::{
    AssistantMessage, BoxFuture, CancellationToken, ModelEvent, ProviderError, Request, StopReason,
};
use futures_core::Stream;

use crate::Events;

/// The next attempt, which may wait before it begins.
pub(crate) type Attempt = BoxFuture<'static, Events>;

/// A callback after a failed attempt: returns the next attempt, or the error for the caller.
type Next = Box<dyn FnMut(ProviderError) -> Result<Attempt, ProviderError> + Send>;

enum Phase {
    /// The attempt waits for its start time.
    Waiting(Attempt),
    Asking(Events),
    Ended,
}

/// The stream of an answer that may take several attempts.
pub(crate) struct Attempts {
    phase: Phase,
    next: Next,
    /// True if a `Start` event was passed on; the `Start` events of later attempts are left out.
    started: bool,
    /// True if a delta was passed on, which cannot be taken back.
    spoke: bool,
    cancelled: BoxFuture<'static, ()>,
    /// The message that is returned if the call is cancelled before an attempt begins.
    aborted: AssistantMessage,
}

impl Attempts {
    /// Creates a stream of attempts that begins with `first`. While an attempt waits, a cancel ends the call;
    /// a running attempt handles a cancel itself.
    pub(crate) fn new(
        first: Attempt,
        provider: &str,
        request: &Request,
        cancel: CancellationToken,
        next: impl FnMut(ProviderError) -> Result<Attempt, ProviderError> + Send + 'static,
    ) -> Self {
        let aborted = AssistantMessage {
            model: request.model.clone(),
            provider: provider.to_owned(),
            stop_reason: StopReason::Aborted,
            ..AssistantMessage::default()
        };
        Self {
            phase: Phase::Waiting(first),
            next: Box::new(next),
            started: false,
            spoke: false,
            cancelled: Box::pin(cancel.cancelled_owned()),
            aborted,
        }
    }

    fn end_with<T>(&mut self, last: Option<T>) -> Poll<Option<T>> {
        self.phase = Phase::Ended;
        Poll::Ready(last)
    }

    /// Waits until the attempt may begin. Returns an event only if the call was cancelled meanwhile.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<ModelEvent>> {
        let Phase::Waiting(attempt) = &mut self.phase else { return Poll::Ready(None) };
        if self.cancelled.as_mut().poll(cx).is_ready() {
            let aborted = mem::take(&mut self.aborted);
            return self.end_with(Some(ModelEvent::Done(Box::new(aborted))));
        }
        let events = ready!(attempt.as_mut().poll(cx));
        self.phase = Phase::Asking(events);
        Poll::Ready(None)
    }
}

impl Stream for Attempts {
    type Item = Result<ModelEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(aborted) = ready!(self.wait(cx)) {
                return Poll::Ready(Some(Ok(aborted)));
            }
            let Phase::Asking(events) = &mut self.phase else { return Poll::Ready(None) };
            match ready!(events.as_mut().poll_next(cx)) {
                Some(Ok(ModelEvent::Start)) if mem::replace(&mut self.started, true) => {}
                Some(Ok(event)) => {
                    self.started = true;
                    self.spoke |= event != ModelEvent::Start;
                    return Poll::Ready(Some(Ok(event)));
                }
                Some(Err(error)) if !self.spoke => match (self.next)(error) {
                    Ok(attempt) => self.phase = Phase::Waiting(attempt),
                    Err(error) => return self.end_with(Some(Err(error))),
                },
                last => return self.end_with(last),
            }
        }
    }
}

/// Returns an attempt that begins at once.
pub(crate) fn at_once(events: Events) -> Attempt {
    Box::pin(std::future::ready(events))
}
