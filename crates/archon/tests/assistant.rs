//! An assistant over real runs: who waits gets the message first, tenants are separate, and each is remembered alone.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and says what it counted")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    Archon, OutcomeStatus, RunOptions, SessionId, Tool, ToolResult,
    orchestrator::{
        Assistant, AssistantReply, Conversations, InMemoryPoolIndex, Incoming, LongTermSteps, NextTurn,
        PlainSteps,
    },
    react_loop::replay,
    store::InMemoryJournal,
    tools::FnTool,
    types::{
        AskLater, BoxFuture, Inbox, Journal, JournalError, Json, LongTerm, MemoryEntry, MemoryError,
        MemoryQuery, Message, OpenMode, OpenRun, Recalled, Record, Request, RunFilter, RunHead, RunId,
        TenantId, ToolAnnotations, ToolCall, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider, SeededIds, VirtualClock};
use serde_json::json;

/// What an assistant and its people have done.
#[derive(Clone)]
struct World {
    journal: InMemoryJournal,
    clock: VirtualClock,
    model: FnProvider,
    /// Who was written to, on whose behalf.
    sent: Arc<Mutex<Vec<(String, Json)>>>,
}

impl World {
    /// A model that sends an email if it is told to, and says what came of it; else how many messages it sees.
    fn new() -> Self {
        let model = FnProvider::new(|_, request| match request.messages.iter().last().map(|last| &**last) {
            Some(Message::User(said)) if text(said).starts_with("Write to ") => {
                let to = text(said)["Write to ".len()..].to_owned();
                FnProvider::calls(vec![ToolCall::new("c", "send_email", json!({ "to": to }))])
            }
            Some(last @ Message::ToolResult(_)) => FnProvider::text(&last.text()),
            _ => FnProvider::text(&format!("I see {}.", texts_of(request).join(", "))),
        });
        Self { journal: InMemoryJournal::new(), clock: VirtualClock::new(), model, sent: Arc::default() }
    }

    /// The agent, in a process of its own.
    fn archon(&self, seed: u16) -> Archon {
        self.archon_in(seed, Arc::new(self.journal.clone()))
    }

    /// The same, over a journal that is looked at.
    fn archon_in(&self, seed: u16, journal: Arc<dyn Journal>) -> Archon {
        let mut annotations = ToolAnnotations::default();
        annotations.requires_confirmation = true;
        let spec = ToolSpec::new("send_email", "Sends an email.", json!({"type": "object"}));
        let sent = self.sent.clone();
        let tool: Arc<dyn Tool> =
            Arc::new(FnTool::new(spec.with_annotations(annotations), move |arguments, tool| {
                let tool: archon::ToolContext = tool;
                sent.lock().unwrap().push((tool.run.tenant.to_string(), arguments));
                async { Ok(ToolResult::success("Sent.")) }
            }));
        Archon::builder()
            .provider(Arc::new(self.model.clone()), "scripted")
            .system("Be brief.")
            .tools([tool])
            .approver(Arc::new(AskLater))
            .journal(journal)
            .clock(Arc::new(self.clock.clone()))
            .ids(Arc::new(SeededIds::new(seed)))
            .build()
            .unwrap()
    }

    fn assistant(&self, seed: u16) -> Assistant {
        self.assistant_of(self.archon(seed))
    }

    fn assistant_of(&self, archon: Archon) -> Assistant {
        let pool = archon.pool(Arc::new(InMemoryPoolIndex::default()));
        let assistant =
            Assistant::new("You are Koi.", Arc::new(archon.clone()), pool, Arc::new(self.clock.clone()));
        assistant.with_capabilities(&archon.toolbox().specs())
    }
}

fn text(message: &archon::types::UserMessage) -> String {
    message.content.iter().filter_map(|content| content.as_text()).collect()
}

/// What people said, as the model sees it.
fn texts_of(request: &Request) -> Vec<String> {
    let user = |message: &Message| match message {
        Message::User(user) => Some(text(user)),
        _ => None,
    };
    request.messages.iter().filter_map(|message| user(message)).collect()
}

async fn says(assistant: &Assistant, tenant: &str, text: &str) -> AssistantReply {
    assistant.handle_message(Incoming::person(tenant.into(), text)).await.unwrap()
}

// spec: MA-32, MA-33, MA-34
#[tokio::test]
async fn assistant_waiting_run_gets_only_its_own_tenants_message() {
    let world = World::new();
    let assistant = world.assistant(1);
    let asked = says(&assistant, "ann", "Write to carl@example.com").await;
    assert_eq!(asked.run.as_ref().unwrap().outcome().status, OutcomeStatus::Suspended);
    assert!(asked.text.contains("carl@example.com") && asked.waiting.len() == 1, "{asked:?}");
    // What somebody else says, and what a trigger says, answers nobody.
    assert_eq!(says(&assistant, "ben", "yes").await.text, "I see yes.");
    let trigger = Incoming::trigger("ann".into(), "morning", "yes");
    let morning = assistant.handle_message(trigger).await.unwrap().text;
    assert_eq!(morning, format!("I see [morning] yes.\n\n{}", asked.text));
    assert!(world.sent.lock().unwrap().is_empty());
    // Another process, which has nothing but the journal.
    let assistant = world.assistant(2);
    assistant.pool().restore().await.unwrap();
    let done = says(&assistant, "ann", "yes").await;
    assert_eq!((done.text.as_str(), done.waiting.len()), ("Sent.", 0));
    assert_eq!(*world.sent.lock().unwrap(), [("ann".to_owned(), json!({ "to": "carl@example.com" }))]);
    // Each conversation is a chain of runs of its own.
    assert_eq!(says(&assistant, "ann", "Thanks").await.text, "I see Write to carl@example.com, Thanks.");
    assert_eq!(says(&assistant, "ben", "And I?").await.text, "I see yes, And I?.");
    let last = world.model.requests().pop().unwrap();
    let system = last.system.unwrap();
    assert!(
        system.starts_with("Be brief.\n\nYou are Koi.\n\nYou can use:\n- send_email: Sends an email."),
        "{system:?}"
    );
    for head in world.journal.list(&RunFilter::all()).await.unwrap() {
        assert!(replay(&world.journal, &head.run_id).await.unwrap().is_identical());
    }
}

#[tokio::test]
async fn tenants_whose_sessions_have_one_name_stay_apart() {
    let world = World::new();
    let (archon, assistant) = (world.archon(1), world.assistant(2));
    // The conversation of `ann-trigger`, and that of the trigger `assistant` of `ann`, have the same name.
    assert_eq!(says(&assistant, "ann-trigger", "my secret").await.text, "I see my secret.");
    let trigger = Incoming::trigger("ann".into(), "assistant", "hello");
    assert_eq!(assistant.handle_message(trigger).await.unwrap().text, "I see [assistant] hello.");
    // A run of one is not taken up for another.
    let waiting = says(&assistant, "ben", "Write to carl@example.com").await.waiting;
    let refused = Conversations::resume(&archon, &waiting[0].run, &TenantId::new("ann")).await.unwrap_err();
    assert!(refused.to_string().contains("does not belong to tenant ann"), "{refused}");
    assert_eq!(archon.approvals(Some(&TenantId::new("ben"))).await.unwrap().len(), 1);
}

/// A memory that is a list.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl LongTerm for Notes {
    fn store<'a>(
        &'a self,
        content: &'a str,
        _: serde_json::Map<String, Json>,
    ) -> BoxFuture<'a, Result<String, MemoryError>> {
        self.0.lock().unwrap().push(content.replace('\n', " / "));
        Box::pin(async { Ok("id".to_owned()) })
    }

    fn query<'a>(&'a self, _: &'a MemoryQuery) -> BoxFuture<'a, Result<Vec<Recalled>, MemoryError>> {
        let notes = self.0.lock().unwrap().clone();
        let found = notes.iter().map(|note| {
            Recalled::new(
                MemoryEntry::of_message("m", "user", note.as_str(), archon::types::Timestamp::default()),
                1.0,
            )
        });
        let found = found.collect();
        Box::pin(async { Ok(found) })
    }

    fn delete<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<bool, MemoryError>> {
        Box::pin(async { Ok(false) })
    }
}

// spec: MA-32, MA-34
#[tokio::test]
async fn assistant_memories_are_separate_per_tenant() {
    let world = World::new();
    let (ann, ben) = (Notes::default(), Notes::default());
    let steps = {
        let (ann, ben) = (ann.clone(), ben.clone());
        LongTermSteps::new(PlainSteps, move |tenant| match tenant.as_str() {
            "ann" => Arc::new(ann.clone()),
            _ => Arc::new(ben.clone()),
        })
    };
    let assistant = world.assistant(1).with_steps(Arc::new(steps));
    says(&assistant, "ann", "I like tea").await;
    says(&assistant, "ben", "Hello").await;
    says(&assistant, "ann", "What do I like?").await;
    let systems: Vec<String> = world
        .model
        .requests()
        .iter()
        .map(|request| request.system.as_ref().unwrap().as_str().to_owned())
        .collect();
    let knows: Vec<bool> = systems.iter().map(|system| system.contains("I like tea")).collect();
    assert_eq!(knows, [false, false, true]);
    assert_eq!(ben.0.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn assistant_does_not_use_the_agents_shared_memory() {
    use archon::memory::{InMemoryStore, Memory};
    let world = World::new();
    let ids = Arc::new(SeededIds::new(9));
    let memory = Memory::new(Arc::new(InMemoryStore::new()), Arc::new(world.clock.clone()), ids.clone());
    let archon = Archon::builder()
        .provider(Arc::new(world.model.clone()), "scripted")
        .journal(Arc::new(world.journal.clone()))
        .clock(Arc::new(world.clock.clone()))
        .ids(ids)
        .memory(memory)
        .build()
        .unwrap();
    archon.run_with("The code is 1234", RunOptions::default()).await.ended();
    let turn = |tenant: &str, message: &str| {
        let mut turn = NextTurn::new(tenant.into(), SessionId::new(format!("{tenant}-assistant")), message);
        turn.system = "You are Koi.".to_owned();
        turn
    };
    let outcome = Conversations::begin(&archon, &turn("ann", "What is the code?")).await.ended();
    assert_eq!(outcome.last_text(), Some("I see What is the code?."));
    assert!(
        archon.run("What is the code?").await.ended().last_text().unwrap_or_default().contains("1234"),
        "it has one"
    );
}

/// A journal that counts what is read out of it: records of logs, and heads of runs.
#[derive(Clone)]
struct Counted {
    inner: InMemoryJournal,
    read: Arc<AtomicUsize>,
}

impl Counted {
    fn count(&self, read: usize) {
        self.read.fetch_add(read, Ordering::Relaxed);
    }
}

impl Journal for Counted {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let open = self.inner.open(run, mode).await?;
            self.count(open.records.len());
            Ok(open)
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(async move {
            let records = self.inner.read(run).await?;
            self.count(records.len());
            Ok(records)
        })
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        Box::pin(async move {
            let heads = self.inner.list(filter).await?;
            self.count(heads.len());
            Ok(heads)
        })
    }

    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        self.count(1);
        self.inner.head(run)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.inner.inbox()
    }
}

/// What a journal holds beside the conversation that is measured.
#[derive(Clone, Copy, Debug)]
enum History {
    /// Runs of others that have ended.
    OthersEnded,
    /// Runs of others that wait for a person.
    OthersWait,
    /// Runs of the same tenant that have ended, in other conversations.
    OwnEnded,
    /// Earlier messages of the same conversation.
    Earlier,
}

/// Records and heads that are read for messages of one tenant beside so much of a history: to one who talks, and to one who
/// is asked and says yes.
async fn records_read(history: History, runs: usize) -> usize {
    let world = World::new();
    let journal = Counted { inner: world.journal.clone(), read: Arc::default() };
    let assistant = world.assistant_of(world.archon_in(1, Arc::new(journal.clone())));
    for run in 0..runs {
        match history {
            History::OthersEnded => says(&assistant, &format!("other-{run}"), "Hello").await,
            History::OthersWait => {
                says(&assistant, &format!("other-{run}"), "Write to carl@example.com").await
            }
            History::OwnEnded => {
                let trigger = Incoming::trigger("ann".into(), format!("trigger-{run}"), "Hello");
                assistant.handle_message(trigger).await.unwrap()
            }
            History::Earlier => says(&assistant, "ann", "Hello").await,
        };
    }
    says(&assistant, "ann", "Hello").await;
    let before = journal.read.load(Ordering::Relaxed);
    // Some messages read more logs of their conversation than others.
    for _ in 0..12 {
        says(&assistant, "ann", "And I?").await;
    }
    assert_eq!(says(&assistant, "ann", "Write to dan@example.com").await.waiting.len(), 1);
    assert_eq!(says(&assistant, "ann", "yes").await.text, "Sent.");
    journal.read.load(Ordering::Relaxed) - before
}

// spec: MA-32
#[tokio::test]
async fn assistant_message_reads_a_constant_number_of_records() {
    for history in [History::OthersEnded, History::OthersWait, History::OwnEnded, History::Earlier] {
        let (few, many) = (records_read(history, 8).await, records_read(history, 100).await);
        println!("{history:?}: {few} beside 8 runs, {many} beside 100");
        assert!(few > 0 && many * 10 <= few * 12, "{history:?}: {few} beside 8 runs, {many} beside 100");
    }
}
