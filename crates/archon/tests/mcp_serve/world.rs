//! A server over a journal in memory, and a client that writes each message of the protocol itself.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use archon::{
    Archon, RandomIds, Runs,
    mcp_serve::{ClientCalls, OfferedAgent, ToolServer, ToolServerError, serve_stream},
    store::InMemoryJournal,
    tool,
    tools::{Ask, EngineOptions, Permissions, Workspace, builtin},
    types::{AskLater, CancellationToken, Json, Message, ToolCall},
};
use archon_testkit::FnProvider;
use serde_json::json;
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf,
    },
    sync::Notify,
    task::JoinHandle,
};

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const SESSIONS: &str = "2025-11-25";

/// Adds two numbers.
#[tool(read_only)]
async fn add(a: i64, b: i64) -> String {
    (a + b).to_string()
}

/// Takes a step that changes something.
#[tool]
async fn step(#[state] steps: &Arc<AtomicUsize>, to: String) -> String {
    steps.fetch_add(1, Ordering::SeqCst);
    format!("stepped to {to}")
}

/// Waits until the test lets it go on.
#[tool(read_only)]
async fn wait(#[state] gate: &Arc<Gate>) -> &'static str {
    gate.entered.notify_one();
    gate.open.notified().await;
    "went on"
}

#[derive(Default)]
pub(crate) struct Gate {
    pub(crate) entered: Notify,
    pub(crate) open: Notify,
}

/// The program behind a server.
#[derive(Clone)]
pub(crate) struct World {
    journal: InMemoryJournal,
    pub(crate) steps: Arc<AtomicUsize>,
    pub(crate) gate: Arc<Gate>,
    rules: Permissions,
    folder: Option<std::path::PathBuf>,
}

impl World {
    pub(crate) fn new() -> Self {
        let (steps, gate) = (Arc::default(), Arc::default());
        Self { journal: InMemoryJournal::new(), steps, gate, rules: Permissions::default(), folder: None }
    }

    pub(crate) fn with_rules(mut self, deny: &[&str], allow: &[&str]) -> Self {
        self.rules = Permissions::parse(deny.iter().copied(), [], allow.iter().copied()).unwrap();
        self
    }

    /// Adds the tools that read and change files of a folder.
    pub(crate) fn with_files(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    fn builder(&self, id: &str) -> archon::ArchonBuilder {
        let mut engine = EngineOptions::default().asking(Ask::BeforeChanges).granting(["fs_write"]);
        engine.permissions = self.rules.clone();
        let builder = Archon::builder()
            .agent_id(id)
            .engine_options(engine)
            .journal(Arc::new(self.journal.clone()))
            .approver(Arc::new(AskLater))
            .tool(add)
            .tool(step(self.steps.clone()))
            .tool(wait(self.gate.clone()));
        match &self.folder {
            Some(folder) => builder.tools(builtin::file_tools(&Workspace::new(folder).unwrap())),
            None => builder,
        }
    }

    /// The run service of the program, with the agents behind the server and one that only the program uses.
    pub(crate) fn runs(&self) -> (Runs, ToolServer) {
        let calls = self.builder("mcp").provider(Arc::new(ClientCalls), ClientCalls::MODEL).build().unwrap();
        let model = || Arc::new(FnProvider::new(|_, request| reply(request)));
        let walker = self.builder("walker").provider(model(), "scripted").build().unwrap();
        let own = self.builder("own").provider(model(), "scripted").build().unwrap();
        let toolbox = calls.toolbox().clone();
        let runs = Runs::new(calls).with_agent(walker.run_agent()).with_agent(own.run_agent());
        let server = ToolServer::new(Arc::new(runs.clone()), Arc::new(RandomIds))
            .with_tools("mcp", toolbox)
            .with_agent(OfferedAgent::new("walker", "Walks where it is sent.", "walker"));
        (runs, server)
    }

    /// Connects a client to a new server, which is a process of its own as far as the journal can tell.
    pub(crate) fn client(&self) -> Client {
        Client::of(self.runs().1)
    }

    pub(crate) fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }
}

/// A model that calls the tool that its prompt names, and then says that it is done.
fn reply(
    request: &archon::types::Request,
) -> Vec<Result<archon::types::ModelEvent, archon::types::ProviderError>> {
    let Some(last) = request.messages.iter().last() else { return FnProvider::text("no prompt") };
    let said = last.text();
    let call = match (&**last, said.split_once(' ')) {
        (Message::User(_), Some(("step", to))) => ToolCall::new("c", "step", json!({ "to": to })),
        (Message::User(_), None) if said == "wait" => ToolCall::new("c", "wait", json!({})),
        _ => return FnProvider::text(&format!("done: {said}")),
    };
    FnProvider::calls(vec![call])
}

/// A client over a pair of streams.
pub(crate) struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    ids: u64,
    capabilities: Json,
    is_modern: bool,
    /// Notifications and requests of the server that came while an answer was awaited.
    pub(crate) received: Vec<Json>,
    pub(crate) served: JoinHandle<Result<(), ToolServerError>>,
}

impl Client {
    pub(crate) fn of(server: ToolServer) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(far);
        Self::over(near, server, input, output)
    }

    pub(crate) fn over(
        near: DuplexStream,
        server: ToolServer,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: WriteHalf<DuplexStream>,
    ) -> Self {
        let served = tokio::spawn(serve_stream(server, input, output, CancellationToken::new()));
        let (reader, writer) = tokio::io::split(near);
        Self {
            input: writer,
            output: BufReader::new(reader).lines(),
            ids: 0,
            capabilities: json!({}),
            is_modern: true,
            received: Vec::new(),
            served,
        }
    }

    /// Sets the abilities that it declares with each request.
    pub(crate) fn with(mut self, capabilities: Json) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Opens the connection as revision 2025-11-25 does.
    pub(crate) async fn initialized(mut self) -> Self {
        self.is_modern = false;
        let us = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": SESSIONS, "capabilities": self.capabilities, "clientInfo": us });
        let answer = self.ask("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], SESSIONS, "{answer}");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        self
    }

    pub(crate) async fn send(&mut self, message: &Json) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Json {
        let line = self.output.next_line().await.unwrap();
        serde_json::from_str(&line.unwrap_or_else(|| panic!("the server ended"))).unwrap()
    }

    /// Sends a request without waiting, and returns its id.
    pub(crate) async fn request(&mut self, method: &str, mut params: Json) -> u64 {
        self.ids += 1;
        if self.is_modern {
            let us = json!({ "name": "test", "version": "1" });
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = us;
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        let message = json!({ "jsonrpc": "2.0", "id": self.ids, "method": method, "params": params });
        self.send(&message).await;
        self.ids
    }

    /// Waits for the answer to a request; what else comes is kept.
    pub(crate) async fn answer(&mut self, id: u64) -> Json {
        loop {
            let message = self.receive().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.received.push(message);
        }
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Json) -> Json {
        let id = self.request(method, params).await;
        self.answer(id).await
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Json) -> Json {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Closes the input and waits until the server has ended.
    pub(crate) async fn close(mut self) {
        self.input.shutdown().await.unwrap();
        self.served.await.unwrap().unwrap();
    }
}

/// Returns the text of a result.
pub(crate) fn text(answer: &Json) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

/// Returns the id of the run behind a result.
pub(crate) fn run(answer: &Json) -> archon::RunId {
    archon::RunId::new(answer["result"]["_meta"]["archon/run"].as_str().unwrap())
}
