//! Removes a run that has no writer and that no other run needs.

use archon_types::{Durability, JournalError, Origin, RunId};
use rusqlite::{Connection, Transaction};

use super::{
    database::Database,
    error::failed,
    heads, inbox,
    log::{self, places},
};
use crate::{lock::Wait, rules};

pub(super) fn delete(database: &Database, run: &RunId, wait: &mut Wait<'_>) -> Result<(), JournalError> {
    let _lock = database.lock(run, wait)?;
    database.write(Durability::Synced, |transaction| {
        let id = log::id(transaction, database, run)?;
        let id = id.ok_or_else(|| JournalError::UnknownRun { run: run.clone() })?;
        rules::check_not_needed(run, needed_by(transaction, database, run, id)?)?;
        inbox::delete(transaction, database, run, id)?;
        remove(transaction, id).map_err(failed("write to", database.path()))
    })
}

fn needed_by(
    transaction: &Transaction<'_>,
    database: &Database,
    run: &RunId,
    id: i64,
) -> Result<Vec<RunId>, JournalError> {
    let mut needed_by = continued_by(transaction, run).map_err(failed("read", database.path()))?;
    let first = heads::first(transaction, database, run, id).ok();
    if let Some(Origin::CalledBy { run, call }) = first.as_ref().and_then(rules::origin) {
        match log::read(database, run).and_then(|log| log.whole()) {
            Ok(caller) if rules::waits_for(&caller, *call) => needed_by.push(run.clone()),
            Ok(_) | Err(JournalError::UnknownRun { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(needed_by)
}

fn continued_by(connection: &Connection, run: &RunId) -> rusqlite::Result<Vec<RunId>> {
    let mut select = connection.prepare("SELECT run FROM runs WHERE continues = ?1")?;
    let runs = select.query_map([run.as_str()], |row| row.get::<_, String>(0).map(RunId::new))?;
    runs.collect()
}

fn remove(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    let places = places(id);
    transaction
        .execute("DELETE FROM records WHERE place >= ?1 AND place < ?2", [places.start, places.end])?;
    transaction.execute("DELETE FROM blobs WHERE run = ?1", [id])?;
    transaction.execute("DELETE FROM runs WHERE id = ?1", [id])?;
    Ok(())
}
