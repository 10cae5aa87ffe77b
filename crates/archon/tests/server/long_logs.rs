//! The stream of events reads a long log in pages.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use archon::{
    RunId, Runs,
    server::{ServerOptions, TokenLimits, axum::http::StatusCode},
    store::InMemoryJournal,
    types::{
        BoxFuture, Durability, Inbox, Journal, JournalError, Json, MoreLimits, OpenMode, OpenRun, Record,
        RecordBody, RunFilter, RunHead, Salvaged, StartRuns,
    },
};
use archon_testkit::Ended;
use serde_json::json;

use crate::world::{Ask, Site, World, as_sent, records};

/// The number of records by which a log is made longer.
const MORE: usize = 4_800;

/// A journal that notes how many records it returned at once.
#[derive(Clone, Default)]
struct Paged {
    inner: InMemoryJournal,
    most: Arc<AtomicUsize>,
}

impl Paged {
    /// Stores a log to which records without an effect were added before its record `at`.
    async fn store(&self, run: &RunId, log: &[Arc<Record>], at: usize) {
        let more = Record { seq: 0, at: log[at - 1].at, body: RecordBody::Resumed };
        let (before, behind) = log.split_at(at);
        let all = before.iter().map(|record| (**record).clone());
        let all = all.chain(vec![more; MORE]).chain(behind.iter().map(|record| (**record).clone()));
        let all: Vec<_> = all.zip(0..).map(|(record, seq)| Arc::new(Record { seq, ..record })).collect();
        let mut open = self.inner.open(run, OpenMode::Create).await.unwrap();
        open.writer.append(&all, Durability::Buffered).await.unwrap();
    }

    fn site(&self, world: &World) -> Site {
        let walker = world.builder("walker").journal(Arc::new(self.clone())).build().unwrap();
        let limits = TokenLimits::default().with_requests_per_minute(100_000);
        world.site_of(Runs::new(walker), ServerOptions::default(), limits)
    }
}

impl Journal for Paged {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        self.inner.open(run, mode)
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(async move {
            let records = self.inner.read(run).await?;
            self.most.fetch_max(records.len(), Ordering::Relaxed);
            Ok(records)
        })
    }

    fn read_before<'a>(
        &'a self,
        run: &'a RunId,
        before: Option<u64>,
        most: usize,
    ) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(async move {
            let salvaged = self.inner.read_before(run, before, most).await?;
            self.most.fetch_max(salvaged.records.len(), Ordering::Relaxed);
            Ok(salvaged)
        })
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.inner.list(filter)
    }

    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        self.inner.head(run)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.inner.inbox()
    }
}

// spec: EX-09
#[tokio::test]
async fn events_of_a_long_run_are_its_log_and_are_read_in_pages() {
    let (world, journal) = (World::new(), Paged::default());
    let run = world.site().run("hello").await;
    let log = world.log(&run).await;
    journal.store(&run, &log, log.len() - 1).await;
    let site = journal.site(&world);
    let log = as_sent(&run, &journal.inner.read(&run).await.unwrap());
    assert_eq!(records(&site.watch(&run, None).await.rest().await), log);
    for last in [0, 1_998, 1_999, 2_000, 2_001, 3_999, 4_000, log.len() - 2] {
        let rest = site.watch(&run, Some(last as u64)).await.rest().await;
        assert_eq!(records(&rest), log[last + 1..], "after {last}");
    }
    let last = (log.len() - 1).to_string();
    let over = Ask::get(&format!("/v1/runs/{run}/events")).with("last-event-id", &last);
    assert_eq!(site.send(over).await.status, StatusCode::NO_CONTENT);
    let most = journal.most.load(Ordering::Relaxed);
    assert!((1..log.len() / 2).contains(&most), "{most} records at once");
}

// spec: OB-07
#[tokio::test]
async fn page_of_records_that_is_not_the_last_is_read_without_the_rest_of_the_log() {
    let (world, journal) = (World::new(), Paged::default());
    let run = world.site().run("hello").await;
    let log = world.log(&run).await;
    journal.store(&run, &log, log.len() - 1).await;
    let site = journal.site(&world);
    let log = json!(journal.inner.read(&run).await.unwrap());
    let log = log.as_array().unwrap();
    let last = log.len() - 1;
    for (query, first, count) in [
        ("limit=1".to_owned(), 0, 1),
        ("after=2000&limit=1".to_owned(), 2_001, 1),
        ("after=2000".to_owned(), 2_001, 1_000),
        (format!("after={}&limit=2", last - 3), last - 2, 2),
        (format!("after={}&limit=2", last - 2), last - 1, 2),
        (format!("after={}&limit=2", last - 1), last, 1),
        (format!("after={last}&limit=2"), last, 0),
        (format!("after={}", u64::MAX), last, 0),
    ] {
        let page = site.get(&format!("/v1/runs/{run}/records?{query}")).await.body;
        assert_eq!(page["records"], json!(log[first..first + count]), "{query}");
        let next = (count > 0 && first + count <= last).then(|| first + count - 1);
        assert_eq!((&page["next"], &page["damage"]), (&json!(next), &Json::Null), "{query}");
        let most = journal.most.load(Ordering::Relaxed);
        assert!(next.is_none() || (1..=1_001).contains(&most), "{query}: {most} records at once");
    }
}

// spec: EX-09
#[tokio::test]
async fn events_of_a_long_run_at_work_are_its_log_and_the_new_records() {
    let (world, journal) = (World::new(), Paged::default());
    let first = world.site();
    let run = first.start("wait").await;
    world.gate.entered().await;
    let cancel = first.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    assert_eq!(cancel.status, StatusCode::ACCEPTED, "{}", cancel.body);
    first.runs.reply(&run).await.ended();
    let log = world.log(&run).await;
    journal.store(&run, &log, log.len()).await;
    let site = journal.site(&world);
    site.runs.resume(&run, &MoreLimits::default()).await.unwrap();
    // The first watcher gets the events from the beginning of the resumption, the others those from here on.
    let mut watchers = Vec::new();
    for after in [None, None, Some(700_u64)] {
        watchers.push((after.map_or(0, |after| after as usize + 1), site.watch(&run, after).await));
    }
    for (from, mut watcher) in watchers {
        let seen = watcher.rest().await;
        let log = as_sent(&run, &journal.inner.read(&run).await.unwrap());
        assert!(log.len() > MORE);
        assert_eq!(records(&seen), log[from..], "from {from}");
    }
}
