//! One request to a model, from its sending to the whole answer.

use std::{task::Poll, time::Duration};

use archon_types::{AssistantMessage, Context, ModelEvent, Provider, ProviderError, Request};
use futures_util::StreamExt;

use crate::interrupt::{Interrupt, Watch};

/// How long a provider may take to notice a cancelled token before its stream is dropped.
const MODEL_GRACE: Duration = Duration::from_millis(200);

/// Sends a request once and hands on what comes before the whole answer.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: Request,
    mut on_event: impl FnMut(ModelEvent),
    watch: &mut Watch<'_>,
    context: &Context,
) -> Result<AssistantMessage, ProviderError> {
    let mut stream = provider.stream(request, context.cancel.clone());
    std::future::poll_fn(|task| {
        loop {
            match stream.poll_next_unpin(task) {
                Poll::Ready(Some(Ok(ModelEvent::Done(answer)))) => return Poll::Ready(Ok(*answer)),
                Poll::Ready(Some(Ok(event))) => on_event(event),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => {
                    let text = "the provider's stream ended without a final message";
                    return Poll::Ready(Err(ProviderError::Protocol(text.into())));
                }
                Poll::Pending => return watch.poll(task, MODEL_GRACE).map(|cause| Err(error_of(cause))),
            }
        }
    })
    .await
}

fn error_of(cause: Interrupt) -> ProviderError {
    match cause {
        Interrupt::Cancelled => ProviderError::Cancelled,
        Interrupt::Deadline => ProviderError::Timeout("the run's time is up".into()),
    }
}
