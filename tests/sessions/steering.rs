//! Speaking into a run, stopping it from elsewhere, and holding a conversation.

use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use archon::{
    Archon, Conversation, Event, Journal, OutcomeStatus, RunError, RunHandle, RunId, RunOptions, Tool,
    ToolContext, ToolError, ToolResult,
    providers::{ScriptedProvider, Step},
    react_loop::LoopError,
    store::{InMemoryJournal, JsonlJournal, SqliteJournal},
    types::{
        BoxFuture, Durability, ExecutionLimits, Inbox, InboxEntry, InboxRequest, JournalError, Json, Message,
        ModelPrice, OpenMode, OpenRun, PromptSource, QueueMode, Record, RecordBody, Request, RunFilter,
        RunHead, RunRefused, Timestamp, ToolCall, ToolSpec,
    },
};
use archon_testkit::{Ended, MockResponse, MockServer, VirtualClock};
use futures_util::StreamExt;
use serde_json::json;

use crate::shared::wire::{answer, text, with_model};

/// A tool that says something to its own run, or only that it ran.
struct Says {
    spec: ToolSpec,
    archon: Arc<OnceLock<Archon>>,
}

impl Tool for Says {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Json,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let (archon, run) = (self.archon.get().expect("an agent"), &context.run.run);
            if let Some(text) = arguments["steer"].as_str() {
                archon.steer(run, text).await.expect("a steer");
            }
            if let Some(text) = arguments["follow_up"].as_str() {
                archon.follow_up(run, text).await.expect("a follow-up");
            }
            Ok("done".into())
        })
    }
}

fn agent_with(journal: Arc<dyn Journal>, provider: Arc<ScriptedProvider>) -> Archon {
    let archon = Arc::new(OnceLock::new());
    let schema = json!({"type": "object", "properties": {"steer": {"type": "string"}, "follow_up": {"type": "string"}}});
    let tool = Says { spec: ToolSpec::new("say", "Says something.", schema), archon: archon.clone() };
    let agent = Archon::builder()
        .provider(provider, "scripted")
        .tools([Arc::new(tool) as Arc<dyn Tool>])
        .journal(journal)
        .build()
        .expect("an agent");
    let _ = archon.set(agent.clone());
    agent
}

fn scripted(steps: Vec<Step>) -> Arc<ScriptedProvider> {
    Arc::new(ScriptedProvider::new(steps))
}

fn say(id: &str, arguments: Json) -> ToolCall {
    ToolCall::new(id, "say", arguments)
}

/// Answers with what the model reads, message by message.
fn echo() -> Step {
    Step::reply(|request: &Request| Step::text(read(request)))
}

fn read(request: &Request) -> String {
    let read = request.messages.iter().map(|m| match &**m {
        Message::User(_) => format!("user: {}", m.text()),
        Message::Assistant(_) => format!("model: {}", m.text()),
        Message::ToolResult(result) => {
            format!("{}{}", if result.is_error { "error: " } else { "" }, m.text())
        }
    });
    read.collect::<Vec<_>>().join("\n")
}

async fn bodies(journal: &dyn Journal, run: &RunId) -> Vec<RecordBody> {
    journal.read(run).await.expect("a log").iter().map(|r| r.body.clone()).collect()
}

// spec: A-44, R-09, R-10
#[tokio::test]
async fn a_steer_between_two_tools_skips_the_second_and_a_follow_up_makes_another_turn() {
    let dir = tempfile::tempdir().unwrap();
    let sqlite = SqliteJournal::open(dir.path().join("runs.db")).unwrap();
    let journals: [Arc<dyn Journal>; 3] =
        [Arc::new(InMemoryJournal::new()), Arc::new(JsonlJournal::new(dir.path())), Arc::new(sqlite)];
    for journal in journals {
        let both = json!({"steer": "not that", "follow_up": "and thanks"});
        let calls = vec![say("c1", both), say("c2", json!({}))];
        let agent = agent_with(journal.clone(), scripted(vec![Step::calls(calls), Step::text("ok"), echo()]));
        let outcome = agent.run("do both").await.ended();
        assert_eq!(
            outcome.last_text().unwrap_or_default(),
            "user: do both\nmodel: \ndone\nerror: Skipped due to queued user message.\nuser: not that\n\
             model: ok\nuser: and thanks"
        );
        let inbox = journal.inbox().expect("an inbox");
        assert_eq!(inbox.waiting(&outcome.run).await.unwrap(), []);
    }
}

/// Waits until the model began to answer.
async fn half_said(run: &mut RunHandle) {
    while let Some(event) = run.next().await {
        if matches!(event, Event::Delta(_)) {
            return;
        }
    }
    panic!("the run ended before the first token");
}

/// A journal whose inbox counts how often it is looked into.
struct Counting(InMemoryJournal, Arc<AtomicUsize>);

impl Journal for Counting {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        self.0.open(run, mode)
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.0.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.0.list(filter)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(Self(self.0.clone(), self.1.clone())))
    }
}

impl Inbox for Counting {
    fn post<'a>(&'a self, _: &'a RunId, _: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        panic!("nobody speaks")
    }

    fn waiting<'a>(&'a self, _: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn remove<'a>(&'a self, _: &'a RunId, _: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

// spec: R-09
#[tokio::test]
async fn inbox_is_read_only_where_a_message_can_matter() {
    let looks = Arc::new(AtomicUsize::new(0));
    let journal = Arc::new(Counting(InMemoryJournal::new(), looks.clone()));
    let calls = vec![say("c1", json!({})), say("c2", json!({}))];
    let agent = agent_with(journal, scripted(vec![Step::calls(calls), Step::text("ok")]));
    assert_eq!(agent.run("do both").await.ended().last_text(), Some("ok"));
    // By the pump as the run begins; before two questions, before two calls, and before the end.
    assert!(looks.load(Ordering::Relaxed) <= 6, "{looks:?} looks");
}

// spec: R-13
#[tokio::test]
async fn a_cancel_through_the_files_ends_a_run_of_another_process() {
    for kind in ["jsonl", "sqlite"] {
        check_cancel_from_elsewhere(kind).await;
    }
}

async fn check_cancel_from_elsewhere(kind: &str) {
    let dir = tempfile::tempdir().unwrap();
    let open = || -> Arc<dyn Journal> {
        match kind {
            "jsonl" => Arc::new(JsonlJournal::new(dir.path())),
            _ => Arc::new(SqliteJournal::open(dir.path().join("runs.db")).unwrap()),
        }
    };
    let server = MockServer::start([MockResponse::sse("").event(&text("half an ans")).hang()]).await;
    let working = with_model(&server).journal(open()).build().expect("an agent");
    let mut run = working.start("work", RunOptions::default()).await.expect("a run");
    let id = run.run_id().clone();
    half_said(&mut run).await;
    // Nothing is shared with the agent that works but the files.
    let elsewhere = agent_with(open(), scripted(vec![]));
    elsewhere.cancel(&id, "the office closes").await.expect("posted");
    let outcome = tokio::time::timeout(Duration::from_secs(20), run.reply()).await.expect("in time").ended();
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);
    let log = bodies(&**working.journal(), &id).await;
    let reason = log.iter().find_map(|body| match body {
        RecordBody::CancelRequested { reason } => Some(reason.as_str()),
        _ => None,
    });
    assert_eq!(reason, Some("the office closes"));
    let e = elsewhere.cancel(&id, "again").await.expect_err("it has ended");
    assert!(matches!(e, RunError::Refused(RunRefused::Ended { .. })), "{e}");
}

// spec: R-09
#[tokio::test]
async fn message_to_an_interrupted_run_is_read_once_on_resume() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Arc::new(JsonlJournal::new(dir.path()));
    let run = cut_off(&journal, dir.path()).await;
    let inbox = journal.inbox().expect("an inbox");
    let message: archon::types::AgentMessage = Message::user("by the way", Timestamp::default()).into();
    let entry = InboxEntry::new("in_7", Timestamp::default(), InboxRequest::Steer { message });
    inbox.post(&run, entry.clone()).await.unwrap();

    let failing = agent_with(journal.clone(), scripted(vec![Step::error(no())]));
    let outcome = failing.resume(run.clone()).await.unwrap().reply().await.ended();
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(inbox.waiting(&run).await.unwrap(), []);

    // As after a crash between the record and the removal.
    inbox.post(&run, entry).await.unwrap();
    let agent = agent_with(journal.clone(), scripted(vec![echo()]));
    let outcome = agent.resume(run.clone()).await.unwrap().reply().await.ended();
    assert_eq!(outcome.last_text(), Some("user: go\nuser: by the way"));
    assert_eq!(inbox.waiting(&run).await.unwrap(), [], "known and removed");
}

fn no() -> archon::types::ProviderError {
    archon::types::ProviderError::Auth("no".into())
}

/// A run whose process died when it had been asked.
async fn cut_off(journal: &Arc<JsonlJournal>, _: &Path) -> RunId {
    let agent = agent_with(journal.clone(), scripted(vec![Step::error(no())]));
    let outcome = agent.run("go").await.ended();
    let whole = journal.read(&outcome.run).await.unwrap();
    let run = RunId::new("cut_off");
    let mut open = journal.open(&run, OpenMode::Create).await.unwrap();
    let records: Vec<Arc<Record>> = whole[..2].to_vec();
    open.writer.append(&records, Durability::Synced).await.unwrap();
    run
}

/// A conversation with a model that has no tools.
fn conversation(steps: Vec<Step>) -> Conversation {
    agent_with(Arc::new(InMemoryJournal::new()), scripted(steps)).conversation()
}

async fn says(conversation: &Conversation, text: &str) -> String {
    conversation
        .prompt(text)
        .await
        .expect("a run")
        .reply()
        .await
        .ended()
        .last_text()
        .unwrap_or_default()
        .to_owned()
}

// spec: R-12, R-10
#[tokio::test]
async fn a_second_prompt_is_refused_while_the_first_is_answered_and_a_follow_up_is_not() {
    let server = MockServer::start([
        MockResponse::sse("").event(&text("half")).hang(),
        answer("the rest"),
        answer("of it"),
    ])
    .await;
    let conversation = with_model(&server).build().expect("an agent").conversation();
    let mut run = conversation.prompt("one").await.expect("a run");
    assert_eq!(conversation.running().as_ref(), Some(run.run_id()));
    for refused in [conversation.prompt("two").await, conversation.continue_loop().await] {
        let e = refused.expect_err("busy");
        assert!(matches!(&e, RunError::SessionBusy { run: busy, .. } if busy == run.run_id()), "{e}");
    }
    assert!(matches!(conversation.new_session(), Err(RunError::SessionBusy { .. })));
    half_said(&mut run).await;
    conversation.follow_up("three").await.expect("queued");
    conversation.abort();
    assert_eq!(run.reply().await.ended().status, OutcomeStatus::Cancelled);
    assert_eq!(conversation.running(), None);
    assert_eq!(says(&conversation, "two").await, "the rest");
}

// spec: R-02, R-12, R-13
#[tokio::test]
async fn conversation_can_continue_be_saved_and_restart() {
    let talk =
        conversation(vec![Step::text("hi"), echo(), Step::error(no()), echo(), echo(), echo(), echo()]);
    assert_eq!(says(&talk, "hello").await, "hi");
    let e = talk.continue_loop().await.unwrap().reply().await.expect_err("nothing to answer");
    assert!(matches!(e.cause(), Some(LoopError::NothingToAnswer)), "{e}");
    let (session, saved) = (talk.session_id(), talk.save_messages().await.unwrap());
    let all = "user: hello\nmodel: hi\nuser: again";
    assert_eq!(says(&talk, "again").await, all);

    // A run that failed is answered without being asked again.
    assert_eq!(talk.prompt("fail").await.unwrap().reply().await.ended().status, OutcomeStatus::Failed);
    let answered = talk.continue_loop().await.unwrap().reply().await.unwrap();
    assert_eq!(answered.into_text().unwrap(), format!("{all}\nmodel: {all}\nuser: fail"));

    // What was said while nothing ran is heard with the next prompt, unless all is forgotten.
    talk.steer("forget me").await.unwrap();
    talk.reset();
    talk.steer("and this").await.unwrap();
    assert_eq!(says(&talk, "who am I?").await, "user: who am I?\nuser: and this");
    assert_eq!(talk.session_id(), session);

    talk.restore_messages(&saved).unwrap();
    assert_eq!(says(&talk, "back").await, "user: hello\nmodel: hi\nuser: back");
    assert_ne!(talk.new_session().unwrap(), session);
    assert_eq!(says(&talk, "new").await, "user: new");
}

#[tokio::test]
async fn messages_that_would_break_a_request_are_not_restored() {
    let talk = conversation(vec![]);
    let call = archon::types::Content::from(say("c1", json!({})));
    let answer = archon::types::AssistantMessage { content: vec![call], ..Default::default() };
    let torn = serde_json::to_string(&[Message::Assistant(answer)]).unwrap();
    let refused = talk.restore_messages(&torn).unwrap_err();
    assert!(matches!(refused.cause(), Some(LoopError::Unpaired)), "{refused}");
    assert!(matches!(talk.restore_messages("{"), Err(RunError::Messages { .. })));
}

// spec: R-02, R-33, S-10
#[tokio::test]
async fn idle_session_is_rotated() {
    let clock = VirtualClock::new();
    let agent = Archon::builder()
        .provider(scripted(vec![echo(), echo(), echo()]), "scripted")
        .clock(Arc::new(clock.clone()))
        .build()
        .unwrap();
    let talk = agent.conversation();
    let hour = Duration::from_secs(3_600);
    says(&talk, "one").await;
    clock.advance(hour);
    assert_eq!(talk.check_and_rotate(hour), None);
    let session = talk.session_id();
    clock.advance(Duration::from_millis(1));
    let rotated = talk.check_and_rotate(hour);
    assert_eq!(rotated, Some(talk.session_id()));
    assert_ne!(talk.session_id(), session);
    assert_eq!(says(&talk, "two").await, "user: two");
    let back = agent.conversation_in(session.clone()).await.unwrap();
    assert_eq!(says(&back, "three").await, "user: one\nmodel: user: one\nuser: three");
    assert_eq!(back.session_id(), session);
}

// spec: R-11
#[tokio::test]
async fn the_queue_modes_of_a_run_stand_in_its_log() {
    let agent = Archon::builder()
        .provider(scripted(vec![echo()]), "scripted")
        .queue_modes(QueueMode::All, QueueMode::OneAtATime)
        .build()
        .unwrap();
    let outcome = agent.run("x").await.ended();
    let log = bodies(&**agent.journal(), &outcome.run).await;
    let RecordBody::RunStarted(started) = &log[0] else { panic!("{log:?}") };
    assert_eq!(
        (started.config.steering_mode, started.config.follow_up_mode),
        (QueueMode::All, QueueMode::OneAtATime)
    );
    assert!(matches!(log[1], RecordBody::MessageAdded { source: PromptSource::Prompt, .. }));
}

// spec: R-14
#[tokio::test]
async fn a_money_cap_without_a_price_and_a_run_too_deep_are_not_started() {
    let mut limits = ExecutionLimits::default();
    limits.max_cost_micros = Some(1_000_000);
    let builder = |limits: &ExecutionLimits| {
        Archon::builder().provider(scripted(vec![Step::text("ok")]), "m").limits(limits.clone())
    };
    let e = builder(&limits).build().unwrap().run("x").await.expect_err("no price");
    assert!(e.to_string().contains("the price of m is unknown"), "{e}");
    let priced = builder(&limits).price(ModelPrice::new(1_000_000, 1_000_000)).build().unwrap();
    assert_eq!(priced.run("x").await.ended().status, OutcomeStatus::Finished);

    let agent = builder(&ExecutionLimits::default()).build().unwrap();
    let mut context = agent.context("r".into(), "s".into(), RunOptions::default());
    context.depth = 6;
    let outcome = archon::Agent::run(&*agent_of(&agent), "x", &context).await;
    assert_eq!(outcome.error.as_deref(), Some("a run at depth 6 cannot start: the maximum depth is 1"));
}

fn agent_of(_: &Archon) -> Box<archon::react_loop::ReactAgent> {
    let options = archon::react_loop::ReactAgentOptions::new("m");
    let journal = Arc::new(InMemoryJournal::new());
    Box::new(archon::react_loop::ReactAgent::new(scripted(vec![Step::text("ok")]), journal, options))
}
