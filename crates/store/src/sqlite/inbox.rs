//! Keeps messages to runs: rows of a table, and an empty file `{path}-locks/{run}.inbox` while messages
//! exist.
//!
//! Other processes check only if the file exists and when it was last modified, so a run without messages, as
//! most runs are, never queries the database. The file is created and removed within the transactions that
//! add and remove rows. So rows without a file exist only if somebody copied the database alone; opening a
//! run's writer repairs that.

use std::{fs, path::Path, time::SystemTime};

use archon_types::{BoxFuture, Durability, Inbox, InboxEntry, JournalError, RunId};
use rusqlite::{Connection, OptionalExtension};

use super::{SqliteJournal, database::Database, error::failed, log::StoredRun};
use crate::{
    files::{if_exists, private, storage},
    inbox_key::{InboxKey, Opener, close},
    rules::check_id,
    skipped::Skipped,
};

impl Inbox for SqliteJournal {
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            check_id(&RunId::new(entry.id.clone()))?;
            let key = self.inbox_key.clone();
            self.work(run, move |database, run| post(database, run, &entry, key.as_ref())).await?;
            self.bell.ring();
            Ok(())
        })
    }

    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        Box::pin(async move {
            check_id(run)?;
            if !self.database.inbox_mark(run).exists() {
                return Ok(Vec::new());
            }
            let (key, skipped) = (self.inbox_key.clone(), self.skipped.clone());
            self.work(run, move |database, run| waiting(database, run, key.as_ref(), &skipped)).await
        })
    }

    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        let ids = ids.to_vec();
        Box::pin(self.work(run, move |database, run| remove(database, run, &ids)))
    }

    fn changed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, ()> {
        self.bell.changed(self.database.inbox_mark(run))
    }
}

fn post(
    database: &Database,
    run: &RunId,
    entry: &InboxEntry,
    key: Option<&InboxKey>,
) -> Result<(), JournalError> {
    let failed = failed("write to", database.path());
    let message = close(key, run, entry)?;
    database.write(Durability::Synced, |transaction| {
        let id = StoredRun::require(transaction, database, run)?.id;
        touch(&database.inbox_mark(run))?;
        let insert = "INSERT OR IGNORE INTO inbox (run, id, at, message) VALUES (?1, ?2, ?3, ?4)";
        let at = i64::try_from(entry.at.as_millis()).unwrap_or(i64::MAX);
        match transaction.execute(insert, (id, &entry.id, at, message)).map_err(failed)? {
            0 => Err(JournalError::Posted { run: run.clone(), id: entry.id.clone() }),
            _ => Ok(()),
        }
    })
}

fn waiting(
    database: &Database,
    run: &RunId,
    key: Option<&InboxKey>,
    skipped: &Skipped,
) -> Result<Vec<InboxEntry>, JournalError> {
    let opener = Opener::new(key, run)?;
    let select = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
        let select = "SELECT message FROM inbox JOIN runs ON runs.id = inbox.run WHERE runs.run = ?1
                      ORDER BY inbox.at, inbox.id";
        let mut select = connection.prepare_cached(select)?;
        select.query_map([run.as_str()], |row| row.get(0))?.collect()
    };
    let messages = database.read(|connection| select(connection).map_err(failed("read", database.path())))?;
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for message in messages {
        match opener.open(message.as_bytes()) {
            Ok(entry) => entries.push(entry),
            // The message may be a newer version's, so it is left in place.
            Err(problem) => {
                problems.push(format!("{problem}; look at the table inbox of {}", database.path().display()));
            }
        }
    }
    skipped.warn(run, &problems);
    Ok(entries)
}

fn remove(database: &Database, run: &RunId, ids: &[String]) -> Result<(), JournalError> {
    database.write(Durability::Buffered, |transaction| {
        let Some(StoredRun { id: run_id, .. }) = StoredRun::find(transaction, database, run)? else {
            return Ok(());
        };
        let delete = "DELETE FROM inbox WHERE run = ?1 AND id = ?2";
        let deleted = ids.iter().try_for_each(|id| transaction.execute(delete, (run_id, id)).map(drop));
        let has_more = deleted.and_then(|()| any(transaction, run_id));
        match has_more.map_err(failed("write to", database.path()))? {
            true => Ok(()),
            false => unmark(&database.inbox_mark(run)),
        }
    })
}

/// Removes all messages of a run that is being deleted.
pub(super) fn delete(
    StoredRun { connection, database, run, id }: &StoredRun<'_>,
) -> Result<(), JournalError> {
    let delete = connection.execute("DELETE FROM inbox WHERE run = ?1", [id]);
    delete.map_err(failed("write to", database.path()))?;
    unmark(&database.inbox_mark(run))
}

/// Creates the run's [inbox mark](Database::inbox_mark) if messages wait for the run, so that they are read.
pub(super) fn mark(database: &Database, run: &RunId) -> Result<(), JournalError> {
    let waits = database.read(|connection| match StoredRun::find(connection, database, run)? {
        Some(stored) => any(connection, stored.id).map_err(failed("read", database.path())),
        None => Ok(false),
    })?;
    if waits { touch(&database.inbox_mark(run)) } else { Ok(()) }
}

fn any(connection: &Connection, run: i64) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached("SELECT 1 FROM inbox WHERE run = ?1 LIMIT 1")?;
    select.query_row([run], |_| Ok(())).optional().map(|row| row.is_some())
}

fn touch(mark: &Path) -> Result<(), JournalError> {
    let file = private().write(true).create(true).truncate(false).open(mark);
    let touched = file.and_then(|file| file.set_modified(SystemTime::now()));
    touched.map_err(storage("write", mark))
}

fn unmark(mark: &Path) -> Result<(), JournalError> {
    if_exists(fs::remove_file(mark)).map(drop).map_err(storage("remove", mark))
}
