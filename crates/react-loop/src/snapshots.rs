//! Takes snapshots of the workspace around the calls of a turn, so that their effects can be undone. Without a
//! source of snapshots, nothing is recorded.

use archon_run::Recorded;
use archon_types::{RecordBody, SnapshotPlace, WorkspaceSnapshot};

use crate::{drive::ReactExecutor, driver::Run};

impl ReactExecutor<'_> {
    /// Takes a snapshot and records it. Does nothing if this snapshot is in the log already, if an earlier snapshot
    /// of the run could not be taken, or, after calls, if there is no snapshot from before these calls.
    pub(crate) async fn snapshot(&self, place: SnapshotPlace, run: &mut Run) -> Recorded {
        let Some(source) = &self.driver.snapshots else { return Ok(()) };
        let state = run.machine.snapshots();
        if state.is_off || state.open.is_some() != (place == SnapshotPlace::After) {
            return Ok(());
        }
        let (turn, before) = match state.open.clone() {
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
