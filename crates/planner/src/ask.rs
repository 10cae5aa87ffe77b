//! One question to a model, from its sending to the whole answer.

use archon_types::{AssistantMessage, Context, ModelEvent, Provider, ProviderError, Request, StopReason};
use futures_util::StreamExt;

/// Sends a request once. What comes before the whole answer is not looked at.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: Request,
    context: &Context,
) -> Result<AssistantMessage, ProviderError> {
    let mut stream = provider.stream(request, context.cancel.clone());
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::Done(answer) if answer.stop_reason == StopReason::Aborted => {
                return Err(ProviderError::Cancelled);
            }
            ModelEvent::Done(answer) => return Ok(*answer),
            _ => {}
        }
    }
    Err(ProviderError::Protocol("the provider's stream ended without a final message".to_owned()))
}
