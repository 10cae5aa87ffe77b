//! What journals on disk do with files alike.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use archon_types::JournalError;

/// Turns an I/O error into one that says what was done to which file.
pub(crate) fn storage(action: &'static str, place: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let place = place.display().to_string();
    move |source| JournalError::Storage { action, place, source }
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
