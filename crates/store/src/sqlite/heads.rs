//! Lists runs: the first records say who and what, the last one how it is.

use std::sync::Arc;

use archon_types::{JournalError, Record, RecordBody, RunHead, RunId};
use rusqlite::Connection;

use super::{
    database::Database,
    error::{failed, unread},
    log::{StoredBlobs, places, seq, take_line},
};
use crate::{
    damage::{corrupt, unreadable},
    records::from_line,
};

/// Up to the prompt, which is one of the first.
const FIRST: &str = "SELECT place, line FROM records WHERE place >= ?1 AND place < ?2 ORDER BY place LIMIT 4";
const LAST: &str =
    "SELECT place, line FROM records WHERE place >= ?1 AND place < ?2 ORDER BY place DESC LIMIT 1";

/// All runs, the last written first.
pub(super) fn list(database: &Database) -> Result<Vec<RunHead>, JournalError> {
    database.read(|connection| {
        let mut heads = Vec::new();
        for (id, run) in runs(connection).map_err(failed("list", database.path()))? {
            let head = ends(connection, database, &run, id);
            heads.push(match head {
                Ok(records) => RunHead::of(run, &records),
                Err(problem) => unreadable(&run, &problem),
            });
        }
        heads.sort_by(|a, b| (b.updated_at, &b.run_id).cmp(&(a.updated_at, &a.run_id)));
        Ok(heads)
    })
}

/// The first record of a run.
pub(super) fn first(
    connection: &Connection,
    database: &Database,
    run: &RunId,
    id: i64,
) -> Result<Record, JournalError> {
    some(connection, database, run, id, FIRST, |_| true).map(|mut records| records.swap_remove(0))
}

fn runs(connection: &Connection) -> rusqlite::Result<Vec<(i64, RunId)>> {
    let mut select = connection.prepare_cached("SELECT id, run FROM runs")?;
    let runs = select.query_map([], |row| Ok((row.get(0)?, RunId::new(row.get::<_, String>(1)?))))?;
    runs.collect()
}

fn ends(
    connection: &Connection,
    database: &Database,
    run: &RunId,
    id: i64,
) -> Result<Vec<Arc<Record>>, JournalError> {
    let is_prompt = |record: &Record| matches!(record.body, RecordBody::Prompted { .. });
    let mut records = some(connection, database, run, id, FIRST, is_prompt)?;
    records.extend(some(connection, database, run, id, LAST, |_| true)?);
    Ok(records.into_iter().map(Arc::new).collect())
}

/// The records that a query finds, up to and with the first that is `enough`; at least one.
fn some(
    connection: &Connection,
    database: &Database,
    run: &RunId,
    id: i64,
    query: &str,
    enough: impl Fn(&Record) -> bool,
) -> Result<Vec<Record>, JournalError> {
    let (mut records, mut line, places) = (Vec::new(), Vec::new(), places(id));
    let blobs = StoredBlobs { connection, database, id };
    let mut next = places.start;
    let mut select = connection.prepare_cached(query).map_err(failed("read", database.path()))?;
    let mut rows = select.query([places.start, places.end]).map_err(failed("read", database.path()))?;
    loop {
        let read = match rows.next() {
            Ok(None) => break,
            Ok(Some(row)) => row.get(0).and_then(|place| {
                next = place;
                take_line(row, 1, &mut line)
            }),
            Err(e) => Err(e),
        };
        read.map_err(unread(database.path(), run, seq(next)))?;
        records.push(from_line(run, seq(next), &mut line, &blobs)?);
        if records.last().is_some_and(&enough) {
            break;
        }
        next += 1;
    }
    match records.is_empty() {
        true => Err(corrupt(run, 0, "its records are gone")),
        false => Ok(records),
    }
}
