//! A model that gives the answers of a test's script, so that whole runs can be tested without a network.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use archon_types::{
    AssistantMessage, BoxFuture, CancellationToken, Capabilities, Clock, Content, Json, ModelEvent, Provider,
    ProviderError, Request, StopReason, Timestamp, ToolCall, Usage,
};
use futures_core::Stream;
use serde_json::json;

use crate::Events;

type Script = VecDeque<Result<ModelEvent, ProviderError>>;

/// One step in the script of a [`ScriptedProvider`]: an answer or a failure.
///
/// ```
/// use std::time::Duration;
///
/// use archon_providers::Step;
/// use archon_types::{StopReason, Usage};
///
/// let call = Step::call("call_1", "add", serde_json::json!({ "a": 19, "b": 23 }));
/// let answer = Step::text("It is 4")
///     .after(Duration::from_secs(2))
///     .with_usage(Usage { input: 100, output: 20, ..Usage::default() })
///     .with_stop_reason(StopReason::Length);
/// ```
#[derive(Clone)]
pub struct Step {
    kind: Kind,
    delay: Duration,
    usage: Usage,
    stop_reason: Option<StopReason>,
}

#[derive(Clone)]
enum Kind {
    Content(Vec<Content>),
    Error(ProviderError),
    Events(Vec<Result<ModelEvent, ProviderError>>),
    Reply(Arc<dyn Fn(&Request) -> Step + Send + Sync>),
}

impl Step {
    /// Creates an answer with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::content(vec![Content::text(text)])
    }

    /// Creates an answer with one tool call.
    pub fn call(id: &str, name: &str, arguments: Json) -> Self {
        Self::calls(vec![ToolCall::new(id, name, arguments)])
    }

    /// Creates an answer with several tool calls.
    pub fn calls(calls: Vec<ToolCall>) -> Self {
        Self::content(calls.into_iter().map(Content::from).collect())
    }

    /// Creates an answer with thinking and then this text.
    pub fn thinking(thinking: impl Into<String>, text: impl Into<String>) -> Self {
        let thinking = Content::Thinking { thinking: thinking.into(), signature: None };
        Self::content(vec![thinking, Content::text(text)])
    }

    /// Creates an answer with this content, in order.
    pub fn content(content: Vec<Content>) -> Self {
        Self::of(Kind::Content(content))
    }

    /// Creates a step that fails with this error.
    pub fn error(error: ProviderError) -> Self {
        Self::of(Kind::Error(error))
    }

    /// Creates a step with exactly these events; nothing is added, not even the end of the answer.
    pub fn events(events: Vec<Result<ModelEvent, ProviderError>>) -> Self {
        Self::of(Kind::Events(events))
    }

    /// Creates an answer that a closure computes from the request. The step that the closure returns also
    /// sets the token usage.
    pub fn reply(reply: impl Fn(&Request) -> Step + Send + Sync + 'static) -> Self {
        Self::of(Kind::Reply(Arc::new(reply)))
    }

    /// Sets a delay before the answer. The provider needs a clock for it: [`ScriptedProvider::with_clock`].
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the token usage that the answer reports. Default: no tokens.
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the stop reason of the answer. Default: the reason that fits the content.
    pub fn with_stop_reason(mut self, reason: StopReason) -> Self {
        self.stop_reason = Some(reason);
        self
    }

    fn of(kind: Kind) -> Self {
        Self { kind, delay: Duration::ZERO, usage: Usage::default(), stop_reason: None }
    }
}

/// One call of a [`ScriptedProvider`], in its [`history`](ScriptedProvider::history).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The text of the last message, cut to 200 characters and `...` if it is longer.
    pub prompt: String,
    /// The number of the call; the first call has 0.
    pub call_number: usize,
}

/// A provider that answers the first request with the first step, and so on. Clones share the script and the
/// history.
///
/// A new provider begins with the first step, even if it continues a run that another process began. For such
/// runs use [`Step::reply`], which can compute the answer from the conversation.
///
/// A step reports no tokens unless [`Step::with_usage`] sets them. If a run knows the model's price, a call
/// without reported tokens costs the amount that was reserved for it. So a test of costs sets the tokens of
/// each step:
///
/// ```
/// use archon_providers::{ScriptedProvider, Step};
/// use archon_types::Usage;
///
/// let usage = Usage { input: 100, output: 20, ..Usage::default() };
/// let model = ScriptedProvider::new([Step::text("It is on its way.").with_usage(usage)]);
/// ```
#[derive(Clone)]
pub struct ScriptedProvider {
    script: Arc<[Step]>,
    when_exhausted: Option<Step>,
    clock: Option<Arc<dyn Clock>>,
    history: Arc<Mutex<Vec<HistoryEntry>>>,
    capabilities: Capabilities,
}

impl ScriptedProvider {
    /// Creates a model with this script. A request after the last step fails with `script exhausted`.
    pub fn new(script: impl IntoIterator<Item = Step>) -> Self {
        Self {
            script: script.into_iter().collect(),
            when_exhausted: None,
            clock: None,
            history: Arc::default(),
            capabilities: Capabilities::default(),
        }
    }

    /// Creates a model that answers with these texts, for instance those of [`response_chain`].
    pub fn texts<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        Self::new(texts.into_iter().map(Step::text))
    }

    /// Sets the text that answers all requests after the end of the script.
    ///
    /// ```
    /// use archon_providers::ScriptedProvider;
    ///
    /// let model = ScriptedProvider::texts(["Hello."]).when_exhausted("I have nothing to add.");
    /// ```
    pub fn when_exhausted(mut self, text: impl Into<String>) -> Self {
        self.when_exhausted = Some(Step::text(text));
        self
    }

    /// Sets the clock, which gives the times of messages and is needed for steps with a delay. Default: none;
    /// all times are 0.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_providers::ScriptedProvider;
    /// use archon_testkit::VirtualClock;
    ///
    /// let model = ScriptedProvider::texts(["Hello."]).with_clock(Arc::new(VirtualClock::new()));
    /// ```
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the abilities that the provider reports. Default [`Capabilities::default`].
    ///
    /// ```
    /// use archon_providers::ScriptedProvider;
    /// use archon_types::Capabilities;
    ///
    /// let mut small = Capabilities::default();
    /// small.context_window = Some(8_192); // tokens
    /// let model = ScriptedProvider::texts(["Hello."]).with_capabilities(small);
    /// ```
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Returns the number of calls so far.
    pub fn call_count(&self) -> usize {
        self.lock().len()
    }

    /// Returns the calls so far, the first one first.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.lock().clone()
    }

    /// Clears the history and starts the script again.
    pub fn reset(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HistoryEntry>> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the call and returns its step.
    fn next_step(&self, request: &Request) -> Step {
        let number = {
            let mut history = self.lock();
            let call_number = history.len();
            history.push(HistoryEntry { prompt: prompt(request), call_number });
            call_number
        };
        let mut step = match self.script.get(number).or(self.when_exhausted.as_ref()) {
            Some(step) => step.clone(),
            None => {
                let said = format!("script exhausted: call {number} of a script of {}", self.script.len());
                Step::error(ProviderError::Other(said.into()))
            }
        };
        while let Kind::Reply(reply) = &step.kind {
            let replied = reply(request);
            step = Step { delay: step.delay + replied.delay, ..replied };
        }
        step
    }

    fn now(&self) -> Timestamp {
        self.clock.as_ref().map_or(Timestamp::default(), |clock| clock.now())
    }
}

impl Provider for ScriptedProvider {
    fn id(&self) -> &str {
        "scripted"
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let step = self.next_step(&request);
        let mut delay: Option<BoxFuture<'static, ()>> = None;
        let mut failure = None;
        if !step.delay.is_zero() {
            match &self.clock {
                Some(clock) => delay = Some(clock.sleep_until(clock.now() + step.delay)),
                None => failure = Some("a step with a delay needs `with_clock`"),
            }
        }
        let said = AssistantMessage {
            model: request.model,
            provider: "scripted".to_owned(),
            timestamp: self.now() + step.delay,
            ..AssistantMessage::default()
        };
        let events = match failure {
            Some(what) => VecDeque::from([Err(ProviderError::Other(what.to_owned().into()))]),
            None => events(step, &said),
        };
        let cancelled = Box::pin(cancel.cancelled_owned());
        Box::pin(Playing { delay, cancelled, events, said })
    }

    fn capabilities(&self, _: &str) -> Capabilities {
        self.capabilities
    }
}

/// A step while it is streamed.
struct Playing {
    delay: Option<BoxFuture<'static, ()>>,
    cancelled: BoxFuture<'static, ()>,
    events: Script,
    /// The message so far, which is returned if the call is cancelled.
    said: AssistantMessage,
}

impl Playing {
    fn note(&mut self, event: &ModelEvent) {
        let content = &mut self.said.content;
        match (event, content.last_mut()) {
            (ModelEvent::TextDelta(delta), Some(Content::Text { text })) => text.push_str(delta),
            (ModelEvent::TextDelta(delta), _) => content.push(Content::text(delta.as_str())),
            (ModelEvent::ThinkingDelta(delta), Some(Content::Thinking { thinking, .. })) => {
                thinking.push_str(delta);
            }
            (ModelEvent::ThinkingDelta(delta), _) => {
                content.push(Content::Thinking { thinking: delta.clone(), signature: None });
            }
            _ => {}
        }
    }
}

impl Stream for Playing {
    type Item = Result<ModelEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.events.is_empty() {
            return Poll::Ready(None);
        }
        if self.cancelled.as_mut().poll(cx).is_ready() {
            self.events.clear();
            let said = AssistantMessage { stop_reason: StopReason::Aborted, ..mem::take(&mut self.said) };
            return Poll::Ready(Some(Ok(ModelEvent::Done(Box::new(said)))));
        }
        if let Some(delay) = &mut self.delay {
            if delay.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.delay = None;
        }
        let event = self.events.pop_front();
        if let Some(Ok(event)) = &event {
            self.note(event);
        }
        Poll::Ready(event)
    }
}

/// Returns the events of a step: text word by word, tool calls in three parts, the message at the end.
fn events(step: Step, begun: &AssistantMessage) -> Script {
    let content = match step.kind {
        Kind::Content(content) => content,
        Kind::Error(error) => return VecDeque::from([Err(error)]),
        Kind::Events(events) => return events.into(),
        // Replies were already replaced by the steps that they return.
        Kind::Reply(_) => Vec::new(),
    };
    let mut events = vec![ModelEvent::Start];
    let mut calls = 0;
    for block in &content {
        match block {
            Content::Text { text } => events.extend(words(text).map(ModelEvent::TextDelta)),
            Content::Thinking { thinking, .. } => {
                events.extend(words(thinking).map(ModelEvent::ThinkingDelta));
            }
            Content::ToolCall(call) => {
                let (index, id, name) = (calls, call.id.to_string(), call.name.clone());
                let arguments = match &call.malformed {
                    Some(malformed) => malformed.text.clone(),
                    None => call.arguments.to_string(),
                };
                events.push(ModelEvent::ToolCallStart { index, id, name });
                events.push(ModelEvent::ToolCallDelta { index, arguments });
                events.push(ModelEvent::ToolCallEnd { index });
                calls += 1;
            }
            _ => {}
        }
    }
    let natural = if calls > 0 { StopReason::ToolUse } else { StopReason::Stop };
    let stop_reason = step.stop_reason.unwrap_or(natural);
    let message = AssistantMessage { content, stop_reason, usage: step.usage, ..begun.clone() };
    events.push(ModelEvent::Done(Box::new(message)));
    events.into_iter().map(Ok).collect()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(' ').map(str::to_owned)
}

fn prompt(request: &Request) -> String {
    let text = request.messages.last().map(|message| message.text()).unwrap_or_default();
    archon_types::shorten(&text, 200, "...")
}

/// Formats each step as the answer of a model in text mode, in which a model without native tool calls writes them as
/// JSON. A step is a JSON object with `thought`, `action` (a tool's name) and `action_input` or `args`. The action
/// `final` has `answer` instead. A string is not changed.
pub fn response_chain<S: Into<Json>>(steps: impl IntoIterator<Item = S>) -> Vec<String> {
    steps.into_iter().map(|step| spell(&step.into())).collect()
}

fn spell(step: &Json) -> String {
    if let Json::String(text) = step {
        return text.clone();
    }
    let field = |name: &str| step.get(name).cloned();
    let thought = field("thought").unwrap_or_else(|| "".into());
    if step["action"] == "final" {
        return json!({ "thought": thought, "action": "final", "answer": step["answer"] }).to_string();
    }
    let input = field("action_input").or_else(|| field("args")).unwrap_or_else(|| json!({}));
    json!({ "thought": thought, "action": step["action"], "action_input": input }).to_string()
}

#[cfg(test)]
#[path = "scripted_tests.rs"]
mod tests;
