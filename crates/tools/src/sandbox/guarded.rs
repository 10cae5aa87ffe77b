//! Protects the places that one command may not change or see. They are found before the command runs,
//! protected while it runs, and compared at its end, even if the call was dropped.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use archon_types::{ToolContext, ToolError};

use super::{
    Access, Cage,
    compare::Before,
    control::{Denied, MOST, Places, find},
};

/// The owner of a command's processes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// The call that starts the command: the processes end with it, and the command's input is empty.
    Call,
    /// This process: the command runs on after the call, and has an input.
    Process,
}

/// Time after which killed processes have probably ended.
const DYING: Duration = Duration::from_millis(200);

/// The protected places of one command.
pub(super) struct Guarded {
    places: Arc<Guard>,
    #[cfg(target_os = "linux")]
    mounts: Option<super::mounts::Mounts>,
    is_settled: bool,
}

struct Guard {
    cage: Cage,
    denied: Denied,
    before: Before,
    owner: Owner,
}

impl Guarded {
    /// Finds the places that the command may not change or see.
    ///
    /// # Errors
    /// An excluded folder cannot be hidden from the command, or the workspace cannot be listed.
    pub(super) fn new(cage: &Cage, context: &ToolContext, owner: Owner) -> Result<Self, ToolError> {
        let is_held = cage.holds_places();
        cage.make_excluded(is_held)?;
        let denied = Denied::new(cage, context);
        let since = SystemTime::now();
        let places = find(cage, &denied, MOST);
        if let Some(root) = cage.roots.iter().find(|root| places.closed.contains(*root)) {
            return Err(ToolError::PermissionDenied(format!(
                "'{}' cannot be listed, so its protected files are not known, and the command was not run. The person can \
                 give the right back: chmod u+rwx '{0}'",
                root.display()
            )));
        }
        #[cfg(target_os = "linux")]
        let mounts = (is_held && (cage.access == Access::Write || !places.hidden.is_empty()))
            .then(|| mounts(cage, &places));
        let before = Before::new(places, since, is_held);
        Ok(Self {
            places: Arc::new(Guard { cage: cage.clone(), denied, before, owner }),
            #[cfg(target_os = "linux")]
            mounts,
            is_settled: false,
        })
    }

    /// Returns the mounts of a command with this scratch folder and working directory.
    #[cfg(target_os = "linux")]
    pub(super) fn mounts(&self, scratch: &Path, directory: Option<&Path>) -> Option<super::mounts::Mounts> {
        let mut mounts = self.mounts.clone()?;
        mounts.scratch = Some((scratch.to_owned(), self.places.cage.options.max_scratch));
        mounts.directory = directory.map(Path::to_owned).or_else(|| std::env::current_dir().ok());
        Some(mounts)
    }

    /// Restores the places that a command of a call changed, and returns sentences that describe the changes.
    pub(super) fn settle(&mut self) -> Vec<String> {
        self.is_settled = true;
        self.places.settle()
    }
}

impl Guard {
    fn settle(&self) -> Vec<String> {
        match (self.cage.access, self.owner) {
            (Access::Read, _) => Vec::new(),
            (Access::Write, Owner::Call) => self.before.settle(&self.cage, &self.denied),
            (Access::Write, Owner::Process) => self.before.report(&self.cage, &self.denied),
        }
    }

    fn settle_alone(&self) {
        for note in self.settle() {
            tracing::warn!(target: "archon::tools", "{note}");
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        self.places.settle_alone();
        // Killed processes may still be in their last system call; compare again later, in the background.
        let places = self.places.clone();
        let again = std::thread::Builder::new().name("archon-settle".to_owned()).spawn(move || {
            std::thread::sleep(DYING);
            places.settle_alone();
        });
        if let Err(e) = again {
            tracing::warn!(target: "archon::tools", "control files are not compared again: {e}");
        }
    }
}

impl Cage {
    /// Returns whether mounts protect the existing control files and hide denied places.
    pub(super) fn holds_places(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.is_closed() && super::mounts::maker().is_ok();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Returns the granted folders.
    pub(super) fn granted(&self) -> impl Iterator<Item = &PathBuf> {
        self.roots.iter().chain(&self.options.read).chain(&self.options.write)
    }

    /// Returns the excluded folders that are within a granted folder.
    pub(super) fn excluded_inside(&self) -> BTreeSet<PathBuf> {
        let is_inside = |folder: &&PathBuf| self.granted().any(|granted| folder.starts_with(granted));
        let there = self.excluded.iter().map(|(folder, _)| folder).filter(is_inside);
        there.filter(|folder| folder.symlink_metadata().is_ok()).cloned().collect()
    }

    /// Creates the excluded folders that do not exist yet, so that they can be hidden: otherwise a command could
    /// create and fill them.
    fn make_excluded(&self, is_held: bool) -> Result<(), ToolError> {
        let refused = |folder: &Path, what: &str, why: &str| {
            Err(ToolError::PermissionDenied(format!(
                "'{}' belongs to no workspace ({what}), but is in a folder that commands may use, and cannot be hidden \
                 from them: {why}. The command was not run. Use the file tools, or ask the person to take another workspace.",
                folder.display()
            )))
        };
        for (folder, what) in self.excluded.iter() {
            if self.granted().any(|granted| granted.starts_with(folder)) {
                return refused(folder, what, "the workspace is in it");
            }
            let mut around = self.granted().filter(|granted| folder.starts_with(granted)).peekable();
            if around.peek().is_none() {
                continue;
            }
            if !is_held {
                let is_read_only =
                    |granted: &PathBuf| self.options.read.contains(granted) && !self.roots.contains(granted);
                if around.all(is_read_only) {
                    continue;
                }
                return refused(folder, what, "this user can make no mounts here");
            }
            if self.access == Access::Write
                && folder.symlink_metadata().is_err()
                && let Err(e) = make_folder(folder)
            {
                return refused(folder, what, &format!("it cannot be made: {e}"));
            }
        }
        Ok(())
    }
}

/// Creates a folder that only its owner can use.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(target_os = "linux")]
fn mounts(cage: &Cage, places: &Places) -> super::mounts::Mounts {
    let roots = cage.roots.iter().chain(&cage.options.write);
    let write =
        roots.filter(|_| cage.access == Access::Write).filter_map(|folder| folder.canonicalize().ok());
    let write: Vec<PathBuf> = write.collect();
    // A mount on a link is a mount on its target.
    let held = |path: &PathBuf| match path.symlink_metadata().ok()?.is_symlink() {
        false => Some(path.clone()),
        true => path.canonicalize().ok().filter(|to| {
            write.iter().any(|root| to.starts_with(root) && to != root) && !to.join("HEAD").exists()
        }),
    };
    super::mounts::Mounts {
        pinned: places.pinned.iter().cloned().collect(),
        fixed: places.fixed.iter().filter_map(held).collect::<BTreeSet<_>>().into_iter().collect(),
        hidden: places.hidden.iter().cloned().collect(),
        write,
        ..Default::default()
    }
}
