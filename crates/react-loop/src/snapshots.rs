//! Snapshots of the workspace around the calls of a turn, so that their effects can be undone. Without a source of
//! snapshots, nothing is recorded.

use archon_run::Recorded;
use archon_types::{RecordBody, SnapshotPlace, WorkspaceSnapshot};
use serde::{Deserialize, Serialize};

use crate::{drive::ReactExecutor, driver::Run};

/// The snapshots of a run, folded from its records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshots {
    /// The turn and the id of a snapshot before calls, as long as the one after them is missing.
    open: Option<(u32, String)>,
    /// True if a snapshot could not be taken.
    is_off: bool,
}

impl Snapshots {
    pub(crate) fn see(&mut self, snapshot: &WorkspaceSnapshot) {
        self.is_off |= snapshot.problem.is_some();
        self.open = match (snapshot.place, &snapshot.tree) {
            (SnapshotPlace::Before, Some(tree)) => Some((snapshot.turn, tree.clone())),
            _ => None,
        };
    }
}

impl ReactExecutor<'_> {
    /// Takes a snapshot, unless it stands in the log, or one could not be taken before. One after calls is taken
    /// only if there is one before them.
    pub(crate) async fn snapshot(&self, place: SnapshotPlace, run: &mut Run) -> Recorded {
        let Some(source) = &self.driver.snapshots else { return Ok(()) };
        let Snapshots { open, is_off } = run.machine.snapshots();
        if *is_off || open.is_some() != (place == SnapshotPlace::After) {
            return Ok(());
        }
        let (turn, before) = match open.clone() {
            Some((turn, before)) => (turn, Some(before)),
            None => (run.machine.turns().saturating_sub(1), None),
        };
        let taken = source.take(before).await;
        if let Err(problem) = &taken {
            tracing::warn!(run = %self.context.run, %problem, "the workspace has no snapshot");
        }
        run.record(vec![RecordBody::WorkspaceSnapshot(WorkspaceSnapshot::new(place, turn, taken))]).await
    }
}
