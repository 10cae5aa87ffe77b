//! Reads the log of a run.

use std::{ops::Range, sync::Arc};

use archon_types::{JournalError, RunId, Salvaged};
use rusqlite::{Connection, OptionalExtension, Row, types::Type};

use super::{
    database::Database,
    error::{failed, unread},
};
use crate::{
    blob::Blobs,
    records::{existing, from_line},
};

/// The number of low bits of a place that contain the record's number; the bits above contain the run's
/// number.
const BITS: u32 = 32;

pub(super) fn read(database: &Database, run: &RunId) -> Result<Salvaged, JournalError> {
    database.read(|connection| match id(connection, database, run)? {
        Some(id) => existing(records(connection, database, run, id)?, run),
        None => Err(JournalError::UnknownRun { run: run.clone() }),
    })
}

/// Returns the run's number in this database; `None` if the run does not exist.
pub(super) fn id(
    connection: &Connection,
    database: &Database,
    run: &RunId,
) -> Result<Option<i64>, JournalError> {
    let id = |connection: &Connection| {
        let mut select = connection.prepare_cached("SELECT id FROM runs WHERE run = ?1")?;
        select.query_row([run.as_str()], |row| row.get(0)).optional()
    };
    id(connection).map_err(failed("read", database.path()))
}

fn records(
    connection: &Connection,
    database: &Database,
    run: &RunId,
    id: i64,
) -> Result<Salvaged, JournalError> {
    let mut salvaged = Salvaged::default();
    let places = places(id);
    let mut select = connection
        .prepare_cached("SELECT line FROM records WHERE place >= ?1 AND place < ?2 ORDER BY place")
        .map_err(failed("read", database.path()))?;
    let mut rows = select.query([places.start, places.end]).map_err(failed("read", database.path()))?;
    let blobs = StoredBlobs { connection, database, id };
    let mut line = Vec::new();
    loop {
        let seq = salvaged.records.len() as u64;
        let read = match rows.next() {
            Ok(None) => break,
            Ok(Some(row)) => take_line(row, 0, &mut line),
            Err(e) => Err(e),
        };
        let record = read
            .map_err(unread(database.path(), run, seq))
            .and_then(|()| from_line(run, seq, &mut line, &blobs));
        match record {
            Ok(record) => salvaged.records.push(Arc::new(record)),
            Err(e) if e.is_of_another_version() => return Err(e),
            Err(e) => {
                salvaged.damage = Some(e);
                break;
            }
        }
    }
    Ok(salvaged)
}

/// Copies the bytes of a line out of a row without interpreting them, since they may be damaged.
pub(super) fn take_line(row: &Row<'_>, column: usize, line: &mut Vec<u8>) -> rusqlite::Result<()> {
    let value = row.get_ref(column)?;
    let bytes = value
        .as_bytes()
        .map_err(|_| rusqlite::Error::InvalidColumnType(column, "line".to_owned(), Type::Text))?;
    line.clear();
    line.extend_from_slice(bytes);
    Ok(())
}

/// Returns the range of places of a run's records.
pub(super) fn places(id: i64) -> Range<i64> {
    id << BITS..(id + 1) << BITS
}

/// Returns the place of a run's record; `None` if the number is too large.
pub(super) fn place(id: i64, seq: u64) -> Option<i64> {
    u32::try_from(seq).ok().map(|seq| places(id).start + i64::from(seq))
}

/// Returns the number, within its run, of the record at a place.
pub(super) fn seq(place: i64) -> u64 {
    // The cast removes the bits of the run's number.
    u64::from(place as u32)
}

/// The blobs of one run.
pub(super) struct StoredBlobs<'a> {
    pub(super) connection: &'a Connection,
    pub(super) database: &'a Database,
    pub(super) id: i64,
}

impl Blobs for StoredBlobs<'_> {
    fn get(&self, sha256: &str) -> Result<Option<Vec<u8>>, JournalError> {
        let select = |connection: &Connection| {
            let mut select =
                connection.prepare_cached("SELECT body FROM blobs WHERE run = ?1 AND sha256 = ?2")?;
            select.query_row((self.id, sha256), |row| row.get(0)).optional()
        };
        select(self.connection).map_err(failed("read", self.database.path()))
    }
}
