//! Replay: a log says what follows from its inputs, however the run went, and an altered log does not.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    Archon, ArchonBuilder, Outcome, RunOptions, Tool, ToolContext, ToolError,
    react_loop::{Replay, replay},
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        CompactionLevel, Content, ContextConfig, Durability, Effect, ExecutionLimits, Journal, ModelEvent,
        OpenMode, OutcomeStatus, ProviderError, Record, RecordBody, Request, RunId, StopReason,
        ToolAnnotations, ToolCall, ToolMode, ToolResult, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider};
use serde_json::json;

type Events = Vec<Result<ModelEvent, ProviderError>>;

fn run_id() -> RunId {
    RunId::new("run")
}

/// Two calls in each of the first `turns` turns, then the answer.
fn script(turns: usize) -> impl Fn(usize, &Request) -> Events + Clone {
    move |_, request| {
        let turn = request.messages.iter().filter(|m| role(m) == "assistant").count();
        if turn >= turns {
            return FnProvider::text("All done.");
        }
        let call = |kind: &str| ToolCall::new(format!("c_{kind}"), kind, json!({"step": turn, "part": 0.1}));
        FnProvider::calls(vec![call("look"), call("send")])
    }
}

fn role(message: &archon::types::Message) -> &'static str {
    match message {
        archon::types::Message::Assistant(_) => "assistant",
        _ => "other",
    }
}

fn tools() -> Vec<Arc<dyn Tool>> {
    let tool = |name: &'static str, effect| -> Arc<dyn Tool> {
        let schema = json!({"type": "object", "properties": {"step": {"type": "integer"}}});
        let mut annotations = ToolAnnotations::default();
        annotations.effect = effect;
        let spec = ToolSpec::new(name, format!("Does {name}."), schema).with_annotations(annotations);
        Arc::new(FnTool::new(spec, move |arguments: serde_json::Value, _: ToolContext| async move {
            match arguments["step"].as_u64() {
                Some(2) => Err(ToolError::Failed("the third step fails".into())),
                step => Ok(ToolResult::success(format!("{name} {step:?} done"))),
            }
        }))
    };
    vec![tool("look", Effect::ReadOnly), tool("send", Effect::SideEffect)]
}

fn agent(
    journal: &InMemoryJournal,
    script: impl Fn(usize, &Request) -> Events + Send + Sync + 'static,
) -> ArchonBuilder {
    Archon::builder()
        .provider(Arc::new(FnProvider::new(script)), "scripted")
        .tools(tools())
        .journal(Arc::new(journal.clone()))
}

fn options() -> RunOptions {
    let mut options = RunOptions::default();
    options.run = Some(run_id());
    options
}

async fn work(agent: ArchonBuilder) -> Outcome {
    agent.build().unwrap().run_with("Do the steps.", options()).await.ended()
}

/// A journal that holds one log.
async fn journal_of(bodies: impl IntoIterator<Item = Record>) -> InMemoryJournal {
    let journal = InMemoryJournal::new();
    let records: Vec<_> = bodies.into_iter().map(Arc::new).collect();
    let mut open = journal.open(&run_id(), OpenMode::Create).await.unwrap();
    open.writer.append(&records, Durability::Synced).await.unwrap();
    journal
}

async fn log(journal: &InMemoryJournal) -> Vec<Record> {
    journal.read(&run_id()).await.unwrap().iter().map(|r| (**r).clone()).collect()
}

/// The run replays to itself; returns its log.
async fn check_identical(journal: &InMemoryJournal) -> Vec<Record> {
    let log = log(journal).await;
    let found = replay(journal, &run_id()).await.unwrap();
    assert_eq!(found, Replay::Identical { records: log.len() as u64 }, "{log:#?}");
    log
}

// spec: OB-10, OB-07
#[tokio::test]
async fn replay_of_the_inputs_gives_an_equal_log() {
    let journal = InMemoryJournal::new();
    assert!(work(agent(&journal, script(4))).await.is_finished());
    let log = check_identical(&journal).await;
    assert_eq!(log.iter().filter(|r| matches!(r.body, RecordBody::ToolCallFinished { .. })).count(), 8);
    let hashes = log.iter().filter_map(|r| match &r.body {
        RecordBody::ModelCallStarted { request_hash, .. } => Some(request_hash.clone()),
        _ => None,
    });
    assert!(hashes.clone().all(|hash| hash.len() == 16));
    assert_eq!(hashes.collect::<std::collections::BTreeSet<_>>().len(), 5, "every request is another");
}

#[tokio::test]
async fn a_run_that_went_wrong_replays_to_itself() {
    // Retries, and an answer that never comes.
    let journal = InMemoryJournal::new();
    let inner = script(4);
    let flaky = move |n: usize, request: &Request| match n {
        0 | 2 => vec![Err(ProviderError::RateLimited {
            retry_after: Some(Default::default()),
            message: "slow".into(),
        })],
        5.. => vec![Err(ProviderError::Auth("bad key".into()))],
        _ => inner(n, request),
    };
    assert_eq!(work(agent(&journal, flaky)).await.status, OutcomeStatus::Failed);
    check_identical(&journal).await;

    // A limit, with the loop's own words in the conversation.
    let journal = InMemoryJournal::new();
    let mut limits = ExecutionLimits::default();
    limits.max_turns = 3;
    let outcome = work(agent(&journal, script(9)).limits(limits)).await;
    assert!(matches!(outcome.status, OutcomeStatus::Limit(_)), "{outcome:?}");
    check_identical(&journal).await;

    // Prose that cannot be understood, then an action and an answer.
    let journal = InMemoryJournal::new();
    let prose = |n: usize, _: &Request| {
        FnProvider::text(match n {
            0 => "Let me think about it.",
            1 => "Thought: look\nAction: look\nAction Input: {\"step\": 1}",
            _ => "Thought: that is it\nFinal Answer: seen",
        })
    };
    assert_eq!(
        work(agent(&journal, prose).tool_mode(ToolMode::Text)).await.last_text().unwrap_or_default(),
        "seen"
    );
    check_identical(&journal).await;
}

#[tokio::test]
async fn a_run_whose_window_was_compacted_replays_to_itself() {
    let journal = InMemoryJournal::new();
    let mut context = ContextConfig::new(600);
    context.system_prompt_tokens = 0;
    context.min_interval_ms = 0;
    let long = |n: usize, _: &Request| match n {
        30.. => FnProvider::text("All done."),
        _ => FnProvider::calls(vec![ToolCall::new(
            "c",
            "look",
            json!({"step": n, "why": "because ".repeat(9)}),
        )]),
    };
    assert!(work(agent(&journal, long).context(Some(context))).await.is_finished());
    let log = check_identical(&journal).await;
    let compacted =
        |r: &Record| matches!(&r.body, RecordBody::Compacted(c) if c.level != CompactionLevel::default());
    assert!(log.iter().any(compacted));
}

#[tokio::test]
async fn replay_of_a_run_killed_at_any_record_is_identical() {
    let journal = InMemoryJournal::new();
    work(agent(&journal, script(4))).await;
    let whole = log(&journal).await;
    for kept in 2..whole.len() - 1 {
        let journal = journal_of(whole[..kept].to_vec()).await;
        check_identical(&journal).await;
        let resumed = agent(&journal, script(4)).build().unwrap().resume(run_id()).await.unwrap();
        assert!(resumed.reply().await.ended().is_finished(), "{kept}");
        check_identical(&journal).await;
    }
}

#[tokio::test]
async fn replay_of_a_later_run_uses_the_earlier_runs() {
    let journal = InMemoryJournal::new();
    let agent = agent(&journal, script(2)).build().unwrap();
    let mut first = RunOptions::default();
    first.run = Some(RunId::new("first"));
    first.session = None;
    agent.run_with("Begin.", first).await.ended();
    let session = agent.newest_run(None).await.unwrap().unwrap().session.unwrap();
    let mut next = RunOptions::in_session(session);
    next.run = Some(run_id());
    agent.run_with("Go on.", next).await.ended();
    check_identical(&journal).await;
}

/// The same record with one thing altered; `None` if it is not an input with consequences.
fn altered(record: &Record) -> Option<Record> {
    let mut record = record.clone();
    match &mut record.body {
        RecordBody::RunStarted(started) => started.config.model = "another".into(),
        RecordBody::MessageAdded { message, .. } => {
            *message = archon::types::Message::user("Do something else.", record.at).into();
        }
        RecordBody::ModelCallFinished { message, .. } => message.content.push(Content::text("!")),
        RecordBody::ToolCallFinished { result, .. } => *result = ToolResult::success("altered").into(),
        _ => return None,
    }
    Some(record)
}

// spec: OB-10
#[tokio::test]
async fn replay_finds_an_altered_input_at_the_next_derived_record() {
    let journal = InMemoryJournal::new();
    work(agent(&journal, script(4))).await;
    let whole = log(&journal).await;
    let tried = AtomicUsize::new(0);
    for (at, record) in whole.iter().enumerate() {
        let Some(changed) = altered(record) else { continue };
        tried.fetch_add(1, Ordering::Relaxed);
        let mut log = whole.clone();
        log[at] = changed;
        let found = replay(&journal_of(log.clone()).await, &run_id()).await.unwrap();
        let derived = whole.iter().skip(at).find(|r| !r.body.is_input()).unwrap();
        let Replay::Differs { record, expected, found } = found else { panic!("record {at}: {found:?}") };
        assert_eq!(record, derived.seq, "after record {at}");
        assert_eq!(*found, derived.body);
        assert_ne!(expected.as_deref(), Some(&derived.body));
        assert!(expected.is_some(), "after record {at}");
    }
    assert_eq!(tried.into_inner(), 2 + 5 + 8);
}

#[tokio::test]
async fn replay_names_an_answer_without_a_request() {
    let journal = InMemoryJournal::new();
    work(agent(&journal, script(1))).await;
    let mut log = log(&journal).await;
    let at = log.iter().position(|r| matches!(r.body, RecordBody::ModelCallFinished { .. })).unwrap();
    let RecordBody::ModelCallFinished { message, .. } = &mut log[at].body else { unreachable!() };
    message.content = vec![Content::text("There is nothing to do.")];
    message.stop_reason = StopReason::Stop;
    let found = replay(&journal_of(log.clone()).await, &run_id()).await.unwrap();
    let Replay::Differs { record, expected, found } = found else { panic!("{found:?}") };
    assert_eq!(record, at as u64 + 1);
    assert!(matches!(*found, RecordBody::ToolCallStarted { .. }), "{found:?}");
    assert!(matches!(expected.as_deref(), Some(RecordBody::RunFinished(_))), "{expected:?}");

    // A log that ends before the answer that its last record needs.
    log.truncate(at + 1);
    check_identical(&journal_of(log).await).await;
}
