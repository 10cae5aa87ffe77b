//! Finds out which program a database belongs to if a change in it was interrupted. The change is not rolled
//! back, since only the owner's program should do that.
//!
//! A read-only SQLite connection cannot read such a database. The information is in the headers of two
//! files: the database (<https://www.sqlite.org/fileformat2.html>, 1.3) and the rollback journal (3).

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

/// Returns true if SQLite's error means that an interrupted change must be rolled back before anything can be
/// read.
pub(super) fn is_interrupted(error: &rusqlite::Error) -> bool {
    let rusqlite::Error::SqliteFailure(error, _) = error else { return false };
    error.extended_code == rusqlite::ffi::SQLITE_READONLY_ROLLBACK
}

/// Returns true if the database has this application id, or was empty before the change. The id is right
/// whether or not the change is rolled back: only the change that creates the tables sets the id, and that
/// change uses the write-ahead log.
pub(super) fn is_ours_or_empty(database: &Path, application: i32) -> io::Result<bool> {
    let header = beginning(database)?;
    if header.get(68..72) == Some(&application.to_be_bytes()) {
        return Ok(true);
    }
    let journal = beginning(&journal_of(database))?;
    // The number of pages before the change.
    Ok(journal.starts_with(&JOURNAL) && journal.get(16..20) == Some(&[0; 4]))
}

/// The first bytes of a rollback journal.
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
