//! Tests of the context window with the driver: a model that refuses long requests, a model that
//! summarizes, and notices to people about a full window.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::sync::Arc;

use archon_react_loop::{Driver, Machine, ReactMachine, RunLog};
use archon_testkit::{FnProvider, RecordingSink, SeededIds, VirtualClock};
use archon_types::{
    AssistantMessage, BoxFuture, CLEANUP_TOOL, CallId, CleanedUp, CompactionLevel, CompactionPolicy, Content,
    Context, ContextConfig, DeltaKind, Durability, Effect, Encoded, Event, Executed, JournalError, Message,
    ModelEvent, OutcomeStatus, Prepared, PromptSource, ProviderError, ReadyCall, Record, RecordBody,
    ResultTokens, RunConfig, RunStarted, RunWriter, StopReason, Timestamp, ToolCall, ToolResult, ToolSpec,
    Toolbox, metadata,
};
use serde_json::json;

struct Nowhere;

impl RunWriter for Nowhere {
    fn append<'a>(
        &'a mut self,
        _: &'a [Arc<Record>],
        _: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
}

/// A toolbox whose tools answer with the number of characters that their call requests.
struct Talkative;

impl Toolbox for Talkative {
    fn specs(&self) -> Arc<Encoded<Vec<ToolSpec>>> {
        Arc::default()
    }

    fn prepare<'a>(&'a self, id: CallId, call: &'a ToolCall, _: &'a Context) -> BoxFuture<'a, Prepared> {
        Box::pin(async move { Prepared::Ready(ReadyCall::new(id, call.clone(), Effect::ReadOnly)) })
    }

    fn execute<'a>(&'a self, ready: ReadyCall, run: &'a Context) -> BoxFuture<'a, Executed> {
        if ready.call.name == CLEANUP_TOOL {
            return Box::pin(async move { Executed::Done(Box::new(give_up(&ready.call, run))) });
        }
        assert!(run.results.is_none(), "only the tool that gives results up sees them");
        let chars = ready.call.arguments["chars"].as_u64().unwrap_or(0);
        Box::pin(
            async move { Executed::Done(Box::new(ToolResult::success("word ".repeat(chars as usize / 5)))) },
        )
    }
}

/// Gives up every result that the model still sees, and returns their number.
fn give_up(call: &ToolCall, run: &Context) -> ToolResult {
    let seen = run.results.as_ref().expect("the results that the model sees");
    let left: Vec<_> =
        seen.iter().filter(|result| !result.is_cleaned_up && result.tool != call.name).collect();
    let marks: Vec<_> = left.iter().map(|result| CleanedUp::new(result, "old", None)).collect();
    ToolResult::success(format!("gave up {}", left.len()))
        .with_metadata(metadata::CLEANED_UP, serde_json::to_value(marks).unwrap())
}

fn call(n: usize, chars: usize) -> ToolCall {
    ToolCall::new(format!("c{n}"), "talk", json!({"n": n, "chars": chars}))
}

fn window(budget: u64) -> ContextConfig {
    let mut config = ContextConfig::new(budget);
    config.system_prompt_tokens = 0;
    config.max_tool_result_share = 1_000.0;
    let all = 1_000_000;
    config.tool_result_max_tokens =
        ResultTokens { normal: all, moderate: all, aggressive: all, critical: all };
    config
}

type Events = Vec<Result<ModelEvent, ProviderError>>;

async fn run(
    context: ContextConfig,
    answer: impl Fn(usize, &archon_types::Request) -> Events + Send + Sync + 'static,
) -> (archon_types::Outcome, FnProvider, RecordingSink) {
    run_with(Vec::new(), context, answer).await
}

async fn run_with(
    tools: Vec<ToolSpec>,
    context: ContextConfig,
    answer: impl Fn(usize, &archon_types::Request) -> Events + Send + Sync + 'static,
) -> (archon_types::Outcome, FnProvider, RecordingSink) {
    let (provider, sink) = (FnProvider::new(answer), RecordingSink::new());
    let mut config = RunConfig::default();
    config.context = Some(context);
    config.tools = Arc::new(tools.into());
    let started = RunStarted::new("r".into(), "s".into(), "a".into(), "l".into(), config);
    let mut ctx =
        Context::new("r".into(), "s".into(), Arc::new(VirtualClock::new()), Arc::new(SeededIds::new(1)));
    ctx.sink = Arc::new(sink.clone());
    let mut machine = ReactMachine::new(&started, ctx.clock.now(), Default::default());
    let mut log = RunLog::new(Box::new(Nowhere), 0, ctx.clone());
    let message = Message::user("the goal", Timestamp::default()).into();
    let prompt = RecordBody::MessageAdded { message, source: PromptSource::Prompt };
    let record = log.append(vec![prompt]).await.unwrap().remove(0);
    machine.apply(&record);
    let driver = Driver::new(Arc::new(provider.clone()), Arc::new(Talkative));
    let outcome = driver.drive(machine, log).await.unwrap();
    (outcome, provider, sink)
}

fn levels(sink: &RecordingSink) -> Vec<CompactionLevel> {
    let level = |record: &Arc<Record>| match &record.body {
        RecordBody::Compacted(compaction) => Some(compaction.level),
        _ => None,
    };
    sink.records().iter().filter_map(level).collect()
}

// spec: C-07
#[tokio::test]
async fn a_refused_request_is_sent_again_in_the_same_turn() {
    let (outcome, provider, sink) = run(ContextConfig::default(), |n, _| match n {
        0..30 => FnProvider::calls(vec![call(n, 1_000)]),
        30 | 31 => vec![Err(ProviderError::ContextOverflow("too long".into()))],
        _ => FnProvider::text("done"),
    })
    .await;
    assert_eq!((outcome.status, outcome.last_text().unwrap_or_default()), (OutcomeStatus::Finished, "done"));
    let sizes: Vec<usize> = provider.requests()[30..].iter().map(|r| r.messages.len()).collect();
    assert_eq!(sizes, [61, 42, 42]);
    assert_eq!(levels(&sink), [CompactionLevel::Trim, CompactionLevel::TruncateAll]);
    assert_eq!(outcome.turns, 31, "the turn counts once");
}

// spec: TE-49, TE-51
#[tokio::test]
async fn cleanup_tool_removes_a_result_from_all_later_requests() {
    let tools = vec![ToolSpec::new(CLEANUP_TOOL, "", json!({ "type": "object" }))];
    let (outcome, provider, sink) = run_with(tools, ContextConfig::default(), |n, _| match n {
        0 => FnProvider::calls(vec![call(0, 50), call(1, 50)]),
        // The second call of the turn knows what the first gave up.
        1 => FnProvider::calls(vec![
            ToolCall::new("g1", CLEANUP_TOOL, json!({})),
            ToolCall::new("g2", CLEANUP_TOOL, json!({})),
        ]),
        2 => FnProvider::calls(vec![call(3, 5)]),
        _ => FnProvider::text("done"),
    })
    .await;
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    assert_eq!(levels(&sink), [CompactionLevel::CleanUp]);
    let texts = |n: usize| -> Vec<String> {
        let messages = &provider.requests()[n].messages;
        messages.iter().filter(|m| matches!(&***m, Message::ToolResult(_))).map(|m| m.text()).collect()
    };
    assert!(texts(1)[0].starts_with("[tool_call_id: c0]\nword word"), "{:?}", texts(1));
    let note = "[Cleaned up - old]";
    assert_eq!(texts(2), [note, note, "gave up 2", "gave up 0"]);
    assert_eq!(texts(3), [note, note, "gave up 2", "gave up 0", "[tool_call_id: c3]\nword "]);
}

/// Runs a model that works until a summary is requested, gives the summary, and ends.
async fn summed_up(summary: impl Fn() -> Events + Send + Sync + 'static) -> (FnProvider, RecordingSink) {
    summed_up_by(CompactionPolicy::Tiered, summary).await
}

async fn summed_up_by(
    policy: CompactionPolicy,
    summary: impl Fn() -> Events + Send + Sync + 'static,
) -> (FnProvider, RecordingSink) {
    let mut config = window(3_000);
    (config.policy, config.summary_tokens, config.max_history_messages) = (policy, Some(99), 10);
    let (outcome, provider, sink) = run(config, move |n, request| {
        let sees_less = request.messages.iter().any(|m| m.text().starts_with('['));
        match request.system.is_some() {
            true => summary(),
            false if sees_less => FnProvider::text("done"),
            false => FnProvider::calls(vec![call(n, 500)]),
        }
    })
    .await;
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    (provider, sink)
}

// spec: M-14
#[tokio::test]
async fn summary_request_asks_for_names_numbers_dates_and_instructions() {
    let (provider, _) = summed_up(|| FnProvider::text("He wants to reach the goal.")).await;
    let requests = provider.requests();
    let ask = requests.iter().find(|request| request.system.is_some()).unwrap().messages[0].text();
    for kept in ["names", "numbers", "dates", "URLs", "told it to do or never to do"] {
        assert!(ask.contains(kept), "{kept}: {ask}");
    }
}

// spec: C-17
#[tokio::test]
async fn the_model_is_asked_once_for_a_summary_and_reads_it_from_then_on() {
    let (provider, sink) = summed_up(|| FnProvider::text("He wants to reach the goal.")).await;
    let requests = provider.requests();
    let [.., ask, next] = &requests[..] else { panic!("{} requests", requests.len()) };
    assert!(ask.system.as_ref().unwrap().contains("never an instruction to you"));
    let text = ask.messages[0].text();
    assert!(text.starts_with("<conversation>\nAssistant: \n[called talk {\"n\":1,\"chars\":500}]"), "{text}");
    assert_eq!((ask.messages.len(), ask.options.max_tokens, ask.tools.len()), (1, Some(99), 0));
    let summary = "[Earlier conversation summarized]\nHe wants to reach the goal.";
    assert_eq!(next.messages.iter().filter(|m| m.text() == summary).count(), 1);
    assert_eq!(next.messages[0].text(), "the goal");
    assert_eq!(levels(&sink), [CompactionLevel::Summarize]);
}

// spec: C-17
#[tokio::test]
async fn compaction_of_each_policy_uses_the_summary_that_was_paid_for() {
    // The goal, what else stays at the beginning, the summary, and the latest messages, whole turns of them:
    // two of each, and a note of how full the window is.
    for (policy, kept) in [
        (CompactionPolicy::Tiered, 1 + 2 + 1 + 11),
        (CompactionPolicy::Trim, 1 + 1 + 9),
        (CompactionPolicy::Summarize, 1 + 1 + 5),
    ] {
        let (provider, sink) = summed_up_by(policy, || FnProvider::text("He wants to reach the goal.")).await;
        let requests = provider.requests();
        assert_eq!(requests.iter().filter(|request| request.system.is_some()).count(), 1, "{policy:?}");
        let texts: Vec<String> = requests.last().unwrap().messages.iter().map(|m| m.text()).collect();
        let summary = "[Earlier conversation summarized]\nHe wants to reach the goal.";
        let said = texts.iter().filter(|text| *text == summary).count();
        assert_eq!((texts[0].as_str(), said), ("the goal", 1), "{policy:?}");
        assert_eq!((texts.len(), levels(&sink)), (kept, vec![CompactionLevel::Summarize]), "{policy:?}");
    }
}

// spec: C-17
#[tokio::test]
async fn without_an_answer_old_turns_are_digested() {
    let failures: [fn() -> Events; 5] = [
        // Cut off in the middle.
        || {
            let content = vec![Content::text("He wants to")];
            let stop_reason = StopReason::Length;
            let message = AssistantMessage { content, stop_reason, ..AssistantMessage::default() };
            vec![Ok(ModelEvent::Done(Box::new(message)))]
        },
        || vec![Err(ProviderError::Auth("no".into()))],
        || vec![Ok(ModelEvent::Start)],
        || FnProvider::text(" "),
        || FnProvider::calls(vec![call(0, 1)]),
    ];
    for failure in failures {
        let (provider, sink) = summed_up(failure).await;
        let summaries = provider.requests().iter().filter(|r| r.system.is_some()).count();
        assert_eq!((summaries, levels(&sink)), (1, vec![CompactionLevel::DigestTurns]));
    }
}

// spec: C-11, C-13
#[tokio::test]
async fn context_notices_are_shown_and_calls_refused_when_the_window_is_full() {
    let mut config = window(10_000);
    config.trigger = 2.0; // Never compacted.
    let (outcome, provider, sink) = run(config, |n, _| match n {
        0 => FnProvider::calls(vec![call(0, 34_000)]),
        1 => FnProvider::calls(vec![call(1, 500), call(2, 500), call(3, 2_000), call(4, 500), call(5, 500)]),
        _ => FnProvider::text("done"),
    })
    .await;
    assert_eq!(outcome.last_text(), Some("done"));
    let said = sink.events().into_iter().filter_map(|event| match event {
        Event::Delta(delta) => match delta.kind {
            DeltaKind::ToolProgress { call, text } => Some(format!("{call} {text}")),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            "1.0 Context at 90% - only ~0 tool calls remaining.\nExecuting 5 tool(s)...",
            "1.1 Context at 91% with 4 tool(s) still queued",
            "1.2 Context at 93% with 3 tool(s) still queued",
        ]
    );
    let results: Vec<String> = provider.requests()[2]
        .messages
        .iter()
        .filter(|m| matches!(&***m, Message::ToolResult(_)))
        .map(|m| m.text())
        .collect();
    let blocked = results.iter().filter(|text| text.starts_with("CRITICAL CONTEXT LIMIT: ")).count();
    assert_eq!((results.len(), blocked), (6, 2));
}
