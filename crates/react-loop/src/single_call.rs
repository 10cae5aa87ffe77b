//! One request to a model, until the answer is complete. Secrets of the run are redacted.

use std::{panic::AssertUnwindSafe, sync::Arc, task::Poll, time::Duration};

use archon_run::{Interrupt, InterruptWatch};
use archon_types::{
    AssistantMessage, CommandId, Context, Encoded, Message, ModelEvent, ModelFailure, Provider,
    ProviderError, RecordBody, Request, RequestOptions, RetryConfig, Timestamp, ToolChoice,
};
use futures_util::{FutureExt, StreamExt};

use crate::{
    Driver, ReactMachine, decode_answer, deltas::Deltas, panic_text::panic_text, redacted::RedactedEvents,
};

/// Grace period of a provider after a cancel, before its stream is dropped.
const MODEL_GRACE: Duration = Duration::from_millis(200);

/// Sends a request once and returns the complete answer. `on_event` gets the events of the answer while it
/// streams, without secrets.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: Request,
    mut on_event: impl FnMut(ModelEvent),
    watch: &mut InterruptWatch,
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

/// Returns a request outside of the conversation: a single question, without tools and without a schema.
pub(crate) fn auxiliary_request(
    model: &str,
    role: &str,
    question: String,
    mut options: RequestOptions,
    context: &Context,
) -> Request {
    options.tool_choice = ToolChoice::Auto;
    options.response_format = None;
    let mut request = Request::new(model, vec![Message::user(question, context.clock.now())]);
    request.system = Some(Arc::new(Encoded::new(role.to_owned())));
    request.options = Arc::new(options);
    request
}

fn error_of(cause: Interrupt) -> ProviderError {
    match cause {
        Interrupt::Cancelled => ProviderError::Cancelled,
        Interrupt::Deadline => ProviderError::Timeout("the run's time is up".into()),
    }
}

/// Sends the machine's request and returns the record of the answer or failure.
pub(crate) async fn answer(
    driver: &Driver,
    machine: &ReactMachine,
    request: Request,
    (command, attempt): (CommandId, u32),
    watch: &mut InterruptWatch,
    context: &Context,
) -> RecordBody {
    let mode = machine.config().tool_mode;
    let (messages, tools) = (request.messages.iter().count(), request.tools.len());
    let tokens = machine.window().usage().tokens;
    tracing::debug!(run = %context.run, "request: {messages} messages with {tokens} tokens, {tools} tools");
    let mut deltas = Deltas::new(command, attempt, context);
    let provider = driver.provider_of(machine);
    let answer = match provider {
        Some(provider) => {
            let answer = ask(&**provider, request, |event| deltas.emit(event), watch, context);
            // A panic of the provider counts as a failed request.
            AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|panic| {
                Err(ProviderError::Other(format!("the provider panicked: {}", panic_text(&*panic)).into()))
            })
        }
        None => Err(not_here(machine)),
    };
    match answer {
        Ok(answer) => RecordBody::ModelCallFinished {
            command,
            attempt,
            message: Box::new(decode_answer(sign(answer, provider, machine, context), mode, command)),
        },
        Err(error) => {
            let error = error.with_text(|text| context.redactor.clean(text));
            tracing::warn!(run = %context.run, attempt, model = machine.model(), %error, "no answer");
            let mut failure = ModelFailure::new(&error, RetryConfig::draw_jitter(&*context.ids));
            failure.had_output = deltas.any();
            RecordBody::ModelCallFailed { command, attempt, failure }
        }
    }
}

/// Fills in provider, model and timestamp if the provider left them out.
fn sign(
    mut answer: AssistantMessage,
    provider: Option<&Arc<dyn Provider>>,
    machine: &ReactMachine,
    context: &Context,
) -> AssistantMessage {
    if let Some(provider) = provider.filter(|_| answer.provider.is_empty()) {
        provider.id().clone_into(&mut answer.provider);
    }
    if answer.model.is_empty() {
        machine.model().clone_into(&mut answer.model);
    }
    if answer.timestamp == Timestamp::default() {
        answer.timestamp = context.clock.now();
    }
    answer
}

/// Returns the error for a model or key of the run that this process does not have.
fn not_here(machine: &ReactMachine) -> ProviderError {
    let key = machine.target().key + 1;
    let text = format!(
        "the model {} with key {key}, with which the run was started, is not configured in this process",
        machine.model()
    );
    ProviderError::Other(text.into())
}
