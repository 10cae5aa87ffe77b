//! The error of snapshots.

use std::{io, path::PathBuf};

use crate::{SnapshotId, SnapshotLimits};

/// The reason why a snapshot cannot be taken or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The workspace has more files, links and folders, or more bytes in files, than the limits allow.
    #[error(
        "undo is off: the workspace '{}' has more than {} files, links and folders, or more than {} MB. Name the \
         files that need no undo in a .gitignore, or work in a smaller folder.",
        workspace.display(), limits.entries, limits.bytes / 1_000_000
    )]
    TooLarge {
        /// The workspace.
        workspace: PathBuf,
        /// The limits.
        limits: SnapshotLimits,
    },
    /// A file or folder of the workspace cannot be read.
    #[error("cannot read '{}' for a snapshot: {source}. Check that it exists and may be read.", path.display())]
    Workspace {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The store cannot be read or written.
    #[error(
        "cannot use '{}' in the store of snapshots: {source}. Check the permissions of the folder and the free space.",
        path.display()
    )]
    Store {
        /// The file or folder of the store.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process works on the snapshots of the workspace for longer than [`SnapshotLimits::lock_wait`].
    #[error(
        "another process works on the snapshots of the workspace '{}'. Wait until it has ended.",
        workspace.display()
    )]
    Busy {
        /// The workspace.
        workspace: PathBuf,
    },
    /// The store does not have the snapshot, or only parts of it.
    #[error("the snapshot {id}, or a part of it, is no longer kept: undo and redo cannot use it.")]
    Missing {
        /// The id of the snapshot, or of a folder in it.
        id: SnapshotId,
    },
    /// The file that lists the undos of the sessions is damaged. Undo and redo fail until the file is removed.
    #[error(
        "'{}' in the store of snapshots is damaged. Remove this file: then nothing can be redone, and all else is \
         kept.",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The session has no work that can be undone or redone.
    #[error("there is nothing to {what} in this session.")]
    Nothing {
        /// `undo` or `redo`.
        what: &'static str,
    },
}

/// Returns a function that wraps an I/O error at `path` in a [`SnapshotError::Store`].
pub(crate) fn store(path: &std::path::Path) -> impl FnOnce(io::Error) -> SnapshotError + '_ {
    move |source| SnapshotError::Store { path: path.to_owned(), source }
}
