//! What journals on disk do with files alike.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use archon_types::JournalError;

/// Turns an I/O error into one that says what was done to which file.
pub(crate) fn storage(action: &'static str, place: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let place = place.display().to_string();
    move |source| JournalError::Storage { action, place, source }
}

/// Opens a file to read it, and nothing else: a pipe of that name would be waited for, for ever.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file")),
    }
}

/// All of a file, under the same condition.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Creates a directory for its owner alone. Directories that exist keep their modes.
pub(crate) fn create_directory(directory: &Path) -> Result<(), JournalError> {
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(storage("create", directory))?;
    directory.parent().map_or(Ok(()), sync_directory)
}

/// Puts the names in a directory on the medium: a synced file whose name is lost is lost.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), JournalError> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if cfg!(unix) {
        File::open(directory).and_then(|d| d.sync_all()).map_err(storage("sync", directory))?;
    }
    Ok(())
}
