//! An agent with a thousand tools: its requests define a few, and the model finds and calls the others by name.

#![cfg(feature = "tool-search")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    Archon, ArchonBuilder, OutcomeStatus, RunId, RunOptions, SessionId,
    store::InMemoryJournal,
    tools::{Ask, EngineOptions, FnTool},
    types::{
        Answer, BoxFuture, Effect, Embedder, Json, MemoryError, Message, ModelEvent, MoreLimits,
        ProviderError, RecordBody, Request, TokenCounter as _, TokenEstimate, Tool, ToolAnnotations,
        ToolCall, ToolContext, ToolError, ToolMode, ToolResult, ToolSpec,
    },
};
use archon_testkit::{
    Chance, Ended, FnProvider, LateTools, MortalJournal, SeededIds, VirtualClock, first_seed,
};
use serde_json::json;

/// A tool of a server, which counts its calls.
struct Remote {
    spec: ToolSpec,
    calls: Arc<AtomicUsize>,
}

impl Tool for Remote {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, args: Json, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(ToolResult::success(format!("{} got {args}", self.spec.name))) })
    }
}

/// Makes 50 tools for each server. Tools whose number is odd only read.
fn tools_of(servers: usize, calls: &Arc<AtomicUsize>) -> Vec<Arc<dyn Tool>> {
    tools_of_version("1", servers, calls)
}

fn tools_of_version(version: &str, servers: usize, calls: &Arc<AtomicUsize>) -> Vec<Arc<dyn Tool>> {
    let tool = |server: usize, n: usize| {
        let parameters = json!({
            "type": "object", "required": ["subject"],
            "properties": { "subject": { "type": "string", "description": "What the action works on" } },
        });
        let about = format!("Does the action number {n} of the service number {server}.");
        let mut annotations = match n % 2 {
            1 => ToolAnnotations::read_only(),
            _ => ToolAnnotations::default(),
        };
        annotations.deferrable = true;
        let name = format!("service_{server}__action_{n}");
        let mut spec = ToolSpec::new(name, about, parameters).with_annotations(annotations);
        version.clone_into(&mut spec.version);
        Arc::new(Remote { spec, calls: calls.clone() }) as Arc<dyn Tool>
    };
    (0..servers)
        .flat_map(|server| (0..50).map(move |n| (server, n)))
        .map(|(server, n)| tool(server, n))
        .collect()
}

/// Answers with a search and a call by name for each of the tools in turn, then with a text.
fn next(tools: &[&str], request: &Request) -> Vec<Result<ModelEvent, ProviderError>> {
    let results =
        request.messages.iter().rev().take_while(|message| !matches!(&***message, Message::User(_)));
    let results = results.filter(|message| matches!(&***message, Message::ToolResult(_))).count();
    let Some(tool) = tools.get(results / 2) else { return FnProvider::text("done") };
    let by_name = json!({ "name": tool, "arguments": { "subject": "Paris" } });
    let id = format!("call_{results}");
    FnProvider::calls(vec![match results % 2 {
        0 => ToolCall::new(id, "tool_search", json!({ "query": tool })),
        _ => ToolCall::new(id, "call_tool", by_name),
    }])
}

/// Answers with a search, then with a call of the tool by its name, then with a text; notes the requests.
fn model(tool: &str, seen: &Arc<Mutex<Vec<Request>>>) -> FnProvider {
    let (tool, seen) = (tool.to_owned(), seen.clone());
    FnProvider::new(move |_, request| {
        seen.lock().unwrap().push(request.clone());
        next(&[&tool], request)
    })
}

/// Searches for and calls the tools that the prompt names, one after the other.
fn model_of_the_prompt() -> FnProvider {
    FnProvider::new(|_, request| {
        let prompt = request.messages.iter().rev().find(|message| matches!(&***message, Message::User(_)));
        let prompt = prompt.map(|message| message.text()).unwrap_or_default();
        let tools: Vec<&str> = prompt.split(' ').filter(|word| word.contains("__action_")).collect();
        next(&tools, request)
    })
}

fn agent(model: &FnProvider) -> ArchonBuilder {
    let clock =
        FnTool::new(ToolSpec::new("clock", "Tells the time.", json!({ "type": "object" })), |_, _| async {
            Ok(ToolResult::success("noon"))
        });
    Archon::builder()
        .provider(Arc::new(model.clone()), "scripted")
        .engine_options(EngineOptions::default().asking(Ask::WhereRequired))
        .clock(Arc::new(VirtualClock::new()))
        .ids(Arc::new(SeededIds::new(1)))
        .tool(clock)
}

/// Returns different names of the tools of 20 servers.
fn some_names(count: usize) -> Vec<String> {
    let (mut chance, mut names) = (Chance(first_seed()), Vec::new());
    while names.len() < count {
        let name = format!("service_{}__action_{}", chance.below(20), chance.below(50));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[tokio::test]
async fn requests_with_a_thousand_tools_define_three_in_all_prompts_of_a_session() {
    let calls = Arc::default();
    let model = model_of_the_prompt();
    let agent = agent(&model).tools(tools_of(20, &calls)).build().unwrap();
    let tools = some_names(20);
    for pair in tools.chunks(2) {
        let mut options = RunOptions::default();
        options.session = Some(SessionId::new("s"));
        let prompt = format!("Do {} and then {}", pair[0], pair[1]);
        assert!(agent.run_with(prompt.as_str(), options).await.ended().is_finished());
    }
    assert_eq!(calls.load(Ordering::Relaxed), 20);
    let seen = model.requests();
    assert_eq!(seen.len(), 50, "two searches, two calls and an answer for each of 10 prompts");
    let bytes = |request: &Request| serde_json::to_string(&*request.tools).unwrap();
    let names: Vec<&str> = seen[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["call_tool", "clock", "tool_search"]);
    assert!(seen.iter().all(|request| bytes(request) == bytes(&seen[0])));
    let definitions: Vec<_> = seen[0].tools.iter().map(ToolSpec::definition).collect();
    let tokens = TokenEstimate.count(&serde_json::to_string(&definitions).unwrap());
    assert!(tokens <= 2_000, "{tokens}");
    // The model reads the definition, and then the result under the name that it called.
    let last = |request: &Request| {
        let message = request.messages.iter().last().unwrap();
        let Message::ToolResult(result) = &**message else { panic!("{message:?}") };
        (result.tool_name.clone(), message.text())
    };
    let requests = seen.chunks(5).flat_map(|prompt| [(&prompt[1], &prompt[2]), (&prompt[3], &prompt[4])]);
    for (tool, (searched, called)) in tools.iter().zip(requests) {
        let (name, found) = last(searched);
        assert_eq!(name, "tool_search");
        assert!(found.contains(&format!("Found: {tool}, ")), "{tool} is not first: {found}");
        assert!(found.contains("\"required\":[\"subject\"]"), "{found}");
        let result = format!("{tool} got {{\"subject\":\"Paris\"}}");
        assert_eq!(last(called), ("call_tool".to_owned(), result));
    }
}

#[tokio::test]
async fn deferred_tool_is_found_and_called_by_name_in_text_mode() {
    let calls = Arc::default();
    let search = r#"{"tool": "tool_search", "arguments": {"query": "service_1__action_31"}}"#;
    let arguments = r#"{"name": "service_1__action_31", "arguments": {"subject": "Paris"}}"#;
    let call = format!(r#"{{"tool": "call_tool", "arguments": {arguments}}}"#);
    let model = FnProvider::new(move |n, _| match n {
        0 => FnProvider::text(&format!("Thought: I need a tool.\nAction: {search}")),
        1 => FnProvider::text(&format!("Thought: This one.\nAction: {call}")),
        _ => FnProvider::text("Thought: It is done.\nFinal Answer: done"),
    });
    let agent = agent(&model).tool_mode(ToolMode::Text).tools(tools_of(2, &calls)).build().unwrap();
    let outcome = agent.run("Do it").await.ended();
    assert!(outcome.is_finished(), "{outcome:?}");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let requests = model.requests();
    let system = requests[0].system.as_ref().map(|system| String::clone(system)).unwrap();
    assert!(system.contains("- call_tool: ") && !system.contains("service_1__action_31"), "{system}");
    let read = |n: usize| requests[n].messages.iter().last().unwrap().text();
    assert!(read(1).contains("Found: service_1__action_31"), "{}", read(1));
    let result = "Tool service_1__action_31 succeeded: ";
    assert!(read(2).contains(result) && read(2).contains("got {\"subject\":\"Paris\"}"), "{}", read(2));
}

/// An embedder that fails.
struct Broken;

impl Embedder for Broken {
    fn id(&self) -> &str {
        "broken"
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn embed<'a>(&'a self, _: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, MemoryError>> {
        let failed = MemoryError::Embedding { embedder: "broken".to_owned(), problem: "lost".to_owned() };
        Box::pin(std::future::ready(Err(failed)))
    }
}

#[tokio::test]
async fn search_whose_embedder_fails_finds_tools_by_words_and_says_so() {
    let calls = Arc::default();
    let model = FnProvider::new(|n, _| match n {
        0 => {
            let query = json!({ "query": "the action of a service" });
            FnProvider::calls(vec![ToolCall::new("a", "tool_search", query)])
        }
        _ => FnProvider::text("done"),
    });
    let agent = agent(&model).tools(tools_of(2, &calls)).tool_embedder(Arc::new(Broken)).build().unwrap();
    assert!(agent.run("Do it").await.ended().is_finished());
    let read = model.requests()[1].messages.iter().last().unwrap().text();
    assert!(read.contains("Found: service_"), "{read}");
    assert!(read.contains("Searched by words only: embedding with broken failed: lost."), "{read}");
}

#[tokio::test]
async fn deferred_tool_that_asks_is_asked_for_by_its_own_name() {
    let (calls, seen) = (Arc::default(), Arc::default());
    let model = model("service_1__action_30", &seen);
    let engine = EngineOptions::default().asking(Ask::BeforeChanges);
    let approver = archon::types::AskLater;
    let agent = agent(&model).tools(tools_of(2, &calls)).engine_options(engine).approver(Arc::new(approver));
    let agent = agent.build().unwrap();
    let outcome = agent.run("Do it").await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Suspended);
    let open = agent.approvals(None).await.unwrap();
    let asked = &open[0].request.action_summary;
    assert!(asked.contains("service_1__action_30") && !asked.contains("call_tool"), "{asked}");
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn call_by_name_of_a_tool_that_the_run_does_not_have_is_refused() {
    let (calls, seen) = (Arc::default(), Arc::default());
    let model = model("service_1__action_31", &seen);
    let agent = agent(&model).tools(tools_of(2, &calls)).build().unwrap();
    let options = RunOptions::default().with_tools(["call_tool", "clock", "tool_search"]);
    agent.run_with("Do it", options).await.ended();
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let seen = seen.lock().unwrap();
    let last = seen[2].messages.iter().last().unwrap().text();
    assert!(last.contains("works only in runs with deferred tools"), "{last}");
}

#[tokio::test]
async fn tools_that_a_run_names_are_not_deferred() {
    let (calls, seen) = (Arc::default(), Arc::default());
    let model = model("service_1__action_31", &seen);
    let agent = agent(&model).tools(tools_of(2, &calls)).build().unwrap();
    let options = RunOptions::default().with_tools(["clock", "service_1__action_31"]);
    agent.run_with("Do it", options).await.ended();
    let seen = seen.lock().unwrap();
    let names: Vec<&str> = seen[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["clock", "service_1__action_31"]);
}

/// Returns how often a deferred tool was called in runs that died in its call and were resumed.
async fn calls_of_runs_that_died(tool: &str, effect: Effect) -> Vec<usize> {
    let mut cut_off = Vec::new();
    for appends in 1..60 {
        let (calls, seen) = (Arc::default(), Arc::default());
        let model = model(tool, &seen);
        let journal = MortalJournal::default();
        let agent =
            agent(&model).tools(tools_of(2, &calls)).journal(Arc::new(journal.clone())).build().unwrap();
        let mut options = RunOptions::default();
        options.run = Some(RunId::new("run_1"));
        journal.die_after(appends, true);
        let first = agent.run_with("Do it", options).await;
        journal.live();
        if first.is_ok() {
            break;
        }
        let is_start = |body: &RecordBody| {
            matches!(body, RecordBody::ToolCallStarted { call, effect: of, .. }
                if call.command.0 == 1 && *of == effect)
        };
        let is_cut_off = journal.log("run_1").last().is_some_and(|record| is_start(&record.body));
        if let Ok(handle) = agent.resume(RunId::new("run_1")).await {
            let _ = handle.reply().await;
        }
        if is_cut_off {
            cut_off.push(calls.load(Ordering::Relaxed));
        }
    }
    cut_off
}

#[tokio::test]
async fn deferred_call_that_was_cut_off_is_repeated_only_if_its_tool_only_reads() {
    let reads = calls_of_runs_that_died("service_1__action_31", Effect::ReadOnly).await;
    assert!(!reads.is_empty() && reads.iter().all(|calls| *calls >= 1), "{reads:?}");
    let changes = calls_of_runs_that_died("service_1__action_30", Effect::SideEffect).await;
    assert!(!changes.is_empty() && changes.iter().all(|calls| *calls <= 1), "{changes:?}");
}

/// Begins a run with tools of version 1, ends it at its limit, and resumes it with tools of `version`. The model
/// then calls a tool. Returns how often the tool was called, and the last message that the model read.
async fn call_after_resume(version: &str, definition_budget: u64) -> (usize, String) {
    const TOOL: &str = "service_1__action_31";
    let (calls, journal) = (Arc::default(), InMemoryJournal::new());
    let model = FnProvider::new(|n, request| match n {
        0 => FnProvider::calls(vec![ToolCall::new("a", "clock", json!({}))]),
        1 => {
            let arguments = json!({ "subject": "Paris" });
            let is_defined = request.tools.iter().any(|tool| tool.name == TOOL);
            FnProvider::calls(vec![match is_defined {
                true => ToolCall::new("b", TOOL, arguments),
                false => ToolCall::new("b", "call_tool", json!({ "name": TOOL, "arguments": arguments })),
            }])
        }
        _ => FnProvider::text("done"),
    });
    let agent = |version: &str| {
        let agent = agent(&model).tools(tools_of_version(version, 2, &calls));
        agent.journal(Arc::new(journal.clone())).definition_budget(definition_budget).build().unwrap()
    };
    let first = agent("1");
    let limits = first.limits().clone().with_max_turns(1);
    let outcome = first.run_with("Do it", RunOptions::default().with_limits(limits)).await.ended();
    let more = MoreLimits::default().with_max_turns(5);
    let outcome = agent(version).resume_with(outcome.run, more).await.unwrap().reply().await.ended();
    assert!(outcome.is_finished(), "{outcome:?}");
    let last = model.requests()[2].messages.iter().last().unwrap().text();
    (calls.load(Ordering::Relaxed), last)
}

#[tokio::test]
async fn call_after_a_resume_is_refused_if_the_definition_of_its_tool_changed() {
    for definition_budget in [2_000, u64::MAX] {
        let (calls, result) = call_after_resume("2", definition_budget).await;
        assert!(
            calls == 0 && result.contains("The definition of tool 'service_1__action_31' changed"),
            "{calls}: {result}"
        );
        let (calls, result) = call_after_resume("1", definition_budget).await;
        assert!(calls == 1 && result.contains("got {\"subject\":\"Paris\"}"), "{calls}: {result}");
    }
}

/// The tools of a server that answers only when a search waits for it.
fn late(calls: &Arc<AtomicUsize>) -> Arc<LateTools> {
    LateTools::new("service_0", tools_of(1, calls))
}

#[tokio::test]
async fn tools_of_a_server_that_answers_late_are_found_asked_about_and_called() {
    let (calls, seen) = (Arc::default(), Arc::default());
    let model = model("service_0__action_30", &seen);
    let engine = EngineOptions::default().asking(Ask::BeforeChanges);
    let agent = agent(&model).tool(late(&calls) as Arc<dyn Tool>).engine_options(engine);
    let agent = agent.approver(Arc::new(archon::types::AskLater)).build().unwrap();
    for prompt in 1..=2 {
        let mut options = RunOptions::default();
        options.session = Some(SessionId::new("s"));
        let outcome = agent.run_with("Do it", options).await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Suspended);
        let open = agent.approvals(None).await.unwrap();
        assert!(open[0].request.action_summary.contains("service_0__action_30"), "{open:?}");
        assert!(agent.answer(&open[0].request.request_id, Answer::Approve).await.unwrap());
        let outcome = agent.resume(outcome.run).await.unwrap().reply().await.ended();
        assert!(outcome.is_finished(), "{outcome:?}");
        assert_eq!(calls.load(Ordering::Relaxed), prompt);
    }
    let seen = seen.lock().unwrap();
    let names: Vec<&str> = seen[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["call_tool", "clock", "tool_search"]);
    let bytes = |request: &Request| serde_json::to_string(&*request.tools).unwrap();
    assert!(seen.iter().all(|request| bytes(request) == bytes(&seen[0])));
    assert!(seen[0].tools[2].description.contains("There are tools of: service_0."));
}

/// Calls a tool of the late server in its first answer.
fn calling_late() -> FnProvider {
    FnProvider::new(|n, _| match n {
        0 => FnProvider::calls(vec![ToolCall::new("a", "service_0__action_31", json!({ "subject": "x" }))]),
        _ => FnProvider::text("done"),
    })
}

#[tokio::test]
async fn call_of_a_late_tool_is_refused_in_a_run_that_names_its_tools() {
    let calls = Arc::default();
    let late = late(&calls);
    late.answer();
    let agent = agent(&calling_late()).tool(late as Arc<dyn Tool>).build().unwrap();
    let options = RunOptions::default().with_tools(["clock", "call_tool", "tool_search"]);
    assert!(agent.run_with("Do it", options).await.ended().is_finished());
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn run_that_names_a_late_tool_is_refused_until_the_server_has_answered_and_then_defines_it() {
    let (calls, model) = (Arc::default(), calling_late());
    let late = late(&calls);
    let agent = agent(&model).tool(late.clone() as Arc<dyn Tool>).build().unwrap();
    let options = || RunOptions::default().with_tools(["clock", "service_0__action_31"]);
    let refused = agent.run_with("Do it", options()).await.unwrap_err();
    let expected = "the tool `service_0__action_31` is not known yet: service_0: it has not answered yet";
    assert_eq!(refused.to_string(), expected);
    assert!(refused.advice().contains("McpServers::settled") && refused.http_status() == 503);
    late.answer();
    let unknown = RunOptions::default().with_tools(["service_0__action_99"]);
    let refused = agent.run_with("Do it", unknown).await.unwrap_err();
    assert!(refused.to_string().starts_with("the agent has no tool `service_0__action_99`"), "{refused}");
    assert!(agent.run_with("Do it", options()).await.ended().is_finished());
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let requests = model.requests();
    let names: Vec<&str> = requests[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["clock", "service_0__action_31"]);
}
