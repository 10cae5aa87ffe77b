//! Lists runs: the first records have the session and tenant of a run, the last one has its status.

use std::sync::Arc;

use archon_types::{JournalError, Record, RecordBody, RunFilter, RunHead, RunId, RunStatus, Timestamp};
use rusqlite::{Connection, Row, params_from_iter};

use super::{
    database::Database,
    error::{failed, unread},
    log::{StoredRun, places, seq, take_line},
};
use crate::{
    listing::{Note, page, under_lock},
    records::{from_line, problem},
    rules::corrupt,
};

/// Selects the first records of a run, which include the prompt.
const FIRST: &str = "SELECT place, line FROM records WHERE place >= ?1 AND place < ?2 ORDER BY place LIMIT 8";
const LAST: &str =
    "SELECT place, line FROM records WHERE place >= ?1 AND place < ?2 ORDER BY place DESC LIMIT 1";

/// Lists the heads of the runs that a filter admits, last written first.
pub(super) fn list(database: &Database, filter: &RunFilter) -> Result<Vec<RunHead>, JournalError> {
    let failed = |e| failed("list", database.path())(e);
    let heads = database.read(|connection| {
        let (sql, values) = query(filter);
        let mut select = connection.prepare_cached(&sql).map_err(failed)?;
        let rows = select.query_map(params_from_iter(values), note).map_err(failed)?;
        let notes = rows.map(|row| row.map(|note| (note.clone(), note.at)).map_err(failed));
        page(filter, notes, |run| head(connection, database, run))
    })?;
    // The snapshot of this transaction may be older than the state of the locks, so interrupted runs are
    // read again.
    let looked_at_again = |head: RunHead| match head.status {
        RunStatus::Interrupted => match of(database, &head.run_id) {
            Err(JournalError::UnknownRun { .. }) => None,
            again => Some(again),
        },
        _ => Some(Ok(head)),
    };
    let mut heads = heads.into_iter().filter_map(looked_at_again).collect::<Result<Vec<_>, _>>()?;
    heads.retain(|head| filter.admits(head));
    Ok(heads)
}

/// Returns the head of one run.
pub(super) fn of(database: &Database, run: &RunId) -> Result<RunHead, JournalError> {
    let read = || database.read(|connection| StoredRun::require(connection, database, run)?.head());
    under_lock(read, || database.is_locked(run))
}

/// Builds the query for the notes of runs that may be in a list, newest first. Only the condition that the
/// fewest runs meet uses an index. In the other conditions, a plus before the column keeps SQLite from using
/// an index, since SQLite cannot know that all runs may belong to one tenant.
fn query(filter: &RunFilter) -> (String, Vec<String>) {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut equal = |column: &str, value: &str| {
        values.push(value.to_owned());
        let plus = if values.len() == 1 { "" } else { "+" };
        conditions.push(format!("{plus}{column} = ?{}", values.len()));
    };
    if let Some(session) = &filter.session {
        equal("session", session.as_str());
    }
    // The status of a run that is neither suspended nor ended is known from the log only.
    let rests = match filter.status[..] {
        [status] if status.has_ended() || status == RunStatus::Suspended => Some(status),
        _ => None,
    };
    let few_rest = rests == Some(RunStatus::Suspended);
    if let Some(status) = rests.filter(|_| few_rest) {
        equal("rests", status.as_str());
    }
    if let Some(tenant) = &filter.tenant {
        equal("tenant", tenant.as_str());
    }
    if let Some(status) = rests.filter(|_| !few_rest) {
        equal("rests", status.as_str());
    }
    if filter.top_level {
        let plus = if conditions.is_empty() { "" } else { "+" };
        conditions.push(format!("{plus}called_by IS NULL"));
    }
    let conditions = if conditions.is_empty() { "TRUE".to_owned() } else { conditions.join(" AND ") };
    let select = "SELECT run, noted, rests, called_by IS NULL FROM runs";
    (format!("{select} WHERE {conditions} ORDER BY noted DESC, run DESC"), values)
}

fn note(row: &Row<'_>) -> rusqlite::Result<Note> {
    let rests = row.get::<_, Option<String>>(2)?;
    Ok(Note {
        run: RunId::new(row.get::<_, String>(0)?),
        at: Timestamp::from_millis(u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default()),
        rests: rests.and_then(|name| RunStatus::of_name(&name)),
        top_level: row.get(3)?,
    })
}

/// Returns the head of a run for a list.
fn head(connection: &Connection, database: &Database, run: &RunId) -> Result<Option<RunHead>, JournalError> {
    let Some(stored) = StoredRun::find(connection, database, run)? else { return Ok(None) };
    let head = stored.head().unwrap_or_else(|e| RunHead::unreadable(run.clone(), problem(&e)));
    let is_held = head.status != RunStatus::Running || database.is_locked(run);
    Ok(Some(if is_held { head } else { head.not_worked_on() }))
}

impl StoredRun<'_> {
    /// Reads the head from the log.
    fn head(&self) -> Result<RunHead, JournalError> {
        let run = self.run.clone();
        let error = match self.ends() {
            Ok(records) => return Ok(RunHead::of(run, &records)),
            Err(error @ JournalError::Corrupt { .. }) => error,
            Err(error) => return Err(error),
        };
        Ok(match self.first() {
            Ok(record) => RunHead::of(run, &[Arc::new(record)]).damaged(problem(&error)),
            Err(_) => RunHead::unreadable(run, problem(&error)),
        })
    }

    /// Returns the first record.
    pub(super) fn first(&self) -> Result<Record, JournalError> {
        self.some(FIRST, |_| true).map(|mut records| records.swap_remove(0))
    }

    /// Returns the records up to the prompt, and the last record.
    fn ends(&self) -> Result<Vec<Arc<Record>>, JournalError> {
        let mut records =
            self.some(FIRST, |record| matches!(record.body, RecordBody::MessageAdded { .. }))?;
        records.extend(self.some(LAST, |_| true)?);
        Ok(records.into_iter().map(Arc::new).collect())
    }

    /// Returns the records that a query finds, up to and including the first one for which `enough` is true;
    /// at least one record.
    fn some(&self, query: &str, enough: impl Fn(&Record) -> bool) -> Result<Vec<Record>, JournalError> {
        let Self { connection, database, run, id } = *self;
        let failed = || failed("read", database.path());
        let (mut records, mut line, places) = (Vec::new(), Vec::new(), places(id));
        let mut next = places.start;
        let mut select = connection.prepare_cached(query).map_err(failed())?;
        let mut rows = select.query([places.start, places.end]).map_err(failed())?;
        loop {
            let read = match rows.next() {
                Ok(None) => break,
                Ok(Some(row)) => row.get(0).and_then(|place| {
                    next = place;
                    take_line(row, 1, &mut line)
                }),
                Err(e) => Err(e),
            };
            #[cfg(test)]
            crate::files::reads::add();
            read.map_err(unread(database.path(), run, seq(next)))?;
            records.push(from_line(run, seq(next), &mut line, self)?);
            if records.last().is_some_and(&enough) {
                break;
            }
            next += 1;
        }
        match records.is_empty() {
            true => Err(corrupt(run, 0, "its records are missing")),
            false => Ok(records),
        }
    }
}

#[cfg(test)]
mod tests {
    use archon_types::{Durability, OpenMode, SessionId, TenantId};
    use serde_json::json;

    use super::*;
    use crate::files::reads;

    /// Writes `count` runs of as many sessions and tenants, ten minutes apart. Three of them are suspended.
    async fn history(database: &Arc<Database>, count: u64) {
        for n in 0..count {
            let id = RunId::new(format!("r{n}"));
            let at = 1_767_225_600_000 + n * 600_000;
            let end = if n % (count / 3) == 1 { "suspended" } else { "hint_added" };
            let bodies = [
                json!({
                    "seq": 0, "at": at, "type": "run_started", "format": 2, "kind": "loop", "run": id, "session": format!("s{n}"),
                    "agent": "a", "loop_id": "l", "tenant": format!("t{n}"), "origin": {"kind": "prompt"},
                    "first_trigger": "user", "config": {},
                }),
                json!({"seq": 1, "at": at, "type": end, "text": "x", "waiting": []}),
            ];
            let records = bodies.map(|body| Arc::new(serde_json::from_value(body).unwrap()));
            let open = super::super::writer::open(database, &id, OpenMode::Create, &mut || false);
            open.unwrap().writer.append(&records, Durability::Buffered).await.unwrap();
        }
    }

    fn filters() -> Vec<RunFilter> {
        let session = RunFilter::of_session(SessionId::new("s5"));
        vec![
            session.clone(),
            session.clone().top_level().limit(1),
            session.tenant(TenantId::new("t5")).limit(1),
            RunFilter::all().tenant(TenantId::new("t5")),
            RunFilter::all().status([RunStatus::Suspended]).top_level(),
            RunFilter::all().status([RunStatus::Suspended]).tenant(TenantId::new("t1")),
            RunFilter::all().limit(20),
            RunFilter::all().top_level().limit(1),
        ]
    }

    /// Returns the number of records that a list reads, and of runs that it finds.
    fn cost(database: &Database, filter: &RunFilter) -> (usize, usize) {
        let before = reads::count();
        let found = list(database, filter).unwrap().len();
        (reads::count() - before, found)
    }

    #[tokio::test]
    async fn list_with_a_filter_reads_a_constant_number_of_records() {
        let mut costs = Vec::new();
        for count in [30, 4000] {
            let dir = tempfile::tempdir().unwrap();
            let database = Arc::new(Database::open(&dir.path().join("db")).unwrap());
            history(&database, count).await;
            costs.push(filters().iter().map(|filter| cost(&database, filter)).collect::<Vec<_>>());
        }
        for ((few, many), filter) in costs[0].iter().zip(&costs[1]).zip(filters()) {
            assert!(
                many.0 > 0 && many.0 * 10 <= few.0 * 12 && few.1 == many.1,
                "{few:?}, {many:?}: {filter:?}"
            );
        }
    }

    /// The query neither scans all rows nor sorts those found.
    #[test]
    fn query_of_a_list_is_answered_in_order_by_an_index() {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(&dir.path().join("db")).unwrap();
        for filter in filters() {
            let (sql, values) = query(&filter);
            let plan = database.read(|connection| {
                let mut select = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let lines =
                    select.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
                Ok(lines.map(Result::unwrap).collect::<Vec<_>>().join("\n"))
            });
            let plan = plan.unwrap();
            assert!(plan.contains("USING INDEX") || plan.contains("COVERING INDEX"), "{sql}: {plan}");
            assert!(!plan.contains("TEMP B-TREE"), "{sql}: {plan}");
            // All runs may belong to one tenant, so the tenant must not select the index.
            let narrow = match filter.session {
                Some(_) => "runs_of_sessions",
                None if !filter.status.is_empty() => "runs_that_rest",
                None => "",
            };
            assert!(plan.contains(narrow), "{sql}: {plan}");
            assert!(filter.limit.is_some() || plan.starts_with("SEARCH"), "{sql}: {plan}");
        }
    }
}
