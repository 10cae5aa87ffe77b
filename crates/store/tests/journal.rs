//! What both journals promise alike, and what only the memory journal does.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod sample;

use archon_store::MemoryJournal;
use archon_types::{Durability, Journal, JournalError, OpenMode, RunId};
use sample::{log, run};

fn journals() -> Vec<(Box<dyn Journal>, Option<tempfile::TempDir>)> {
    let mut all: Vec<(Box<dyn Journal>, _)> = vec![(Box::new(MemoryJournal::new()), None)];
    #[cfg(feature = "jsonl")]
    {
        let dir = tempfile::tempdir().unwrap();
        all.push((Box::new(archon_store::JsonlJournal::new(dir.path())), Some(dir)));
    }
    all
}

#[tokio::test]
async fn what_was_appended_is_read_back_in_order() {
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
            assert_eq!(journal.list().await.unwrap(), []);
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
async fn the_memory_journal_shares_records_and_forgets_on_request() {
    let journal = MemoryJournal::new();
    let records = log("r1");
    let mut open = journal.clone().open(&run("r1"), OpenMode::Create).await.unwrap();
    open.writer.append(&records, Durability::Buffered).await.unwrap();
    assert!(matches!(journal.delete(&run("r1")), Err(JournalError::Locked { .. })));
    drop(open);
    let read = journal.read(&run("r1")).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&read[0], &records[0]));
    journal.delete(&run("r1")).unwrap();
    assert!(matches!(journal.delete(&run("r1")), Err(JournalError::UnknownRun { .. })));
}
