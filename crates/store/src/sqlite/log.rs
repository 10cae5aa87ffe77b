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
    records::{existing, from_line, with_media},
    rules::unknown,
};

/// The number of low bits of a place that contain the record's number; the bits above contain the run's id in
/// the database. A place is the key of a record's row.
const BITS: u32 = 32;

pub(super) fn read(database: &Database, run: &RunId) -> Result<Salvaged, JournalError> {
    database.read(|connection| existing(StoredRun::require(connection, database, run)?.records()?, run))
}

/// Reads the last `most` records of a run; with `before`, the last ones before the record with that number.
/// Damage of other records is not detected. Media have no data.
pub(super) fn read_before(
    database: &Database,
    run: &RunId,
    before: Option<u64>,
    most: usize,
) -> Result<Salvaged, JournalError> {
    database.read(|connection| {
        let stored = StoredRun::require(connection, database, run)?;
        // The first record tells the format of the log.
        match stored.first() {
            Ok(_) => stored.records_before(before, most),
            Err(_) => Ok(existing(stored.records()?, run)?.before(before, most)),
        }
    })
}

/// A run in the database, as a transaction sees it.
pub(super) struct StoredRun<'a> {
    pub(super) connection: &'a Connection,
    pub(super) database: &'a Database,
    pub(super) run: &'a RunId,
    /// The run's integer id in this database.
    pub(super) id: i64,
}

impl<'a> StoredRun<'a> {
    /// Returns the run; `None` if it does not exist.
    pub(super) fn find(
        connection: &'a Connection,
        database: &'a Database,
        run: &'a RunId,
    ) -> Result<Option<Self>, JournalError> {
        let id = || {
            let mut select = connection.prepare_cached("SELECT id FROM runs WHERE run = ?1")?;
            select.query_row([run.as_str()], |row| row.get(0)).optional()
        };
        let id = id().map_err(failed("read", database.path()))?;
        Ok(id.map(|id| Self { connection, database, run, id }))
    }

    /// Returns the run, or [`JournalError::UnknownRun`] if the run does not exist.
    pub(super) fn require(
        connection: &'a Connection,
        database: &'a Database,
        run: &'a RunId,
    ) -> Result<Self, JournalError> {
        Self::find(connection, database, run)?.ok_or_else(|| unknown(run))
    }

    fn records(&self) -> Result<Salvaged, JournalError> {
        let mut salvaged = Salvaged::default();
        let places = places(self.id);
        let failed = || failed("read", self.database.path());
        let mut select = self
            .connection
            .prepare_cached("SELECT line FROM records WHERE place >= ?1 AND place < ?2 ORDER BY place")
            .map_err(failed())?;
        let mut rows = select.query([places.start, places.end]).map_err(failed())?;
        let mut line = Vec::new();
        loop {
            let seq = salvaged.records.len() as u64;
            let read = match rows.next() {
                Ok(None) => break,
                Ok(Some(row)) => take_line(row, 0, &mut line),
                Err(e) => Err(e),
            };
            let record = read
                .map_err(unread(self.database.path(), self.run, seq))
                .and_then(|()| from_line(self.run, seq, &mut line, self))
                .and_then(|record| with_media(self.run, record, self));
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

    fn records_before(&self, before: Option<u64>, most: usize) -> Result<Salvaged, JournalError> {
        let failed = || failed("read", self.database.path());
        let places = places(self.id);
        let end = before.and_then(|before| place(self.id, before)).unwrap_or(places.end);
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut select = self.connection.prepare_cached(BEFORE).map_err(failed())?;
        let mut rows = select.query((places.start, end, most)).map_err(failed())?;
        let mut lines = Vec::new();
        while let Some(row) = rows.next().map_err(failed())? {
            let mut line = Vec::new();
            let at: i64 = row.get(0).map_err(failed())?;
            take_line(row, 1, &mut line).map_err(failed())?;
            lines.push((seq(at), line));
        }
        let mut salvaged = Salvaged::default();
        for (seq, mut line) in lines.into_iter().rev() {
            match from_line(self.run, seq, &mut line, self) {
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
}

/// Selects the last records before a place, the last one first.
const BEFORE: &str =
    "SELECT place, line FROM records WHERE place >= ?1 AND place < ?2 ORDER BY place DESC LIMIT ?3";

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

impl Blobs for StoredRun<'_> {
    fn get(&self, sha256: &str) -> Result<Option<Vec<u8>>, JournalError> {
        let select = || {
            let sql = "SELECT body FROM blobs WHERE run = ?1 AND sha256 = ?2";
            self.connection.prepare_cached(sql)?.query_row((self.id, sha256), |row| row.get(0)).optional()
        };
        select().map_err(failed("read", self.database.path()))
    }
}
