//! Removes a run that has no writer and that no other run needs.

use archon_types::{Durability, JournalError, Origin, RunId};
use rusqlite::{Connection, Transaction};

use super::{
    database::Database,
    error::failed,
    inbox,
    log::{self, StoredRun, places},
};
use crate::{lock::Wait, rules};

pub(super) fn delete(database: &Database, run: &RunId, wait: &mut Wait<'_>) -> Result<(), JournalError> {
    let _lock = database.lock(run, wait)?;
    database.write(Durability::Synced, |transaction| {
        let stored = StoredRun::require(transaction, database, run)?;
        rules::check_not_needed(run, needed_by(&stored)?)?;
        inbox::delete(&stored)?;
        remove(transaction, stored.id).map_err(failed("write to", database.path()))
    })
}

fn needed_by(stored: &StoredRun<'_>) -> Result<Vec<RunId>, JournalError> {
    let StoredRun { connection, database, run, .. } = *stored;
    let mut needed_by = continued_by(connection, run).map_err(failed("read", database.path()))?;
    let first = stored.first().ok();
    if let Some(Origin::CalledBy { run, call }) = first.as_ref().and_then(rules::origin)
        && rules::is_awaited(log::read(database, run), *call)?
    {
        needed_by.push(run.clone());
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
