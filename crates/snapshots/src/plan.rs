//! Plans an undo: compares three states of each path, before the work, after it, and now.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{
    SnapshotId,
    tree::{Entry, Files, Kind},
};

/// Work that can be undone: the snapshots before and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndoStep {
    /// The name of the step, which is unique in its session, such as the run and the number of the turn.
    pub name: String,
    /// The snapshot before the work.
    pub before: SnapshotId,
    /// The snapshot after the work. `None` if the work was cut off before this snapshot: then the snapshot before the
    /// next step is used, or the current state if there is no next step.
    pub after: Option<SnapshotId>,
    /// The time at which the work ended; used only if [`after`](Self::after) is `None`. A file that was changed after
    /// this time is left as it is. If this is `None` too, every change counts as a change by the work.
    pub ended: Option<SystemTime>,
}

impl UndoStep {
    /// Creates a step from the snapshots around the work.
    pub fn new(name: impl Into<String>, before: SnapshotId, after: Option<SnapshotId>) -> Self {
        Self { name: name.into(), before, after, ended: None }
    }

    /// Sets the time at which the work ended, for work that was cut off before its last snapshot. Default: none.
    ///
    /// ```
    /// use std::time::SystemTime;
    ///
    /// use archon_snapshots::{SnapshotId, UndoStep};
    ///
    /// fn cut_off(before: SnapshotId, ended: SystemTime) -> UndoStep {
    ///     UndoStep::new("run_1/0", before, None).with_end(ended)
    /// }
    /// ```
    #[must_use]
    pub fn with_end(mut self, ended: SystemTime) -> Self {
        self.ended = Some(ended);
        self
    }
}

/// The result or the preview of an undo or a redo. Paths are relative to the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// Files, links and folders that get back their earlier content or permissions.
    pub written: Vec<PathBuf>,
    /// Files, links and folders that are removed, because they did not exist before.
    pub removed: Vec<PathBuf>,
    /// The paths that stay as they are, although the work changed them.
    pub left: Vec<Left>,
}

impl Restored {
    /// Returns true if nothing is written and nothing is removed.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.removed.is_empty()
    }

    /// Adds to `left` the paths that are no longer ignored, except those inside of a path that `left` already has.
    pub(crate) fn add_unignored(&mut self, paths: impl Iterator<Item = PathBuf>) {
        for path in paths {
            if !self.left.iter().any(|left| path.starts_with(&left.path)) {
                self.left.push(Left { path, why: UNIGNORED.to_owned() });
            }
        }
    }
}

/// A path that is left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Left {
    /// The path.
    pub path: PathBuf,
    /// The reason, for people.
    pub why: String,
}

/// A path that differs between two snapshots, with its old entry and its new entry.
pub(crate) type Change = (PathBuf, Option<Entry>, Option<Entry>);

const CHANGED: &str = "it was changed after that";
pub(crate) const WAS_IGNORED: &str = "it was ignored before, so no snapshot has its earlier state";
pub(crate) const CHANGED_LATE: &str = "it was changed after the work was cut off, perhaps by a person";
pub(crate) const MAY_BE_MOVED: &str = "it may have been moved here from a place that no snapshot has";
const NOT_KEPT: &str = "it is no regular file, or could not be read";
const NO_FOLDER: &str = "its folder is gone, or is a file now";
const UNIGNORED: &str = "it was ignored when the work ended, so no snapshot has it";
const HOLDS_OTHERS: &str = "it holds files that are left";

/// The plan of an undo: the current entries, the wanted entries, and the paths to leave as they are.
pub(crate) struct Plan {
    now: Files,
    wanted: Files,
    left: BTreeMap<PathBuf, &'static str>,
}

impl Plan {
    pub(crate) fn new(now: Files) -> Self {
        Self { wanted: now.clone(), now, left: BTreeMap::new() }
    }

    /// Adds the undo of one step to the plan. Call it for the latest step first. `reason_to_leave` gets a path with
    /// its entries before and after the step, and returns the reason to leave the path as it is, if there is one.
    pub(crate) fn take_back(
        &mut self,
        changes: &[Change],
        before: &Files,
        mut reason_to_leave: impl FnMut(&Path, Option<&Entry>, Option<&Entry>) -> Option<&'static str>,
    ) {
        let is_other = |entry: &Option<Entry>| entry.is_some_and(|entry| entry.kind == Kind::Other);
        for (path, old, new) in changes {
            let current = self.wanted.get(path).copied();
            let why = if current == *old {
                continue;
            } else if current != *new {
                CHANGED
            } else if is_other(old) || is_other(new) {
                NOT_KEPT
            } else if let Some(why) = reason_to_leave(path, old.as_ref(), new.as_ref()) {
                why
            } else if let Some(old) = old {
                match self.put(path, *old, before) {
                    true => continue,
                    false => NO_FOLDER,
                }
            } else {
                self.wanted.remove(path);
                continue;
            };
            self.left.insert(path.clone(), why);
        }
    }

    /// Completes the plan, so that each wanted path is in a wanted folder: a folder stays if something in it stays.
    pub(crate) fn settle(&mut self) {
        while let Some(folder) = self.missing_folder() {
            if let Some(entry) = self.now.get(&folder).filter(|entry| entry.is_folder()) {
                self.wanted.insert(folder.clone(), *entry);
                self.left.insert(folder, HOLDS_OTHERS);
                continue;
            }
            let is_below = |path: &&PathBuf| path.starts_with(&folder) && **path != folder;
            let below: Vec<PathBuf> = self.wanted.keys().filter(is_below).cloned().collect();
            for path in below {
                self.wanted.remove(&path);
                self.left.insert(path, NO_FOLDER);
            }
        }
    }

    /// Returns the paths that the plan changes, each with its current entry and its wanted entry.
    pub(crate) fn changes(&self) -> Vec<Change> {
        changes(&self.now, &self.wanted)
    }

    /// Returns the wanted entries of the workspace.
    pub(crate) fn wanted(&self) -> &Files {
        &self.wanted
    }

    /// Returns the result of the plan if no change fails.
    pub(crate) fn preview(&self) -> Restored {
        let (removed, written): (Vec<Change>, Vec<Change>) =
            self.changes().into_iter().partition(|(_, _, wanted)| wanted.is_none());
        let paths = |changes: Vec<Change>| changes.into_iter().map(|(path, ..)| path).collect();
        Restored { written: paths(written), removed: paths(removed), left: self.paths_to_leave() }
    }

    /// Returns the paths to leave as they are, each with the reason.
    pub(crate) fn paths_to_leave(&self) -> Vec<Left> {
        let left = self.left.iter();
        left.map(|(path, why)| Left { path: path.clone(), why: (*why).to_owned() }).collect()
    }

    /// Returns the paths that only `after` has, a snapshot taken after the undo: they are no longer ignored.
    pub(crate) fn unignored_paths(&self, after: &Files) -> impl Iterator<Item = PathBuf> {
        let is_new = |path: &&PathBuf| !self.wanted.contains_key(*path) && !self.now.contains_key(*path);
        after.keys().filter(is_new).cloned()
    }

    /// Sets the wanted entry of a path, and those of missing folders above it. Returns false if one of these folders
    /// cannot be restored, for example because a file has its path.
    fn put(&mut self, path: &Path, entry: Entry, before: &Files) -> bool {
        let folders: Vec<&Path> =
            path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
        for folder in folders.into_iter().rev() {
            match (self.wanted.get(folder), before.get(folder)) {
                (Some(entry), _) if entry.is_folder() => {}
                (None, Some(entry)) if entry.is_folder() => {
                    self.wanted.insert(folder.to_owned(), *entry);
                }
                _ => return false,
            }
        }
        self.wanted.insert(path.to_owned(), entry);
        true
    }

    /// Returns the longest path that is the parent of a wanted path, but is not a wanted folder.
    fn missing_folder(&self) -> Option<PathBuf> {
        let is_folder = |path: &Path| self.wanted.get(path).is_some_and(Entry::is_folder);
        let parents = self.wanted.keys().filter_map(|path| path.parent());
        let missing = parents.filter(|path| !path.as_os_str().is_empty() && !is_folder(path));
        missing.max_by_key(|path| path.as_os_str().len()).map(Path::to_owned)
    }
}

/// Returns the paths whose entries differ, in order.
pub(crate) fn changes(old: &Files, new: &Files) -> Vec<Change> {
    let paths: BTreeSet<&PathBuf> = old.keys().chain(new.keys()).collect();
    let entries =
        paths.into_iter().map(|path| (path.clone(), old.get(path).copied(), new.get(path).copied()));
    entries.filter(|(_, old, new)| old != new).collect()
}
