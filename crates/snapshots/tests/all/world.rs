//! A workspace, its store, and a folder beside it that nothing may touch.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use archon_snapshots::{Limits, Restored, SnapshotId, Snapshots, Step};
use tempfile::TempDir;

/// The state of a file or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    File(u32, Vec<u8>),
    Link(PathBuf),
}

pub(crate) type States = BTreeMap<PathBuf, State>;

pub(crate) struct World {
    folder: TempDir,
    pub(crate) workspace: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) snapshots: Snapshots,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (workspace, outside) = (folder.path().join("workspace"), folder.path().join("outside"));
        for folder in [&workspace, &outside, &workspace.join(".git")] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(workspace.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let snapshots = Snapshots::open(&folder.path().join("store"), &workspace, Limits::default()).unwrap();
        Self { folder, workspace, outside, snapshots }
    }

    /// The store as another process opens it.
    pub(crate) fn open(&self, limits: Limits) -> Snapshots {
        Snapshots::open(&self.store(), &self.workspace, limits).unwrap()
    }

    /// The snapshots at a time at which all files are old.
    pub(crate) fn later(&self) -> Snapshots {
        self.open(Limits::default()).with_time(|| SystemTime::now() + Duration::from_secs(60))
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.workspace.join(path)).unwrap()
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.workspace.join(path).symlink_metadata().is_ok()
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.workspace.join(path)).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        symlink(target, self.workspace.join(path)).unwrap();
    }

    pub(crate) fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.workspace.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Sets the time of the last change of a file.
    pub(crate) fn set_time(&self, path: &str, time: SystemTime) {
        let file = fs::File::options().append(true).open(self.workspace.join(path)).unwrap();
        file.set_modified(time).unwrap();
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.workspace.join(from), self.workspace.join(to)).unwrap();
    }

    pub(crate) fn take(&self) -> SnapshotId {
        self.snapshots.take().unwrap()
    }

    /// Does some work, with a snapshot before and after it.
    pub(crate) fn turn(&self, name: &str, work: impl FnOnce(&Self)) -> Step {
        let before = self.take();
        work(self);
        Step::new(name, before, Some(self.snapshots.take_after(&before).unwrap()))
    }

    pub(crate) fn undo(&self, steps: &[Step]) -> Restored {
        self.snapshots.undo("session", steps).unwrap()
    }

    /// Makes a repository of the workspace, with a commit. Returns false if there is no `git`.
    pub(crate) fn init_git(&self) -> bool {
        if Command::new("git").arg("--version").output().is_err() {
            return false;
        }
        assert!(self.git(&["init", "-q"]) && self.commit(), "git makes no repository");
        true
    }

    /// Commits all files of the workspace, in a repository of `git`.
    pub(crate) fn commit(&self) -> bool {
        self.git(&["add", "-A"]) && self.git(&["commit", "-q", "--allow-empty", "-m", "work"])
    }

    /// Runs `git` without settings of this machine, and without work that goes on after it.
    fn git(&self, words: &[&str]) -> bool {
        let settings =
            ["user.name=Anna", "user.email=anna@example.com", "gc.auto=0", "maintenance.auto=false"];
        let mut git = Command::new("git");
        git.args(settings.into_iter().flat_map(|setting| ["-c", setting])).args(words);
        git.env("HOME", self.folder.path()).env("GIT_CONFIG_NOSYSTEM", "1").env_remove("XDG_CONFIG_HOME");
        git.env_remove("GIT_DIR").env_remove("GIT_INDEX_FILE").env_remove("GIT_WORK_TREE");
        git.current_dir(&self.workspace).output().unwrap().status.success()
    }

    /// All files and links of the workspace, `.git` aside.
    pub(crate) fn states(&self) -> States {
        states(&self.workspace).into_iter().filter(|(path, _)| !path.starts_with(".git")).collect()
    }
}

/// All files and links below a folder.
pub(crate) fn states(folder: &Path) -> States {
    let mut states = States::new();
    collect(folder, Path::new(""), &mut states);
    states
}

fn collect(folder: &Path, below: &Path, states: &mut States) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, of) = (below.join(entry.file_name()), entry.path().symlink_metadata().unwrap());
        if of.is_dir() {
            collect(&entry.path(), &path, states);
        } else if of.is_symlink() {
            states.insert(path, State::Link(fs::read_link(entry.path()).unwrap()));
        } else {
            let mode = of.permissions().mode() & 0o777;
            states.insert(path, State::File(mode, fs::read(entry.path()).unwrap()));
        }
    }
}

pub(crate) fn paths_that_stay(restored: &Restored) -> Vec<String> {
    restored.left.iter().map(|left| left.path.display().to_string()).collect()
}
