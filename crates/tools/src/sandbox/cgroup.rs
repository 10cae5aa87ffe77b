//! The cgroups of a command: limits of processes and memory for all its processes, whatever their user and
//! the kind of memory.
//!
//! Version 2 has one folder for a command, version 1 one for each controller. The name of a cgroup
//! identifies the process that made it, so that a later process can remove what a crash left. If no cgroup
//! can be made, limits of the user and of each process's address space are used; they are weaker, and the
//! limits of the user do not apply to root.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Once,
    time::Duration,
};

use rustix::process::{Pid, Resource, Rlimit};

use super::maker;
use archon_process::kill_if;

/// Prefix of our cgroups' names.
const PREFIX: &str = "archon-";

/// The cgroups of one command.
#[derive(Debug)]
pub(super) struct Cgroup {
    /// The cgroups' folders; the first one limits the number of processes.
    folders: Vec<PathBuf>,
    /// The file with the number of processes killed for lack of memory; `None` if memory is not limited.
    memory: Option<PathBuf>,
}

/// Our own cgroup folders, in which further cgroups can be made.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parents {
    /// The folder that limits the number of processes, in cgroup version 1 or 2.
    pids: PathBuf,
    /// The folder that limits memory in cgroup version 1. In version 2 the folder `pids` limits both.
    memory: Option<PathBuf>,
}

impl Cgroup {
    /// Creates cgroups that limit a command to these numbers of processes and threads, and of bytes of
    /// memory; `leader` makes their name unique.
    pub(super) fn create(leader: u32, processes: u32, bytes: u64) -> Option<Self> {
        Self::create_in(&Parents::ours()?, &maker::name(PREFIX, &leader.to_string())?, processes, bytes)
    }

    fn create_in(parents: &Parents, name: &str, processes: u32, bytes: u64) -> Option<Self> {
        let folder = parents.pids.join(name);
        fs::create_dir(&folder).ok()?;
        let mut cgroup = Self { folders: vec![folder.clone()], memory: None };
        if write(&folder.join("pids.max"), &processes.to_string()).is_err() {
            cgroup.remove();
            return None;
        }
        cgroup.memory = match &parents.memory {
            None => limit_memory(&folder, bytes).ok(),
            Some(parent) => {
                let folder = parent.join(name);
                let made = fs::create_dir(&folder);
                cgroup.folders.extend(made.is_ok().then(|| folder.clone()));
                made.and_then(|()| limit_memory_1(&folder, bytes)).ok()
            }
        };
        Some(cgroup)
    }

    /// Returns whether the memory of all processes is limited, including shared memory and files in memory.
    pub(super) fn holds_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Returns whether a process was killed for lack of memory.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        // Both versions have the line `oom_kill 3`.
        self.memory.as_ref().is_some_and(|events| number(events, "oom_kill ") > 0)
    }

    /// Adds a process; its future children are included.
    pub(super) fn add(&self, process: u32) -> io::Result<()> {
        self.folders.iter().try_for_each(|folder| write(&folder.join("cgroup.procs"), &process.to_string()))
    }

    /// Removes the cgroups if their processes are gone; returns true if they are removed.
    pub(super) fn remove(&self) -> bool {
        let remaining =
            self.folders.iter().filter(|folder| fs::remove_dir(folder).is_err() && folder.exists());
        remaining.count() == 0
    }

    /// Kills the processes until the cgroups can be removed, for about two seconds at most.
    pub(super) fn remove_soon(&self) {
        for _ in 0..400 {
            self.kill();
            if self.remove() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        tracing::warn!(target: "archon::tools", cgroups = ?self.folders, "a cgroup cannot be removed");
    }

    /// Kills every process in the cgroups, also those that left their process group or cleared their
    /// environment.
    fn kill(&self) {
        for folder in &self.folders {
            // One write kills all in version 2, since Linux 5.14. Otherwise no process may be added while the
            // list is processed.
            if write(&folder.join("cgroup.kill"), "1").is_ok() {
                continue;
            }
            let _ = write(&folder.join("pids.max"), "0");
            for process in members(folder) {
                kill_if(process, || members(folder).contains(&process));
            }
        }
    }
}

/// Returns the reason why processes cannot be limited on this system, or `None` if they can.
pub(super) fn missing() -> Option<String> {
    remove_stale();
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let probe =
        Parents::ours().zip(maker::name(PREFIX, "probe")).map(|(parents, name)| parents.pids.join(name));
    let made = probe.map(|probe| (fs::create_dir(&probe), probe));
    match made {
        Some((Ok(()), probe)) => {
            let counts = probe.join("pids.max").exists();
            let _ = fs::remove_dir(&probe);
            (!counts).then(cannot_count)
        }
        // Another thread probes at the same time.
        Some((Err(e), _)) if e.kind() == io::ErrorKind::AlreadyExists => None,
        _ => Some(cannot_count()),
    }
}

pub(super) fn cannot_count() -> String {
    "root's processes cannot be limited: no cgroup with the pids controller can be made".to_owned()
}

/// Limits the number of processes of the user of `process`.
pub(super) fn limit_user(process: Pid, most: u64) -> io::Result<()> {
    let most = Some(most);
    rustix::process::prlimit(Some(process), Resource::Nproc, Rlimit { current: most, maximum: most })?;
    Ok(())
}

/// Returns the number of threads in all processes of this process's user.
pub(super) fn processes_of_user() -> io::Result<u64> {
    let all = rustix::process::geteuid().as_raw();
    let there = fs::read_dir("/proc")?.flatten().filter(|entry| {
        use std::os::unix::fs::MetadataExt;
        entry.metadata().is_ok_and(|of| of.uid() == all)
    });
    Ok(there.map(|entry| number(&entry.path().join("status"), "Threads:")).sum())
}

/// Returns the number after `name` in the first line that begins with `name`, or 0 if the file has none.
fn number(file: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
}

/// Ends commands whose Archon process has died, and removes their cgroups. Runs once, because this process
/// removes the cgroups of its own commands.
fn remove_stale() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some((parents, namespace)) = Parents::ours().zip(maker::namespace()) else { return };
        for parent in std::iter::once(parents.pids).chain(parents.memory) {
            remove_stale_in(&parent, &namespace);
        }
    });
}

fn remove_stale_in(parent: &Path, namespace: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| maker::is_stale(name, PREFIX, namespace)) {
            let stale = Cgroup { folders: vec![entry.path()], memory: None };
            tracing::info!(target: "archon::tools", cgroups = ?stale.folders, "a command of before is ended");
            stale.kill();
            if !stale.remove() {
                std::thread::spawn(move || stale.remove_soon());
            }
        }
    }
}

impl Parents {
    fn ours() -> Option<Self> {
        let is_2 = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
        Self::of(&fs::read_to_string("/proc/self/cgroup").ok()?, is_2)
    }

    /// Parses the lines of `/proc/self/cgroup`, `number:controllers:path`. Cgroup version 2 has one line
    /// without controllers; the line counts only if `is_2`, that is, version 2 is mounted at the usual place.
    fn of(lines: &str, is_2: bool) -> Option<Self> {
        let find = |wanted: &str| {
            lines.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                let (controllers, path) = (parts.next()?, parts.next()?);
                let path = path.trim_start_matches('/');
                controllers
                    .split(',')
                    .any(|one| one == wanted)
                    .then(|| Path::new("/sys/fs/cgroup").join(wanted).join(path))
            })
        };
        match find("").filter(|_| is_2) {
            Some(pids) => Some(Self { pids, memory: None }),
            None => Some(Self { pids: find("pids")?, memory: find("memory") }),
        }
    }
}

/// Limits memory in a folder of version 2, including swap. Returns the file of [`Cgroup::memory`].
fn limit_memory(folder: &Path, bytes: u64) -> io::Result<PathBuf> {
    write(&folder.join("memory.max"), &bytes.to_string())?;
    // The file is missing on systems without swap.
    let _ = write(&folder.join("memory.swap.max"), "0");
    Ok(folder.join("memory.events"))
}

/// Limits memory in a folder of version 1. Returns the file of [`Cgroup::memory`].
fn limit_memory_1(folder: &Path, bytes: u64) -> io::Result<PathBuf> {
    write(&folder.join("memory.limit_in_bytes"), &bytes.to_string())?;
    let _ = write(&folder.join("memory.memsw.limit_in_bytes"), &bytes.to_string());
    let _ = write(&folder.join("memory.swappiness"), "0");
    Ok(folder.join("memory.oom_control"))
}

fn members(folder: &Path) -> Vec<u32> {
    let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Writes to an existing file; a cgroup has a file for each of its settings.
fn write(file: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    // spec: TE-58
    #[test]
    fn folders_of_both_versions_are_found() {
        let one = "8:pids:/a\n4:memory:/b/c\n1:cpu,cpuacct:/\n0::/d\n";
        let of_1 = Parents {
            pids: "/sys/fs/cgroup/pids/a".into(),
            memory: Some("/sys/fs/cgroup/memory/b/c".into()),
        };
        assert_eq!(Parents::of(one, false), Some(of_1));
        let of_2 = Parents { pids: "/sys/fs/cgroup/d".into(), memory: None };
        assert_eq!(Parents::of("0::/d\n", true), Some(of_2));
        assert_eq!(Parents::of("0::/d\n", false), None);
        assert_eq!(Parents::of("3:cpuset:/\n", false), None);
    }

    // spec: TE-58
    #[test]
    fn memory_of_version_2_is_limited_where_its_files_are() {
        let folder = tempfile::tempdir().unwrap();
        assert!(limit_memory(folder.path(), 4096).is_err(), "no controller");
        for name in ["memory.max", "memory.swap.max"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let cgroup = Cgroup {
            folders: vec![folder.path().to_owned()],
            memory: Some(limit_memory(folder.path(), 4096).unwrap()),
        };
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("memory.max"), read("memory.swap.max")), ("4096".to_owned(), "0".to_owned()));
        for (events, expected) in
            [("oom 2\noom_kill 0\n", false), ("oom 2\noom_kill 2\noom_group_kill 0\n", true)]
        {
            fs::write(folder.path().join("memory.events"), events).unwrap();
            assert_eq!(cgroup.ran_out_of_memory(), expected, "{events}");
        }
    }

    /// A process that cleared its environment and left its group is still in its cgroup.
    // spec: TE-58
    #[test]
    fn remove_stale_ends_commands_of_a_crashed_process_and_removes_its_cgroup() {
        let made = Parents::ours().zip(maker::namespace()).and_then(|(parents, namespace)| {
            // The name that another process with this number would have made.
            let name = format!("{PREFIX}{namespace}-{}-0-1", std::process::id());
            Some((Cgroup::create_in(&parents, &name, 20, 64 << 20)?, parents, namespace))
        });
        let Some((cgroup, parents, namespace)) = made else {
            println!("SKIP: no cgroup can be made here");
            return;
        };
        let mut child = Command::new("setsid");
        child.args(["env", "-i", "/bin/sh", "-c", "read -r _; sleep 75.5 & wait"]).stdin(Stdio::piped());
        let mut child = child.spawn().unwrap();
        cgroup.add(child.id()).unwrap();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        while members(&cgroup.folders[0]).len() < 2 {
            std::thread::yield_now();
        }
        for parent in std::iter::once(&parents.pids).chain(&parents.memory) {
            remove_stale_in(parent, &namespace);
        }
        assert!(!child.wait().unwrap().success());
        while !cgroup.remove() {
            std::thread::yield_now();
        }
    }

    // spec: TE-58
    #[test]
    fn no_cgroup_is_made_where_processes_cannot_be_counted() {
        let folder = tempfile::tempdir().unwrap();
        let parents = Parents { pids: folder.path().to_owned(), memory: None };
        assert!(Cgroup::create_in(&parents, "archon-x", 9, 4096).is_none(), "there is no pids.max");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
