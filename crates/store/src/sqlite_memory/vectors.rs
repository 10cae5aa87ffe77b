//! The copy of the vectors in memory. Before each search it reads the vectors that any process has written
//! or removed since the last search.

use std::collections::HashMap;

use archon_vectors::VectorIndex;
use rusqlite::{Connection, OptionalExtension, Row};

/// The vectors to scan, from one snapshot of the database.
#[derive(Default)]
pub(super) struct Scan {
    epoch: i64,
    written: i64,
    removed: i64,
    indexes: HashMap<String, VectorIndex>,
}

impl Scan {
    /// Returns the vectors of an embedder.
    pub(super) fn of(&self, embedder: &str) -> Option<&VectorIndex> {
        self.indexes.get(embedder)
    }

    /// Reads the changes that the connection's transaction sees. If the copy is newer than the transaction, the
    /// copy is kept: a vector that the transaction does not see gives no hit, because its row is not found when
    /// it is fetched.
    pub(super) fn follow(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let epoch = connection.query_row("SELECT epoch FROM epochs", [], |row| row.get(0))?;
        if epoch != self.epoch {
            // An empty copy need not read the removals, of which there may be many.
            let newest = "SELECT coalesce(max(stamp), 0) FROM removed";
            let removed = connection.query_row(newest, [], |row| row.get(0))?;
            *self = Self { epoch, removed, ..Self::default() };
        }
        self.forget(connection)?;
        let sql = "SELECT stamp, position, collection, embedder, scale, bytes FROM scanned \
                   WHERE stamp > ?1 ORDER BY stamp";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([self.written])?;
        while let Some(row) = rows.next()? {
            self.take(connection, row)?;
            self.written = row.get(0)?;
        }
        Ok(())
    }

    /// Adds a row of `scanned`. A row with a damaged value is skipped without an effect on others, and its
    /// vector counts as missing.
    fn take(&mut self, connection: &Connection, row: &Row<'_>) -> rusqlite::Result<()> {
        let bytes = row.get_ref(5)?.as_blob();
        let scale = row.get(4).ok().filter(|scale| (0.0..=1.0).contains(scale));
        let (Some((position, collection, embedder)), Some(scale), Ok(bytes)) = (place(row), scale, bytes)
        else {
            return Ok(());
        };
        if !self.indexes.contains_key(embedder) {
            // The length is not taken from the first row, which may be damaged.
            let sql = "SELECT dimensions FROM embedders WHERE id = ?1";
            let length =
                connection.query_row(sql, [embedder], |row| Ok(row.get::<_, i64>(0).ok())).optional()?;
            let length = length.flatten().map_or(bytes.len(), |length| usize::try_from(length).unwrap_or(0));
            self.indexes.insert(embedder.to_owned(), VectorIndex::new(length));
        }
        if let Some(index) = self.indexes.get_mut(embedder) {
            index.insert_bytes(collection, position, bytes, scale);
        }
        Ok(())
    }

    /// Removes the vectors in the list of removals. If a removed vector was written again later,
    /// [`follow`](Self::follow) adds it again, because each written row gets a new, higher `stamp`.
    fn forget(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "SELECT stamp, position, collection, embedder FROM removed WHERE stamp > ?1 ORDER BY stamp";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([self.removed])?;
        while let Some(row) = rows.next()? {
            // A vector that stays because this row is damaged is not found when it is fetched.
            if let Some((position, collection, embedder)) = place(row)
                && let Some(index) = self.indexes.get_mut(embedder)
            {
                index.remove(collection, position);
            }
            self.removed = row.get(0)?;
        }
        Ok(())
    }
}

/// Returns the position, the collection and the embedder of a row; `None` if one of them is damaged.
fn place<'a>(row: &'a Row<'_>) -> Option<(u64, &'a str, &'a str)> {
    let text = |i| row.get_ref(i).ok()?.as_str().ok();
    Some((u64::try_from(row.get::<_, i64>(1).ok()?).ok()?, text(2)?, text(3)?))
}
