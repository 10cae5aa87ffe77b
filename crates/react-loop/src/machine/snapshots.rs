//! Which snapshots of the workspace a run has taken.

use archon_types::{SnapshotPlace, WorkspaceSnapshot};
use serde::{Deserialize, Serialize};

/// The snapshots of a run, folded from its records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshots {
    /// The turn and the id of a snapshot before calls, as long as the one after them is missing.
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

    /// Ends the work of a process that died. A snapshot after it would also contain what others changed since.
    pub(super) fn cut_off(&mut self) {
        self.open = None;
    }
}
