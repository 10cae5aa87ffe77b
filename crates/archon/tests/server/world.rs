//! A server over a journal in memory, with a token for each role and one for a customer, and its clients.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    Archon, Event, RunId, Runs, SubAgentTool,
    server::{
        AccessToken, AllowedHosts, Role, Scope, Server, ServerOptions, TokenLimits,
        axum::{
            Router,
            body::{Body, Bytes, to_bytes},
            http::{HeaderMap, Request, StatusCode},
        },
    },
    store::InMemoryJournal,
    tool,
    tools::{Ask as AskRule, EngineOptions},
    types::{
        AskLater, Journal, Json, Message, ModelEvent, ModelPrice, ProviderError, Record, ToolCall, Usage,
    },
};
use archon_testkit::{FnProvider, VirtualClock};
use futures_util::{StreamExt, stream::BoxStream};
use serde_json::json;
use tokio::sync::Semaphore;
use tower::ServiceExt;

/// The host of the server in all requests of this file.
pub(crate) const HOST: &str = "localhost:8080";

/// Takes a step that changes something.
#[tool]
async fn step(#[state] steps: &Arc<AtomicUsize>, to: String) -> String {
    steps.fetch_add(1, Ordering::SeqCst);
    format!("stepped to {to}")
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
    entered: Semaphore,
    open: Semaphore,
}

impl Gate {
    pub(crate) async fn entered(&self) {
        self.entered.acquire().await.unwrap().forget();
    }

    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }
}

/// A program with a run service. Clones share the journal.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) journal: InMemoryJournal,
    steps: Arc<AtomicUsize>,
    pub(crate) gate: Arc<Gate>,
}

impl World {
    pub(crate) fn new() -> Self {
        let gate = Arc::new(Gate { entered: Semaphore::new(0), open: Semaphore::new(0) });
        Self { journal: InMemoryJournal::new(), steps: Arc::default(), gate }
    }

    /// Returns the settings of an agent with the tools of this world.
    pub(crate) fn builder(&self, id: &str) -> archon::ArchonBuilder {
        Archon::builder()
            .agent_id(id)
            .name(id)
            .provider(Arc::new(FnProvider::new(|_, request| reply(request))), "scripted")
            .price(ModelPrice::new(1_000_000, 2_000_000))
            .engine_options(EngineOptions::default().asking(AskRule::BeforeChanges))
            .approver(AskLater)
            .journal(Arc::new(self.journal.clone()))
            .tool(step(self.steps.clone()))
            .tool(wait(self.gate.clone()))
    }

    /// The run service of a process: its own agent `walker`, and `boss`, which calls another agent.
    pub(crate) fn runs(&self) -> Runs {
        let walker = self.builder("walker").build().unwrap();
        let clerk = SubAgentTool::new("clerk", self.builder("clerk").build().unwrap());
        let boss = self.builder("boss").tool(clerk).build().unwrap();
        Runs::new(walker).with_agent(boss.run_agent())
    }

    pub(crate) fn site(&self) -> Site {
        self.site_with(ServerOptions::default(), TokenLimits::default().with_requests_per_minute(100_000))
    }

    pub(crate) fn site_with(&self, options: ServerOptions, limits: TokenLimits) -> Site {
        self.site_of(self.runs(), options, limits)
    }

    /// A server before a service that has the journal of this world.
    pub(crate) fn site_of(&self, runs: Runs, options: ServerOptions, limits: TokenLimits) -> Site {
        let clock = VirtualClock::new();
        let all = Scope::new(Arc::new(runs.clone()));
        let anna = Scope::new(Arc::new(runs.for_tenant("anna")));
        let mut tokens: Vec<_> = Role::ALL
            .map(|role| AccessToken::new(role.as_str(), format!("{role}-secret"), role, all.clone()).unwrap())
            .into();
        tokens.push(AccessToken::new("anna", "anna-secret", Role::Operator, anna).unwrap());
        let tokens = tokens.into_iter().map(|token| token.with_limits(limits.clone()));
        let hosts = AllowedHosts::new([HOST]);
        let server = Server::new(hosts, tokens, Arc::new(clock.clone()), options);
        Site { router: server.router(), world: self.clone(), runs, server, clock }
    }

    pub(crate) fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }

    pub(crate) async fn log(&self, run: &RunId) -> Vec<Arc<Record>> {
        self.journal.read(run).await.unwrap()
    }
}

/// A model that calls the tool that its prompt names, and then says that it is done.
fn reply(request: &archon::types::Request) -> Vec<Result<ModelEvent, ProviderError>> {
    let Some(last) = request.messages.iter().last() else { return FnProvider::text("no prompt") };
    let said = last.text();
    let call = match (&**last, said.split_once(' ')) {
        (Message::User(_), Some(("step", to))) => ToolCall::new("c", "step", json!({ "to": to })),
        (Message::User(_), Some(("delegate", task))) => ToolCall::new("c", "clerk", json!({ "task": task })),
        (Message::User(_), None) if said == "wait" => ToolCall::new("c", "wait", json!({})),
        (Message::ToolResult(_), _) if said == "went on" => return with_usage(many_pieces()),
        _ => return with_usage(FnProvider::text(&format!("done: {said}"))),
    };
    with_usage(FnProvider::calls(vec![call]))
}

/// The number of pieces of the answer after `wait`.
pub(crate) const PIECES: usize = 1_000;

fn many_pieces() -> Vec<Result<ModelEvent, ProviderError>> {
    let pieces: Vec<String> = (0..PIECES).map(|n| format!("{n},")).collect();
    let mut events = FnProvider::text(&pieces.concat());
    drop(events.splice(1..2, pieces.into_iter().map(|piece| Ok(ModelEvent::TextDelta(piece)))));
    events
}

/// Reports the tokens of an answer and of its request.
pub(crate) fn with_usage(
    mut events: Vec<Result<ModelEvent, ProviderError>>,
) -> Vec<Result<ModelEvent, ProviderError>> {
    if let Some(Ok(ModelEvent::Done(message))) = events.last_mut() {
        message.usage = Usage { input: 100, output: 20, ..Usage::default() };
    }
    events
}

/// A server, and the service behind it.
pub(crate) struct Site {
    router: Router,
    pub(crate) world: World,
    pub(crate) runs: Runs,
    pub(crate) server: Server,
    pub(crate) clock: VirtualClock,
}

impl Site {
    /// Sends a request, and reads the whole response.
    pub(crate) async fn send(&self, ask: Ask) -> Answer {
        self.send_request(ask.request()).await
    }

    pub(crate) async fn send_request(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let body = serde_json::from_slice(&bytes).unwrap_or(Json::Null);
        Answer { status: parts.status, headers: parts.headers, body, bytes: bytes.to_vec() }
    }

    /// Puts another server before the same service.
    pub(crate) fn with(self, server: &Server) -> Self {
        Self { router: server.router(), server: server.clone(), ..self }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Ask::get(path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Json) -> Answer {
        self.send(Ask::post(path, &body)).await
    }

    /// Starts a run, and returns its id.
    pub(crate) async fn start(&self, text: &str) -> RunId {
        let answer = self.post("/v1/runs", json!({ "text": text })).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        RunId::new(answer.body["run"].as_str().unwrap())
    }

    /// Starts a run, and waits until it has ended or waits for a person.
    pub(crate) async fn run(&self, text: &str) -> RunId {
        use archon::types::StartRuns;
        let run = self.start(text).await;
        drop(self.runs.reply(&run).await);
        run
    }

    /// Answers the only open question with a yes.
    pub(crate) async fn approve(&self) {
        let open = self.get("/v1/approvals").await.body;
        let request = open["approvals"][0]["request_id"].as_str().unwrap();
        let answer =
            self.post(&format!("/v1/approvals/{request}/answer"), json!({ "answer": "approve" })).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }

    /// Opens the stream of events of a run.
    pub(crate) async fn watch(&self, run: &RunId, last: Option<u64>) -> Frames {
        let mut ask = Ask::get(&format!("/v1/runs/{run}/events"));
        if let Some(last) = last {
            ask = ask.with("last-event-id", &last.to_string());
        }
        self.watch_as(ask).await
    }

    pub(crate) async fn watch_as(&self, ask: Ask) -> Frames {
        let response = self.router.clone().oneshot(ask.request()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Frames(response.into_body().into_data_stream().map(|frame| frame.unwrap()).boxed())
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Json,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    /// Returns the rule that refused the request; empty if it was not refused.
    pub(crate) fn rule(&self) -> &str {
        let kind = self.body["type"].as_str().unwrap_or_default();
        let is_problem =
            self.headers.get("content-type").is_some_and(|kind| kind == "application/problem+json");
        if is_problem { kind.strip_prefix("urn:archon:problem:").unwrap() } else { "" }
    }

    /// Returns the status and the rule.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.status.as_u16(), self.rule())
    }
}

/// A request of an admin, unless its headers are changed.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Ask {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        let headers = [("host", HOST), ("authorization", "Bearer admin-secret")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let ask = Self { method: method.to_owned(), path: path.to_owned(), headers, body: String::new() };
        if method == "GET" { ask } else { ask.with("content-type", "application/json") }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    pub(crate) fn post(path: &str, body: &Json) -> Self {
        Self::new("POST", path).body(body.to_string())
    }

    pub(crate) fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a header in place of one with the same name.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        self.without(name).and(name, value)
    }

    /// Adds a header beside those with the same name.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    pub(crate) fn at(mut self, uri: &str) -> Self {
        self.path = uri.to_owned();
        self
    }

    pub(crate) fn with_method(mut self, method: &str) -> Self {
        self.method = method.to_owned();
        self
    }

    /// Sends the token of a role.
    pub(crate) fn by(self, role: impl std::fmt::Display) -> Self {
        self.with("authorization", &format!("Bearer {role}-secret"))
    }

    /// Returns the text of the request in HTTP/1.1, on a connection of its own.
    pub(crate) fn raw(&self) -> String {
        let Self { method, path, headers, body } = self;
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let own = format!("connection: close\r\ncontent-length: {length}\r\n");
        format!("{method} {path} HTTP/1.1\r\n{headers}{own}\r\n{body}")
    }

    pub(crate) fn request(self) -> Request<Body> {
        let mut request = Request::builder().method(self.method.as_str()).uri(self.path);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        request.body(Body::from(self.body)).unwrap()
    }
}

/// The frames of a stream of server-sent events.
pub(crate) struct Frames(BoxStream<'static, Bytes>);

/// A server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Json,
}

impl Frames {
    /// Returns the next frame as text.
    pub(crate) async fn frame(&mut self) -> Option<String> {
        let frame = self.0.next().await?;
        Some(String::from_utf8(frame.to_vec()).unwrap())
    }

    /// Returns the next event.
    pub(crate) async fn next(&mut self) -> Option<Sent> {
        loop {
            if let Some(sent) = Sent::read(&self.frame().await?) {
                return Some(sent);
            }
        }
    }

    /// Returns the events up to and with the first record of a type.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Sent> {
        let mut all = Vec::new();
        while let Some(sent) = self.next().await {
            let is_last = sent.data["type"] == kind;
            all.push(sent);
            if is_last {
                return all;
            }
        }
        panic!("no {kind}: {all:?}")
    }

    /// Returns all further events.
    pub(crate) async fn rest(&mut self) -> Vec<Sent> {
        let mut all = Vec::new();
        while let Some(sent) = self.next().await {
            all.push(sent);
        }
        all
    }
}

impl Sent {
    /// Reads a frame; `None` for a comment.
    pub(crate) fn read(frame: &str) -> Option<Self> {
        let lines = frame.strip_suffix("\n\n").unwrap().lines();
        let fields: Vec<_> = lines.filter_map(|line| line.split_once(": ")).collect();
        let field = |name: &str| fields.iter().find(|(field, _)| *field == name).map(|(_, value)| *value);
        Some(Self {
            name: field("event")?.to_owned(),
            id: field("id").map(|id| id.parse().unwrap()),
            data: serde_json::from_str(field("data")?).unwrap(),
        })
    }
}

/// Returns the records of a run in the form in which they are sent.
pub(crate) fn as_sent(run: &RunId, log: &[Arc<Record>]) -> Vec<Sent> {
    let sent = |record: &Arc<Record>| Sent {
        id: Some(record.seq),
        name: "record".to_owned(),
        data: json!(Event::Record { run: run.clone(), record: record.clone() }),
    };
    log.iter().map(sent).collect()
}

/// Returns the records of the watched run among the events.
pub(crate) fn records(sent: &[Sent]) -> Vec<Sent> {
    sent.iter().filter(|sent| sent.id.is_some()).cloned().collect()
}
