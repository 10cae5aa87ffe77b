//! Finds the places in the granted folders that a command may not change or see: control files, files that rules deny,
//! and excluded folders ([`Workspace::without`](crate::Workspace::without)).

use std::{
    collections::{BTreeSet, VecDeque},
    fs::{self, FileType},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon_types::{Context, PermissionBound, Permit, Subject, ToolContext, ToolSpec};

use super::{Access, Cage};
use crate::{
    control::named,
    git_settings::{self, is_git},
};

/// Maximum number of files and folders that are searched for protected ones before a command; upper levels
/// are searched first.
pub(super) const MOST: usize = 50_000;

/// Folders whose subfolders are not searched: they have many generated or foreign files, and are usually
/// deleted as a whole.
const OF_OTHERS: &[&str] = &["node_modules", "target", ".venv", "venv"];

/// The places in the granted folders that a command may not change or see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// Files and folders that must not change.
    pub(super) fixed: BTreeSet<PathBuf>,
    /// Folders that must not be moved, because they contain files or folders that must not change.
    pub(super) pinned: BTreeSet<PathBuf>,
    /// Places that a command must not see.
    pub(super) hidden: BTreeSet<PathBuf>,
    /// Folders that cannot be listed.
    pub(super) closed: BTreeSet<PathBuf>,
    /// True if the search did not reach all entries.
    pub(super) is_partial: bool,
}

/// The permission rules that deny paths, for one call.
#[derive(Clone)]
pub(super) struct Denied {
    rules: Option<(Arc<dyn PermissionBound>, Context)>,
    root: PathBuf,
    read: ToolSpec,
    write: ToolSpec,
}

impl Denied {
    pub(super) fn new(cage: &Cage, context: &ToolContext) -> Self {
        let tool = |name: &str| ToolSpec::new(name, "", serde_json::json!({}));
        Self {
            rules: context.places.clone().map(|rules| (rules, context.run.clone())),
            root: cage.roots.first().cloned().unwrap_or_default(),
            read: tool("read_file"),
            write: tool("write_file"),
        }
    }

    fn reading(&self, path: &Path) -> bool {
        self.is_denied(&self.read, path)
    }

    pub(super) fn writing(&self, path: &Path) -> bool {
        self.is_denied(&self.write, path)
    }

    /// Returns whether a rule about paths denies a path to a tool. Rules about the whole tool do not count.
    fn is_denied(&self, tool: &ToolSpec, path: &Path) -> bool {
        let Some((rules, run)) = &self.rules else { return false };
        let subject = Subject::Paths { root: self.root.clone(), paths: vec![path.to_owned()] };
        matches!(rules.verdict(tool, &subject, run), Permit::Deny(rule) if rule.contains('('))
    }
}

/// Finds the [`Places`] that the command may not change or see; searches at most `most` entries of the
/// workspace.
pub(super) fn find(cage: &Cage, denied: &Denied, most: usize) -> Places {
    let mut search =
        Search { cage, denied, places: Places::default(), queue: VecDeque::new(), remaining: most };
    if cage.access == Access::Write || denied.rules.is_some() {
        search.queue.extend(cage.roots.iter().map(|root| (root.clone(), root.clone(), true)));
    }
    let granted =
        cage.options.write.iter().filter(|_| cage.access == Access::Write).chain(&cage.options.read);
    search.places.hidden.extend(granted.filter(|folder| denied.reading(folder)).cloned());
    while let Some((root, folder, goes_on)) = search.queue.pop_front() {
        search.folder(&root, &folder, goes_on);
    }
    search.hide_excluded();
    search.places
}

struct Search<'s> {
    cage: &'s Cage,
    denied: &'s Denied,
    places: Places,
    /// Folders to search: the workspace folder that contains the folder, the folder, and whether the folder's
    /// subfolders are searched.
    queue: VecDeque<(PathBuf, PathBuf, bool)>,
    /// Number of entries that may still be searched.
    remaining: usize,
}

impl Search<'_> {
    fn folder(&mut self, root: &Path, folder: &Path, goes_on: bool) {
        let listed = match fs::read_dir(folder) {
            Ok(listed) => Some(listed),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
            Err(_) => {
                self.closed(root, folder);
                return;
            }
        };
        let mut entries: Vec<_> = listed
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?)))
            .take(self.remaining + 1)
            .collect();
        if entries.len() > self.remaining {
            self.places.is_partial = true;
            entries.truncate(self.remaining);
        }
        self.remaining -= entries.len();
        let is_git = is_git(|wanted| entries.iter().any(|(name, _)| name == wanted));
        if is_git {
            self.git(root, folder);
        }
        for (name, kind) in entries {
            if is_git && ["objects", "refs", "logs"].iter().any(|known| name == *known) {
                continue;
            }
            let is_control = named(folder.file_name().filter(|_| folder != root), &name).is_some();
            // Most files are irrelevant, and there are many.
            if is_control || kind.is_dir() || self.denied.rules.is_some() || name.eq_ignore_ascii_case(".git")
            {
                self.entry(root, folder.join(&name), is_control, kind, goes_on);
            }
        }
    }

    /// Protects a whole folder that cannot be listed, because a command may know the name of a file in it.
    fn closed(&mut self, root: &Path, folder: &Path) {
        self.places.closed.insert(folder.to_owned());
        if folder == root {
            return;
        }
        if self.denied.rules.is_some() {
            self.places.hidden.insert(folder.to_owned());
        } else if self.cage.access == Access::Write {
            self.places.fixed.insert(folder.to_owned());
        }
    }

    /// Pins the folders above a denied place: the place is protected by its path, so these folders must not
    /// be moved.
    fn pin_above(&mut self, root: &Path, path: &Path) {
        if self.cage.access == Access::Write {
            let above = path.ancestors().skip(1).take_while(|above| *above != root);
            self.places.pinned.extend(above.map(Path::to_owned));
        }
    }

    fn entry(&mut self, root: &Path, path: PathBuf, is_control: bool, kind: FileType, goes_on: bool) {
        if self.denied.reading(&path) {
            // A rule about a link applies to its target.
            let held = if kind.is_symlink() { path.canonicalize().ok() } else { Some(path.clone()) };
            if let Some(held) = held.filter(|held| held.starts_with(root) && held != root) {
                self.pin_above(root, &held);
                self.places.hidden.insert(held);
            }
            if !kind.is_symlink() {
                return;
            }
        }
        let writes = self.cage.access == Access::Write;
        let is = |known: &str| path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(known));
        let is_denied = writes && self.denied.writing(&path);
        if writes && !is_denied && kind.is_dir() && is(".git") {
            self.git(root, &path);
            for part in ["modules", "worktrees"] {
                self.queue.push_back((root.to_owned(), path.join(part), true));
            }
            return;
        }
        if writes && (is_control || is(".git") || is_denied) {
            if is_denied {
                self.pin_above(root, &path);
            }
            if is(".git") {
                let is_inside = |named: &PathBuf| named.starts_with(root) && named.symlink_metadata().is_ok();
                self.places.fixed.extend(git_settings::named(&path).into_iter().filter(is_inside));
            }
            self.places.fixed.insert(path);
        } else if goes_on && kind.is_dir() {
            let is_of_others = OF_OTHERS.iter().any(|of| is(of));
            self.queue.push_back((root.to_owned(), path, !is_of_others));
        }
    }

    /// Adds the files of a git folder that git runs or reads settings from. A git folder is recognised by
    /// its content, whatever its name.
    fn git(&mut self, root: &Path, folder: &Path) {
        if self.cage.access != Access::Write {
            return;
        }
        if folder != root {
            self.places.pinned.insert(folder.to_owned());
        }
        let parts = git_settings::parts(folder).into_iter();
        let is_there = |part: &PathBuf| part.symlink_metadata().is_ok();
        let may_be_held = |part: &PathBuf| part.starts_with(root) && !folder.starts_with(part);
        self.places.fixed.extend(parts.filter(is_there).filter(may_be_held));
    }

    /// Hides the excluded folders, and pins the folders above them, so that the command cannot move these.
    fn hide_excluded(&mut self) {
        for folder in self.cage.excluded_inside() {
            let granted = self.cage.granted().find(|granted| folder.starts_with(granted)).cloned();
            let between = folder.ancestors().skip(1).take_while(|parent| Some(*parent) != granted.as_deref());
            if self.cage.access == Access::Write {
                self.places.pinned.extend(between.map(Path::to_owned));
            }
            self.places.hidden.insert(folder);
        }
        let hidden = self.places.hidden.clone();
        let is_hidden =
            |path: &PathBuf| hidden.iter().any(|hidden| path != hidden && path.starts_with(hidden));
        for places in [&mut self.places.fixed, &mut self.places.pinned, &mut self.places.hidden] {
            places.retain(|path| !is_hidden(path));
        }
        self.places.fixed.retain(|path| !hidden.contains(path));
    }
}
