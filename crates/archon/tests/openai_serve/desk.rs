//! A program with the agent `desk`, whose model does what its prompt says; `clerk` is not offered to clients.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    Archon, Runs,
    openai_serve::{AgentModel, ModelServer, ModelServerOptions},
    store::InMemoryJournal,
    tool,
    tools::{Ask, EngineOptions},
    types::{
        ApiErrorKind, AskLater, BoxFuture, Content, InputFilter, InputVerdict, Message, ModelEvent,
        ProviderError, Request, RetryConfig, StopReason, ToolCall, Usage,
    },
};
use archon_testkit::FnProvider;
use serde_json::json;
use tokio::sync::Semaphore;

type Events = Vec<Result<ModelEvent, ProviderError>>;

/// Takes a step that changes something.
#[tool]
async fn step(to: String) -> String {
    format!("stepped to {to}")
}

/// Looks something up.
#[tool(read_only)]
async fn look(name: String) -> String {
    format!("{name} is 42")
}

/// Waits until the test lets it go on.
#[tool(read_only)]
async fn wait(#[state] gate: &Arc<Gate>) -> &'static str {
    gate.entered.add_permits(1);
    if let Ok(permit) = gate.open.acquire().await {
        permit.forget();
    }
    "went on"
}

/// The place at which the tool `wait` waits.
pub(crate) struct Gate {
    pub(crate) entered: Semaphore,
    pub(crate) open: Semaphore,
}

/// Rejects a message with a forbidden word, and checks one with the word `slowly` until the test lets it go on.
struct Forbidden {
    gate: Arc<Gate>,
}

impl InputFilter for Forbidden {
    fn check<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, InputVerdict> {
        let (text, gate) = (message.text(), self.gate.clone());
        Box::pin(async move {
            if text.contains("slowly") {
                gate.entered.add_permits(1);
                gate.open.acquire().await.unwrap().forget();
            }
            match text.contains("forbidden") {
                true => InputVerdict::Reject("a forbidden word".to_owned()),
                false => InputVerdict::Pass,
            }
        })
    }
}

/// The program.
pub(crate) struct Desk {
    pub(crate) journal: InMemoryJournal,
    pub(crate) runs: Runs,
    pub(crate) gate: Arc<Gate>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let journal = InMemoryJournal::new();
        let gate = Arc::new(Gate { entered: Semaphore::new(0), open: Semaphore::new(0) });
        let agent = |id: &str| {
            let tries = AtomicUsize::new(0);
            let mut retry = RetryConfig::default();
            retry.initial_delay_ms = 1;
            Archon::builder()
                .agent_id(id)
                .provider(Arc::new(FnProvider::new(move |_, request| reply(request, &tries))), "scripted")
                .engine_options(EngineOptions::default().asking(Ask::BeforeChanges))
                .approver(AskLater)
                .retry(retry)
                .input_filter(Arc::new(Forbidden { gate: gate.clone() }))
                .journal(Arc::new(journal.clone()))
                .tool(step)
                .tool(look)
                .tool(wait(gate.clone()))
                .build()
                .unwrap()
        };
        let runs = Runs::new(agent("desk"));
        let runs = runs.with_agent(agent("brief").run_agent()).with_agent(agent("clerk").run_agent());
        Self { runs, journal, gate }
    }

    /// Returns a server that offers the agents `desk`, and `brief` with its final answers only.
    pub(crate) fn server(&self, options: ModelServerOptions) -> ModelServer {
        let models = [AgentModel::new("desk"), AgentModel::new("brief").with_final_answer_only()];
        ModelServer::new(Arc::new(self.runs.clone()), models, Arc::new(archon::SystemClock), options)
    }
}

/// Does what the last message says; `tries` counts the answers that break off.
fn reply(request: &Request, tries: &AtomicUsize) -> Events {
    let Some(last) = request.messages.iter().last() else { return FnProvider::text("no prompt") };
    let said = last.text();
    let (word, rest) = said.split_once(' ').unwrap_or((said.as_str(), ""));
    let call = |name: &str, arguments| FnProvider::calls(vec![ToolCall::new("c", name, arguments)]);
    let is_first = || tries.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
    match (&**last, word) {
        (Message::ToolResult(_), _) => with_usage(pieces(&format!("Done: {said}."))),
        (_, "step") => with_usage(call("step", json!({ "to": rest }))),
        (_, "look") => with_usage(say_before("I look it up.", call("look", json!({ "name": rest })))),
        (_, "wait") => with_usage(call("wait", json!({}))),
        // The same prompt breaks off first, and then gets the whole answer.
        (_, "break") if is_first() => vec![
            Ok(ModelEvent::Start),
            Ok(ModelEvent::TextDelta("It is".to_owned())),
            Err(ProviderError::Network("the connection broke".to_owned().into())),
        ],
        (_, "break") => with_usage(pieces(rest)),
        (_, "fail") => vec![Err(ProviderError::Api {
            status: 400,
            kind: ApiErrorKind::InvalidRequest,
            message: "this model says no".to_owned(),
        })],
        (_, "cut") => with_stop(with_usage(pieces("It is")), StopReason::Length),
        (_, "recall") => with_usage(pieces(&describe(request))),
        _ => with_usage(pieces(&format!("You said: {said}"))),
    }
}

/// Writes all messages of a request: who has which role, and the number of images.
fn describe(request: &Request) -> String {
    let line = |message: &Message| {
        let role = match message {
            Message::User(_) => "user",
            Message::Assistant(_) => "assistant",
            Message::ToolResult(_) => "tool",
        };
        let images = message.content().iter().filter(|block| block.as_media().is_some()).count();
        format!("{role}: {}{}", message.text(), " [image]".repeat(images))
    };
    request.messages.iter().map(|message| line(message)).collect::<Vec<_>>().join("\n")
}

/// Streams a text word by word.
fn pieces(text: &str) -> Events {
    let mut events = FnProvider::text(text);
    let words = text.split_inclusive(' ').map(|word| Ok(ModelEvent::TextDelta(word.to_owned())));
    drop(events.splice(1..2, words));
    events
}

/// Says a text before the calls of an answer.
fn say_before(text: &str, mut events: Events) -> Events {
    events.insert(1, Ok(ModelEvent::TextDelta(text.to_owned())));
    if let Some(Ok(ModelEvent::Done(message))) = events.last_mut() {
        message.content.insert(0, Content::text(text));
    }
    events
}

fn with_usage(mut events: Events) -> Events {
    if let Some(Ok(ModelEvent::Done(message))) = events.last_mut() {
        message.usage = Usage { input: 70, output: 20, cache_read: 30, ..Usage::default() };
    }
    events
}

fn with_stop(mut events: Events, reason: StopReason) -> Events {
    if let Some(Ok(ModelEvent::Done(message))) = events.last_mut() {
        message.stop_reason = reason;
    }
    events
}
