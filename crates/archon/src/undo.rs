//! Undo: takes back what a run changed in its workspace.

use std::{
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use archon_snapshots::{Restored, SnapshotError, SnapshotId, SnapshotLimits, Snapshots, UndoStep};
use archon_types::{BoxFuture, Record, RecordBody, RunStarted, SnapshotPlace, WorkspaceSnapshots};

/// Takes snapshots of a workspace during runs, and takes back what the runs changed.
///
/// Only files of the workspace that git would not ignore are restored. A file that a person changed after the run
/// stays as it is, and the result names it. Other effects cannot be undone: effects over the network, of processes
/// that still run, outside of the workspace, on ignored files, and on `.git`.
///
/// ```
/// use std::sync::Arc;
///
/// use archon::{Archon, Undo, providers::ScriptedProvider};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (store, workspace) = (tempfile::tempdir()?, tempfile::tempdir()?);
/// # let (store, workspace) = (store.path(), workspace.path());
/// let undo = Undo::open(store, workspace)?;
/// let model = Arc::new(ScriptedProvider::texts(["Done."]));
/// let agent = Archon::builder()
///     .provider(model, "scripted")
///     .workspace(workspace)
///     .snapshots(Arc::new(undo.clone()))
///     .build()?;
/// let answer = agent.run("Tidy up").await?;
///
/// // Later, with the records of the run. This run changed nothing.
/// let records = agent.journal().read(answer.run()).await?;
/// assert!(undo.preview(&records, None)?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Undo {
    snapshots: Snapshots,
}

impl Undo {
    /// Opens the snapshots of `workspace` below the folder `store`, which is created if it is missing.
    ///
    /// # Errors
    /// The workspace cannot be read, or the store cannot be written.
    pub fn open(store: impl AsRef<Path>, workspace: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        Ok(Self {
            snapshots: Snapshots::open(store.as_ref(), workspace.as_ref(), SnapshotLimits::default())?,
        })
    }

    /// Leaves a folder out of all snapshots, such as the one with the logs of runs.
    ///
    /// ```
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use archon::Undo;
    /// let undo = Undo::open("data/snapshots", "projects/shop")?.without("projects/shop/data");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn without(mut self, folder: impl AsRef<Path>) -> Self {
        self.snapshots = self.snapshots.without(folder.as_ref());
        self
    }

    /// Returns the changes that [`undo`](Self::undo) would make, without making them. Blocks the thread.
    ///
    /// # Errors
    /// As [`undo`](Self::undo), but a run that changed nothing is no error.
    pub fn preview(&self, records: &[Arc<Record>], turns: Option<u32>) -> Result<Restored, SnapshotError> {
        match self.open_steps(records, turns)? {
            steps if steps.is_empty() => Ok(Restored::default()),
            steps => self.snapshots.preview(&steps),
        }
    }

    /// Takes back the changes of a run: those of all its turns, or those of its last `turns` turns. Turns that
    /// changed nothing and turns that are already undone do not count. `records` are the records of the run. Blocks
    /// the thread.
    ///
    /// # Errors
    /// There is nothing to undo, a snapshot is no longer kept, or the workspace or the store cannot be read or
    /// written. A file that cannot be written is no error: it stays as it is, and the result names it.
    pub fn undo(&self, records: &[Arc<Record>], turns: Option<u32>) -> Result<Restored, SnapshotError> {
        self.snapshots.undo(session(records), &self.open_steps(records, turns)?)
    }

    /// Returns the changes that [`redo`](Self::redo) would make, without making them. Blocks the thread.
    ///
    /// # Errors
    /// As [`redo`](Self::redo), but it is no error if nothing is undone.
    pub fn preview_redo(&self, records: &[Arc<Record>]) -> Result<Restored, SnapshotError> {
        match self.snapshots.undo_stack(session(records))?.last() {
            Some(undone) => self.snapshots.preview(&[undone.step()]),
            None => Ok(Restored::default()),
        }
    }

    /// Takes back the latest undo in the session of a run. `records` are the records of the run. Blocks the thread.
    ///
    /// # Errors
    /// Nothing is undone; otherwise as [`undo`](Self::undo).
    pub fn redo(&self, records: &[Arc<Record>]) -> Result<Restored, SnapshotError> {
        self.snapshots.redo(session(records))
    }

    /// Returns the steps of a run that are not undone: all of them, or those of the last `turns` turns with such
    /// steps.
    fn open_steps(
        &self,
        records: &[Arc<Record>],
        turns: Option<u32>,
    ) -> Result<Vec<UndoStep>, SnapshotError> {
        let steps = steps(records);
        let all: Vec<UndoStep> = steps.iter().map(|(_, step)| step.clone()).collect();
        let open = self.snapshots.open_steps(session(records), &all)?;
        let Some(turns) = turns else { return Ok(open) };
        let turn_of = |name: &str| steps.iter().find(|(_, step)| step.name == name).map(|(turn, _)| *turn);
        let mut last: Vec<Option<u32>> = open.iter().map(|step| turn_of(&step.name)).collect();
        last.dedup();
        let kept = last.len().saturating_sub(turns.try_into().unwrap_or(usize::MAX));
        let last = last.split_off(kept);
        Ok(open.into_iter().filter(|step| last.contains(&turn_of(&step.name))).collect())
    }
}

/// Returns the steps of a run that changed something, each with the number of its turn. A step begins with the
/// snapshot before the effects of a turn. It ends with the snapshot after them or, if that is missing, with the last
/// record of the process that worked on the run.
fn steps(records: &[Arc<Record>]) -> Vec<(u32, UndoStep)> {
    let run = RunStarted::of(records).map_or("", |started| started.run.as_str());
    let mut steps: Vec<(u32, UndoStep)> = Vec::new();
    let mut is_open = false;
    for record in records {
        is_open &= !record.body.is_resumption();
        if let Some((_, step)) = steps.last_mut().filter(|_| is_open) {
            step.ended = end_of(record);
        }
        let RecordBody::WorkspaceSnapshot(snapshot) = &record.body else { continue };
        let id = snapshot.tree.as_ref().and_then(|tree| tree.parse::<SnapshotId>().ok());
        match (snapshot.place, id, steps.last_mut()) {
            (SnapshotPlace::After, _, Some((_, step))) if is_open => {
                step.after = id;
                is_open = false;
            }
            (SnapshotPlace::Before, Some(id), _) => {
                let mut step = UndoStep::new(format!("{run}/{}", record.seq), id, None);
                step.ended = end_of(record);
                steps.push((snapshot.turn, step));
                is_open = true;
            }
            _ => {}
        }
    }
    // A turn that changed nothing is none of those that a person counts.
    steps.retain(|(_, step)| step.after != Some(step.before));
    steps
}

/// Returns the end of the millisecond in which a record was written.
fn end_of(record: &Record) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(record.at.as_millis().saturating_add(1)))
}

fn session(records: &[Arc<Record>]) -> &str {
    RunStarted::of(records).map_or("", |started| started.session.as_str())
}

impl WorkspaceSnapshots for Undo {
    /// Takes a first snapshot on a separate thread, which ends with the process. If the workspace is large and not in
    /// the store yet, it is copied only before the first effect, because the run may change nothing.
    fn prepare(&self) {
        let snapshots = self.snapshots.clone();
        // If it fails, so does the snapshot before the first effect, which reports the reason.
        let _ = thread::Builder::new().name("archon-snapshot".to_owned()).spawn(move || snapshots.prepare());
    }

    fn take(&self, before: Option<String>) -> BoxFuture<'static, Result<String, String>> {
        let snapshots = self.snapshots.clone();
        let take = move || match before.and_then(|before| before.parse::<SnapshotId>().ok()) {
            Some(before) => snapshots.take_after(&before),
            None => snapshots.take(),
        };
        Box::pin(async move {
            let taken = tokio::task::spawn_blocking(take).await.map_err(|error| error.to_string())?;
            taken.map(|id| id.to_string()).map_err(|error| error.to_string())
        })
    }
}
