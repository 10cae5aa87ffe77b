//! What a writer does when somebody takes its log, or the lock on it, away: it says so before an effect follows.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod sample;

use std::{fs, io::Write as _, path::Path, time::Duration};

use archon_store::{JsonlJournal, SqliteJournal};
use archon_types::{Durability, Journal, JournalError, OpenMode, OpenRun};
use sample::{block_on, log, run};

/// A run under way: three records are written, three are to come.
fn begin(journal: &dyn Journal) -> OpenRun {
    let mut open = block_on(journal.open(&run("r1"), OpenMode::Create)).unwrap();
    block_on(open.writer.append(&log("r1")[..3], Durability::Synced)).unwrap();
    open
}

/// The error that stops the run before its next effect.
fn stopped(mut open: OpenRun) -> String {
    let e = block_on(open.writer.append(&log("r1")[3..4], Durability::Synced)).unwrap_err();
    assert!(matches!(&e, JournalError::Taken { run: of, .. } if *of == run("r1")), "{e}");
    assert!(e.advice().contains("archon resume"), "{}", e.advice());
    e.to_string()
}

fn jsonl(dir: &Path) -> JsonlJournal {
    JsonlJournal::new(dir).with_lock_wait(Duration::ZERO)
}

fn sqlite(dir: &Path) -> SqliteJournal {
    SqliteJournal::open(dir.join("runs.db")).unwrap().with_lock_wait(Duration::ZERO)
}

#[test]
fn open_of_a_live_run_whose_lock_file_was_removed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let journal = jsonl(dir.path());
    let open = begin(&journal);
    fs::remove_file(dir.path().join("runs/r1.lock")).unwrap();
    let second = block_on(journal.open(&run("r1"), OpenMode::Existing));
    assert!(matches!(second, Err(JournalError::Locked { .. })), "{second:?}");
    assert!(stopped(open).contains("its lock"));
    assert_eq!(block_on(journal.read(&run("r1"))).unwrap(), log("r1")[..3]);
    // Nobody works on it any more, so it can be taken up.
    assert_eq!(block_on(journal.open(&run("r1"), OpenMode::Existing)).unwrap().records.len(), 3);
}

#[test]
fn append_to_a_log_changed_by_others_fails_with_the_difference() {
    type Change = fn(&Path);
    let changes: [(Change, &str); 5] = [
        (|log| fs::remove_file(log).unwrap(), "was removed or replaced"),
        (|log| fs::remove_dir_all(log.parent().unwrap()).unwrap(), "was removed or replaced"),
        (
            |log| {
                let other = log.with_extension("other");
                fs::copy(log, &other).unwrap();
                fs::rename(other, log).unwrap();
            },
            "was removed or replaced",
        ),
        (|log| fs::write(log, "").unwrap(), "it has 0 bytes instead of"),
        (
            |log| {
                let mut file = fs::OpenOptions::new().append(true).open(log).unwrap();
                file.write_all(b"a line of another's\n").unwrap();
            },
            "was changed by another program",
        ),
    ];
    for (change, expected) in changes {
        let dir = tempfile::tempdir().unwrap();
        let journal = jsonl(dir.path());
        let open = begin(&journal);
        let path = journal.path(&run("r1")).unwrap();
        change(&path);
        let before = fs::read(&path).ok();
        let said = stopped(open);
        assert!(said.contains(expected), "{said}");
        assert_eq!(fs::read(&path).ok(), before, "nothing more is written");
    }
}

#[test]
fn append_to_rows_changed_by_others_fails_with_the_difference() {
    let sql = |dir: &Path, sql: &str| {
        let connection = rusqlite::Connection::open(dir.join("runs.db")).unwrap();
        assert!(connection.execute(sql, []).unwrap() > 0, "{sql}");
    };
    type Change<'a> = &'a dyn Fn(&Path);
    let changes: [(Change<'_>, &str); 5] = [
        (&|dir| fs::remove_file(dir.join("runs.db-locks/r1.lock")).unwrap(), "its lock"),
        (&|dir| fs::remove_file(dir.join("runs.db")).unwrap(), "was removed or replaced"),
        (
            &|dir| sql(dir, "INSERT INTO records SELECT max(place) + 1, line FROM records"),
            "it has 4 records instead of 3",
        ),
        (&|dir| sql(dir, "DELETE FROM records WHERE place & 255 = 2"), "it has 2 records instead of 3"),
        (&|dir| sql(dir, "DELETE FROM records"), "it has 0 records instead of 3"),
    ];
    for (change, expected) in changes {
        let dir = tempfile::tempdir().unwrap();
        let journal = sqlite(dir.path());
        let open = begin(&journal);
        change(dir.path());
        let said = stopped(open);
        assert!(said.contains(expected), "{said}");
    }
}

/// The process that was killed leaves its lock to its children until they have begun their own program.
#[test]
fn open_of_a_run_whose_lock_is_given_back_soon_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let held = begin(&jsonl(dir.path()));
    let refused = block_on(jsonl(dir.path()).open(&run("r1"), OpenMode::Existing));
    assert!(matches!(refused, Err(JournalError::Locked { .. })), "{refused:?}");
    let patient = jsonl(dir.path()).with_lock_wait(Duration::from_secs(60));
    std::thread::scope(|scope| {
        let second =
            scope.spawn(|| block_on(patient.open(&run("r1"), OpenMode::Existing)).unwrap().records.len());
        drop(held);
        assert_eq!(second.join().unwrap(), 3);
    });
}
