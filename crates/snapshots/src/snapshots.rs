//! The snapshots of one workspace: taken, compared, restored.

use std::{
    cell::{Cell, LazyCell},
    collections::HashSet,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    Restored, SnapshotError, SnapshotId, SnapshotLimits,
    beneath::Folder,
    index::{Index, Known},
    objects::Objects,
    plan::{CHANGED_LATE, Change, MAY_BE_MOVED, Plan, UndoStep, WAS_IGNORED, changes},
    restore::Restore,
    rules::{self, Rules, RulesOfSnapshot},
    scan::{Scan, stamps},
    store::{Kept, Lock, Store},
    tree::{Files, Hash},
};

/// The snapshots of one workspace. Several processes and threads may have the same workspace open; one at a
/// time works on it. All calls block the thread.
///
/// ```
/// use std::{path::Path, time::SystemTime};
///
/// use archon_snapshots::{SnapshotError, SnapshotLimits, Snapshots};
///
/// fn open(workspace: &Path) -> Result<Snapshots, SnapshotError> {
///     let snapshots = Snapshots::open("data/snapshots".as_ref(), workspace, SnapshotLimits::default())?;
///     Ok(snapshots.without(&workspace.join("data")).with_time(SystemTime::now))
/// }
/// ```
#[derive(Clone)]
pub struct Snapshots {
    store: Arc<Store>,
    objects: Arc<Objects>,
    workspace: PathBuf,
    without: Vec<PathBuf>,
    limits: SnapshotLimits,
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

/// A path that differs between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// Only the second snapshot has the path.
    Created(PathBuf),
    /// Only the first snapshot has the path.
    Removed(PathBuf),
    /// The kind, the content or the permissions differ.
    Changed(PathBuf),
}

/// A snapshot that was just taken.
pub(crate) struct Taken {
    pub(crate) id: SnapshotId,
    found: Vec<(Vec<u8>, Known)>,
}

/// Number of snapshots above the limit at which the store is pruned, so that not every snapshot prunes it.
const SLACK: usize = 50;

/// Maximum size in bytes of a workspace that [`Snapshots::prepare`] copies for the first time.
const AHEAD: u64 = 64_000_000;

/// Interval at which the first scan writes the index of the files found so far, in nanoseconds.
const SAVED_AFTER: i64 = 2_000_000_000;

impl Snapshots {
    /// Opens the snapshots of `workspace` in the folder `store`, which is created if it is missing. The store may be
    /// inside of the workspace; snapshots leave it out.
    ///
    /// # Errors
    /// The workspace cannot be read, or the store cannot be written.
    pub fn open(store: &Path, workspace: &Path, limits: SnapshotLimits) -> Result<Self, SnapshotError> {
        let unreadable = |source| SnapshotError::Workspace { path: workspace.to_owned(), source };
        let workspace = workspace.canonicalize().map_err(unreadable)?;
        let of_workspace = Store::open(store, &workspace)?;
        let objects = Objects::open(&of_workspace.folder)?;
        let own = Self {
            store: Arc::new(of_workspace),
            objects: Arc::new(objects),
            workspace,
            without: Vec::new(),
            limits,
            now: Arc::new(SystemTime::now),
        };
        Ok(own.without(store))
    }

    /// Leaves a folder out of all snapshots, such as the one with the logs of runs. A folder that does not exist
    /// or is not inside of the workspace has no effect.
    #[must_use]
    pub fn without(mut self, folder: &Path) -> Self {
        let real = folder.canonicalize();
        let inside = real.iter().filter_map(|real| real.strip_prefix(&self.workspace).ok());
        self.without.extend(inside.filter(|inside| !inside.as_os_str().is_empty()).map(Path::to_owned));
        self
    }

    /// Sets the source of the time, for tests.
    #[must_use]
    pub fn with_time(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.now = Arc::new(now);
        self
    }

    /// Returns the workspace, as an absolute path without links.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Takes a snapshot before any work, so that the next one is quick. If the store has no snapshot of the workspace
    /// yet, a workspace of more than 64 MB is an error: the work may change nothing, and then the copy would be
    /// useless.
    ///
    /// # Errors
    /// As [`take`](Self::take), or the workspace is too large to be copied before the work.
    pub fn prepare(&self) -> Result<(), SnapshotError> {
        let _lock = self.lock()?;
        if Index::read(&self.store.index()).len() == 0 {
            let limits = self.limits.with_bytes(self.limits.bytes.min(AHEAD));
            self.check(limits, &[], &self.root()?)?;
        }
        self.scan(&[])?;
        self.prune_if_full()
    }

    /// Takes a snapshot. Files that were not changed since the latest snapshot are not read.
    ///
    /// # Errors
    /// The workspace is too large or cannot be read, the store cannot be written, or another process works on the
    /// snapshots of the workspace for too long.
    pub fn take(&self) -> Result<SnapshotId, SnapshotError> {
        let _lock = self.lock()?;
        let id = self.scan(&[])?.id;
        self.prune_if_full()?;
        Ok(id)
    }

    /// Takes a snapshot after some work. A file of the snapshot `before` that still exists is also in this one, even
    /// if the work added a rule that ignores it.
    ///
    /// # Errors
    /// As [`take`](Self::take), or the snapshot `before` is no longer kept.
    pub fn take_after(&self, before: &SnapshotId) -> Result<SnapshotId, SnapshotError> {
        let _lock = self.lock()?;
        let mut id = self.scan(&[])?.id;
        if has_new_rules(&self.objects.changes(before, &id)?) {
            id = self.scan(&[&self.objects.files(before)?])?.id;
        }
        self.prune_if_full()?;
        Ok(id)
    }

    /// Returns the paths that differ between two snapshots, in order.
    ///
    /// # Errors
    /// One of the snapshots is no longer kept.
    pub fn diff(&self, a: &SnapshotId, b: &SnapshotId) -> Result<Vec<Difference>, SnapshotError> {
        let changes = self.objects.changes(a, b)?.into_iter();
        Ok(changes
            .map(|(path, old, new)| match (old, new) {
                (None, _) => Difference::Created(path),
                (_, None) => Difference::Removed(path),
                _ => Difference::Changed(path),
            })
            .collect())
    }

    /// Returns the result that [`undo`](Self::undo) of these steps would have, without changing the workspace. The
    /// steps are given oldest first. For the result of a redo, pass [`Undone::step`](crate::Undone::step).
    ///
    /// # Errors
    /// As [`take`](Self::take), or a snapshot is no longer kept.
    pub fn preview(&self, steps: &[UndoStep]) -> Result<Restored, SnapshotError> {
        let _lock = self.lock()?;
        Ok(self.plan(steps)?.1.preview())
    }

    /// Removes snapshots beyond the limits, and the contents that no kept snapshot needs. [`take`](Self::take) also
    /// does this when the store has become too large.
    ///
    /// # Errors
    /// The store cannot be read or written, or another process uses the snapshots of the workspace for too long.
    pub fn prune(&self) -> Result<(), SnapshotError> {
        let _lock = self.lock()?;
        self.prune_locked()
    }

    /// Undoes the steps. Before the first change, calls `note` with the snapshot of the current state and the
    /// snapshot of the wanted state.
    pub(crate) fn restore(
        &self,
        steps: &[UndoStep],
        note: impl FnOnce(SnapshotId, SnapshotId) -> Result<(), SnapshotError>,
    ) -> Result<Restored, SnapshotError> {
        let (taken, plan) = self.plan(steps)?;
        let root = self.root()?;
        note(taken.id, self.keep_wanted(&plan)?)?;
        let restore = Restore { root: &root, objects: &self.objects, stamps: &stamps(&taken.found) };
        let mut restored = restore.run(&plan);
        if has_new_rules(&plan.changes()) {
            let known = self.objects.files(&taken.id);
            let after = known.and_then(|known| self.scan(&[&known]));
            // The files are restored. An error now would hide that.
            if let Ok(after) = after.and_then(|after| self.objects.files(&after.id)) {
                restored.add_unignored(plan.unignored_paths(&after));
            }
        }
        Ok(restored)
    }

    /// Stores the state that a plan wants, and keeps it as a snapshot.
    fn keep_wanted(&self, plan: &Plan) -> Result<SnapshotId, SnapshotError> {
        let id = SnapshotId(self.objects.write_files(plan.wanted())?);
        self.keep(id, None)?;
        Ok(id)
    }

    /// Waits until no other process or thread works on the workspace, and keeps them out until the lock is dropped.
    pub(crate) fn lock(&self) -> Result<Lock<'_>, SnapshotError> {
        self.store.lock(self.limits.lock_wait)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    fn plan(&self, steps: &[UndoStep]) -> Result<(Taken, Plan), SnapshotError> {
        let mut states = Vec::with_capacity(steps.len());
        for (place, step) in steps.iter().enumerate() {
            let after = step.after.or_else(|| steps.get(place + 1).map(|next| next.before));
            states.push((
                self.objects.files(&step.before)?,
                after.map(|after| self.objects.files(&after)).transpose()?,
            ));
        }
        let known: Vec<&Files> =
            states.iter().flat_map(|(before, after)| [before].into_iter().chain(after)).collect();
        let kept = self.store.list_kept();
        let taken = self.scan(&known)?;
        let (now, stamps) = (self.objects.files(&taken.id)?, stamps(&taken.found));
        let mut plan = Plan::new(now.clone());
        for (step, (before, after)) in steps.iter().zip(&states).rev() {
            let changes = changes(before, after.as_ref().unwrap_or(&now));
            let mut rules = has_new_rules(&changes)
                .then(|| RulesOfSnapshot::new(Rules::above(&self.workspace), before, &self.objects));
            let began = kept.iter().find(|kept| kept.id == step.before).map_or(i64::MAX, |kept| kept.began);
            let known = LazyCell::new(|| before.values().map(|entry| entry.hash).collect::<HashSet<_>>());
            let ended = step.ended.filter(|_| step.after.is_none()).map(nanoseconds);
            plan.take_back(&changes, before, |path, old, new| {
                let stamp = stamps.get(path);
                if ended.is_some_and(|ended| stamp.is_some_and(|stamp| stamp.is_changed_after(ended))) {
                    return Some(CHANGED_LATE);
                }
                let new = new.filter(|_| old.is_none())?;
                if rules.as_mut().is_some_and(|rules| rules.ignore(path, new.is_folder())) {
                    return Some(WAS_IGNORED);
                }
                let is_old = stamp.is_some_and(|stamp| stamp.is_older(began));
                (is_old && !known.contains(&new.hash)).then_some(MAY_BE_MOVED)
            });
        }
        plan.settle();
        Ok((taken, plan))
    }

    /// Takes a snapshot. It includes the files of the snapshots `known` even if they are ignored now.
    fn scan(&self, known: &[&Files]) -> Result<Taken, SnapshotError> {
        let began = nanoseconds((self.now)());
        let index = Index::read(&self.store.index());
        let root = self.root()?;
        let is_first = index.len() == 0;
        if is_first {
            // So that a workspace that is too large is not stored in part.
            self.check(self.limits, known, &root)?;
        }
        let saved = Cell::new(began);
        let save = |found: &[_]| {
            let now = if is_first { nanoseconds((self.now)()) } else { began };
            if now.saturating_sub(saved.get()) < SAVED_AFTER {
                return Ok(());
            }
            saved.set(now);
            Index::write(&self.store.index(), found, began)
        };
        let mut scan = Scan::new((&self.objects, &index), self.places(), self.limits, known, &save);
        let id = SnapshotId(scan.run(&root)?);
        self.keep(id, Some(began))?;
        if scan.read > 0 || scan.found.len() != index.len() {
            Index::write(&self.store.index(), &scan.found, began)?;
        }
        Ok(Taken { id, found: scan.found })
    }

    /// Checks that the workspace is within limits, without reading or storing a file.
    fn check(&self, limits: SnapshotLimits, known: &[&Files], root: &Folder) -> Result<(), SnapshotError> {
        let index = Index::default();
        Scan::new((&self.objects, &index), self.places(), limits, known, &|_| Ok(())).check(root)
    }

    fn places(&self) -> (&Path, &[PathBuf]) {
        (&self.workspace, &self.without)
    }

    fn root(&self) -> Result<Folder, SnapshotError> {
        let unreadable = |source| SnapshotError::Workspace { path: self.workspace.clone(), source };
        Folder::root(&self.workspace).map_err(unreadable)
    }

    /// Adds a snapshot to the kept ones, as the latest. `began` is the start time of its scan; `None` if no scan made
    /// it.
    fn keep(&self, id: SnapshotId, began: Option<i64>) -> Result<(), SnapshotError> {
        let mut kept = self.store.list_kept();
        let place = kept.iter().position(|kept| kept.id == id);
        let now = || nanoseconds((self.now)());
        let mut latest =
            place.map_or_else(|| Kept { id, began: now(), added: 0 }, |place| kept.remove(place));
        latest.began = began.unwrap_or(latest.began);
        latest.added += self.objects.take_added();
        kept.push(latest);
        self.store.keep(&kept)
    }

    /// Prunes the store if it has too many snapshots or bytes. An undo does not call this, because it may need the
    /// oldest snapshots.
    fn prune_if_full(&self) -> Result<(), SnapshotError> {
        let kept = self.store.list_kept();
        let size: u64 = kept.iter().map(|kept| kept.added).sum();
        let is_full = kept.len() > self.limits.kept.saturating_add(SLACK) || size > self.max_bytes();
        if is_full { self.prune_locked() } else { Ok(()) }
    }

    /// Returns the maximum size of the store in bytes.
    fn max_bytes(&self) -> u64 {
        self.limits.bytes.saturating_mul(2)
    }

    fn prune_locked(&self) -> Result<(), SnapshotError> {
        let all = self.store.list_kept();
        let mut needed: HashSet<Hash> = Index::read(&self.store.index()).hashes().collect();
        let size_of = |hashes: &HashSet<Hash>| hashes.iter().map(|hash| self.objects.size(hash)).sum::<u64>();
        let of_index = size_of(&needed);
        let (mut size, mut kept) = (of_index, Vec::<Kept>::new());
        // An eighth less than the maximum, so that not every snapshot prunes.
        let most = self.max_bytes() - self.max_bytes() / 8;
        for one in all.into_iter().rev().take(self.limits.kept) {
            let mut more = HashSet::new();
            self.objects.mark(&one.id.0, &needed, &mut more);
            let added = size_of(&more);
            // The latest two are kept in any case: the work between them is the latest.
            if kept.len() >= 2 && size.saturating_add(added) > most {
                break;
            }
            size = size.saturating_add(added);
            needed.extend(more);
            kept.push(Kept { added, ..one });
        }
        kept.reverse();
        if let Some(oldest) = kept.first_mut() {
            oldest.added += of_index;
        }
        self.store.keep(&kept)?;
        self.objects.remove(|hash| needed.contains(hash))
    }
}

/// Returns a time in nanoseconds since the Unix epoch.
fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    i64::try_from(since).unwrap_or(i64::MAX)
}

/// Returns true if a file with ignore rules is among the changes.
fn has_new_rules(changes: &[Change]) -> bool {
    changes.iter().any(|(path, ..)| path.file_name().is_some_and(|name| name == rules::NAME))
}

impl fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}
