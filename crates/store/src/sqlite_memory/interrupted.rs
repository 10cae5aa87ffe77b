//! Databases that a change was interrupted in: whose they are, found out without taking the change back, which nobody but
//! their owner should do.
//!
//! SQLite shows nothing of such a database to who may only read. What it would be is in the files: the database's header
//! (<https://www.sqlite.org/fileformat2.html>, 1.3) and that of the rollback journal (3).

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// Whether SQLite says that a change has to be taken back before anything can be read.
pub(super) fn is_interrupted(error: &rusqlite::Error) -> bool {
    let rusqlite::Error::SqliteFailure(error, _) = error else { return false };
    error.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK
}

/// Whether the database has this application's number, or was empty before the change. No change of ours sets or
/// removes the number but the one that makes the tables, which is in the write-ahead log: so it is right whether the
/// change is taken back or not.
pub(super) fn is_ours_or_empty(database: &Path, application: i32) -> io::Result<bool> {
    let header = beginning(database)?;
    if header.get(68..72) == Some(&application.to_be_bytes()) {
        return Ok(true);
    }
    let journal = beginning(&journal_of(database))?;
    // The pages that there were before.
    Ok(journal.starts_with(&JOURNAL) && journal.get(16..20) == Some(&[0; 4]))
}

/// What a rollback journal begins with.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

fn journal_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(100).read_to_end(&mut bytes)?;
    Ok(bytes)
}
