//! Creates the tables of the memories' database, and upgrades them when an older database is opened.

use std::path::Path;

use archon_types::MemoryError;
use rusqlite::{Connection, TransactionBehavior};

use super::{
    damage::failed,
    interrupted::{is_interrupted, is_ours_or_empty},
};
use crate::database_file::{self, foreign_database, use_write_ahead_log};

/// Statement `n` upgrades from version `n` to `n + 1`. A released statement never changes.
const MIGRATIONS: &[&str] = &[include_str!("v1.sql"), include_str!("v2.sql")];

/// `ARCM`, the application id in the header of this project's memory databases, so that another program's
/// database is not opened.
const APPLICATION: i32 = i32::from_be_bytes(*b"ARCM");

/// Creates or upgrades the tables.
pub(super) fn prepare(connection: &mut Connection, place: &Path) -> Result<(), MemoryError> {
    migrate(connection, place, MIGRATIONS)
}

/// Returns an error for a database of another program or of a newer version. The check only reads; after an
/// interrupted change it checks only the application id.
pub(super) fn check_owner(connection: &Connection, place: &Path) -> Result<(), MemoryError> {
    match connection.query_row("PRAGMA schema_version", [], |_| Ok(())) {
        Err(error) if is_interrupted(&error) => {
            match is_ours_or_empty(place, APPLICATION).map_err(failed("open", place))? {
                true => Ok(()),
                false => Err(failed("open", place)(foreign_database())),
            }
        }
        _ => {
            // In one transaction, since another process may be creating the tables.
            let moment = connection.unchecked_transaction().map_err(failed("open", place))?;
            known_version(&moment, place, MIGRATIONS).map(drop)
        }
    }
}

fn known_version(connection: &Connection, place: &Path, migrations: &[&str]) -> Result<u32, MemoryError> {
    let supported = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    match version(connection, place)? {
        found if found > supported => {
            Err(MemoryError::FutureStore { place: place.display().to_string(), found, supported })
        }
        found => Ok(found),
    }
}

fn migrate(connection: &mut Connection, place: &Path, migrations: &[&str]) -> Result<(), MemoryError> {
    use_write_ahead_log(connection).map_err(failed("open", place))?.map_err(failed("open", place))?;
    // An immediate transaction: if two processes open a new database, one creates the tables and the other
    // finds them.
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed("open", place))?;
    let found = known_version(&transaction, place, migrations)?;
    let upgraded = database_file::upgrade(&transaction, APPLICATION, found, 1, migrations);
    upgraded.map_err(failed("upgrade", place))?;
    transaction.commit().map_err(failed("upgrade", place))
}

/// Returns the version of the tables; 0 for a file without tables.
fn version(connection: &Connection, place: &Path) -> Result<u32, MemoryError> {
    let found = database_file::version(connection, APPLICATION).map_err(failed("open", place))?;
    found.ok_or_else(|| failed("open", place)(foreign_database()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: M-20
    #[test]
    fn a_store_of_a_newer_version_is_refused_and_an_older_one_upgraded() {
        let dir = tempfile::tempdir().unwrap();
        let place = Path::new("db");
        let open = || Connection::open(dir.path().join("db")).unwrap();
        let (first, second) = ("CREATE TABLE a (x)", "CREATE TABLE b (x); INSERT INTO b SELECT x FROM a");
        migrate(&mut open(), place, &[first]).unwrap();
        open().execute("INSERT INTO a VALUES (7)", []).unwrap();
        for _ in 0..2 {
            migrate(&mut open(), place, &[first, second]).unwrap();
        }
        let sum: i32 = open().query_row("SELECT sum(x) FROM b", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 7);
        let error = migrate(&mut open(), place, &[first]).unwrap_err();
        assert!(matches!(error, MemoryError::FutureStore { found: 2, supported: 1, .. }), "{error}");
        assert_eq!(error.to_string(), "the memories at db have format 2; this version reads formats up to 1");
    }

    // spec: M-20
    #[test]
    fn upgrade_to_format_2_keeps_the_index_of_words() {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(dir.path().join("db")).unwrap();
        migrate(&mut connection, Path::new("db"), &MIGRATIONS[..1]).unwrap();
        let old = "INSERT INTO collections VALUES (1, 'user'), (2, 'user:x'), (3, 'user:xy');
            INSERT INTO entries (position, collection, id, kind, trust, timestamp, columns_checksum, metadata, body, \
            checksum, length) VALUES (7, 'user:x', 'a', 'note', 1, 1, 1, '{}', '{\"content\":\"zebras\"}', 1, 1)";
        connection.execute_batch(old).unwrap();
        prepare(&mut connection, Path::new("db")).unwrap();
        let found = |text: &str| {
            let sql = "SELECT count(*) FROM words WHERE words MATCH ?1 AND rowid = 7";
            connection.query_row(sql, [text], |row| row.get::<_, i64>(0)).unwrap()
        };
        let words = ["content : zebra", "owners : 1", "owners : 2", "owners : 3", "content : 1"].map(found);
        assert_eq!(words, [1, 1, 1, 0, 0]);
    }

    #[test]
    fn an_upgrade_that_fails_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = Connection::open(dir.path().join("db")).unwrap();
        migrate(&mut connection, Path::new("db"), &["CREATE TABLE a (x)"]).unwrap();
        let broken = ["CREATE TABLE a (x)", "CREATE TABLE b (x)", "CREATE NONSENSE"];
        migrate(&mut connection, Path::new("db"), &broken).unwrap_err();
        assert_eq!(version(&connection, Path::new("db")).unwrap(), 1);
    }
}
