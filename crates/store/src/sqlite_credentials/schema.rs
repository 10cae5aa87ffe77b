//! Creates the tables of the credentials' database, and upgrades them.

use std::path::Path;

use archon_types::CredentialError;
use rusqlite::Transaction;

use super::failed;

/// `ARCC`, the application id in the header of this project's credential databases, so that another
/// program's database is not opened.
const APPLICATION: i32 = i32::from_be_bytes(*b"ARCC");

/// Statement `n` upgrades from version `n` to `n + 1`. A released statement never changes.
const MIGRATIONS: &[&str] = &[include_str!("v1.sql")];

/// Creates or upgrades the tables.
pub(super) fn prepare(transaction: &Transaction<'_>, place: &Path) -> Result<(), CredentialError> {
    let number =
        |sql| transaction.query_row(sql, [], |row| row.get::<_, i32>(0)).map_err(failed("open", place));
    let found = match number("PRAGMA application_id")? {
        APPLICATION => number("PRAGMA user_version")?,
        0 if number("SELECT count(*) FROM sqlite_schema")? == 0 => 0,
        _ => return Err(failed("open", place)("it is the database of another program")),
    };
    let (found, supported) = (u32::try_from(found).unwrap_or(u32::MAX), MIGRATIONS.len());
    let supported = u32::try_from(supported).unwrap_or(u32::MAX);
    if found > supported {
        return Err(CredentialError::FutureStore { place: place.display().to_string(), found, supported });
    }
    if found == supported {
        return Ok(());
    }
    let upgrade = || {
        for migration in MIGRATIONS.iter().skip(found as usize) {
            transaction.execute_batch(migration)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", supported)
    };
    upgrade().map_err(failed("upgrade", place))
}
