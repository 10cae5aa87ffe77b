//! Tools of an MCP server in a run that dies: a call that may change something is never made twice, one that
//! only reads is made again. And in a run that waits for what the server asks a person.

#![cfg(all(feature = "mcp", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    path::Path,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use archon::{
    Archon, Outcome, OutcomeStatus, RunId, RunOptions, SystemClock,
    mcp::{FilePins, InMemoryPins, McpOptions, McpServer, McpServers, McpTimeouts, Pins as _},
    react_loop::replay,
    store::JsonlJournal,
    tools::{Ask, EngineOptions},
    types::{Answer, AskLater, Effect, Json, Message, QuestionKind, Record, RecordBody, ToolCall},
};
use archon_testkit::{Ended, FnProvider, McpScript, MortalJournal, SeededIds, VirtualClock, cases};
use serde_json::json;

/// Returns a tool without parameters, which says that it only reads.
fn definition(name: &str, description: &str) -> Json {
    let schema = json!({ "type": "object" });
    let annotations = json!({ "readOnlyHint": true });
    json!({ "name": name, "description": description, "inputSchema": schema, "annotations": annotations })
}

/// Returns a server with these tools, which adds a line to the file of its first argument at each call.
fn adding(tools: impl IntoIterator<Item = Json>) -> McpScript {
    McpScript::new(tools).on_call(r#"echo called >> "$1"; say added"#)
}

/// Starts a server that is a shell script. `calls` is the file of its calls.
fn started(name: &str, script: &McpScript, read_only: &[&str], calls: &Path) -> McpServers {
    let server = McpServer::stdio("sh", ["-c", &script.to_string(), "sh", &calls.display().to_string()]);
    let server = server.with_read_only(read_only.iter().copied());
    let options = McpOptions::new(Arc::new(SystemClock), Arc::new(InMemoryPins::default()));
    McpServers::start([(name.to_owned(), server)], &options).unwrap()
}

/// Returns a model that calls the tool until a result has the text `done`, or says that the effect is unknown.
fn calling_once(tool: &'static str, done: &'static str) -> FnProvider {
    FnProvider::new(move |_, request| {
        let has = |text: &str| request.messages.iter().any(|message| message.text().contains(text));
        match has(done) || has("effect of this call is unknown") {
            false => FnProvider::calls(vec![ToolCall::new("c", tool, json!({}))]),
            true => FnProvider::text("done"),
        }
    })
}

/// Runs a task that calls the tool once, with a death at each append in turn, and resumes it. Returns how often
/// the tool was called in the runs whose call was cut off.
async fn calls_of_runs_that_died_in_the_call(read_only: &[&str], effect: Effect) -> Vec<usize> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls");
    let servers = started("notes", &adding([definition("add", "Adds.")]), read_only, &file);
    let model = calling_once("notes__add", "added");
    let mut cut_off = Vec::new();
    for is_written in [false, true] {
        for appends in 1..40 {
            let _ = std::fs::remove_file(&file);
            let journal = MortalJournal::default();
            let agent = Archon::builder()
                .provider(Arc::new(model.clone()), "scripted")
                .engine_options(EngineOptions::default().asking(Ask::WhereRequired))
                .clock(Arc::new(VirtualClock::new()))
                .ids(Arc::new(SeededIds::new(1)))
                .journal(Arc::new(journal.clone()));
            let agent = agent.mcp(&servers, Duration::from_secs(60)).await.build().unwrap();
            let mut options = RunOptions::default();
            options.run = Some(RunId::new("run_1"));
            journal.die_after(appends, is_written);
            let first = agent.run_with("Add a note", options).await;
            journal.live();
            if first.is_ok() {
                assert_eq!(calls(&file), 1);
                break;
            }
            let log = journal.log("run_1");
            if !log.iter().any(|record| matches!(record.body, RecordBody::MessageAdded { .. })) {
                continue;
            }
            let resumed = match agent.resume(RunId::new("run_1")).await {
                Ok(handle) => handle.reply().await.map(drop),
                Err(error) => Err(error),
            };
            if is_cut_off(&log, effect) {
                cut_off.push(calls(&file));
            }
            assert!(resumed.is_ok() || has_ended(&log), "append {appends}: {:?}", resumed.err());
            assert!(replay(&journal, &RunId::new("run_1")).await.unwrap().is_identical());
        }
    }
    servers.close().await;
    cut_off
}

fn calls(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

fn has_ended(log: &[Arc<Record>]) -> bool {
    log.iter().any(|record| matches!(record.body, RecordBody::RunFinished(_)))
}

/// Returns whether the log ends in the call: it was started with this effect, and has no result.
fn is_cut_off(log: &[Arc<Record>], effect: Effect) -> bool {
    let is_started = |record: &Arc<Record>| match &record.body {
        RecordBody::ToolCallStarted { effect: of, .. } => {
            assert_eq!(*of, effect);
            true
        }
        _ => false,
    };
    let is_finished = |record: &Arc<Record>| matches!(record.body, RecordBody::ToolCallFinished { .. });
    log.iter().any(is_started) && !log.iter().any(is_finished)
}

#[tokio::test]
async fn mcp_call_in_doubt_is_not_repeated_despite_the_servers_read_only_hint() {
    let calls = calls_of_runs_that_died_in_the_call(&[], Effect::SideEffect).await;
    // Some runs died after the call had reached the server.
    assert!(calls.contains(&1) && calls.iter().all(|calls| *calls <= 1), "{calls:?}");
}

#[tokio::test]
async fn mcp_call_in_doubt_is_repeated_if_configured_as_read_only() {
    let calls = calls_of_runs_that_died_in_the_call(&["add"], Effect::ReadOnly).await;
    assert!(!calls.is_empty() && calls.iter().all(|calls| *calls >= 1) && calls.contains(&2), "{calls:?}");
}

#[tokio::test]
async fn build_with_two_sets_of_servers_that_offer_resources_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("calls");
    let script = adding([definition("add", "Adds.")]);
    let script = script.with_capabilities(json!({ "tools": {}, "resources": {} }));
    let (one, other) = (started("one", &script, &[], &file), started("other", &script, &[], &file));
    let limit = Duration::from_secs(60);
    let agent = Archon::builder().provider(Arc::new(calling_once("one__add", "added")), "scripted");
    let refused = agent.mcp(&one, limit).await.mcp(&other, limit).await.build().unwrap_err();
    assert_eq!(refused.to_string(), "Tool 'list_mcp_resources' already registered");
    assert!(refused.advice().contains("one `McpServers::start`"), "{}", refused.advice());
    one.close().await;
    other.close().await;
}

/// Returns a server whose one tool asks for a name before it goes on. It writes the calls that it gets to the file of
/// its first argument.
fn asking() -> McpScript {
    let name = json!({ "name": { "type": "string", "minLength": 2 } });
    let form = json!({ "type": "object", "required": ["name"], "properties": name });
    let params = json!({ "message": "Whom?", "requestedSchema": form });
    let question = json!({ "q": { "method": "elicitation/create", "params": params } });
    let asked = json!({ "resultType": "input_required", "requestState": "s1", "inputRequests": question });
    McpScript::new([definition("greet", "Greets.")])
        .without_handshake()
        .on_call(&format!(r#"echo "$line" >> "$1"; answer '{asked}'"#))
        .on_repeated_call(r#"echo "$line" >> "$1"; say greeted"#)
}

/// Goes on with a run, or begins one, as a process does that has only the folder; returns its outcome and the
/// question that it waits for, and answers the question before if there is an answer.
async fn in_a_process_of_its_own(folder: &Path, answer: Option<Answer>) -> (Outcome, Option<String>) {
    let servers = started("people", &asking(), &[], &folder.join("calls"));
    let agent = Archon::builder()
        .provider(Arc::new(calling_once("people__greet", "greeted")), "scripted")
        .engine_options(EngineOptions::default().asking(Ask::WhereRequired))
        .approver(AskLater)
        .journal(Arc::new(JsonlJournal::open(folder.join("runs")).unwrap()));
    let agent = agent.mcp(&servers, Duration::from_secs(60)).await.build().unwrap();
    let run = RunId::new("run_1");
    let outcome = match answer {
        None => {
            let mut options = RunOptions::default();
            options.run = Some(run.clone());
            agent.run_with("Greet somebody", options).await.ended()
        }
        Some(answer) => {
            let open = agent.approvals(None).await.unwrap();
            assert!(agent.answer_pending(&open[0], answer).await.unwrap());
            agent.resume(run.clone()).await.unwrap().reply().await.ended()
        }
    };
    let open = agent.approvals(None).await.unwrap();
    assert!(open.iter().all(|pending| pending.request.kind == QuestionKind::Input));
    if outcome.is_finished() {
        let journal = JsonlJournal::open(folder.join("runs")).unwrap();
        assert!(replay(&journal, &run).await.unwrap().is_identical());
    }
    servers.close().await;
    (outcome, open.first().map(|pending| pending.request.action_summary.clone()))
}

#[tokio::test]
async fn mcp_server_that_asks_is_answered_by_another_process_and_called_again_once() {
    let folder = tempfile::tempdir().unwrap();
    let (outcome, question) = in_a_process_of_its_own(folder.path(), None).await;
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    assert!(question.unwrap().contains("MCP server `people` (tool `greet`) asks: Whom?"));
    let too_short = Answer::Edit { arguments: json!({ "name": "A" }) };
    let (outcome, question) = in_a_process_of_its_own(folder.path(), Some(too_short)).await;
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    assert!(
        question.unwrap().starts_with("That does not fit: `name` must be text of at least 2 characters.")
    );
    let (outcome, question) =
        in_a_process_of_its_own(folder.path(), Some(Answer::Reply { text: "Ann".to_owned() })).await;
    assert!(outcome.is_finished() && question.is_none(), "{outcome:?}");
    let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
    let calls: Vec<serde_json::Value> =
        calls.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(calls.len(), 2, "{calls:?}");
    let repeated = &calls[1]["params"];
    assert_eq!(repeated["requestState"], "s1");
    let response = json!({ "q": { "action": "accept", "content": { "name": "Ann" } } });
    assert_eq!(repeated["inputResponses"], response);
}

/// Returns the script of a server with 50 tools.
fn with_fifty_tools() -> String {
    let more = (1..50).map(|n| definition(&format!("action_{n}"), &format!("Does the action number {n}.")));
    adding(more.chain([definition("add", "Adds.")])).to_string()
}

/// Returns the time from the start of 20 servers, of which 5 never answer, to the first request of a run.
async fn time_to_the_first_request(pins: &Arc<FilePins>, file: &Path) -> Duration {
    let options = McpOptions::new(Arc::new(SystemClock), pins.clone());
    let mut timeouts = McpTimeouts::default();
    timeouts.close = Duration::from_millis(100);
    let answers = with_fifty_tools();
    let server = |n: usize| {
        let (name, script) =
            (format!("s{n}"), if n.is_multiple_of(4) { "exec sleep 600" } else { &*answers });
        let server = McpServer::stdio("sh", ["-c", script, "sh", &file.display().to_string()]);
        (name.clone(), server.with_timeouts(timeouts).with_identity(name))
    };
    let first = Arc::new(OnceLock::new());
    let seen = first.clone();
    let model = FnProvider::new(move |_, request| {
        let names: Vec<String> = request.tools.iter().map(|tool| tool.name.clone()).collect();
        let _ = seen.set((Instant::now(), names));
        FnProvider::text("done")
    });
    let is_pinned = pins.read("s1").unwrap().is_some();
    let began = Instant::now();
    let servers = McpServers::start((0..20).map(server), &options).unwrap();
    let agent = Archon::builder().provider(Arc::new(model), "scripted").definition_budget(10_000);
    let agent = agent.mcp(&servers, Duration::ZERO).await.build().unwrap();
    assert!(agent.run("Hi").await.ended().is_finished());
    let (at, names) = first.get().unwrap();
    assert!(names.iter().any(|name| name == "tool_search"), "{names:?}");
    // The budget has room for the pinned tools of some servers; the others are found with a search.
    assert!(!is_pinned || names.iter().any(|name| name.ends_with("__add")), "{names:?}");
    // The servers that answer are pinned before they are closed.
    let answering: Vec<String> = (0..20).filter(|n| n % 4 != 0).map(|n| format!("s{n}")).collect();
    let answering: Vec<&str> = answering.iter().map(String::as_str).collect();
    servers.settled(&answering, Duration::from_secs(60)).await;
    servers.close().await;
    let has_pins = |name: &str| pins.read(name).unwrap().is_some_and(|pins| pins.tools.len() == 50);
    assert!(answering.iter().all(|name| has_pins(name)));
    *at - began
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_never_answer_do_not_delay_the_first_request() {
    let folder = tempfile::tempdir().unwrap();
    let (mut pinned, mut without_pins) = (Vec::new(), Vec::new());
    for round in 0..cases(1, 3) {
        let pins = Arc::new(FilePins::new(folder.path().join(round.to_string())));
        for times in [&mut without_pins, &mut pinned] {
            times.push(time_to_the_first_request(&pins, &folder.path().join("calls")).await);
        }
    }
    println!(
        "the first request with 20 MCP servers of 50 tools, 5 of which never answer: {pinned:?}, without pins \
         {without_pins:?}"
    );
    // `accept` measures on a quiet machine.
    let limit = Duration::from_millis(cases(10_000, 100));
    assert!(pinned.iter().chain(&without_pins).all(|time| *time < limit), "{pinned:?}, {without_pins:?}");
}

/// Returns a server whose tools are in the file of its first argument. A call changes them to those of the file
/// `FILE.then`.
fn changing() -> McpScript {
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    McpScript::with_tools_of_file()
        .with_capabilities(json!({ "tools": { "listChanged": true } }))
        .on_call(&format!(r#"cp "$1.then" "$1"; echo '{changed}'; say added"#))
}

#[tokio::test]
async fn requests_of_two_prompts_define_the_same_tools_although_the_server_changed_them_between() {
    let folder = tempfile::tempdir().unwrap();
    let tools = |about: &str| {
        json!([{ "name": "add", "description": about, "inputSchema": { "type": "object" } }]).to_string()
    };
    let file = folder.path().join("tools");
    std::fs::write(&file, tools("Adds.")).unwrap();
    std::fs::write(folder.path().join("tools.then"), tools("Adds twice.")).unwrap();
    let servers = started("notes", &changing(), &["add"], &file);
    let model = FnProvider::new(|_, request| {
        let is_called = request.messages.iter().any(|message| matches!(&**message, Message::ToolResult(_)));
        match is_called {
            false => FnProvider::calls(vec![ToolCall::new("c", "notes__add", json!({}))]),
            true => FnProvider::text("done"),
        }
    });
    for _ in 0..2 {
        let agent = Archon::builder()
            .provider(Arc::new(model.clone()), "scripted")
            .engine_options(EngineOptions::default().asking(Ask::WhereRequired));
        let agent = agent.mcp(&servers, Duration::from_secs(60)).await.build().unwrap();
        assert!(agent.run("Add a note").await.ended().is_finished());
        let end = Instant::now() + Duration::from_secs(60);
        while servers.status()[0].held.is_empty() {
            assert!(Instant::now() < end, "{:?}", servers.status());
            tokio::task::yield_now().await;
        }
    }
    servers.close().await;
    let requests = model.requests();
    let bytes: Vec<_> =
        requests.iter().map(|request| serde_json::to_string(&*request.tools).unwrap()).collect();
    assert!(bytes.len() == 4 && bytes.iter().all(|other| *other == bytes[0]), "{bytes:?}");
    let results: Vec<_> =
        requests.iter().filter_map(|request| Some(request.messages.last()?.text())).collect();
    assert!(results[1].contains("added") && results[3].contains("held back"), "{results:?}");
}
