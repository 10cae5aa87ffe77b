//! A running set of fake servers, and what tests ask of it.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use archon_mcp::{
    InMemoryPins, McpOptions, McpServer, McpServers, McpTimeouts, Pins, ServerState, ServerStatus,
};
use archon_testkit::{RealClock, SeededIds};
use archon_types::{Context, Json, Progress, Tool, ToolContext, ToolResult};

/// Returns the program of the fake server, which Cargo builds with the tests of this crate.
pub(crate) fn program() -> String {
    let tests = std::env::current_exe().unwrap();
    let folder: PathBuf = tests.parent().and_then(Path::parent).unwrap().join("examples");
    let program = folder.join("fake_server");
    assert!(
        program.exists(),
        "{} is missing: build it with `cargo build -p archon-mcp --examples`",
        program.display()
    );
    program.display().to_string()
}

pub(crate) fn server(behaviour: &str) -> McpServer {
    let mut timeouts = McpTimeouts::default();
    timeouts.close = Duration::from_millis(100);
    McpServer::stdio(program(), [behaviour]).with_timeouts(timeouts)
}

/// Sets the limits of all phases.
pub(crate) fn within(mut server: McpServer, limit: Duration) -> McpServer {
    server.timeouts.initialize = limit;
    server.timeouts.list = limit;
    server.timeouts.call = limit;
    server
}

pub(crate) fn options() -> McpOptions {
    options_with(Arc::new(InMemoryPins::default()))
}

pub(crate) fn options_with(pins: Arc<dyn Pins>) -> McpOptions {
    McpOptions::new(Arc::new(RealClock::new()), pins)
}

pub(crate) fn start(servers: impl IntoIterator<Item = (&'static str, McpServer)>) -> McpServers {
    let servers = servers.into_iter().map(|(name, server)| (name.to_owned(), server));
    McpServers::start(servers, &options()).unwrap()
}

/// Returns the tool with this name, once all servers are connected or failed.
pub(crate) async fn tool(servers: &McpServers, name: &str) -> Arc<dyn Tool> {
    let tools = servers.tools(Duration::from_secs(60)).await;
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
    let found = tools.into_iter().find(|tool| tool.spec().name == name);
    found.unwrap_or_else(|| panic!("no {name} in {names:?}; {:?}", servers.status()))
}

/// Calls a tool with a text.
pub(crate) async fn call(tool: &dyn Tool, text: &str) -> ToolResult {
    tool.call(serde_json::json!({ "text": text }), &context(tool).0).await.unwrap()
}

/// The texts of the progress of a call.
pub(crate) type Shown = Arc<Mutex<Vec<String>>>;

pub(crate) fn context(tool: &dyn Tool) -> (ToolContext, Shown) {
    let run = Context::new("r1".into(), "s1".into(), Arc::new(RealClock::new()), Arc::new(SeededIds::new(1)));
    let mut context = ToolContext::new(run, "call".into(), tool.spec().name.clone());
    let shown = Shown::default();
    let keep = shown.clone();
    context.progress = Some(Arc::new(move |progress| {
        if let Progress::Text(text) = progress {
            keep.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    }));
    (context, shown)
}

/// Waits until a server's status satisfies a condition.
pub(crate) async fn until(
    servers: &McpServers,
    name: &str,
    is_it: impl Fn(&ServerStatus) -> bool,
) -> ServerStatus {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let status = servers.status().into_iter().find(|status| status.name == name).unwrap();
        if is_it(&status) {
            return status;
        }
        assert!(Instant::now() < end, "{status:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Returns the text of the failure of a server that is down.
pub(crate) async fn failure(servers: &McpServers, name: &str) -> String {
    match until(servers, name, |status| matches!(status.state, ServerState::Down(_))).await.state {
        ServerState::Down(error) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Returns the processes that have this text in their arguments or their environment.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let has_text = |process: &u32| {
        let read = |file| std::fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
        let all = [read("cmdline"), read("environ")].concat();
        all.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter(|process| *process != std::process::id() && has_text(process)).collect()
}

pub(crate) fn text_of(value: &str) -> Json {
    serde_json::json!({ "text": value })
}

/// Waits until a server's log has a message with this text, and returns all messages so far.
pub(crate) async fn messages_until(log: &Path, text: &str) -> Vec<Json> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let written = std::fs::read_to_string(log).unwrap_or_default();
        let whole = written.rsplit_once('\n').map_or("", |(whole, _)| whole);
        if whole.contains(text) {
            return whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        assert!(Instant::now() < end, "no {text} in {written}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
