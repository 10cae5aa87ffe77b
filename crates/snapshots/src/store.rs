//! The folder of the store that belongs to one workspace: its lock, and its small files.

use std::{
    fs::{self, DirBuilder, File},
    io::Write as _,
    os::unix::ffi::OsStrExt as _,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::{SnapshotError, SnapshotId, error::store, tree::hash};

/// A snapshot that is kept.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub(crate) id: SnapshotId,
    /// The time at which it was begun the last time, in nanoseconds since the Unix epoch.
    pub(crate) began: i64,
    /// Size in bytes of what was stored for it and for none before it.
    pub(crate) added: u64,
}

/// The folder of one workspace in the store.
pub(crate) struct Store {
    pub(crate) folder: PathBuf,
}

impl Store {
    /// Creates the folder of a workspace, for its owner only.
    pub(crate) fn open(all: &Path, workspace: &Path) -> Result<Self, SnapshotError> {
        let name = SnapshotId(hash(workspace.as_os_str().as_bytes())).to_string();
        let folder = all.join(name.get(..16).unwrap_or(&name));
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(store(&folder))?;
        let note = folder.join("workspace");
        if !note.exists() {
            // For people who look through the store.
            replace(&note, &[workspace.as_os_str().as_bytes(), b"\n"])?;
        }
        Ok(Self { folder })
    }

    /// Waits until no other process or thread works on the workspace, and keeps them out until the file is
    /// dropped.
    pub(crate) fn lock(&self) -> Result<File, SnapshotError> {
        let path = self.folder.join("lock");
        let file =
            File::options().create(true).truncate(false).write(true).open(&path).map_err(store(&path))?;
        file.lock().map_err(store(&path))?;
        Ok(file)
    }

    /// Returns the snapshots that are kept, the oldest first.
    pub(crate) fn kept_snapshots(&self) -> Vec<Kept> {
        let text = fs::read_to_string(self.folder.join("kept")).unwrap_or_default();
        text.lines().filter_map(Kept::parse).collect()
    }

    pub(crate) fn keep(&self, kept: &[Kept]) -> Result<(), SnapshotError> {
        let text: String =
            kept.iter().map(|kept| format!("{} {} {}\n", kept.id, kept.began, kept.added)).collect();
        replace(&self.folder.join("kept"), &[text.as_bytes()])
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.folder.join("index")
    }
}

impl Kept {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(' ');
        let id = parts.next()?.parse().ok()?;
        Some(Self { id, began: parts.next()?.parse().ok()?, added: parts.next()?.parse().ok()? })
    }
}

/// Puts a file with these parts in the place of `path` in one step.
pub(crate) fn replace(path: &Path, parts: &[&[u8]]) -> Result<(), SnapshotError> {
    let folder = path.parent().unwrap_or(path);
    let mut file = NamedTempFile::new_in(folder).map_err(store(folder))?;
    for part in parts {
        file.write_all(part).map_err(store(path))?;
    }
    file.persist(path).map_err(|error| store(path)(error.error))?;
    Ok(())
}
