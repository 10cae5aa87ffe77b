//! The guarantees of all journals, and those of the memory journal only.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod sample;

use std::{
    sync::{Arc, Barrier},
    time::Duration,
};

use archon_store::InMemoryJournal;
use archon_types::{
    Content, Durability, FailureKind, InboxEntry, InboxRequest, Journal, JournalError, Media, OpenMode,
    Record, RunFilter, RunId, RunStatus,
};
use proptest::prelude::*;
use sample::{
    block_on, called_by, continuing, large, log, note, prompted, records, run, started, started_from,
    tool_call_finished, write,
};
use serde_json::json;

fn journals() -> Vec<(Box<dyn Journal>, Option<tempfile::TempDir>)> {
    #[allow(unused_mut, reason = "without features there is one only")]
    let mut all: Vec<(Box<dyn Journal>, _)> = vec![(Box::new(InMemoryJournal::new()), None)];
    #[cfg(feature = "jsonl")]
    {
        let dir = tempfile::tempdir().unwrap();
        all.push((
            Box::new(archon_store::JsonlJournal::new(dir.path()).with_lock_wait(Duration::ZERO)),
            Some(dir),
        ));
    }
    #[cfg(feature = "sqlite")]
    {
        let dir = tempfile::tempdir().unwrap();
        let journal = archon_store::SqliteJournal::open(dir.path().join("runs.db")).unwrap();
        all.push((Box::new(journal.with_lock_wait(Duration::ZERO)), Some(dir)));
    }
    all
}

#[tokio::test]
async fn journal_read_returns_appended_records_in_order() {
    for (journal, _dir) in journals() {
        let records = log("r1");
        let mut open = journal.open(&run("r1"), OpenMode::Create).await.unwrap();
        assert!(open.records.is_empty());
        open.writer.append(&records[..2], Durability::Synced).await.unwrap();
        open.writer.append(&records[2..], Durability::Buffered).await.unwrap();
        assert_eq!(journal.read(&run("r1")).await.unwrap(), records, "read while it is written");
        drop(open);
        let open = journal.open(&run("r1"), OpenMode::Existing).await.unwrap();
        assert_eq!(open.records, records);
    }
}

// spec: EX-16
#[test]
fn record_of_a_medium_without_its_data_is_refused_and_nothing_is_written() {
    for (journal, _dir) in journals() {
        let report = Media::new(b"%PDF-1.7", Some("a.pdf")).unwrap().without_data();
        let message = json!({ "role": "user", "content": [Content::from(report)], "timestamp": 1 });
        let bare = json!({ "type": "message_added", "source": "prompt", "message": message });
        let records = records([started("r1"), bare]);
        let mut open = block_on(journal.open(&run("r1"), OpenMode::Create)).unwrap();
        let error = block_on(open.writer.append(&records, Durability::Synced)).unwrap_err();
        assert!(matches!(error, JournalError::Corrupt { record: 1, .. }), "{error}");
        assert!(error.to_string().contains("a medium without its data: a.pdf"), "{error}");
        assert!(matches!(block_on(journal.read(&run("r1"))), Err(JournalError::UnknownRun { .. })));
        block_on(open.writer.append(&records[..1], Durability::Synced)).unwrap();
    }
}

// spec: EX-16
#[test]
fn media_are_read_back_with_their_data_and_equal_records_have_equal_blobs() {
    for (journal, _dir) in journals() {
        let picture =
            Media::new(&[b"\x89PNG\r\n\x1a\n", large(1).as_bytes()].concat(), Some("a.png")).unwrap();
        let content = |text: &str| json!([{ "type": "text", "text": text }, Content::from(picture.clone())]);
        let message = |text: &str| json!({ "role": "user", "content": content(text), "timestamp": 1 });
        let id = run("r1");
        // The second one is kept as a blob itself.
        let [short, long] = ["short", &large(2)]
            .map(|text| json!({ "type": "message_added", "source": "prompt", "message": message(text) }));
        let records = records([started("r1"), short, long, tool_call_finished("30")]);
        write(&*journal, "r1", &records);
        for read in [block_on(journal.read(&id)).unwrap(), block_on(journal.salvage(&id)).unwrap().records] {
            assert_eq!(read, records);
            let data: Vec<_> = read.iter().flat_map(|record| record.body.media()).map(Media::data).collect();
            assert_eq!(data, [picture.data(), picture.data()]);
        }
        let page = block_on(journal.read_before(&id, None, 10)).unwrap().records;
        assert_eq!(page, records, "records without the data are equal");
        let open = block_on(journal.open(&id, OpenMode::Existing)).unwrap();
        assert!(open.records.iter().all(|record| record.body.media().all(|media| media.base64().is_some())));
    }
}

#[tokio::test]
async fn read_before_returns_the_records_at_the_end_or_before_a_record() {
    for (journal, _dir) in journals() {
        let (id, records) = (run("r1"), log("r1"));
        let unknown = journal.read_before(&id, None, 5).await;
        assert!(matches!(unknown, Err(JournalError::UnknownRun { .. })), "{unknown:?}");
        let mut open = journal.open(&id, OpenMode::Create).await.unwrap();
        open.writer.append(&records, Durability::Buffered).await.unwrap();
        for most in 0..=records.len() + 1 {
            for before in (0..=records.len() as u64 + 1).map(Some).chain([None]) {
                let end = before.map_or(records.len(), |before| records.len().min(before as usize));
                let found = journal.read_before(&id, before, most).await.unwrap();
                assert!(found.damage.is_none(), "{before:?} {most}: {found:?}");
                assert_eq!(found.records, records[end.saturating_sub(most)..end], "{before:?} {most}");
            }
        }
    }
}

#[tokio::test]
async fn a_run_is_created_once_and_written_by_one() {
    for (journal, _dir) in journals() {
        let id = run("r1");
        let mut open = journal.open(&id, OpenMode::Create).await.unwrap();
        for mode in [OpenMode::Create, OpenMode::Existing] {
            let e = journal.open(&id, mode).await.unwrap_err();
            assert!(matches!(&e, JournalError::Locked { run } if *run == id), "{mode:?}: {e}");
        }
        open.writer.append(&log("r1"), Durability::Buffered).await.unwrap();
        drop(open);
        let e = journal.open(&id, OpenMode::Create).await.unwrap_err();
        assert!(matches!(&e, JournalError::Exists { run } if *run == id), "{e}");
        journal.open(&id, OpenMode::Existing).await.unwrap();
    }
}

#[tokio::test]
async fn a_run_without_records_does_not_exist() {
    for (journal, _dir) in journals() {
        let id = run("r1");
        for _ in 0..2 {
            drop(journal.open(&id, OpenMode::Create).await.unwrap());
            assert!(matches!(journal.read(&id).await, Err(JournalError::UnknownRun { .. })));
            let e = journal.open(&id, OpenMode::Existing).await.unwrap_err();
            assert!(matches!(e, JournalError::UnknownRun { .. }), "{e}");
            assert_eq!(journal.list(&RunFilter::all()).await.unwrap(), []);
        }
    }
}

// spec: S-08
#[tokio::test]
async fn an_id_that_is_no_file_name_is_refused_everywhere() {
    for (journal, _dir) in journals() {
        let id = RunId::new("../escape");
        for mode in [OpenMode::Create, OpenMode::Existing] {
            assert!(matches!(journal.open(&id, mode).await, Err(JournalError::BadId { .. })));
        }
        assert!(matches!(journal.read(&id).await, Err(JournalError::BadId { .. })));
        assert!(matches!(journal.delete(&id).await, Err(JournalError::BadId { .. })));
    }
}

#[tokio::test]
async fn a_record_out_of_order_is_refused_and_nothing_is_written() {
    for (journal, _dir) in journals() {
        let records = log("r1");
        let mut open = journal.open(&run("r1"), OpenMode::Create).await.unwrap();
        for wrong in [&records[1..], &[records[0].clone(), records[2].clone()]] {
            let e = open.writer.append(wrong, Durability::Buffered).await.unwrap_err();
            assert!(matches!(e, JournalError::Corrupt { .. }), "{e}");
        }
        open.writer.append(&records, Durability::Buffered).await.unwrap();
        assert_eq!(journal.read(&run("r1")).await.unwrap(), records);
    }
}

#[tokio::test]
async fn large_records_read_back_equal() {
    for (journal, _dir) in journals() {
        let mut first = started("r1");
        first["config"]["system"] = json!(large(1));
        let texts =
            [prompted(&large(2)), note("x"), tool_call_finished(&large(3)), tool_call_finished(&large(3))];
        let all = records(std::iter::once(first).chain(texts));
        let mut open = journal.open(&run("r1"), OpenMode::Create).await.unwrap();
        open.writer.append(&all[..3], Durability::Buffered).await.unwrap();
        open.writer.append(&all[3..], Durability::Synced).await.unwrap();
        assert_eq!(journal.read(&run("r1")).await.unwrap(), all);
        drop(open);
        assert_eq!(journal.open(&run("r1"), OpenMode::Existing).await.unwrap().records, all);
        let head = journal.list(&RunFilter::all()).await.unwrap().remove(0);
        assert_eq!((head.task.len(), head.updated_at, head.problem), (80, all[4].at, None));
    }
}

// spec: S-08
#[tokio::test]
async fn list_heads_have_session_tenant_task_and_status() {
    for (journal, _dir) in journals() {
        let fresh = journal.list(&RunFilter::all()).await.unwrap();
        assert_eq!(fresh, []);
        let write = async |id: &str, bodies: Vec<serde_json::Value>| {
            let mut open = journal.open(&run(id), OpenMode::Create).await.unwrap();
            open.writer.append(&records(bodies), Durability::Synced).await.unwrap();
        };
        write("old", vec![started("old"), prompted("the task"), json!({"type": "suspended", "waiting": []})])
            .await;
        write("new", vec![started("new"), note("a"), note("b"), note("c"), note("d"), prompted("late")])
            .await;
        let heads = journal.list(&RunFilter::all()).await.unwrap();
        let shown: Vec<_> = heads.iter().map(|h| (h.run_id.as_str(), h.status.as_str(), &*h.task)).collect();
        assert_eq!(shown, [("new", "interrupted", "late"), ("old", "suspended", "the task")]);
        assert_eq!(journal.head(&run("new")).await.unwrap(), heads[0]);
        assert_eq!(journal.head(&run("old")).await.unwrap(), heads[1]);
        let unknown = journal.head(&run("none")).await;
        assert!(matches!(unknown, Err(JournalError::UnknownRun { .. })), "{unknown:?}");
        let _open = journal.open(&run("new"), OpenMode::Existing).await.unwrap();
        assert_eq!(journal.list(&RunFilter::all()).await.unwrap()[0].status, RunStatus::Running, "worked on");
        assert_eq!(journal.head(&run("new")).await.unwrap().status, RunStatus::Running, "worked on");
    }
}

// spec: S-08
#[tokio::test]
async fn a_deleted_run_is_gone_and_one_in_use_is_not_deleted() {
    for (journal, _dir) in journals() {
        let id = run("r1");
        let unknown = journal.delete(&id).await;
        assert!(matches!(unknown, Err(JournalError::UnknownRun { .. })), "{unknown:?}");
        let mut open = journal.open(&id, OpenMode::Create).await.unwrap();
        open.writer.append(&log("r1"), Durability::Buffered).await.unwrap();
        assert!(matches!(journal.delete(&id).await, Err(JournalError::Locked { .. })));
        assert_eq!(journal.read(&id).await.unwrap(), log("r1"));
        drop(open);
        journal.delete(&id).await.unwrap();
        assert!(matches!(journal.read(&id).await, Err(JournalError::UnknownRun { .. })));
        assert_eq!(journal.list(&RunFilter::all()).await.unwrap(), []);
        // The name is free again, and nothing of the old run is in the new one.
        let mut open = journal.open(&id, OpenMode::Create).await.unwrap();
        open.writer.append(&log("r1")[..2], Durability::Buffered).await.unwrap();
        assert_eq!(journal.read(&id).await.unwrap(), log("r1")[..2]);
    }
}

#[tokio::test]
async fn a_run_that_others_continue_is_not_deleted_before_them() {
    for (journal, _dir) in journals() {
        let create = async |id: &str, first: serde_json::Value| {
            let mut open = journal.open(&run(id), OpenMode::Create).await.unwrap();
            open.writer.append(&records([first]), Durability::Synced).await.unwrap();
        };
        create("r1", started("r1")).await;
        create("r3", started_from("r3", continuing("r1"))).await;
        create("r2", started_from("r2", continuing("r1"))).await;
        create("r4", started_from("r4", continuing("r2"))).await;
        let e = journal.delete(&run("r1")).await.unwrap_err();
        assert_eq!(e.to_string(), "run r1 cannot be deleted: r2, r3 need it");
        let e = journal.delete(&run("r2")).await.unwrap_err();
        assert_eq!(e.to_string(), "run r2 cannot be deleted: r4 needs it");
        assert_eq!(journal.list(&RunFilter::all()).await.unwrap().len(), 4);
        for id in ["r4", "r3", "r2", "r1"] {
            journal.delete(&run(id)).await.unwrap();
        }
        assert_eq!(journal.list(&RunFilter::all()).await.unwrap(), []);
    }
}

/// Deleted, the run would be started again when its caller is resumed.
#[tokio::test]
async fn a_run_whose_outcome_is_waited_for_is_not_deleted() {
    for (journal, _dir) in journals() {
        let mut open = journal.open(&run("caller"), OpenMode::Create).await.unwrap();
        let caller = records([started("caller"), note("x"), tool_call_finished("done")]);
        open.writer.append(&caller[..2], Durability::Synced).await.unwrap();
        for id in ["one", "two"] {
            let first = records([started_from(id, called_by("caller"))]);
            let mut open = journal.open(&run(id), OpenMode::Create).await.unwrap();
            open.writer.append(&first, Durability::Synced).await.unwrap();
        }
        let e = journal.delete(&run("one")).await.unwrap_err();
        assert!(matches!(&e, JournalError::Needed { by, .. } if *by == [run("caller")]), "{e}");
        open.writer.append(&caller[2..], Durability::Synced).await.unwrap();
        journal.delete(&run("one")).await.unwrap();
        drop(open);
        // The caller needs none of its own to be gone first, and without it nobody waits.
        journal.delete(&run("caller")).await.unwrap();
        journal.delete(&run("two")).await.unwrap();
    }
}

#[tokio::test]
async fn journal_default_delete_returns_unsupported() {
    struct Plain(InMemoryJournal);
    impl Journal for Plain {
        fn open<'a>(
            &'a self,
            run: &'a RunId,
            mode: OpenMode,
        ) -> archon_types::BoxFuture<'a, Result<archon_types::OpenRun, JournalError>> {
            self.0.open(run, mode)
        }
        fn read<'a>(
            &'a self,
            run: &'a RunId,
        ) -> archon_types::BoxFuture<'a, Result<Vec<std::sync::Arc<archon_types::Record>>, JournalError>>
        {
            self.0.read(run)
        }
        fn list<'a>(
            &'a self,
            filter: &'a archon_types::RunFilter,
        ) -> archon_types::BoxFuture<'a, Result<Vec<archon_types::RunHead>, JournalError>> {
            self.0.list(filter)
        }
    }
    let e = Plain(InMemoryJournal::new()).delete(&run("r1")).await.unwrap_err();
    assert_eq!(e.to_string(), "this journal cannot delete runs");
}

#[test]
fn of_many_that_open_a_run_at_once_exactly_one_may_write() {
    for (journal, _dir) in journals() {
        check_race(&*journal);
    }
}

fn check_race(journal: &dyn Journal) {
    write(journal, "old", &log("old"));
    for round in 0..200 {
        let (id, mode) = match round % 2 {
            0 => (run("old"), OpenMode::Existing),
            _ => (run(&format!("r{round}")), OpenMode::Create),
        };
        let (begin, end) = (Barrier::new(4), Barrier::new(4));
        let race = || {
            begin.wait();
            let result = block_on(journal.open(&id, mode));
            end.wait();
            result
        };
        let results = std::thread::scope(|s| {
            let threads: Vec<_> = (0..4).map(|_| s.spawn(race)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
        });
        let winners = results.iter().filter(|r| r.is_ok()).count();
        let locked = results.iter().filter(|r| matches!(r, Err(JournalError::Locked { .. }))).count();
        assert_eq!((winners, locked), (1, 3), "round {round}: {results:?}");
    }
}

#[test]
fn journal_works_without_a_tokio_runtime() {
    use std::task::{Context, Poll, Waker};
    let mut cx = Context::from_waker(Waker::noop());
    for (journal, _dir) in journals() {
        write(&*journal, "r1", &log("r1"));
        let id = run("r1");
        let Poll::Ready(open) = journal.open(&id, OpenMode::Existing).as_mut().poll(&mut cx) else {
            panic!("waits without a runtime")
        };
        let mut open = open.unwrap();
        let append = open.writer.append(&[], Durability::Synced).as_mut().poll(&mut cx);
        assert!(matches!(append, Poll::Ready(Ok(()))));
    }
}

#[tokio::test]
async fn the_memory_journal_shares_records_and_forgets_them() {
    let journal = InMemoryJournal::new();
    let records = log("r1");
    let mut open = journal.clone().open(&run("r1"), OpenMode::Create).await.unwrap();
    open.writer.append(&records, Durability::Buffered).await.unwrap();
    drop(open);
    let read = journal.read(&run("r1")).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&read[0], &records[0]));
    journal.delete(&run("r1")).await.unwrap();
    assert_eq!(std::sync::Arc::strong_count(&records[0]), 2, "the journal holds on to it");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A log is read back as it was written, for every division into appends and sessions.
    #[test]
    fn any_sequence_of_appends_and_reopens_reads_back_equal(
        texts in prop::collection::vec(".{0,40}", 0..30),
        batches in prop::collection::vec((1_usize..6, any::<bool>(), any::<bool>()), 1..20),
    ) {
        let bodies = std::iter::once(started("r1")).chain(texts.iter().map(|t| note(t)));
        let all = records(bodies);
        for (journal, _dir) in journals() { block_on(async {
            let mut open = journal.open(&run("r1"), OpenMode::Create).await.unwrap();
            let mut done = 0;
            for (size, synced, reopen) in batches.clone() {
                let end = (done + size).min(all.len());
                let durability = if synced { Durability::Synced } else { Durability::Buffered };
                open.writer.append(&all[done..end], durability).await.unwrap();
                done = end;
                if reopen {
                    drop(open);
                    open = journal.open(&run("r1"), OpenMode::Existing).await.unwrap();
                    assert_eq!(open.records, all[..done]);
                }
            }
            if done > 0 {
                assert_eq!(journal.read(&run("r1")).await.unwrap(), all[..done]);
            }
        }) }
    }
}

/// A run as its log has it: session, tenant, caller, and how it goes on.
#[derive(Clone, Debug)]
struct Life {
    session: u8,
    tenant: u8,
    is_called: bool,
    /// Milliseconds until each append, and what it is.
    appends: Vec<(u64, Step)>,
    /// When it began.
    at: u64,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Note,
    Wait,
    End,
    /// The writer lets go, and another one takes the run up.
    Reopen,
}

fn life() -> impl Strategy<Value = Life> {
    let step = prop_oneof![Just(Step::Note), Just(Step::Wait), Just(Step::End), Just(Step::Reopen)];
    // Some steps are short, so that runs are close to each other, and some long.
    let pause = prop_oneof![0_u64..4000, 5_000_u64..60_000];
    let appends = prop::collection::vec((pause, step), 0..6);
    (0_u8..3, 0_u8..2, any::<bool>(), appends, 0_u64..100_000).prop_map(
        |(session, tenant, is_called, appends, at)| Life { session, tenant, is_called, appends, at },
    )
}

async fn live(journal: &dyn Journal, id: &str, life: &Life) {
    let mut first = if life.is_called { started_from(id, called_by("caller")) } else { started(id) };
    first["session"] = json!(format!("session/{}", life.session));
    first["tenant"] = json!(format!("tenant {}", life.tenant));
    let record = |seq: u64, at: u64, mut body: serde_json::Value| -> Arc<Record> {
        (body["seq"], body["at"]) = (json!(seq), json!(at));
        Arc::new(serde_json::from_value(body).unwrap())
    };
    let mut open = journal.open(&run(id), OpenMode::Create).await.unwrap();
    let (mut seq, mut at) = (1, life.at);
    open.writer.append(&[record(0, at, first)], Durability::Buffered).await.unwrap();
    for (pause, step) in &life.appends {
        at += pause;
        let body = match step {
            Step::Note => note("x"),
            Step::Wait => json!({"type": "suspended", "waiting": []}),
            Step::End => {
                let outcome = archon_types::Outcome::failed(run(id), FailureKind::Other, "no".to_owned());
                serde_json::to_value(archon_types::RecordBody::RunFinished(Box::new(outcome))).unwrap()
            }
            Step::Reopen => {
                drop(open);
                open = journal.open(&run(id), OpenMode::Existing).await.unwrap();
                continue;
            }
        };
        open.writer.append(&[record(seq, at, body)], Durability::Buffered).await.unwrap();
        seq += 1;
    }
}

fn filter() -> impl Strategy<Value = RunFilter> {
    let status = prop::collection::vec(prop::sample::select(RunStatus::ALL.to_vec()), 0..3);
    let of = |kind: &'static str, n: Option<u8>| n.map(move |n| format!("{kind}{n}"));
    (
        prop::option::of(0_u8..3),
        prop::option::of(0_u8..2),
        status,
        any::<bool>(),
        prop::option::of(0_usize..8),
    )
        .prop_map(move |(session, tenant, status, top_level, limit)| {
            let mut filter = RunFilter::all().status(status);
            filter.session = of("session/", session).map(archon_types::SessionId::new);
            filter.tenant = of("tenant ", tenant).map(archon_types::TenantId::new);
            (filter.top_level, filter.limit) = (top_level, limit);
            filter
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A list by an index is the list that a look at every log gives.
    #[test]
    fn list_with_a_filter_equals_a_scan_of_all_runs(
        lives in prop::collection::vec(life(), 0..12),
        early in 0_usize..12,
        filters in prop::collection::vec(filter(), 1..12),
    ) {
        for (journal, _dir) in journals() { block_on(async {
            for (n, life) in lives.iter().enumerate() {
                if n == early {
                    // The index is made now, and kept from here on.
                    journal.list(&RunFilter::all().limit(1)).await.unwrap();
                }
                live(&*journal, &format!("r{n}"), life).await;
            }
            for filter in &filters {
                let all = journal.list(&RunFilter::all()).await.unwrap();
                assert_eq!(all.len(), lives.len());
                assert_eq!(journal.list(filter).await.unwrap(), filter.page(all.clone()), "{filter:?}");
                // Page by page it is the whole list.
                let mut pages = Vec::new();
                let mut next = RunFilter { limit: Some(2), ..filter.clone() };
                loop {
                    let page = journal.list(&next).await.unwrap();
                    let Some(last) = page.last() else { break };
                    next.after = Some(last.place());
                    pages.extend(page);
                }
                let whole = RunFilter { limit: None, ..filter.clone() };
                assert_eq!(pages, whole.page(all), "{filter:?}");
            }
            if let Some(n) = lives.len().checked_sub(1) {
                let id = run(&format!("r{n}"));
                if journal.delete(&id).await.is_ok() {
                    for filter in &filters {
                        let found = journal.list(filter).await.unwrap();
                        assert!(found.iter().all(|head| head.run_id != id), "{filter:?}");
                    }
                }
            }
        }) }
    }
}

fn message(id: &str, at: u64) -> InboxEntry {
    let request = InboxRequest::Cancel { reason: format!("because {id}") };
    InboxEntry::new(id, archon_types::Timestamp::from_millis(at), request)
}

async fn begin(journal: &dyn Journal) {
    let mut open = journal.open(&run("r1"), OpenMode::Create).await.unwrap();
    open.writer.append(&log("r1"), Durability::Buffered).await.unwrap();
}

/// The journals that take messages to runs.
fn inboxes() -> Vec<(Box<dyn Journal>, Option<tempfile::TempDir>)> {
    journals().into_iter().filter(|(journal, _)| journal.inbox().is_some()).collect()
}

#[tokio::test]
async fn inbox_message_stays_until_removed_and_is_deleted_with_the_run() {
    for (journal, _dir) in inboxes() {
        let (id, inbox) = (run("r1"), journal.inbox().unwrap());
        begin(&*journal).await;
        let (later, early) = (message("m_1", 7), message("m_2", 3));
        inbox.post(&id, later.clone()).await.unwrap();
        inbox.post(&id, early.clone()).await.unwrap();
        assert_eq!(inbox.waiting(&id).await.unwrap().len(), 2);
        assert_eq!(journal.read(&id).await.unwrap(), log("r1"), "it is not in the log");
        inbox.remove(&id, &["m_1".into(), "m_9".into()]).await.unwrap();
        assert_eq!(inbox.waiting(&id).await.unwrap(), [early]);
        journal.delete(&id).await.unwrap();
        begin(&*journal).await;
        assert_eq!(inbox.waiting(&id).await.unwrap(), []);
    }
}

#[tokio::test]
async fn post_of_an_id_that_waits_already_is_refused_and_the_first_message_stays() {
    for (journal, _dir) in inboxes() {
        let (id, inbox) = (run("r1"), journal.inbox().unwrap());
        begin(&*journal).await;
        inbox.post(&id, message("m", 7)).await.unwrap();
        let refused = inbox.post(&id, message("m", 3)).await.unwrap_err();
        assert!(matches!(refused, JournalError::Posted { .. }), "{refused}");
        assert_eq!(inbox.waiting(&id).await.unwrap(), [message("m", 7)]);
        inbox.remove(&id, &["m".into()]).await.unwrap();
        inbox.post(&id, message("m", 3)).await.unwrap();
    }
}

#[tokio::test]
async fn messages_to_runs_that_are_not_there_or_with_ids_that_are_no_file_names_are_refused() {
    for (journal, _dir) in inboxes() {
        let inbox = journal.inbox().unwrap();
        let e = inbox.post(&run("r1"), message("m", 1)).await.unwrap_err();
        assert!(matches!(e, JournalError::UnknownRun { .. }), "{e}");
        let e = inbox.post(&run("../r1"), message("m", 1)).await.unwrap_err();
        assert!(matches!(e, JournalError::BadId { .. }), "{e}");
    }
}

/// The inbox of another journal on the same files.
#[allow(unused_variables, reason = "without features there are no files")]
fn other(dir: &std::path::Path) -> Option<std::sync::Arc<dyn archon_types::Inbox>> {
    #[cfg(feature = "sqlite")]
    if dir.join("runs.db").exists() {
        return archon_store::SqliteJournal::open(dir.join("runs.db")).unwrap().inbox();
    }
    #[cfg(feature = "jsonl")]
    return archon_store::JsonlJournal::new(dir).inbox();
    #[cfg(not(feature = "jsonl"))]
    None
}

/// Posters and a reader that removes what it read: each message is read once, whoever comes in between.
#[tokio::test]
async fn no_message_is_lost_while_others_are_removed() {
    for (journal, _dir) in inboxes() {
        begin(&*journal).await;
        let inbox = journal.inbox().unwrap();
        let posting = inbox.clone();
        let poster = tokio::spawn(async move {
            for n in 0..100 {
                posting.post(&run("r1"), message(&format!("m{n}"), n)).await.unwrap();
            }
        });
        let mut read = Vec::new();
        while read.len() < 100 {
            let is_over = poster.is_finished();
            let ids: Vec<_> = inbox.waiting(&run("r1")).await.unwrap().into_iter().map(|m| m.id).collect();
            match ids.is_empty() {
                // Who cannot post says why below.
                true if is_over => break,
                true => tokio::task::yield_now().await,
                false => inbox.remove(&run("r1"), &ids).await.unwrap(),
            }
            read.extend(ids);
        }
        poster.await.unwrap();
        read.sort();
        read.dedup();
        assert_eq!((read.len(), inbox.waiting(&run("r1")).await.unwrap().len()), (100, 0));
    }
}

#[tokio::test]
async fn inbox_wait_returns_at_once_for_a_message_posted_meanwhile() {
    for (journal, dir) in inboxes() {
        let (id, inbox) = (run("r1"), journal.inbox().unwrap());
        begin(&*journal).await;
        let changed = inbox.changed(&id);
        // Another journal on the same files stands for another process.
        let other = dir.as_ref().and_then(|dir| other(dir.path())).unwrap_or_else(|| inbox.clone());
        other.post(&id, message("m", 1)).await.unwrap();
        changed.await;
    }
}
