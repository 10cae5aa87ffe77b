//! Builds SQL conditions, and lists entries.

use std::path::Path;

use archon_types::{Collection, Listing, MemoryError, MemoryFilter, MemoryPage, Trust};
use rusqlite::{Connection, OptionalExtension, params, params_from_iter, types::Value};

use super::{
    damage::failed,
    database::Database,
    row::{read, vector_in},
};
use crate::memories::{self, COLUMNS, Damage, Dialect};

/// The SQL dialect of SQLite.
pub(super) struct Sqlite;

pub(super) type Conditions = memories::Conditions<Sqlite>;

pub(super) const SOUND: &str = "e.columns_checksum IS sum_of(e.kind, e.trust, e.key, e.session, e.timestamp, \
                                e.valid_from, e.valid_to, e.metadata)";

impl Dialect for Sqlite {
    type Value = Value;
    const SOUND: &'static str = SOUND;

    /// Parameters have no numbers, so that the conditions can stand behind other parameters.
    fn placeholder(_: usize) -> String {
        "?".to_owned()
    }

    fn add_indexed(conditions: &mut Conditions, filter: &MemoryFilter) {
        add_one_of(conditions, "e.id", filter.ids.iter().map(String::as_str));
        if !filter.without.is_empty() {
            // One parameter, however many ids there are.
            let ids = conditions.value(serde_json::to_string(&filter.without).unwrap_or_default());
            conditions.and(&format!("e.id NOT IN (SELECT value FROM json_each({ids}))"));
        }
        if let Some(session) = session_of(filter) {
            let session = conditions.value(session.to_owned());
            conditions.and(&format!("e.session = {session}"));
        }
        if let Some(embedder) = &filter.not_embedded_by {
            let embedder = conditions.value(embedder.clone());
            conditions.and(&format!("(e.embedder IS NOT {embedder} OR NOT {WHOLE})"));
        }
    }

    fn add_compared(conditions: &mut Conditions, filter: &MemoryFilter) {
        add_one_of(conditions, "e.kind", filter.kinds.iter().map(|kind| kind.as_str()));
        if filter.metadata.iter().any(|(name, value)| name != "session" || !value.is_string()) {
            let wanted = conditions.value(serde_json::to_string(&filter.metadata).unwrap_or_default());
            conditions.and(&format!("has_all(e.metadata, {wanted})"));
        }
        if filter.trust > Trust::Untrusted {
            let trust = conditions.value(filter.trust as i64);
            conditions.and(&format!("e.trust >= {trust}"));
        }
    }
}

fn add_one_of<'a>(conditions: &mut Conditions, column: &str, values: impl Iterator<Item = &'a str>) {
    let marks: Vec<String> = values.map(|value| conditions.value(value.to_owned())).collect();
    if !marks.is_empty() {
        conditions.and(&format!("{column} IN ({})", marks.join(", ")));
    }
}

pub(super) fn list(
    database: &Database,
    scope: &Collection,
    listing: &Listing,
) -> Result<MemoryPage, MemoryError> {
    database.read(|connection| list_in(connection, scope, listing, database.path()))
}

/// Lists entries within a transaction on the database at `place`.
pub(super) fn list_in(
    connection: &Connection,
    scope: &Collection,
    listing: &Listing,
    place: &Path,
) -> Result<MemoryPage, MemoryError> {
    let mut page = list_texts_in(connection, scope, listing, place)?;
    for entry in page.entries.iter_mut().filter(|entry| entry.embedder.is_some()) {
        let embedder = entry.embedder.as_deref().unwrap_or_default();
        entry.embedding = vector_at(connection, entry.position, embedder).map_err(failed("read", place))?;
        // Without its embedder, the entry counts as not embedded, so a damaged vector is made again.
        if entry.embedding.is_none() {
            entry.embedder = None;
        }
    }
    Ok(page)
}

/// Lists entries without their vectors.
pub(super) fn list_texts_in(
    connection: &Connection,
    scope: &Collection,
    listing: &Listing,
    place: &Path,
) -> Result<MemoryPage, MemoryError> {
    let limit = i64::try_from(listing.limit).unwrap_or(i64::MAX);
    let (sql, values) = statement(scope, listing)?;
    let rows = || {
        let mut page = MemoryPage::default();
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let (mut count, mut last) = (0, None);
        while let Some(row) = rows.next()? {
            if count == limit {
                page.next = last;
                break;
            }
            count += 1;
            last = row.get::<_, i64>(0)?.try_into().ok();
            match read(row)? {
                Ok(entry) => page.entries.push(entry),
                Err(damaged) => page.damaged.push(damaged),
            }
        }
        Ok(page)
    };
    rows().map_err(failed::<rusqlite::Error>("read", place))
}

/// Returns the SQL of a listing, with the values of its parameters.
fn statement(scope: &Collection, listing: &Listing) -> Result<(String, Vec<Value>), MemoryError> {
    let mut conditions = Conditions::of(scope, &listing.filter, Damage::Admitted)?;
    let end = conditions.end_of_page(listing);
    // The next page starts where the last one ended, in the order of positions. With the index of
    // collections, SQLite would sort all entries for each page.
    let by_index = listing.after.is_none() || is_narrow(&listing.filter);
    let entries = if by_index { "entries e" } else { "entries e NOT INDEXED" };
    Ok((format!("SELECT {COLUMNS}, {SOUND} FROM {entries} {end}"), conditions.values))
}

/// Returns true if the filter has a condition with its own index, so that few entries are read: a key, a
/// session or ids, and not only the collection.
fn is_narrow(filter: &MemoryFilter) -> bool {
    let key = filter.key.is_some() || filter.key_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty());
    key || session_of(filter).is_some() || !filter.ids.is_empty()
}

/// Returns the session in a filter if it is a string: entries have the session in a column.
fn session_of(filter: &MemoryFilter) -> Option<&str> {
    filter.metadata.get("session")?.as_str()
}

/// The condition that the vector of `entries e` and its copy for the scan are undamaged. A damaged vector is
/// computed again, like a missing one.
const WHOLE: &str = "EXISTS (SELECT 1 FROM vectors v JOIN scanned s USING (position) JOIN embedders d \
                     ON d.id = e.embedder WHERE v.position = e.position AND s.embedder = e.embedder \
                     AND s.collection = e.collection AND s.scale BETWEEN 0 AND 1 \
                     AND length(s.bytes) = d.dimensions AND typeof(s.bytes) = 'blob' \
                     AND is_whole(v.vector, v.checksum, d.dimensions))";

const VECTOR: &str = "SELECT v.vector, v.checksum, d.dimensions FROM entries e JOIN vectors v USING (position) \
                      JOIN embedders d ON d.id = e.embedder WHERE e.position = ?1 AND e.embedder = ?2";

/// Returns the exact vector of an entry by this embedder; `None` if it is missing or damaged. The entry may
/// differ from the one that the scan found, if the copy in memory is damaged or newer than the transaction.
pub(super) fn vector_at(
    connection: &Connection,
    position: u64,
    embedder: &str,
) -> rusqlite::Result<Option<Vec<f32>>> {
    let mut statement = connection.prepare_cached(VECTOR)?;
    let position = i64::try_from(position).unwrap_or(i64::MAX);
    let read = |row: &rusqlite::Row<'_>| Ok(vector_in([row.get_ref(0)?, row.get_ref(1)?, row.get_ref(2)?]));
    Ok(statement.query_row(params![position, embedder], read).optional()?.flatten())
}

#[cfg(test)]
mod tests {
    use archon_types::{MemoryKind, MemoryOrder};
    use rusqlite::StatementStatus;

    use super::*;

    // spec: M-18
    #[test]
    fn sqlite_memory_next_page_starts_after_the_last_row() {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("memory.db")).unwrap();
        let check = |filter: MemoryFilter, order: MemoryOrder, limit: usize, expected: &str| {
            let listing = Listing::new(filter, order, limit).after(7);
            let (sql, values) = statement(&Collection::new("user:x").unwrap(), &listing).unwrap();
            let plan = |connection: &Connection| {
                let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let steps =
                    statement.query_map(params_from_iter(&values), |row| row.get::<_, String>(3)).unwrap();
                Ok(steps.collect::<Result<Vec<_>, _>>().unwrap().join("; "))
            };
            let plan = database.read(plan).unwrap();
            assert!(plan.contains(expected) && !plan.contains("TEMP B-TREE"), "{plan}");
        };
        let mut lacking = MemoryFilter::all().of(&[MemoryKind::Turn, MemoryKind::Note]);
        lacking.not_embedded_by = Some("e".to_owned());
        for order in [MemoryOrder::First, MemoryOrder::Latest] {
            for limit in [1, 64, 500, 1_000] {
                check(MemoryFilter::all(), order, limit, "USING INTEGER PRIMARY KEY (rowid");
                check(lacking.clone(), order, limit, "USING INTEGER PRIMARY KEY (rowid");
                let mut session = MemoryFilter::all().exactly(&Collection::new("user:x").unwrap());
                session.metadata.insert("session".into(), "s".into());
                check(session, order, limit, "entries_by_session (session=? AND collection=? AND position");
            }
        }
    }

    // spec: M-18
    #[test]
    fn sqlite_memory_statements_are_prepared_once() {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("memory.db")).unwrap();
        let ask = |connection: &Connection| {
            for position in 7..10 {
                assert_eq!(vector_at(connection, position, "e").unwrap(), None);
            }
            Ok(connection.prepare_cached(VECTOR).unwrap().get_status(StatementStatus::RePrepare))
        };
        assert_eq!(database.read(ask).unwrap(), 0);
    }
}
