//! The undos of each session, so that they can be redone.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    Restored, SnapshotError, SnapshotId, Snapshots,
    plan::UndoStep,
    store::{Store, replace},
};

/// One undo: the steps whose changes it took back, and the snapshots before and after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Undone {
    /// The names of the steps.
    pub steps: Vec<String>,
    before: SnapshotId,
    after: SnapshotId,
}

type Sessions = BTreeMap<String, Vec<Undone>>;

impl Undone {
    /// Returns the undo itself as a step: to take it back is to redo.
    pub fn step(&self) -> UndoStep {
        UndoStep::new("undo", self.before, Some(self.after))
    }
}

impl Snapshots {
    /// Returns those of the steps that the session has not undone, in the same order.
    ///
    /// # Errors
    /// The store cannot be read, or the file with what was undone is damaged.
    pub fn open_steps(&self, session: &str, steps: &[UndoStep]) -> Result<Vec<UndoStep>, SnapshotError> {
        let undone = self.undo_stack(session)?;
        let is_undone = |step: &&UndoStep| undone.iter().any(|undone| undone.steps.contains(&step.name));
        Ok(steps.iter().filter(|step| !is_undone(step)).cloned().collect())
    }

    /// Returns what the session has undone and not redone, the latest last.
    ///
    /// # Errors
    /// The store cannot be read, or the file with what was undone is damaged.
    pub fn undo_stack(&self, session: &str) -> Result<Vec<Undone>, SnapshotError> {
        Ok(read(self.store())?.remove(session).unwrap_or_default())
    }

    /// Takes the steps back, which are given in order, the oldest first. A path that was changed since is left
    /// as it is. The undo is noted before it changes anything, so that one that is killed can be redone.
    ///
    /// # Errors
    /// There are no steps, a snapshot is no longer kept, the workspace is too large or cannot be read, or the
    /// store cannot be written. What cannot be written in the workspace is no error: it is left.
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

    /// Takes the latest undo of the session back. A path that was changed since is left as it is.
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
