//! One request to a model, from sending it to the complete answer. Secrets of the run are redacted.

use std::{task::Poll, time::Duration};

use archon_types::{AssistantMessage, Context, ModelEvent, Provider, ProviderError, Request};
use futures_util::StreamExt;

use crate::{
    interrupt::{Interrupt, Watch},
    redacted::RedactedEvents,
};

/// Grace period of a provider after a cancel before its stream is dropped.
const MODEL_GRACE: Duration = Duration::from_millis(200);

/// Sends a request once, and passes on the events before the complete answer.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: Request,
    mut on_event: impl FnMut(ModelEvent),
    watch: &mut Watch<'_>,
    context: &Context,
) -> Result<AssistantMessage, ProviderError> {
    provider.secrets().iter().for_each(|secrets| context.redactor.include(secrets));
    let mut redacted = RedactedEvents::new(&context.redactor);
    let mut stream = provider.stream(request, context.cancel.clone());
    std::future::poll_fn(|task| {
        loop {
            match stream.poll_next_unpin(task) {
                Poll::Ready(Some(Ok(ModelEvent::Done(mut answer)))) => {
                    redacted.push(ModelEvent::Done(Box::default()), &mut on_event);
                    context.redactor.clean_answer(&mut answer);
                    return Poll::Ready(Ok(*answer));
                }
                Poll::Ready(Some(Ok(event))) => redacted.push(event, &mut on_event),
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Err(error.with_text(|text| context.redactor.clean(text))));
                }
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
