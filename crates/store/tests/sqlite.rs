//! The guarantees of the SQLite journal: torn and damaged files, foreign files, permissions and the format.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod sample;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon_store::{InboxKey, SqliteJournal};
use archon_types::{
    Content, Durability, InboxEntry, InboxRequest, Journal, JournalError, Media, OpenMode, Record, RunFilter,
};
use expect_test::expect_file;
use rusqlite::Connection;
use sample::{
    block_on, continuing, large, log, note, prompted, random, records, run, started, started_from,
    tool_call_finished, write,
};
use serde_json::json;
use tempfile::TempDir;

/// A journal with the sample log in run `r1` and another run `other`.
struct Fixture {
    dir: TempDir,
    journal: SqliteJournal,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(dir.path().join("runs.db")).unwrap();
    write(&journal, "r1", &log("r1"));
    write(&journal, "other", &records([started_from("other", continuing("r1")), prompted("the task")]));
    Fixture { dir, journal }
}

impl Fixture {
    /// Changes the database behind the journal's back.
    fn change(&self, sql: &str) {
        assert!(Connection::open(self.journal.path()).unwrap().execute(sql, []).unwrap() > 0, "{sql}");
    }

    fn check_other(&self) {
        assert_eq!(block_on(self.journal.read(&run("other"))).unwrap().len(), 2);
        let heads = block_on(self.journal.list(&RunFilter::all())).unwrap();
        let head = heads.iter().find(|h| h.run_id == run("other")).unwrap();
        assert_eq!((&*head.task, &head.problem), ("the task", &None));
    }
}

/// The whole database as SQL, so that the format can be read and compared.
fn dump(path: &Path) -> String {
    let connection = Connection::open(path).unwrap();
    let lines = |sql: &str| -> Vec<String> {
        let mut select = connection.prepare(sql).unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let schema = "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid";
    let id = "SELECT 'PRAGMA application_id = ' || application_id || ';' FROM pragma_application_id";
    let insert = |columns: &[&str], table: &str| {
        let values: Vec<_> = columns.iter().map(|c| format!("quote({c})")).collect();
        let values = values.join(" || ', ' || ");
        lines(&format!("SELECT 'INSERT INTO {table} VALUES (' || {values} || ');' FROM {table} ORDER BY 1"))
    };
    let mut all = lines(id);
    all.extend(lines(schema));
    all.extend(insert(&["version"], "schema_version"));
    all.extend(insert(
        &["id", "run", "continues", "session", "tenant", "called_by", "noted", "rests"],
        "runs",
    ));
    all.extend(insert(&["place", "line"], "records"));
    all.extend(insert(&["run", "sha256", "length(body)"], "blobs"));
    all.extend(insert(&["run", "id", "at", "message"], "inbox"));
    all.join("\n") + "\n"
}

#[test]
fn the_format_does_not_change_by_accident() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/store-v4.sql");
    let f = fixture();
    expect_file![golden].assert_eq(&dump(&f.journal.path()));
    let path = f.dir.path().join("golden.db");
    Connection::open(&path).unwrap().execute_batch(&fs::read_to_string(golden).unwrap()).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(block_on(journal.read(&run("r1"))).unwrap(), log("r1"));
    let e = block_on(journal.delete(&run("r1"))).unwrap_err();
    assert!(matches!(&e, JournalError::Needed { by, .. } if *by == [run("other")]), "{e}");
}

#[test]
fn resume_from_a_copied_database_finds_its_inbox_messages() {
    let f = fixture();
    let cancel = InboxRequest::Cancel { reason: "why not".into() };
    let message = InboxEntry::new("m1", archon_types::Timestamp::from_millis(1), cancel);
    block_on(f.journal.inbox().unwrap().post(&run("r1"), message.clone())).unwrap();
    fs::remove_dir_all(f.dir.path().join("runs.db-locks")).unwrap();
    let journal = SqliteJournal::open(f.journal.path()).unwrap();
    let _open = block_on(journal.open(&run("r1"), OpenMode::Existing)).unwrap();
    assert_eq!(block_on(journal.inbox().unwrap().waiting(&run("r1"))).unwrap(), [message]);
}

// spec: AP-15
#[test]
fn a_row_without_a_seal_is_left_out_where_the_journal_has_a_key() {
    let f = fixture();
    let message = |id: &str| {
        let cancel = InboxRequest::Cancel { reason: "why not".into() };
        InboxEntry::new(id, archon_types::Timestamp::from_millis(1), cancel)
    };
    let journal = f.journal.clone().with_inbox_key(InboxKey::new([7; 32]));
    let waiting = || block_on(journal.inbox().unwrap().waiting(&run("r1"))).unwrap();
    block_on(f.journal.inbox().unwrap().post(&run("r1"), message("forged"))).unwrap();
    assert_eq!(waiting(), []);
    block_on(journal.inbox().unwrap().post(&run("r1"), message("sent"))).unwrap();
    assert_eq!(waiting(), [message("sent")]);
    f.change("UPDATE inbox SET message = replace(message, 'why', 'how') WHERE id = 'sent'");
    assert_eq!(waiting(), []);
}

#[test]
fn the_lines_are_those_of_the_file_journal() {
    let f = fixture();
    let connection = Connection::open(f.journal.path()).unwrap();
    let mut select =
        connection.prepare("SELECT line || char(10) FROM records ORDER BY place LIMIT 6").unwrap();
    let lines: Vec<String> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(lines.concat(), include_str!("golden/run-v2.jsonl"));
}

#[test]
fn open_a_store_of_another_version_refuses_and_leaves_the_file_alone() {
    for (found, advice) in [(5, "use the version of archon that wrote it"), (3, "before the first release")] {
        let f = fixture();
        f.change(&format!("UPDATE schema_version SET version = {found}"));
        let path = f.journal.path();
        let before = (dump(&path), fs::read(&path).unwrap());
        let e = SqliteJournal::open(&path).unwrap_err();
        assert!(
            matches!(&e, JournalError::UnsupportedStore { found: f, supported: 4, .. } if *f == found),
            "{e}"
        );
        let text = format!("has store format {found}, and this version reads format 4");
        assert!(e.to_string().contains(&text) && e.advice().contains(advice), "{e}; {}", e.advice());
        assert_eq!((dump(&path), fs::read(&path).unwrap()), before);
    }
}

#[test]
fn files_of_others_are_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("other.db");
    Connection::open(&database).unwrap().execute_batch("CREATE TABLE photos (x)").unwrap();
    let text = dir.path().join("notes.txt");
    fs::write(&text, "Dear diary, this is no database. ".repeat(100)).unwrap();
    for path in [&database, &text] {
        let before = fs::read(path).unwrap();
        let e = SqliteJournal::open(path).unwrap_err();
        assert!(
            matches!(&e, JournalError::Storage { action: "open", source, .. }
            if source.kind() == std::io::ErrorKind::InvalidData),
            "{e}"
        );
        assert_eq!(fs::read(path).unwrap(), before);
    }
}

#[test]
fn a_damaged_record_is_an_error_that_names_it_and_other_runs_stay_usable() {
    for n in 0..6 {
        let f = fixture();
        f.change(&format!(
            "UPDATE records SET line = replace(line, '\"at\":1', '\"at\":2') WHERE place = (1 << 32) + {n}"
        ));
        for mode in [OpenMode::Existing, OpenMode::Create] {
            let e = block_on(f.journal.open(&run("r1"), mode)).unwrap_err();
            match mode {
                OpenMode::Existing => assert_eq!(
                    e.to_string(),
                    format!("run r1 is damaged at record {n}: the checksum does not match")
                ),
                OpenMode::Create => assert!(matches!(e, JournalError::Exists { .. }), "{e}"),
            }
        }
        let salvaged = block_on(f.journal.salvage(&run("r1"))).unwrap();
        assert_eq!(salvaged.records, log("r1")[..n]);
        assert!(salvaged.damage.is_some());
        f.check_other();
        block_on(f.journal.delete(&run("other"))).unwrap();
        block_on(f.journal.delete(&run("r1"))).unwrap();
    }
}

#[test]
fn rows_that_are_missing_or_exchanged_are_found() {
    for change in [
        "DELETE FROM records WHERE place = (1 << 32) + 2",
        "DELETE FROM records WHERE place = 1 << 32",
        "UPDATE records SET line = (SELECT line FROM records WHERE place = (1 << 32) + 3) WHERE place = (1 << 32) + 2",
        "UPDATE records SET line = '' WHERE place = (1 << 32) + 2",
    ] {
        let f = fixture();
        f.change(change);
        let e = block_on(f.journal.read(&run("r1"))).unwrap_err();
        assert!(matches!(e, JournalError::Corrupt { .. }), "{change}: {e}");
        f.check_other();
    }
}

#[test]
fn a_missing_or_damaged_blob_is_an_error_that_names_run_and_record() {
    let changes = [
        ("UPDATE blobs SET body = x'00'", "does not match its hash"),
        ("UPDATE blobs SET body = zeroblob(length(body))", "does not match its hash"),
        ("DELETE FROM blobs", "is missing"),
    ];
    let mut with_media = tool_call_finished("30");
    let picture = Media::new(b"GIF89a", None).unwrap();
    with_media["result"]["content"] = json!([Content::from(picture)]);
    let bodies = [tool_call_finished(&large(1)), with_media];
    let cases = changes.iter().flat_map(|change| bodies.iter().map(move |body| (*change, body.clone())));
    for ((change, problem), body) in cases {
        let f = fixture();
        write(&f.journal, "r2", &records([started("r2"), body, note("x")]));
        f.change(change);
        let e = block_on(f.journal.read(&run("r2"))).unwrap_err().to_string();
        assert!(e.starts_with("run r2 is damaged at record 1: its blob ") && e.ends_with(problem), "{e}");
        assert_eq!(block_on(f.journal.salvage(&run("r2"))).unwrap().records.len(), 1);
        f.check_other();
    }
}

#[test]
fn delete_removes_every_trace_of_the_run() {
    let f = fixture();
    write(&f.journal, "r2", &records([started("r2"), note(&large(1))]));
    for id in ["other", "r1", "r2"] {
        block_on(f.journal.delete(&run(id))).unwrap();
    }
    let connection = Connection::open(f.journal.path()).unwrap();
    for table in ["runs", "records", "blobs"] {
        let count = format!("SELECT count(*) FROM {table}");
        assert_eq!(connection.query_row(&count, [], |row| row.get::<_, i32>(0)).unwrap(), 0, "{table}");
    }
    let locks = fs::read_dir(f.dir.path().join("runs.db-locks")).unwrap();
    assert_eq!(locks.map(|e| e.unwrap().file_name()).collect::<Vec<_>>(), [".open"]);
}

/// The files of a journal whose process died: the database and a write-ahead log that nobody has
/// moved into it.
struct Crashed {
    records: Vec<Arc<Record>>,
    database: Vec<u8>,
    log: Vec<u8>,
    /// The length of the log after each append of one record.
    lengths: Vec<usize>,
    _alive: (TempDir, SqliteJournal),
}

fn crashed() -> Crashed {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let wal = dir.path().join("runs.db-wal");
    let texts = (0..40).map(|n| if n == 15 { large(n) } else { "words ".repeat(n as usize * 7) });
    let records = records(std::iter::once(started("r1")).chain(texts.map(|text| note(&text))));
    let lengths = block_on(async {
        let mut open = journal.open(&run("r1"), OpenMode::Create).await.unwrap();
        let mut lengths = Vec::new();
        for (n, record) in records.iter().enumerate() {
            let durability = if n % 3 == 0 { Durability::Synced } else { Durability::Buffered };
            open.writer.append(std::slice::from_ref(record), durability).await.unwrap();
            lengths.push(fs::metadata(&wal).unwrap().len() as usize);
        }
        lengths
    });
    let (database, log) = (fs::read(&path).unwrap(), fs::read(&wal).unwrap());
    Crashed { records, database, log, lengths, _alive: (dir, journal) }
}

impl Crashed {
    /// Opens the files with another log, and returns the records that are found.
    fn reopen(&self, log: &[u8]) -> Vec<Arc<Record>> {
        let dir = tempfile::tempdir().unwrap();
        let path: PathBuf = dir.path().join("runs.db");
        fs::write(&path, &self.database).unwrap();
        fs::write(dir.path().join("runs.db-wal"), log).unwrap();
        let journal = SqliteJournal::open(&path).unwrap();
        let id = run("r1");
        block_on(async {
            let found = match journal.read(&id).await {
                Err(JournalError::UnknownRun { .. }) => Vec::new(),
                found => found.unwrap(),
            };
            let mode = if found.is_empty() { OpenMode::Create } else { OpenMode::Existing };
            let mut open = journal.open(&id, mode).await.unwrap();
            open.writer.append(&self.records[found.len()..], Durability::Buffered).await.unwrap();
            assert_eq!(journal.read(&id).await.unwrap(), self.records, "it goes on from there");
            found
        })
    }

    /// Returns the number of appends that ended before this byte of the log.
    fn before(&self, byte: usize) -> usize {
        self.lengths.iter().filter(|length| **length <= byte).count()
    }
}

#[test]
fn a_write_ahead_log_torn_at_any_place_keeps_every_record_before_the_tear() {
    let crashed = crashed();
    let mut state = 11;
    for _ in 0..200 {
        let cut = (random(&mut state) % crashed.log.len() as u64) as usize;
        let found = crashed.reopen(&crashed.log[..cut]);
        assert_eq!(found, crashed.records[..crashed.before(cut)], "cut at {cut}");
    }
}

#[test]
fn a_write_ahead_log_damaged_at_any_place_keeps_every_record_before_the_damage() {
    let crashed = crashed();
    let mut state = 13;
    for _ in 0..200 {
        let at = (random(&mut state) % crashed.log.len() as u64) as usize;
        let mut log = crashed.log.clone();
        log[at] ^= 1 << (random(&mut state) % 8);
        let found = crashed.reopen(&log);
        assert_eq!(found, crashed.records[..found.len()], "changed at {at}");
        assert!(found.len() >= crashed.before(at), "changed at {at}: {} left", found.len());
    }
}

/// Without a write-ahead log that could replace a damaged page.
#[test]
fn a_database_damaged_at_any_place_is_read_truly_or_refused() {
    let f = fixture();
    let texts = (0..60).map(|n| note(&"words ".repeat(n * 20)));
    let all = records(std::iter::once(started("r2")).chain(texts));
    write(&f.journal, "r2", &all);
    let path = f.journal.path();
    drop(f.journal);
    let bytes = fs::read(&path).unwrap();
    let (mut state, mut refused) = (17, 0);
    for _ in 0..300 {
        let at = (random(&mut state) % bytes.len() as u64) as usize;
        let mut damaged = bytes.clone();
        for byte in damaged[at..].iter_mut().take(8) {
            *byte ^= random(&mut state) as u8;
        }
        fs::write(&path, damaged).unwrap();
        let journal = match SqliteJournal::open(&path) {
            Ok(journal) => journal,
            Err(e) => {
                assert!(
                    matches!(e, JournalError::Storage { .. } | JournalError::UnsupportedStore { .. }),
                    "{e}"
                );
                refused += 1;
                continue;
            }
        };
        let _ = block_on(journal.list(&RunFilter::all()));
        for (id, written) in [("r1", &log("r1")), ("r2", &all)] {
            match block_on(journal.salvage(&run(id))) {
                Ok(found) => {
                    assert_eq!(found.records, written[..found.records.len()], "changed at {at}");
                    refused += usize::from(found.damage.is_some());
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 50, "the damage was seen {refused} times only");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_database() {
    use std::os::unix::fs::PermissionsExt;
    let outer = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(outer.path().join("data/runs.db")).unwrap();
    let open = block_on(journal.open(&run("r1"), OpenMode::Create)).unwrap();
    let mode = |path: &str| fs::metadata(outer.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("data"), mode("data/runs.db-locks")), (0o700, 0o700));
    for file in ["runs.db", "runs.db-wal", "runs.db-shm", "runs.db-locks/r1.lock"] {
        assert_eq!(mode(&format!("data/{file}")), 0o600, "{file}");
    }
    drop(open);
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error_that_names_it() {
    let f = fixture();
    // A directory under a regular file cannot be made by anyone, root included.
    let e = SqliteJournal::open(f.journal.path().join("below/runs.db")).unwrap_err();
    assert!(
        matches!(&e, JournalError::Storage { action: "create", place, .. } if place.contains("below")),
        "{e}"
    );
}
