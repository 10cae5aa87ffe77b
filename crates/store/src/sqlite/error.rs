//! Turns SQLite's errors into errors of the journal.

use std::{io, path::Path};

use archon_types::{JournalError, RunId};
use rusqlite::ErrorCode;

use crate::{files::storage, rules::corrupt};

/// Turns an error into an error with the action and the path of the database.
pub(super) fn failed(action: &'static str, place: &Path) -> impl FnOnce(rusqlite::Error) -> JournalError {
    let say = storage(action, place);
    move |error| say(io::Error::new(kind(&error), error))
}

/// Turns an error from reading record `seq` of a run into the journal's error: damage becomes the damage of
/// that record.
pub(super) fn unread(place: &Path, run: &RunId, seq: u64) -> impl FnOnce(rusqlite::Error) -> JournalError {
    move |error| match kind(&error) {
        io::ErrorKind::InvalidData => corrupt(run, seq, error.to_string()),
        _ => failed("read", place)(error),
    }
}

fn kind(error: &rusqlite::Error) -> io::ErrorKind {
    use rusqlite::Error;
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
        Some(ErrorCode::ReadOnly) => io::ErrorKind::ReadOnlyFilesystem,
        Some(ErrorCode::PermissionDenied) => io::ErrorKind::PermissionDenied,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => io::ErrorKind::ResourceBusy,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => io::ErrorKind::InvalidData,
        None if matches!(error, Error::InvalidColumnType(..) | Error::FromSqlConversionFailure(..)) => {
            io::ErrorKind::InvalidData
        }
        _ => io::ErrorKind::Other,
    }
}
