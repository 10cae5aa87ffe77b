//! File operations that journals on disk share.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    path::Path,
};

use archon_types::JournalError;

/// Turns an I/O error into an error with the action and the path of the file.
pub(crate) fn storage(action: &'static str, place: &Path) -> impl FnOnce(io::Error) -> JournalError {
    move |source| JournalError::Storage { action, place: place.display().to_string(), source }
}

/// Opens a file for reading. Refuses anything but a regular file, since opening a pipe could block for ever.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    #[cfg(test)]
    reads::add();
    refuse_irregular(path)?;
    File::open(path)
}

/// Returns options for opening a file that, if the file is new, let only its owner read and write it.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a file, or empties the one that exists.
#[cfg(feature = "jsonl")]
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    private().write(true).create(true).truncate(true).open(path)
}

/// Counts the files that this thread opened and the database records that it read, for tests of the cost of
/// lists.
#[cfg(test)]
pub(crate) mod reads {
    use std::cell::Cell;

    thread_local!(static READS: Cell<usize> = const { Cell::new(0) });

    pub(crate) fn add() {
        READS.set(READS.get() + 1);
    }

    pub(crate) fn count() -> usize {
        READS.get()
    }
}

/// Returns an error if `path` exists and is not a regular file, for instance if it is a pipe.
pub(crate) fn refuse_irregular(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
        _ => Ok(()),
    }
}

/// Turns the error that a file or directory does not exist into `None`.
pub(crate) fn if_exists<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Returns the entries of a directory; none if the directory does not exist.
#[cfg(feature = "jsonl")]
pub(crate) fn entries(directory: &Path) -> Result<Vec<fs::DirEntry>, JournalError> {
    let found = if_exists(fs::read_dir(directory)).map_err(storage("list", directory))?;
    found.into_iter().flatten().collect::<io::Result<_>>().map_err(storage("list", directory))
}

/// Reads a whole file. Refuses anything but a regular file.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Gives a complete file its final name. Fails with `AlreadyExists` if a file has this name, even if another
/// process has just created it.
pub(crate) fn name_new(unfinished: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(unfinished, path) {
        Err(_) if path.exists() => Err(io::ErrorKind::AlreadyExists.into()),
        // Some file systems have no links.
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => fs::rename(unfinished, path),
        linked => linked,
    }
}

/// Creates a directory for its owner only, and syncs its name. Existing directories keep their modes.
pub(crate) fn create_directory(directory: &Path) -> Result<(), JournalError> {
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    make_directory(directory)?;
    directory.parent().map_or(Ok(()), sync_directory)
}

/// Creates a directory for its owner only, without a sync.
pub(crate) fn make_directory(directory: &Path) -> Result<(), JournalError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(storage("create", directory))
}

/// Syncs the names in a directory: a synced file is lost if its name is lost.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), JournalError> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if cfg!(unix) {
        File::open(directory).and_then(|d| d.sync_all()).map_err(storage("sync", directory))?;
    }
    Ok(())
}

/// The identity of a file, independent of its name; equal for all files on systems that do not report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    #[cfg(unix)]
    pub(crate) fn of(file: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(file.dev(), file.ino())
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_: &fs::Metadata) -> Self {
        Self(0, 0)
    }

    /// Returns true if `path` names this file.
    pub(crate) fn is_at(self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|file| Self::of(&file) == self)
    }
}
