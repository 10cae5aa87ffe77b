//! Messages that come while a run ends: none is lost.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use archon::{
    Archon, Runs, SessionId,
    providers::{ScriptedProvider, Step},
    store::InMemoryJournal,
    types::{
        BoxFuture, Durability, Inbox, InboxEntry, InboxRequest, Journal, JournalError, Message, OpenMode,
        OpenRun, Record, RecordBody, Request, RunFilter, RunHead, RunId, RunWriter, StartRun, StartRuns,
        Started, Timestamp, WhenBusy,
    },
};
use archon_testkit::Ended;

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
        let newest = runs.list(&RunFilter::of_session(SessionId::new("s"))).await.unwrap().remove(0);
        if is_expected(&newest) {
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
