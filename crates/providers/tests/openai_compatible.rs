//! Chat completions against a real server on this machine: what is sent, what is understood, how an
//! answer that breaks off ends, and that it is live.

// A test that cannot go on panics, its helpers included.
#![allow(clippy::unwrap_used)]

#[path = "openai_compatible/failures.rs"]
mod failures;
#[path = "openai_compatible/fixtures.rs"]
mod fixtures;
#[path = "openai_compatible/requests.rs"]
mod requests;
#[path = "openai_compatible/service_streams.rs"]
mod service_streams;
#[path = "openai_compatible/services.rs"]
mod services;
#[path = "openai_compatible/streams.rs"]
mod streams;

use std::{future::poll_fn, sync::Arc};

use archon_providers::{OpenAiCompatible, OpenAiOptions};
use archon_testkit::{MockServer, VirtualClock};
use archon_types::{
    AssistantMessage, BoxStream, CancellationToken, Message, ModelEvent, Provider, ProviderError, Request,
    Timestamp,
};

/// The key that must never be seen.
const KEY: &str = "sk-canary-1234";

type Events = BoxStream<'static, Result<ModelEvent, ProviderError>>;

fn options() -> OpenAiOptions {
    OpenAiOptions::default().with_api_key(KEY).with_clock(Arc::new(VirtualClock::new()))
}

fn provider(server: &MockServer) -> OpenAiCompatible {
    OpenAiCompatible::new(&format!("{}/v1", server.url()), options()).unwrap()
}

fn ask() -> Request {
    Request::new("m", vec![Message::user("hi", Timestamp::default())])
}

fn start(provider: &OpenAiCompatible, request: Request) -> Events {
    provider.stream(request, CancellationToken::new())
}

async fn next(events: &mut Events) -> Option<Result<ModelEvent, ProviderError>> {
    poll_fn(|cx| events.as_mut().poll_next(cx)).await
}

/// Reads to the end: the events, then the message or the error. Checks that the stream ends there.
async fn finish(mut events: Events) -> (Vec<ModelEvent>, Result<AssistantMessage, ProviderError>) {
    let mut all = Vec::new();
    loop {
        match next(&mut events).await {
            Some(Ok(ModelEvent::Done(message))) => {
                assert!(next(&mut events).await.is_none(), "nothing follows the end");
                return (all, Ok(*message));
            }
            Some(Ok(event)) => all.push(event),
            Some(Err(e)) => {
                assert!(next(&mut events).await.is_none(), "nothing follows an error");
                return (all, Err(e));
            }
            None => panic!("the stream ended without an end: {all:?}"),
        }
    }
}

async fn answer(server: &MockServer, request: Request) -> Result<AssistantMessage, ProviderError> {
    finish(start(&provider(server), request)).await.1
}
