//! One answer out of several attempts: what the wrappers share that ask more than once.
//!
//! An attempt may be replaced only while nothing of it was handed on: whoever reads deltas cannot take
//! them back, so a failure in the middle of an answer is the caller's.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use archon_types::{
    AssistantMessage, BoxFuture, BoxStream, CancellationToken, ModelEvent, ProviderError, Request, StopReason,
};
use futures_core::Stream;

/// What a provider streams.
pub(crate) type Events = BoxStream<'static, Result<ModelEvent, ProviderError>>;

/// The next attempt, once it may begin.
pub(crate) type Attempt = BoxFuture<'static, Events>;

/// Decides what follows a failure: another attempt, or this error.
type Next = Box<dyn FnMut(ProviderError) -> Result<Attempt, ProviderError> + Send>;

enum Phase {
    /// It is not time yet.
    Waiting(Attempt),
    Asking(Events),
    Ended,
}

/// The stream of an answer that may take several attempts.
pub(crate) struct Attempts {
    phase: Phase,
    next: Next,
    /// `Start` was handed on; the attempts after it begin silently.
    started: bool,
    /// Something was said that cannot be taken back.
    spoke: bool,
    cancelled: BoxFuture<'static, ()>,
    /// What a call that is cancelled before its time leaves.
    aborted: AssistantMessage,
}

impl Attempts {
    /// Attempts that begin with `first`. While one waits, cancelling ends the call; while one is under
    /// way, that is the attempt's own business.
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

    /// Waits until the attempt may begin; gives an event only if the call was cancelled meanwhile.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<ModelEvent>> {
        let Phase::Waiting(attempt) = &mut self.phase else { return Poll::Ready(None) };
        if self.cancelled.as_mut().poll(cx).is_ready() {
            self.phase = Phase::Ended;
            return Poll::Ready(Some(ModelEvent::Done(Box::new(mem::take(&mut self.aborted)))));
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
                    Err(error) => {
                        self.phase = Phase::Ended;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
                Some(Err(error)) => {
                    self.phase = Phase::Ended;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.phase = Phase::Ended;
                    return Poll::Ready(None);
                }
            }
        }
    }
}

/// An attempt that begins at once.
pub(crate) fn at_once(events: Events) -> Attempt {
    Box::pin(std::future::ready(events))
}
