//! Hands on what a provider streams and keeps a copy, for the wrappers that remember answers.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use archon_types::{ModelEvent, ProviderError};
use futures_core::Stream;

use crate::attempts::Events;

/// The events of one call as they came; the last is `Done` or an error.
pub(crate) type Heard = Vec<Result<ModelEvent, ProviderError>>;

type Ended = Box<dyn FnOnce(Heard) -> Result<(), ProviderError> + Send>;

/// A stream that is listened to.
pub(crate) struct Tap {
    inner: Events,
    heard: Heard,
    ended: Option<Ended>,
}

impl Tap {
    /// Calls `ended` with everything before the last event is handed on; its error takes that event's
    /// place. A stream that is dropped before its end is forgotten.
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

/// Streams events that are there already.
pub(crate) fn played(events: Heard) -> Events {
    Box::pin(Played(events.into_iter()))
}

struct Played(std::vec::IntoIter<Result<ModelEvent, ProviderError>>);

impl Stream for Played {
    type Item = Result<ModelEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}
