//! How many processes a command may have: counted by a cgroup where one can be made, else by the limit of
//! its user, which does not bind root.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Resource, Rlimit};

/// A cgroup of one command.
#[derive(Debug)]
pub(super) struct Pids(PathBuf);

impl Pids {
    /// A cgroup for at most `max` processes and threads; `leader` makes its name unlike others'.
    pub(super) fn create(leader: u32, max: u32) -> Option<Self> {
        let folder = parent()?.join(format!("archon-{leader}"));
        fs::create_dir(&folder).ok()?;
        let pids = Self(folder);
        if fs::write(pids.0.join("pids.max"), max.to_string()).is_err() {
            pids.remove();
            return None;
        }
        Some(pids)
    }

    /// Counts a process and all that it starts.
    pub(super) fn add(&self, process: u32) -> std::io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), process.to_string())
    }

    /// Takes it away as soon as its processes have gone; true if it is gone.
    pub(super) fn remove(&self) -> bool {
        fs::remove_dir(&self.0).is_ok() || !self.0.exists()
    }

    /// The same, for as long as processes that got a signal may take.
    pub(super) fn remove_soon(&self) {
        for _ in 0..400 {
            if self.remove() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        tracing::warn!(target: "archon::tools", cgroup = %self.0.display(), "a cgroup cannot be removed");
    }
}

/// Why processes cannot be counted here.
pub(super) fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let probe = parent().map(|parent| parent.join(format!("archon-probe-{}", std::process::id())));
    let made = probe.map(|probe| (fs::create_dir(&probe), probe));
    match made {
        Some((Ok(()), probe)) => {
            let counts = probe.join("pids.max").exists();
            let _ = fs::remove_dir(&probe);
            (!counts).then(cannot_count)
        }
        // Another thread asks at the same time.
        Some((Err(e), _)) if e.kind() == std::io::ErrorKind::AlreadyExists => None,
        _ => Some(cannot_count()),
    }
}

fn cannot_count() -> String {
    "root's processes cannot be counted: no cgroup with pids can be made".to_owned()
}

/// Limits the processes of the user of `process`, which are those there are and `max` more.
pub(super) fn limit_user(process: Pid, max: u32) -> std::io::Result<()> {
    let all = rustix::process::geteuid().as_raw();
    let there: u64 = fs::read_dir("/proc")?
        .flatten()
        .filter(|entry| entry.metadata().is_ok_and(|of| of.uid() == all))
        .map(|entry| threads(&entry.path()))
        .sum();
    let most = Some(there + u64::from(max));
    rustix::process::prlimit(Some(process), Resource::Nproc, Rlimit { current: most, maximum: most })?;
    Ok(())
}

fn threads(process: &Path) -> u64 {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
}

/// The folder in which cgroups that count processes can be made: our own, of version 1 or 2.
fn parent() -> Option<PathBuf> {
    let ours = fs::read_to_string("/proc/self/cgroup").ok()?;
    ours.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let mount = match controllers {
            "" if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() => Path::new("/sys/fs/cgroup"),
            list if list.split(',').any(|one| one == "pids") => Path::new("/sys/fs/cgroup/pids"),
            _ => return None,
        };
        Some(mount.join(path.trim_start_matches('/')))
    })
}
