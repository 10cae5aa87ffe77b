//! Writes the command's own files in the data folder.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// Writes a file that only its owner can read, and creates its folder. An existing file is replaced
/// atomically.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut folder = DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path.parent().unwrap_or(Path::new(".")))?;
    let mut new = OsString::from(path);
    new.push(".new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&new)?.write_all(text.as_bytes())?;
    fs::rename(&new, path)
}
