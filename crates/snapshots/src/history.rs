//! The undos of each session, so that they can be redone.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    Restored, SnapshotError, SnapshotId, Snapshots,
    plan::UndoStep,
    store::{Store, replace},
};

/// An undo that can be redone: the names of the undone steps, and the snapshots before and after the undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Undone {
    /// The names of the undone steps.
    pub steps: Vec<String>,
    before: SnapshotId,
    after: SnapshotId,
}

type Sessions = BTreeMap<String, Vec<Undone>>;

impl Undone {
    /// Returns the undo as a step. Undoing this step is the redo.
    pub fn step(&self) -> UndoStep {
        UndoStep::new("undo", self.before, Some(self.after))
    }
}

impl Snapshots {
    /// Returns those of `steps` that the session has not undone, in the same order.
    ///
    /// # Errors
    /// The store cannot be read, or the file that lists the undos is damaged.
    pub fn open_steps(&self, session: &str, steps: &[UndoStep]) -> Result<Vec<UndoStep>, SnapshotError> {
        let undone = self.undo_stack(session)?;
        let is_undone = |step: &&UndoStep| undone.iter().any(|undone| undone.steps.contains(&step.name));
        Ok(steps.iter().filter(|step| !is_undone(step)).cloned().collect())
    }

    /// Returns the undos of the session that were not redone, oldest first.
    ///
    /// # Errors
    /// The store cannot be read, or the file that lists the undos is damaged.
    pub fn undo_stack(&self, session: &str) -> Result<Vec<Undone>, SnapshotError> {
        Ok(read(self.store())?.remove(session).unwrap_or_default())
    }

    /// Undoes the steps, which are given oldest first. A path that was changed after the steps is left as it is. The
    /// undo is stored before it changes a file, so an undo that is killed can be redone.
    ///
    /// # Errors
    /// There are no steps, a snapshot is no longer kept, the workspace is too large or cannot be read, the store
    /// cannot be written, or another process works on the snapshots for too long. A path of the workspace that cannot
    /// be written is no error: it is in [`Restored::left`].
    pub fn undo(&self, session: &str, steps: &[UndoStep]) -> Result<Restored, SnapshotError> {
        if steps.is_empty() {
            return Err(SnapshotError::Nothing { what: "undo" });
        }
        let _lock = self.lock()?;
        let mut sessions = read(self.store())?;
        self.restore(steps, |before, after| {
            sessions.entry(session.to_owned()).or_default().push(Undone {
                steps: steps.iter().map(|step| step.name.clone()).collect(),
                before,
                after,
            });
            write(self.store(), &sessions)
        })
    }

    /// Redoes the latest undo of the session: takes back its changes. A path that was changed after the undo is left
    /// as it is.
    ///
    /// # Errors
    /// The session has nothing to redo; otherwise as [`undo`](Self::undo).
    pub fn redo(&self, session: &str) -> Result<Restored, SnapshotError> {
        let _lock = self.lock()?;
        let mut sessions = read(self.store())?;
        let of_session = sessions.entry(session.to_owned()).or_default();
        let undone = of_session.pop().ok_or(SnapshotError::Nothing { what: "redo" })?;
        if of_session.is_empty() {
            sessions.remove(session);
        }
        let restored = self.restore(&[undone.step()], |_, _| Ok(()))?;
        write(self.store(), &sessions)?;
        Ok(restored)
    }
}

fn path(store: &Store) -> PathBuf {
    store.folder.join("undone")
}

fn read(store: &Store) -> Result<Sessions, SnapshotError> {
    let path = path(store);
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| SnapshotError::Damaged { path }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Sessions::new()),
        Err(error) => Err(crate::error::store(&path)(error)),
    }
}

fn write(store: &Store, sessions: &Sessions) -> Result<(), SnapshotError> {
    let bytes = serde_json::to_vec(sessions).unwrap_or_default();
    replace(&path(store), &[&bytes])
}
