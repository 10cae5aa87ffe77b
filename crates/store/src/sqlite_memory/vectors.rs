//! The copy of the vectors in memory. It follows the database: before each search it reads what was written and
//! removed since, by whomever.

use std::collections::HashMap;

use archon_vectors::VectorIndex;
use rusqlite::{Connection, OptionalExtension};

/// What is scanned, as of a moment of the database.
#[derive(Default)]
pub(super) struct Scan {
    epoch: i64,
    written: i64,
    removed: i64,
    indexes: HashMap<String, VectorIndex>,
}

impl Scan {
    /// The vectors of an embedder.
    pub(super) fn of(&self, embedder: &str) -> Option<&VectorIndex> {
        self.indexes.get(embedder)
    }

    /// Reads what is new in the connection's transaction. A copy that is newer than the transaction stays: rows that
    /// the transaction does not see are not found when they are fetched.
    pub(super) fn follow(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let epoch = connection.query_row("SELECT epoch FROM epochs", [], |row| row.get(0))?;
        if epoch != self.epoch {
            *self = Self { epoch, ..Self::default() };
        }
        self.forget(connection)?;
        let sql = "SELECT stamp, position, collection, embedder, scale, bytes FROM scanned \
                   WHERE stamp > ?1 ORDER BY stamp";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([self.written])?;
        while let Some(row) = rows.next()? {
            let bytes = row.get_ref(5)?.as_blob()?;
            let embedder = row.get_ref(3)?.as_str()?;
            if !self.indexes.contains_key(embedder) {
                // Not as long as the first that is met: that one may be damaged.
                let sql = "SELECT dimensions FROM embedders WHERE id = ?1";
                let length = connection.query_row(sql, [embedder], |row| row.get::<_, i64>(0)).optional()?;
                let length = length.map_or(bytes.len(), |length| usize::try_from(length).unwrap_or(0));
                self.indexes.insert(embedder.to_owned(), VectorIndex::new(length));
            }
            if let Some(index) = self.indexes.get_mut(embedder) {
                index.insert_bytes(row.get_ref(2)?.as_str()?, position(row)?, bytes, row.get(4)?);
            }
            self.written = row.get(0)?;
        }
        Ok(())
    }

    /// What was removed before it was written again is written again by [`follow`](Self::follow): a row that is
    /// replaced gets a new stamp.
    fn forget(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "SELECT stamp, position, collection, embedder FROM removed WHERE stamp > ?1 ORDER BY stamp";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([self.removed])?;
        while let Some(row) = rows.next()? {
            if let Some(index) = self.indexes.get_mut(row.get_ref(3)?.as_str()?) {
                index.remove(row.get_ref(2)?.as_str()?, position(row)?);
            }
            self.removed = row.get(0)?;
        }
        Ok(())
    }
}

fn position(row: &rusqlite::Row<'_>) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0))
}
