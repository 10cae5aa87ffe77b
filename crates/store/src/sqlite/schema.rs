//! Creates the tables of the journal's database, and upgrades them when an older database is opened.
//! Databases from before version [`FIRST`] are refused.

use std::path::Path;

use archon_types::JournalError;
use rusqlite::{Connection, TransactionBehavior};

use super::error::failed;
use crate::{
    database_file::{self, foreign_database, use_write_ahead_log},
    files::storage,
};

/// The oldest version that can be opened; its statements create all tables.
const FIRST: u32 = 4;

/// Statement `n` upgrades to version `FIRST + n`. A released statement never changes.
const MIGRATIONS: &[&str] = &[include_str!("v4.sql")];

/// `ARCH`, the application id in the header of this project's databases, so that another program's database
/// is not opened.
const APPLICATION: i32 = i32::from_be_bytes(*b"ARCH");

/// Creates or upgrades the tables. The caller ensures that no other process opens the database at the same
/// time.
pub(super) fn prepare(connection: &mut Connection, place: &Path) -> Result<(), JournalError> {
    migrate(connection, place, MIGRATIONS)
}

fn migrate(connection: &mut Connection, place: &Path, migrations: &[&str]) -> Result<(), JournalError> {
    let supported = FIRST - 1 + u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    let found = version(connection, place)?;
    if found > supported || (1..FIRST).contains(&found) {
        return Err(JournalError::UnsupportedStore { place: place.display().to_string(), found, supported });
    }
    use_write_ahead_log(connection).map_err(failed("open", place))?.map_err(storage("open", place))?;
    if found == supported {
        return Ok(());
    }
    let upgrade = |connection: &mut Connection| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        database_file::upgrade(&transaction, APPLICATION, found, FIRST, migrations)?;
        transaction.commit()?;
        // Moves the upgrade from the write-ahead log into the database, so that only records depend on the
        // log.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    };
    upgrade(connection).map_err(failed("upgrade", place))
}

/// Returns the version of the tables; 0 for a file without tables.
fn version(connection: &Connection, place: &Path) -> Result<u32, JournalError> {
    let found = database_file::version(connection, APPLICATION).map_err(failed("open", place))?;
    found.ok_or_else(|| storage("open", place)(foreign_database()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(dir: &tempfile::TempDir) -> Connection {
        Connection::open(dir.path().join("db")).unwrap()
    }

    fn tables(connection: &Connection) -> Vec<String> {
        let mut all = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
        all.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn a_store_is_upgraded_step_by_step_and_only_once() {
        let (dir, place) = (tempfile::tempdir().unwrap(), Path::new("db"));
        let (first, second) = ("CREATE TABLE a (x)", "CREATE TABLE b (x); INSERT INTO b SELECT x FROM a");
        migrate(&mut open(&dir), place, &[first]).unwrap();
        open(&dir).execute("INSERT INTO a VALUES (7)", []).unwrap();
        for _ in 0..2 {
            migrate(&mut open(&dir), place, &[first, second]).unwrap();
        }
        assert_eq!(tables(&open(&dir)), ["schema_version", "a", "b"]);
        let sum: i32 = open(&dir).query_row("SELECT sum(x) FROM b", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 7);
        assert_eq!(version(&open(&dir), place).unwrap(), FIRST + 1);
        let e = migrate(&mut open(&dir), place, &[first]).unwrap_err();
        assert!(
            matches!(e, JournalError::UnsupportedStore { found, supported: FIRST, .. } if found == FIRST + 1),
            "{e}"
        );
    }

    #[test]
    fn an_upgrade_that_fails_changes_nothing() {
        let (dir, place) = (tempfile::tempdir().unwrap(), Path::new("db"));
        migrate(&mut open(&dir), place, &["CREATE TABLE a (x)"]).unwrap();
        let broken = ["CREATE TABLE a (x)", "CREATE TABLE b (x)", "CREATE NONSENSE"];
        let e = migrate(&mut open(&dir), place, &broken).unwrap_err();
        assert!(matches!(e, JournalError::Storage { action: "upgrade", .. }), "{e}");
        assert_eq!(tables(&open(&dir)), ["schema_version", "a"]);
        assert_eq!(version(&open(&dir), place).unwrap(), FIRST);
    }
}
