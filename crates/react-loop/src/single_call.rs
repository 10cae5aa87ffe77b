//! One question to a model outside of the conversation: no tools, no deltas.

use std::task::Poll;

use archon_types::{AssistantMessage, Context, ModelEvent, Provider, ProviderError, Request};
use futures_util::StreamExt;

use crate::{
    driver::{MODEL_GRACE, error_of},
    interrupt::Watch,
};

/// Sends a request once and waits for the whole answer.
pub(crate) async fn ask_once(
    provider: &dyn Provider,
    request: Request,
    watch: &mut Watch<'_>,
    context: &Context,
) -> Result<AssistantMessage, ProviderError> {
    let mut stream = provider.stream(request, context.cancel.clone());
    std::future::poll_fn(|task| {
        loop {
            match stream.poll_next_unpin(task) {
                Poll::Ready(Some(Ok(ModelEvent::Done(answer)))) => return Poll::Ready(Ok(*answer)),
                Poll::Ready(Some(Ok(_))) => {}
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
