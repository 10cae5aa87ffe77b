//! The snapshots of the workspace that a run has taken.

use archon_types::{SnapshotPlace, WorkspaceSnapshot};
use serde::{Deserialize, Serialize};

/// The snapshots of a run, folded from its records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshots {
    /// The turn and the id of the latest snapshot before calls, until the snapshot after these calls is taken.
    pub(crate) open: Option<(u32, String)>,
    /// True if a snapshot could not be taken.
    pub(crate) is_off: bool,
}

impl Snapshots {
    pub(super) fn see(&mut self, snapshot: &WorkspaceSnapshot) {
        self.is_off |= snapshot.problem.is_some();
        self.open = match (snapshot.place, &snapshot.tree) {
            (SnapshotPlace::Before, Some(tree)) => Some((snapshot.turn, tree.clone())),
            _ => None,
        };
    }

    /// Forgets the open snapshot of a process that died. A snapshot after the calls would also contain changes that
    /// others made since.
    pub(super) fn cut_off(&mut self) {
        self.open = None;
    }
}
