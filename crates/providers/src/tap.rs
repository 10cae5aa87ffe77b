//! Passes on the stream of a provider and keeps a copy, for the wrappers that store answers.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use archon_types::{ModelEvent, ProviderError};
use futures_core::Stream;

use crate::Events;

/// The events of one call in the order of arrival; the last one is `Done` or an error.
pub(crate) type Heard = Vec<Result<ModelEvent, ProviderError>>;

type Ended = Box<dyn FnOnce(Heard) -> Result<(), ProviderError> + Send>;

/// A stream that passes on the events of another stream and keeps copies of them.
pub(crate) struct Tap {
    inner: Events,
    heard: Heard,
    ended: Option<Ended>,
}

impl Tap {
    /// Creates a tap that calls `ended` with all events before it passes on the last one; an error of
    /// `ended` replaces the last event. If the stream is dropped before its end, `ended` is not called.
    pub(crate) fn new(
        inner: Events,
        ended: impl FnOnce(Heard) -> Result<(), ProviderError> + Send + 'static,
    ) -> Self {
        Self { inner, heard: Vec::new(), ended: Some(Box::new(ended)) }
    }
}

impl Stream for Tap {
    type Item = Result<ModelEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(event) = ready!(self.inner.as_mut().poll_next(cx)) else { return Poll::Ready(None) };
        if self.ended.is_none() {
            return Poll::Ready(Some(event));
        }
        self.heard.push(event.clone());
        if !matches!(event, Ok(ModelEvent::Done(_)) | Err(_)) {
            return Poll::Ready(Some(event));
        }
        let heard = std::mem::take(&mut self.heard);
        let kept = self.ended.take().map_or(Ok(()), |ended| ended(heard));
        Poll::Ready(Some(kept.and(event)))
    }
}

/// Returns a stream of existing events.
pub(crate) fn played(events: Heard) -> Events {
    Box::pin(futures_util::stream::iter(events))
}
