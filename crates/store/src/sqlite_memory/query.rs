//! Builds SQL conditions, and lists entries.

use std::path::Path;

use archon_types::{
    Collection, Listing, MemoryError, MemoryFilter, MemoryOrder, MemoryPage, Trust, Validity,
};
use rusqlite::{Connection, OptionalExtension, params, params_from_iter, types::Value};

use super::{
    damage::failed,
    database::Database,
    row::{COLUMNS, SOUND, read, vector_in},
};
use crate::memories::{Damage, number, past_all_of, range};

/// Conditions on `entries e`, joined by AND, with the values of their parameters.
pub(super) struct Conditions {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    /// Builds the conditions of a filter. Every query begins with the condition on the collection.
    pub(super) fn of(scope: &Collection, filter: &MemoryFilter, damage: Damage) -> Result<Self, MemoryError> {
        let mut conditions = Self { sql: "TRUE".to_owned(), values: Vec::new() };
        let range = range(scope, filter)?;
        match range.to {
            // With one collection, an index may already have the order.
            Some(to) if to == range.from => conditions.and("e.collection = ?", [Value::Text(range.name)]),
            Some(to) => {
                let sql = "(e.collection = ? OR (e.collection >= ? AND e.collection < ?))";
                conditions.and(sql, [range.name, range.from, to].map(Value::Text));
            }
            None => {}
        }
        conditions.add_indexed(filter);
        let indexed = std::mem::replace(&mut conditions.sql, "TRUE".to_owned());
        conditions.add_compared(filter);
        let compared = std::mem::replace(&mut conditions.sql, indexed);
        if compared != "TRUE" {
            conditions.and(&damage.or_admitted(compared, SOUND), []);
        }
        Ok(conditions)
    }

    fn and(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.values.extend(values);
    }

    fn one_of(&mut self, column: &str, values: Vec<Value>) {
        if !values.is_empty() {
            let marks = vec!["?"; values.len()].join(", ");
            self.and(&format!("{column} IN ({marks})"), values);
        }
    }

    /// Adds the conditions for which indexes exist, and the one on the vector, whose damage has its own
    /// check.
    fn add_indexed(&mut self, filter: &MemoryFilter) {
        let text = |text: &str| Value::Text(text.to_owned());
        self.one_of("e.id", filter.ids.iter().map(|id| text(id)).collect());
        if !filter.without.is_empty() {
            // One parameter, however many ids there are.
            let ids = serde_json::to_string(&filter.without).unwrap_or_default();
            self.and("e.id NOT IN (SELECT value FROM json_each(?))", [Value::Text(ids)]);
        }
        if let Some(key) = &filter.key {
            self.and("e.key = ?", [text(key)]);
        }
        if let Some(prefix) = &filter.key_prefix {
            // A range, so that the index of keys can be used.
            self.and("e.key >= ?", [text(prefix)]);
            if let Some(past) = past_all_of(prefix) {
                self.and("e.key < ?", [Value::Text(past)]);
            }
        }
        if let Some(session) = session_of(filter) {
            self.and("e.session = ?", [text(session)]);
        }
        if let Some(embedder) = &filter.not_embedded_by {
            self.and(&format!("(e.embedder IS NOT ? OR NOT {WHOLE})"), [text(embedder)]);
        }
    }

    fn add_compared(&mut self, filter: &MemoryFilter) {
        let kinds = filter.kinds.iter().map(|kind| Value::Text(kind.as_str().to_owned()));
        self.one_of("e.kind", kinds.collect());
        let rest = filter.metadata.iter().any(|(name, value)| name != "session" || !value.is_string());
        if let Some(wanted) = rest.then(|| serde_json::to_string(&filter.metadata).unwrap_or_default()) {
            self.and("has_all(e.metadata, ?)", [Value::Text(wanted)]);
        }
        if filter.trust > Trust::Untrusted {
            self.and("e.trust >= ?", [Value::Integer(filter.trust as i64)]);
        }
        if let Some(from) = filter.from {
            self.and("e.timestamp >= ?", [Value::Integer(number(from))]);
        }
        if let Some(until) = filter.until {
            self.and("e.timestamp < ?", [Value::Integer(number(until))]);
        }
        match filter.validity {
            Validity::Any => {}
            Validity::At(time) => {
                let sql =
                    "(e.valid_from IS NULL OR e.valid_from <= ?) AND (e.valid_to IS NULL OR ? < e.valid_to)";
                self.and(sql, [Value::Integer(number(time)), Value::Integer(number(time))]);
            }
            _ => self.and("e.valid_to IS NULL", []),
        }
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
    let (sql, values) = statement(scope, listing, limit.saturating_add(1))?;
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

/// Returns the SQL of a listing of at most `rows` rows, with the values of its parameters.
fn statement(scope: &Collection, listing: &Listing, rows: i64) -> Result<(String, Vec<Value>), MemoryError> {
    let mut conditions = Conditions::of(scope, &listing.filter, Damage::Admitted)?;
    let (past, order) = match listing.order {
        MemoryOrder::First => ("e.position > ?", "ASC"),
        MemoryOrder::Latest => ("e.position < ?", "DESC"),
    };
    if let Some(after) = listing.after {
        conditions.and(past, [Value::Integer(i64::try_from(after).unwrap_or(i64::MAX))]);
    }
    // The next page starts where the last one ended, in the order of positions. With the index of
    // collections, SQLite would sort all entries for each page.
    let by_index = listing.after.is_none() || is_narrow(&listing.filter);
    let entries = if by_index { "entries e" } else { "entries e NOT INDEXED" };
    let Conditions { sql, mut values } = conditions;
    values.push(Value::Integer(rows));
    let sql =
        format!("SELECT {COLUMNS}, {SOUND} FROM {entries} WHERE {sql} ORDER BY e.position {order} LIMIT ?");
    Ok((sql, values))
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
    use archon_types::MemoryKind;
    use rusqlite::StatementStatus;

    use super::*;

    // spec: M-18
    #[test]
    fn sqlite_memory_next_page_starts_after_the_last_row() {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("memory.db")).unwrap();
        let check = |filter: MemoryFilter, order: MemoryOrder, limit: usize, expected: &str| {
            let listing = Listing::new(filter, order, limit).after(7);
            let rows = i64::try_from(limit).unwrap();
            let (sql, values) = statement(&Collection::new("user:x").unwrap(), &listing, rows).unwrap();
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
