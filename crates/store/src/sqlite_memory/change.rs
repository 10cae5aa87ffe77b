//! Applies changes, each batch in one transaction.

use std::cell::Cell;

use archon_types::{Collection, Damaged, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, Timestamp};
use archon_vectors::Quantized;
use rusqlite::{OptionalExtension, Transaction, params, params_from_iter, types::Value};

use super::{
    damage::failed,
    database::Database,
    query::{Conditions, SOUND, list_texts_in},
    row::{bytes_of, length_of, read},
    words::number_of,
};
use crate::memories::{COLUMNS, Damage, Texts, check_expected, everything, number, take_vector};

pub(super) fn apply(
    database: &Database,
    scope: &Collection,
    changes: Vec<MemoryChange>,
) -> Result<usize, MemoryError> {
    // Checks that need no database are made before the lock is taken.
    for change in &changes {
        change.check(scope)?;
    }
    database.write(|transaction| {
        for change in &changes {
            if let MemoryChange::Expect { filter, entries } = change {
                let now = list_texts_in(transaction, scope, &everything(filter), database.path())?;
                check_expected(&now, entries)?;
            }
        }
        let work = Work { transaction, scope, database, has_unknown_words: Cell::new(false) };
        let met = changes.into_iter().map(|change| work.change(change)).sum::<Result<usize, _>>()?;
        if work.has_unknown_words.get() {
            work.index_words_again().map_err(work.failed())?;
        }
        Ok(met)
    })
}

/// Writes the database anew, and empties the write-ahead log, which has the pages from before the last changes.
/// SQLite overwrites deleted rows (`secure_delete`), but a page keeps old copies of rows that moved to another page.
pub(super) fn erase_deleted(database: &Database) -> Result<(), MemoryError> {
    let written = database.tidy("VACUUM");
    match database.truncate_log()? {
        true => written,
        false => Err(failed("empty the log of", database.path())(std::io::Error::other(
            "another program reads the database; what was forgotten stays in the log until it has ended",
        ))),
    }
}

pub(super) fn compact(database: &Database) -> Result<(), MemoryError> {
    database.write(|transaction| {
        // Stamps continue from their last value, so only the new epoch tells the copies in memory that they
        // missed removals.
        let sql = "INSERT INTO words(words) VALUES ('optimize'); DELETE FROM removed; UPDATE epochs SET epoch = epoch + 1";
        transaction.execute_batch(sql).map_err(failed("tidy", database.path()))
    })?;
    database.tidy("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")
}

struct Work<'a> {
    transaction: &'a Transaction<'a>,
    scope: &'a Collection,
    database: &'a Database,
    /// True if an entry was removed whose words in the index are not known, because its row is damaged.
    has_unknown_words: Cell<bool>,
}

/// An entry in the database: its position, and the entry or its damage.
type Old = (i64, Result<MemoryEntry, Damaged>);

impl Work<'_> {
    fn change(&self, change: MemoryChange) -> Result<usize, MemoryError> {
        match change {
            MemoryChange::Put(entry) => self.put(*entry),
            MemoryChange::Forget(filter) => self.forget(&filter),
            MemoryChange::Embed { id, collection, content, embedder, vector } => {
                self.embed(&id, &collection, &content, &embedder, &vector)
            }
            MemoryChange::Use { id, at } => self.mark_used(&id, at),
            _ => Ok(0),
        }
    }

    fn put(&self, mut entry: MemoryEntry) -> Result<usize, MemoryError> {
        let vector = take_vector(&mut entry, self.scope);
        if let Some((embedder, vector)) = entry.embedder.as_ref().zip(vector.as_ref()) {
            self.check_length(&entry.id, embedder, vector.len())?;
        }
        let position = self.put_row(&entry)?;
        if let Some((embedder, vector)) = entry.embedder.as_ref().zip(vector.as_ref()) {
            self.put_vector(position, &entry.collection, embedder, vector).map_err(self.failed())?;
        }
        Ok(1)
    }

    fn put_row(&self, entry: &MemoryEntry) -> Result<i64, MemoryError> {
        let texts = Texts::of(entry).map_err(failed("write to", self.database.path()))?;
        let session = entry.metadata.get("session").and_then(|session| session.as_str());
        let place = params![
            entry.collection.as_str(),
            entry.id,
            entry.kind.as_str(),
            entry.trust as i64,
            entry.key,
            session,
            number(entry.timestamp),
            entry.valid_from.map(number),
            entry.valid_to.map(number),
            entry.used.map(number),
            entry.embedder,
            texts.metadata,
            texts.body,
            texts.checksum,
            length_of(&entry.content),
        ];
        let write = || {
            let old = self.old(&entry.collection, &entry.id)?;
            let is_indexed = matches!(&old, Some((_, Ok(old))) if old.content == entry.content);
            match &old {
                Some((position, _)) if is_indexed => self.drop_vector(*position)?,
                Some(old) => self.drop_index(old)?,
                None => {}
            }
            let sql = "INSERT INTO entries (collection, id, kind, trust, key, session, timestamp, valid_from, \
                       valid_to, used, embedder, metadata, body, checksum, length, columns_checksum) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, \
                       sum_of(?3, ?4, ?5, ?6, ?7, ?8, ?9, ?12)) \
                       ON CONFLICT (collection, id) DO UPDATE SET kind = ?3, trust = ?4, key = ?5, session = ?6, \
                       timestamp = ?7, valid_from = ?8, valid_to = ?9, used = ?10, embedder = ?11, \
                       metadata = ?12, body = ?13, checksum = ?14, length = ?15, \
                       columns_checksum = excluded.columns_checksum RETURNING position";
            let mut insert = self.transaction.prepare_cached(sql)?;
            let position: i64 = insert.query_row(place, |row| row.get(0))?;
            if !is_indexed {
                self.index_words(position, entry)?;
            }
            Ok(position)
        };
        write().map_err(self.failed())
    }

    fn old(&self, collection: &Collection, id: &str) -> rusqlite::Result<Option<Old>> {
        let sql = format!("SELECT {COLUMNS}, {SOUND} FROM entries e WHERE e.collection = ?1 AND e.id = ?2");
        let mut statement = self.transaction.prepare_cached(&sql)?;
        statement.query_row([collection.as_str(), id], |row| Ok((row.get(0)?, read(row)?))).optional()
    }

    fn index_words(&self, position: i64, entry: &MemoryEntry) -> rusqlite::Result<()> {
        let words = "INSERT INTO words (rowid, content, owners) VALUES (?1, ?2, ?3)";
        let row = params![position, entry.content, self.owners(&entry.collection)?];
        self.transaction.prepare_cached(words)?.execute(row).map(drop)
    }

    /// Makes the index of words again from all entries that are not damaged.
    fn index_words_again(&self) -> rusqlite::Result<()> {
        self.transaction.execute("INSERT INTO words (words) VALUES ('delete-all')", [])?;
        let sql = format!("SELECT {COLUMNS}, {SOUND} FROM entries e");
        let mut statement = self.transaction.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if let Ok(entry) = read(row)? {
                self.index_words(row.get(0)?, &entry)?;
            }
        }
        Ok(())
    }

    /// Returns the database ids of a collection and of all collections that contain it, as a text with a space
    /// after each id. Collections that have no id yet get one.
    fn owners(&self, collection: &Collection) -> rusqlite::Result<String> {
        let name = collection.as_str();
        let ends = name.match_indices(':').map(|(end, _)| end).chain([name.len()]);
        let mut owners = String::new();
        for name in ends.map(|end| &name[..end]).filter(|name| !name.is_empty()) {
            let number = match number_of(self.transaction, name)? {
                Some(number) => number,
                None => {
                    let sql = "INSERT INTO collections (name) VALUES (?1) RETURNING number";
                    self.transaction.prepare_cached(sql)?.query_row([name], |row| row.get(0))?
                }
            };
            owners.push_str(&format!("{number} "));
        }
        Ok(owners)
    }

    /// Removes an entry from the indexes. The index of words has no texts, so a removal needs the indexed text.
    fn drop_index(&self, (position, old): &Old) -> rusqlite::Result<()> {
        match old {
            Ok(old) => {
                let words = "INSERT INTO words (words, rowid, content, owners) VALUES ('delete', ?1, ?2, ?3)";
                let row = params![position, old.content, self.owners(&old.collection)?];
                self.transaction.prepare_cached(words)?.execute(row)?;
            }
            Err(_) => self.has_unknown_words.set(true),
        }
        self.drop_vector(*position)
    }

    fn drop_vector(&self, position: i64) -> rusqlite::Result<()> {
        let note = "INSERT INTO removed (position, collection, embedder) \
                    SELECT position, collection, embedder FROM scanned WHERE position = ?1";
        // One statement each: of a damaged entry only one of the two rows may exist.
        for sql in
            [note, "DELETE FROM scanned WHERE position = ?1", "DELETE FROM vectors WHERE position = ?1"]
        {
            self.transaction.prepare_cached(sql)?.execute([position])?;
        }
        Ok(())
    }

    fn put_vector(
        &self,
        position: i64,
        collection: &Collection,
        embedder: &str,
        vector: &[f32],
    ) -> rusqlite::Result<()> {
        let (bytes, checksum) = bytes_of(vector);
        let exact = "INSERT INTO vectors (position, vector, checksum) VALUES (?1, ?2, ?3)";
        self.transaction.prepare_cached(exact)?.execute(params![position, bytes, checksum])?;
        let Quantized { values, scale } = Quantized::of(vector);
        let bytes: Vec<u8> = values.iter().map(|value| value.to_le_bytes()[0]).collect();
        let scanned =
            "INSERT INTO scanned (position, collection, embedder, scale, bytes) VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = params![position, collection.as_str(), embedder, scale, bytes];
        self.transaction.prepare_cached(scanned)?.execute(row).map(drop)
    }

    fn check_length(&self, id: &str, embedder: &str, found: usize) -> Result<(), MemoryError> {
        let length = i64::try_from(found).unwrap_or(i64::MAX);
        let expected = || {
            let sql = "INSERT INTO embedders VALUES (?1, ?2) ON CONFLICT DO UPDATE SET id = id RETURNING dimensions";
            let mut statement = self.transaction.prepare_cached(sql)?;
            statement.query_row(params![embedder, length], |row| row.get::<_, i64>(0))
        };
        let expected = expected().map_err(self.failed())?;
        MemoryEntry::check_length(id, embedder, found, usize::try_from(expected).unwrap_or(0))
    }

    fn forget(&self, filter: &MemoryFilter) -> Result<usize, MemoryError> {
        let Conditions { sql, values } = Conditions::of(self.scope, filter, Damage::Compared)?;
        let forget = || {
            let sql = format!("SELECT {COLUMNS}, {SOUND} FROM entries e WHERE {sql}");
            let mut statement = self.transaction.prepare_cached(&sql)?;
            let olds: Vec<Old> = statement
                .query_map(params_from_iter(values), |row| Ok((row.get(0)?, read(row)?)))?
                .collect::<rusqlite::Result<_>>()?;
            for old in &olds {
                self.drop_index(old)?;
                let sql = "DELETE FROM entries WHERE position = ?1";
                self.transaction.prepare_cached(sql)?.execute([old.0])?;
            }
            Ok(olds.len())
        };
        forget().map_err(self.failed())
    }

    fn embed(
        &self,
        id: &str,
        collection: &Collection,
        content: &str,
        embedder: &str,
        vector: &[f32],
    ) -> Result<usize, MemoryError> {
        self.check_length(id, embedder, vector.len())?;
        let find = || {
            let sql =
                format!("SELECT {COLUMNS}, {SOUND} FROM entries e WHERE e.collection = ?1 AND e.id = ?2");
            let mut statement = self.transaction.prepare_cached(&sql)?;
            statement.query_row([collection.as_str(), id], read).optional()
        };
        let Some(Ok(mut entry)) = find().map_err(self.failed())? else { return Ok(0) };
        if entry.content != content {
            return Ok(0);
        }
        let position = i64::try_from(entry.position).unwrap_or(i64::MAX);
        entry.embedder = Some(embedder.to_owned());
        let texts = Texts::of(&entry).map_err(failed("write to", self.database.path()))?;
        let write = || {
            self.drop_vector(position)?;
            let sql = "UPDATE entries SET embedder = ?2, metadata = ?3, body = ?4, checksum = ?5, \
                       columns_checksum = sum_of(kind, trust, key, session, timestamp, valid_from, valid_to, ?3) \
                       WHERE position = ?1";
            let row = params![position, embedder, texts.metadata, texts.body, texts.checksum];
            self.transaction.prepare_cached(sql)?.execute(row)?;
            self.put_vector(position, collection, embedder, vector)
        };
        write().map_err(self.failed())?;
        Ok(1)
    }

    fn mark_used(&self, id: &str, at: Timestamp) -> Result<usize, MemoryError> {
        let mut filter = MemoryFilter::all();
        filter.ids = vec![id.to_owned()];
        let Conditions { sql, values } = Conditions::of(self.scope, &filter, Damage::Compared)?;
        let sql = format!("UPDATE entries AS e SET used = max(coalesce(used, 0), ?) WHERE {sql}");
        let values = [Value::Integer(number(at))].into_iter().chain(values);
        let update = || self.transaction.prepare_cached(&sql)?.execute(params_from_iter(values));
        update().map_err(self.failed())
    }

    fn failed(&self) -> impl FnOnce(rusqlite::Error) -> MemoryError {
        failed("write to", self.database.path())
    }
}

#[cfg(test)]
mod tests {
    use archon_types::{Listing, MemoryOrder, Timestamp};

    use super::*;
    use crate::sqlite_memory::query::list;

    // spec: M-20
    #[test]
    fn a_full_disk_undoes_the_change_that_met_it_and_the_rest_is_usable() {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("db")).unwrap();
        let root = Collection::root();
        let put = |id: &str, bytes: usize| {
            MemoryChange::put(MemoryEntry::new(id, "word ".repeat(bytes / 5), Timestamp::from_millis(1)))
        };
        let ids = || {
            let listing = Listing::new(MemoryFilter::all(), MemoryOrder::First, 99);
            let page = list(&database, &root, &listing).unwrap();
            assert_eq!(page.damaged, []);
            page.entries.into_iter().map(|entry| entry.id).collect::<Vec<_>>()
        };
        apply(&database, &root, vec![put("before", 100)]).unwrap();
        database.limit(60);
        let error = apply(&database, &root, vec![put("small", 100), put("large", 900_000)]).unwrap_err();
        let text = format!("{error}");
        assert!(matches!(error, MemoryError::Storage { action: "write to", .. }), "{text}");
        assert!(text.contains("full"), "{text}");
        assert_eq!(ids(), ["before"], "all of the batch or nothing");
        apply(&database, &root, vec![put("after", 100), MemoryChange::forget("before")]).unwrap();
        assert_eq!(ids(), ["after"]);
    }
}
