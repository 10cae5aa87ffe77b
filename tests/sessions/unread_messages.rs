//! Messages that come while a run ends: none is lost.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use archon::{
    Archon, RunOptions, Runs, SessionId,
    providers::{ScriptedProvider, Step},
    store::InMemoryJournal,
    types::{
        BoxFuture, Durability, Inbox, InboxEntry, InboxRequest, InputFilter, InputVerdict, Journal,
        JournalError, Message, OpenMode, OpenRun, Record, RecordBody, Request, RunFilter, RunHead, RunId,
        RunWriter, StartRun, StartRuns, Started, Timestamp, WhenBusy,
    },
};
use archon_testkit::Ended;
use tokio::sync::Semaphore;

/// A journal in which somebody leaves a message just before the end of the first run is kept.
#[derive(Clone)]
struct Late {
    journal: InMemoryJournal,
    is_due: Arc<AtomicBool>,
}

fn message(text: &str) -> InboxEntry {
    InboxEntry::new(
        text.replace(' ', "_"),
        Timestamp::default(),
        InboxRequest::FollowUp { message: text.into() },
    )
}

impl Journal for Late {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let OpenRun { records, writer, .. } = self.journal.open(run, mode).await?;
            let writer = Box::new(LateWriter { late: self.clone(), run: run.clone(), writer });
            Ok(OpenRun { records, writer })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.journal.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.journal.list(filter)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.journal.inbox()
    }
}

struct LateWriter {
    late: Late,
    run: RunId,
    writer: Box<dyn RunWriter>,
}

impl RunWriter for LateWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let ends = records.iter().any(|record| matches!(record.body, RecordBody::RunFinished(_)));
            if ends && self.late.is_due.swap(false, Ordering::SeqCst) {
                let inbox = self.late.journal.inbox().unwrap();
                inbox.post(&self.run, message("too late")).await?;
            }
            self.writer.append(records, durability).await
        })
    }
}

/// Says what it was told, in order.
fn echo(request: &Request) -> Step {
    let told = request.messages.iter().filter(|message| matches!(&***message, Message::User(_)));
    Step::text(told.map(|message| message.text()).collect::<Vec<_>>().join(", "))
}

fn runs(journal: impl Journal + 'static) -> Runs {
    let model = ScriptedProvider::new(std::iter::repeat_with(|| Step::reply(echo)).take(20));
    Runs::new(
        Archon::builder().provider(Arc::new(model), "scripted").journal(Arc::new(journal)).build().unwrap(),
    )
}

/// The newest run of the session, once it is as expected.
async fn newest(runs: &Runs, is_expected: impl Fn(&RunHead) -> bool) -> RunHead {
    for _ in 0..100_000 {
        let newest = runs.list(&RunFilter::of_session(SessionId::new("s"))).await.unwrap().into_iter().next();
        if let Some(newest) = newest.filter(&is_expected) {
            return newest;
        }
        tokio::task::yield_now().await;
    }
    panic!("no run is as expected");
}

// spec: R-09
#[tokio::test]
async fn follow_up_that_comes_while_a_run_ends_begins_the_next_run_of_its_session() {
    let journal = InMemoryJournal::new();
    let runs = runs(Late { journal: journal.clone(), is_due: Arc::new(AtomicBool::new(true)) });
    let first = runs.start(StartRun::new("first").session("s")).await.unwrap();
    assert_eq!(runs.reply(&first.run).await.ended().last_text(), Some("first"));
    let next = newest(&runs, |head| head.run_id != first.run).await.run_id;
    assert_eq!(runs.reply(&next).await.ended().last_text(), Some("first, too late"));
    assert!(journal.inbox().unwrap().waiting(&first.run).await.unwrap().is_empty());
}

#[tokio::test]
async fn start_in_a_session_whose_last_run_did_not_read_a_message_begins_with_that_message() {
    let journal = InMemoryJournal::new();
    let first = {
        let runs = runs(journal.clone());
        let first = runs.start(StartRun::new("first").session("s")).await.unwrap();
        runs.reply(&first.run).await.ended();
        first.run
    };
    // As a process leaves it that dies before it has begun the next run.
    journal.inbox().unwrap().post(&first, message("unread")).await.unwrap();
    let runs = runs(journal.clone());
    let next = StartRun::new("next").session("s").when_busy(WhenBusy::Queue);
    let next = runs.start(next).await.unwrap();
    assert!(matches!(next.how, Started::Queued | Started::New), "{next:?}");
    newest(&runs, |head| head.status.has_ended()).await;
    let said = runs.reply(&next.run).await.ended().last_text().unwrap_or_default().to_owned();
    assert_eq!(said, "first, unread, next");
}

#[tokio::test]
async fn steering_message_that_the_last_run_did_not_read_begins_the_next_one() {
    let journal = InMemoryJournal::new();
    let runs = runs(journal.clone());
    let first = runs.start(StartRun::new("first").session("s")).await.unwrap();
    runs.reply(&first.run).await.ended();
    let steer = InboxRequest::Steer { message: "unread".into() };
    let entry = InboxEntry::new("unread", Timestamp::default(), steer);
    journal.inbox().unwrap().post(&first.run, entry).await.unwrap();
    runs.start(StartRun::new("next").session("s").when_busy(WhenBusy::Steer)).await.unwrap();
    let last = newest(&runs, |head| head.status.has_ended() && head.run_id != first.run).await.run_id;
    let said = runs.reply(&last).await.ended().last_text().unwrap_or_default().to_owned();
    assert_eq!(said, "first, unread, next");
}

/// The number of looks into an inbox after which the next run of [`Slow`] begins.
const LOOKS: usize = 20;

/// A session whose first run ends once a message to it is posted, and whose next run begins slowly, or removes the
/// messages slowly that it has read: the inbox is looked into many times until then.
#[derive(Clone)]
struct Slow {
    journal: InMemoryJournal,
    inbox: Arc<dyn Inbox>,
    /// Lets a run end.
    end: Arc<Semaphore>,
    /// True once the next run is about to begin, with the messages that it has read.
    is_beginning: Arc<AtomicBool>,
    looks: Arc<AtomicUsize>,
    /// Lets the next run begin, or remove the messages.
    begin: Arc<Semaphore>,
    removes_slowly: bool,
}

impl Slow {
    fn new() -> Self {
        let journal = InMemoryJournal::new();
        Self {
            inbox: journal.inbox().unwrap(),
            journal,
            end: Arc::new(Semaphore::new(0)),
            is_beginning: Arc::default(),
            looks: Arc::default(),
            begin: Arc::new(Semaphore::new(0)),
            removes_slowly: false,
        }
    }
}

impl Journal for Slow {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let OpenRun { records, writer, .. } = self.journal.open(run, mode).await?;
            Ok(OpenRun { records, writer: Box::new(SlowWriter { end: self.end.clone(), writer }) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.journal.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.journal.list(filter)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(self.clone()))
    }
}

struct SlowWriter {
    end: Arc<Semaphore>,
    writer: Box<dyn RunWriter>,
}

impl RunWriter for SlowWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            if records.iter().any(|record| matches!(record.body, RecordBody::RunFinished(_))) {
                self.end.acquire().await.unwrap().forget();
            }
            self.writer.append(records, durability).await
        })
    }
}

impl Inbox for Slow {
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            self.inbox.post(run, entry).await?;
            self.end.add_permits(2);
            while !self.is_beginning.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            Ok(())
        })
    }

    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        let is_beginning = self.is_beginning.load(Ordering::SeqCst);
        if is_beginning && self.looks.fetch_add(1, Ordering::SeqCst) + 1 == LOOKS {
            self.begin.add_permits(1);
        }
        self.inbox.waiting(run)
    }

    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            if self.removes_slowly && !self.is_beginning.swap(true, Ordering::SeqCst) {
                self.begin.acquire().await.unwrap().forget();
            }
            self.inbox.remove(run, ids).await
        })
    }

    fn changed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, ()> {
        self.inbox.changed(run)
    }
}

impl InputFilter for Slow {
    fn check<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, InputVerdict> {
        Box::pin(async move {
            if message.text() == "next" {
                self.is_beginning.store(true, Ordering::SeqCst);
                self.begin.acquire().await.unwrap().forget();
            }
            InputVerdict::Pass
        })
    }
}

#[tokio::test]
async fn queued_message_that_a_slow_start_has_read_is_sent_once() {
    let slow = Slow::new();
    let model = ScriptedProvider::new(std::iter::repeat_with(|| Step::reply(echo)).take(20));
    let agent = Archon::builder().provider(Arc::new(model), "scripted").input_filter(Arc::new(slow.clone()));
    let runs = Runs::new(agent.journal(Arc::new(slow.clone())).build().unwrap());
    let first = runs.start(StartRun::new("first").session("s")).await.unwrap();
    let queued = runs.start(StartRun::new("next").session("s").when_busy(WhenBusy::Queue)).await.unwrap();
    assert_eq!((&queued.run, queued.how, queued.message_ids.len()), (&first.run, Started::Queued, 1));
    let last = newest(&runs, |head| head.status.has_ended() && head.run_id != first.run).await.run_id;
    assert_eq!(runs.reply(&last).await.ended().last_text(), Some("first, next"));
}

#[tokio::test]
async fn queued_message_that_a_run_has_read_and_removes_slowly_is_sent_once() {
    let slow = Slow { removes_slowly: true, ..Slow::new() };
    let model = ScriptedProvider::new(std::iter::repeat_with(|| Step::reply(echo)).take(20));
    let archon = Archon::builder().provider(Arc::new(model), "scripted").journal(Arc::new(slow.clone()));
    let archon = archon.build().unwrap();
    let in_session = || RunOptions::in_session(SessionId::new("s"));
    let first = archon.start("first", in_session()).await.unwrap();
    let first_run = first.run_id().clone();
    let runs = Runs::new(archon.clone());
    newest(&runs, |head| head.run_id == first_run).await;
    let queue = runs.start(StartRun::new("queued").session("s").when_busy(WhenBusy::Queue));
    let next = async {
        first.reply().await.ended();
        archon.run_with("next", in_session()).await.ended()
    };
    let (queued, next) = tokio::join!(queue, next);
    let queued = queued.unwrap();
    assert_eq!((&queued.run, queued.how), (&first_run, Started::Queued));
    assert_eq!(next.last_text(), Some("first, next, queued"));
    assert_eq!(runs.list(&RunFilter::of_session(SessionId::new("s"))).await.unwrap().len(), 2);
}
