//! A provider made of one closure, for tests of crates that must not depend on the providers' crate.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use archon_types::{
    AssistantMessage, BoxStream, CancellationToken, Content, ModelEvent, Provider, ProviderError, Request,
    StopReason, ToolCall,
};

type Events = Vec<Result<ModelEvent, ProviderError>>;
type Answer = dyn Fn(usize, &Request) -> Events + Send + Sync;

/// Answers each request with what a closure returns, and keeps the requests.
///
/// ```
/// use archon_testkit::FnProvider;
///
/// let model = FnProvider::new(|call, _request| FnProvider::text(if call == 0 { "Hello." } else { "Bye." }));
/// assert!(model.requests().is_empty());
/// ```
#[derive(Clone)]
pub struct FnProvider {
    answer: Arc<Answer>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl FnProvider {
    /// Creates a provider around a closure that is given the number of the call, from 0, and the request.
    pub fn new(answer: impl Fn(usize, &Request) -> Events + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), requests: Arc::default() }
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the events of an answer that is one text.
    pub fn text(text: &str) -> Events {
        let message = AssistantMessage { content: vec![Content::text(text)], ..answer() };
        vec![
            Ok(ModelEvent::Start),
            Ok(ModelEvent::TextDelta(text.to_owned())),
            Ok(ModelEvent::Done(Box::new(message))),
        ]
    }

    /// Returns the events of an answer that asks for tools.
    pub fn calls(calls: Vec<ToolCall>) -> Events {
        let mut events = vec![Ok(ModelEvent::Start)];
        for (index, call) in (0..).zip(&calls) {
            let (id, name) = (call.id.to_string(), call.name.clone());
            events.push(Ok(ModelEvent::ToolCallStart { index, id, name }));
            let arguments = call.arguments.to_string();
            events.push(Ok(ModelEvent::ToolCallDelta { index, arguments }));
            events.push(Ok(ModelEvent::ToolCallEnd { index }));
        }
        let content = calls.into_iter().map(Content::from).collect();
        let message = AssistantMessage { content, stop_reason: StopReason::ToolUse, ..answer() };
        events.push(Ok(ModelEvent::Done(Box::new(message))));
        events
    }
}

fn answer() -> AssistantMessage {
    AssistantMessage { model: "test".into(), provider: "test".into(), ..AssistantMessage::default() }
}

impl Provider for FnProvider {
    fn id(&self) -> &str {
        "test"
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let number = {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.push(request.clone());
            requests.len() - 1
        };
        let events = (self.answer)(number, &request).into();
        Box::pin(Replay { events, cancel, text: String::new() })
    }
}

/// Streams prepared events. After a cancel the answer ends as aborted, with the text so far.
struct Replay {
    events: VecDeque<Result<ModelEvent, ProviderError>>,
    cancel: CancellationToken,
    text: String,
}

impl futures_core::Stream for Replay {
    type Item = Result<ModelEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.cancel.is_cancelled() && !self.events.is_empty() {
            self.events.clear();
            let content = vec![Content::text(std::mem::take(&mut self.text))];
            let message = AssistantMessage { content, stop_reason: StopReason::Aborted, ..answer() };
            return Poll::Ready(Some(Ok(ModelEvent::Done(Box::new(message)))));
        }
        let event = self.events.pop_front();
        if let Some(Ok(ModelEvent::TextDelta(text))) = &event {
            self.text.push_str(text);
        }
        Poll::Ready(event)
    }
}
