//! The client of `cargo xtask conformance servers`: starts a server with a command, calls each of its tools, and
//! closes it. The arguments: a name, a file with the calls, and the command.
//!
//! The file is a JSON array of calls: `["TOOL", ARGUMENTS]`, or `["TOOL", ARGUMENTS, "TEXT"]` for a call whose result
//! must contain a text. A fourth element `"fails"` is for a call that must fail with this text, because we lack what
//! the tool needs. It fails if the server lists a tool that no call names, or the other way round, if a call
//! fails, or if a process of the server is left at the end.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the check shows each call and question")]

use std::{
    collections::BTreeSet,
    error::Error,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use archon_mcp::{InMemoryPins, McpOptions, McpServer, McpServers, ServerState};
use archon_testkit::RealClock;
use archon_types::Json;

mod caller;

use caller::result_of;

type Failure = Box<dyn Error>;

/// Maximum wait for a connection.
const LONGEST: Duration = Duration::from_secs(60);
/// The variable by which the processes of the server are known.
const MARK: &str = "ARCHON_REFERENCE_CLIENT";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("usage: reference_client NAME CALLS COMMAND ARG...");
    let (name, calls, command) = (next()?, next()?, next()?);
    let calls: Vec<Vec<Json>> = serde_json::from_str(&fs::read_to_string(calls)?)?;
    let mark = std::process::id().to_string();
    let server = McpServer::stdio(command, args).with_variable(MARK, mark.as_str());
    let options = McpOptions::new(Arc::new(RealClock::new()), Arc::new(InMemoryPins::default()));
    let servers = McpServers::start([(name.clone(), server)], &options.with_questions_during_calls())?;
    let called = call_all(&servers, &name, &calls).await;
    servers.close().await;
    called?;
    let left = processes(&format!("{MARK}={mark}"));
    if left.is_empty() { Ok(()) } else { Err(format!("{name}: the processes {left:?} are left").into()) }
}

async fn call_all(servers: &McpServers, name: &str, calls: &[Vec<Json>]) -> Result<(), Failure> {
    let end = Instant::now() + LONGEST;
    // A server that is slow to start can fail at the first attempt, which tries the newest revision.
    let tools = loop {
        let tools = servers.tools(LONGEST).await;
        match servers.status().pop().map(|status| status.state) {
            Some(ServerState::Ready) => break tools,
            state if Instant::now() > end => return Err(format!("{name}: not connected: {state:?}").into()),
            _ => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    };
    let prefix = format!("{name}__");
    let listed: BTreeSet<&str> =
        tools.iter().filter_map(|tool| tool.spec().name.strip_prefix(&prefix)).collect();
    let called: BTreeSet<&str> = calls.iter().filter_map(|call| call.first()?.as_str()).collect();
    if listed != called {
        let without_call: Vec<_> = listed.difference(&called).collect();
        let without_tool: Vec<_> = called.difference(&listed).collect();
        return Err(format!(
            "{name}: tools without a call: {without_call:?}, calls without a tool: {without_tool:?}"
        )
        .into());
    }
    for call in calls {
        let tool = call[0].as_str().unwrap_or_default();
        let wanted = call.get(2).and_then(Json::as_str).unwrap_or_default();
        let arguments = call.get(1).cloned().unwrap_or_default();
        let found = tools.iter().find(|of| of.spec().name.strip_prefix(&prefix) == Some(tool));
        let began = Instant::now();
        let result = result_of(&**found.ok_or("no such tool")?, arguments).await;
        let result = result.map_err(|error| format!("{name}: `{tool}` failed: {error}"))?;
        let text = result.text();
        let fails = call.get(3).and_then(Json::as_str) == Some("fails");
        if result.is_error() != fails || !text.contains(wanted) {
            return Err(format!("{name}: `{tool}` gave: {text}").into());
        }
        println!("ok  {name}  {tool}  {} ms", began.elapsed().as_millis());
    }
    Ok(())
}

/// Returns the processes that have this in their environment, except this one.
fn processes(variable: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let has = |entry: &fs::DirEntry| {
        let variables = fs::read(entry.path().join("environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    };
    all.filter(has).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
