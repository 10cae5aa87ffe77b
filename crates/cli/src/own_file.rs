//! Reads and writes the command's own files in the data folder, and settings files.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io::{self, Write},
    path::Path,
};

use crate::failure::Failure;

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        text => text.map(Some),
    }
}

/// Reads a settings file; `None` if it does not exist.
pub(crate) fn read_settings(path: &Path) -> Result<Option<String>, Failure> {
    read(path).map_err(|e| Failure::unreadable(path, &e, "make the file readable, or move it away"))
}

/// Creates a folder that only its owner can read, like everything in the data folder.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Writes a file that only its owner can read, and creates its folder. An existing file is replaced
/// atomically.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    write_temporary(path, text, 0o600, None)
}

/// Does the same as [`replace`], for settings of the user: the file keeps its permissions, and a symbolic
/// link to the file still leads to it.
#[cfg(feature = "setup")]
pub(crate) fn rewrite(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    write_temporary(&path, text, 0o600, permissions(&path))
}

/// Does the same as [`replace`], for settings of a project, which others may read. A symbolic link is
/// replaced, since the author of the project may have pointed it to any file.
#[cfg(feature = "setup")]
pub(crate) fn rewrite_shared(path: &Path, text: &str) -> io::Result<()> {
    write_temporary(path, text, 0o666, permissions(path).filter(|_| !path.is_symlink()))
}

#[cfg(feature = "setup")]
fn permissions(path: &Path) -> Option<Permissions> {
    fs::metadata(path).ok().map(|there| there.permissions())
}

/// Writes a new file beside the old one, and renames it to the old name.
fn write_temporary(path: &Path, text: &str, mode: u32, permissions: Option<Permissions>) -> io::Result<()> {
    create_folder(path.parent().unwrap_or(Path::new(".")))?;
    let mut new = OsString::from(path);
    new.push(".new");
    let mut options = OpenOptions::new();
    // A link with this name is not followed.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let _ = fs::remove_file(&new);
    let write = || {
        let mut file = options.open(&new)?;
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}
