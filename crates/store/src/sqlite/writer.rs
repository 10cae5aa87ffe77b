//! Appends to a log: each append is one transaction.
//!
//! Even a buffered append may have to wait for another writer's sync, so all appends run on a thread that
//! may block. A caller that drops the future does not stop an append that has begun: the records are
//! appended, and the lock is held until then.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::{
    BoxFuture, Durability, JournalError, OpenMode, OpenRun, Record, RunHead, RunId, RunStatus, RunWriter,
    SessionId, TenantId, Timestamp,
};
use rusqlite::Transaction;

use super::{
    database::Database,
    error::failed,
    inbox,
    log::{self, StoredRun, place},
};
use crate::{
    blob::{self, Blob},
    blocking::blocking,
    files::storage,
    listing::Notes,
    lock::{RunLock, Wait, lost_writer},
    records::for_writing,
    rules::{self, check_records},
};

/// Takes the lock, reads the log and returns the writer.
pub(super) fn open(
    database: &Arc<Database>,
    run: &RunId,
    mode: OpenMode,
    wait: &mut Wait<'_>,
) -> Result<OpenRun, JournalError> {
    let lock = database.lock(run, wait)?;
    let records = for_writing(run, mode, log::read(database, run))?.records;
    if mode == OpenMode::Existing {
        inbox::mark(database, run)?;
    }
    let end = Mutex::new(End { id: None, next: records.len() as u64, notes: Notes::default() });
    let log = Arc::new(SqliteLog { database: database.clone(), run: run.clone(), end, lock });
    Ok(OpenRun { records, writer: Box::new(SqliteWriter { log }) })
}

struct SqliteWriter {
    log: Arc<SqliteLog>,
}

/// State that the writer shares with an append in progress.
struct SqliteLog {
    database: Arc<Database>,
    run: RunId,
    end: Mutex<End>,
    lock: RunLock,
}

struct End {
    /// The run's integer id in the database; `None` before the first append.
    id: Option<i64>,
    next: u64,
    notes: Notes,
}

/// A record as it is stored in the tables.
struct Row {
    line: Vec<u8>,
    blobs: Vec<Blob>,
}

impl RunWriter for SqliteWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let (log, records) = (self.log.clone(), records.to_vec());
            blocking(move || log.append(&records, durability)).await
        })
    }
}

impl SqliteLog {
    fn append(&self, records: &[Arc<Record>], durability: Durability) -> Result<(), JournalError> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        check_records(&self.run, end.next, records)?;
        if durability == Durability::Synced {
            self.lock.check(&self.run)?;
            self.database.check(&self.run)?;
        }
        if records.is_empty() {
            return if durability == Durability::Synced { self.database.sync() } else { Ok(()) };
        }
        let rows = records.iter().map(|record| encode(record)).collect::<io::Result<Vec<_>>>();
        let rows = rows.map_err(storage("encode", self.database.path()))?;
        let due = records.last().and_then(|last| end.notes.due(last));
        let id = self.database.write(durability, |transaction| {
            let id = match (end.id, end.next) {
                (Some(id), _) => Some(id),
                (None, 0) => None,
                (None, _) => StoredRun::find(transaction, &self.database, &self.run)?.map(|stored| stored.id),
            };
            if durability == Durability::Synced && end.next > 0 {
                self.check_end(transaction, id, end.next)?;
            }
            let inserted = insert(transaction, &self.run, &records[0], id, end.next, rows);
            inserted
                .and_then(|id| match due {
                    Some(due) => note(transaction, id, due).map(|()| id),
                    None => Ok(id),
                })
                .map_err(failed("write to", self.database.path()))
        });
        (end.id, end.next) = match id {
            Ok(id) => (Some(id), end.next + records.len() as u64),
            Err(e) => {
                // The note was rolled back too, so the next append makes it again.
                end.notes = Notes::default();
                return Err(e);
            }
        };
        Ok(())
    }

    /// Checks that the log still ends at this writer's last record.
    fn check_end(
        &self,
        transaction: &Transaction<'_>,
        id: Option<i64>,
        next: u64,
    ) -> Result<(), JournalError> {
        let last = |id| {
            let select = "SELECT max(place) FROM records WHERE place >= ?1 AND place < ?2";
            let places = log::places(id);
            let mut select = transaction.prepare_cached(select)?;
            select.query_row([places.start, places.end], |row| row.get::<_, Option<i64>>(0))
        };
        let last = id.map(last).transpose().map_err(failed("read", self.database.path()))?;
        match last.flatten().map(log::seq) {
            Some(seq) if seq + 1 == next => Ok(()),
            other => {
                let found = other.map_or(0, |seq| seq + 1);
                let place = self.database.path().display();
                Err(lost_writer(
                    &self.run,
                    format!("its log in {place} was changed: it has {found} records instead of {next}"),
                ))
            }
        }
    }
}

fn encode(record: &Record) -> io::Result<Row> {
    let mut line = Vec::new();
    let blobs = blob::encode(&mut line, record)?;
    Ok(Row { line, blobs })
}

/// Inserts rows from number `next` on. If the run has no `id` yet, inserts the run first.
fn insert(
    transaction: &Transaction<'_>,
    run: &RunId,
    first: &Record,
    id: Option<i64>,
    next: u64,
    rows: Vec<Row>,
) -> rusqlite::Result<i64> {
    let id = match id {
        Some(id) => id,
        None => {
            let insert =
                "INSERT INTO runs (run, continues, session, tenant, called_by) VALUES (?1, ?2, ?3, ?4, ?5)";
            let head = RunHead::of(run.clone(), &[Arc::new(first.clone())]);
            transaction.prepare_cached(insert)?.insert((
                run.as_str(),
                rules::continues(first).map(RunId::as_str),
                head.session.as_ref().map(SessionId::as_str),
                head.tenant.as_ref().map(TenantId::as_str),
                head.called_by.as_ref().map(RunId::as_str),
            ))?
        }
    };
    let mut line = transaction.prepare_cached("INSERT INTO records (place, line) VALUES (?1, ?2)")?;
    for (seq, row) in (next..).zip(rows) {
        for blob in row.blobs {
            let replace = "INSERT OR REPLACE INTO blobs (run, sha256, body) VALUES (?1, ?2, ?3)";
            transaction.prepare_cached(replace)?.execute((id, blob.sha256, blob.bytes))?;
        }
        let place = place(id, seq).ok_or(rusqlite::Error::IntegralValueOutOfRange(0, i64::MAX))?;
        // The line is JSON, so it is valid UTF-8 and nothing is replaced.
        line.execute((place, String::from_utf8_lossy(&row.line)))?;
    }
    Ok(id)
}

/// Updates the run's row: the time of its last record, and its status if it is suspended or has ended.
fn note(
    transaction: &Transaction<'_>,
    id: i64,
    (at, rests): (Timestamp, Option<RunStatus>),
) -> rusqlite::Result<()> {
    let at = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    let mut update = transaction.prepare_cached("UPDATE runs SET noted = ?2, rests = ?3 WHERE id = ?1")?;
    update.execute((id, at, rests.map(RunStatus::as_str))).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    fn database() -> (tempfile::TempDir, Arc<Database>) {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("runs.db")).unwrap();
        (dir, Arc::new(database))
    }

    fn open(database: &Arc<Database>, mode: OpenMode) -> Result<OpenRun, JournalError> {
        super::open(database, &RunId::new("r"), mode, &mut || false)
    }

    fn record(seq: u64, text: &str) -> Arc<Record> {
        let json = match seq {
            0 => serde_json::json!({
                "seq": 0, "at": 1, "type": "run_started", "format": 2, "kind": "loop", "run": "r", "session": "s",
                "agent": "a", "loop_id": "l", "tenant": "t", "origin": {"kind": "prompt"},
                "first_trigger": "user", "config": {},
            }),
            _ => serde_json::json!({"seq": seq, "at": 1, "type": "hint_added", "text": text}),
        };
        Arc::new(serde_json::from_value(json).unwrap())
    }

    #[tokio::test]
    async fn a_full_disk_leaves_the_log_as_it_was_and_the_writer_usable() {
        let (_dir, database) = database();
        let mut writer = open(&database, OpenMode::Create).unwrap().writer;
        writer.append(&[record(0, ""), record(1, "small")], Durability::Synced).await.unwrap();
        let pages = |n: u32| database.limit(n);
        // A record for the log's table, a large one for the table of blobs, and a small one with another
        // after it.
        let (page, large) = ("x".repeat(8000), "x".repeat(100_000));
        for append in [vec![record(2, &page)], vec![record(2, &large)], vec![record(2, ""), record(3, &page)]]
        {
            pages(1);
            let e = writer.append(&append, Durability::Synced).await.unwrap_err();
            assert!(
                matches!(&e, JournalError::Storage { action: "write to", source, .. }
                    if source.kind() == io::ErrorKind::StorageFull),
                "{e}"
            );
            assert!(e.to_string().ends_with("runs.db: database or disk is full"), "{e}");
            assert_eq!(log::read(&database, &RunId::new("r")).unwrap().records.len(), 2);
        }
        pages(1_000_000);
        writer.append(&[record(2, &large)], Durability::Synced).await.unwrap();
        assert_eq!(log::read(&database, &RunId::new("r")).unwrap().records.len(), 3);
    }

    /// With a single blocking thread, work is done in the order in which it was submitted.
    #[test]
    fn dropped_append_finishes_before_the_lock_is_released() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let (_dir, database) = database();
        let run = RunId::new("r");
        let mut writer = open(&database, OpenMode::Create).unwrap().writer;
        let (go, wait) = std::sync::mpsc::channel();
        runtime.block_on(async {
            let before = tokio::task::spawn_blocking(move || wait.recv());
            let records = [record(0, "")];
            let mut append = writer.append(&records, Durability::Synced);
            assert!(append.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            drop(append);
            drop(writer);
            let e = open(&database, OpenMode::Create).unwrap_err();
            assert!(matches!(e, JournalError::Locked { .. }), "{e}");
            go.send(()).unwrap();
            before.await.unwrap().unwrap();
            tokio::task::spawn_blocking(|| ()).await.unwrap();
            assert_eq!(log::read(&database, &run).unwrap().records.len(), 1);
            open(&database, OpenMode::Existing).unwrap();
        });
    }
}
