//! The program that `cargo xtask instructions` counts: `counted CELL N` does one thing N times. Two runs with different N,
//! one taken from the other, leave the cost of one without the start of the process.
//!
//! | cell | one of it |
//! |---|---|
//! | `turn` | a model's answer of 20 deltas that calls a tool, and the call |
//! | `delta` | a streamed delta of text |
//! | `append` | a record appended to a log file, synced |
//! | `call` | a call of a tool that does nothing, through the guards |
//!
//! The model is a server in a child process, so that its work is not counted.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail, ensure};
use archon::{
    Archon, Tool, ToolContext,
    providers::{OpenAiCompatible, OpenAiOptions},
    store::JsonlJournal,
    tools::{FnTool, ToolEngine, ToolRegistry},
    types::{
        CallId, CommandId, Context, Durability, Executed, ExecutionLimits, Journal, OpenMode, Prepared,
        Record, ToolAnnotations, ToolCall, ToolResult, ToolSpec, Toolbox,
    },
};
use archon_testkit::{MockResponse, MockServer, SeededIds, VirtualClock};
use serde_json::json;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let cell = args.next().context("counted CELL N")?;
    let n: usize = args.next().context("counted CELL N")?.parse().context("N is not a whole number")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match cell.as_str() {
            "turn" => run(Server::start("serve-turns", n)?).await,
            "delta" => run(Server::start("serve-deltas", n)?).await,
            "append" => append(n).await,
            "call" => call(n).await,
            "serve-turns" => serve((0..n).map(calls_a_tool).chain([answer(20)]).collect()).await,
            "serve-deltas" => serve(vec![answer(n)]).await,
            _ => bail!("there is no cell {cell:?}"),
        }
    })
}

/// The mock server in a process of its own; it ends with its input.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(kind: &str, n: usize) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([kind, &n.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("the server could not be started")?;
        let mut url = String::new();
        let out = child.stdout.take().context("the server has no output")?;
        BufReader::new(out).read_line(&mut url)?;
        Ok(Self { child, url: url.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

async fn serve(script: Vec<MockResponse>) -> Result<()> {
    let server = MockServer::start(script).await;
    println!("{}", server.url());
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}

fn chunk(delta: serde_json::Value, finish: Option<&str>) -> String {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock",
           "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    .to_string()
}

fn words(n: usize) -> impl Iterator<Item = String> {
    (0..n).map(|n| chunk(json!({ "content": format!("word {n} ") }), None))
}

fn end(reason: &str) -> [String; 2] {
    [chunk(json!({}), Some(reason)), "[DONE]".to_owned()]
}

fn answer(deltas: usize) -> MockResponse {
    MockResponse::events(words(deltas).chain(end("stop")))
}

fn calls_a_tool(turn: usize) -> MockResponse {
    let function = json!({ "name": "add", "arguments": format!("{{\"a\": {turn}, \"b\": 2}}") });
    let id = format!("call_{turn}");
    let call = json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] });
    MockResponse::events(words(20).chain([chunk(call, None)]).chain(end("tool_calls")))
}

fn add() -> impl Tool {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
        "required": ["a", "b"],
    });
    let spec =
        ToolSpec::new("add", "Adds two numbers.", schema).with_annotations(ToolAnnotations::read_only());
    FnTool::new(spec, |_: serde_json::Value, _: ToolContext| async { Ok(ToolResult::success("3")) })
}

async fn run(server: Server) -> Result<()> {
    let provider = OpenAiCompatible::new(&format!("{}/v1", server.url), OpenAiOptions::default())?;
    let mut limits = ExecutionLimits::default();
    limits.max_turns = 10_000;
    limits.max_total_tokens = u64::MAX;
    let agent = Archon::builder().provider(Arc::new(provider), "mock").limits(limits).tool(add()).build()?;
    let outcome = agent.run("Add the numbers until you are done.").await?.into_outcome();
    ensure!(outcome.is_finished(), "{:?}: {}", outcome.status, outcome.error.unwrap_or_default());
    Ok(())
}

/// The record of a tool's result, as a loop appends it.
async fn append(n: usize) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let journal = JsonlJournal::open(folder.path())?;
    let mut open = journal.open(&"run".into(), OpenMode::Create).await?;
    for seq in 0..n {
        let body = if seq == 0 {
            json!({
                "type": "run_started", "format": 2, "kind": "loop", "run": "run", "session": "s1", "agent": "a1", "loop_id": "s1.0.0",
                "tenant": "local", "origin": { "kind": "prompt" }, "first_trigger": "user",
                "config": { "provider": "openai", "model": "m", "system": "Be brief." },
            })
        } else {
            json!({
                "type": "tool_call_finished", "call": { "command": seq, "index": 0 },
                "result": { "content": [{ "type": "text", "text": "fn function() {}\n".repeat(4) }] },
            })
        };
        let mut body = body;
        body["seq"] = json!(seq);
        body["at"] = json!(1_767_225_600_000_u64 + seq as u64);
        let record: Record = serde_json::from_value(body)?;
        open.writer.append(&[Arc::new(record)], Durability::Synced).await?;
    }
    Ok(())
}

async fn call(n: usize) -> Result<()> {
    let registry = ToolRegistry::new();
    registry.register(add())?;
    let engine = ToolEngine::new(registry);
    let run = Context::new(
        "run".into(),
        "session".into(),
        Arc::new(VirtualClock::new()),
        Arc::new(SeededIds::new(1)),
    );
    for n in 0..n {
        let call = ToolCall::new("call", "add", json!({ "a": n, "b": 2 }));
        let Prepared::Ready(ready) = engine.prepare(CallId::new(CommandId(1), 0), &call, &run).await else {
            bail!("the call was refused");
        };
        let Executed::Done(_) = engine.execute(ready, &run).await else { bail!("the call did not end") };
    }
    Ok(())
}
