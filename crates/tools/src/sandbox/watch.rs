//! Checks limits that the kernel does not enforce, repeatedly while a command runs: the memory of all its
//! processes if no cgroup limits it, and the free space of the disks that it may write to.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Pid;

use super::{Access, Cage};
#[cfg(target_os = "linux")]
use archon_process::members;

/// Interval between two checks of a command's memory and disks. In this time a command can write some hundred
/// megabytes to a fast disk.
pub(super) const EVERY: Duration = Duration::from_millis(200);

/// The limits of a running command that the kernel does not enforce.
pub(super) struct Watch {
    group: u32,
    /// Maximum memory of all processes of the command, in bytes; `None` if a cgroup limits it.
    max_memory: Option<u64>,
    disks: Vec<Disk>,
}

struct Disk {
    folder: PathBuf,
    /// Number of bytes of the disk that the command must leave free.
    spared: u64,
}

/// The limit that a command has exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    Memory,
    /// A disk has fewer free bytes than this number.
    Disk(u64),
}

impl Watch {
    pub(super) fn new(group: Pid, cage: &Cage, scratch: Option<&Path>, memory_is_held: bool) -> Self {
        let options = &cage.options;
        let writable = (cage.access == Access::Write).then(|| cage.roots.iter().chain(&options.write));
        let folders = scratch.map(Path::to_owned).into_iter().chain(writable.into_iter().flatten().cloned());
        let disks = folders.filter_map(|folder| {
            // On a nearly full disk the command may use half of the free space.
            let spared = options.min_free_disk.min(free(&folder)? / 2);
            Some(Disk { folder, spared })
        });
        Self {
            group: group.as_raw_nonzero().get().unsigned_abs(),
            max_memory: (!memory_is_held).then_some(options.max_memory),
            disks: disks.collect(),
        }
    }

    /// Returns the limit that the command has exceeded, if any.
    pub(super) fn check(&self) -> Option<Beyond> {
        let full = self.disks.iter().find(|disk| free(&disk.folder).is_some_and(|free| free < disk.spared));
        if let Some(disk) = full {
            return Some(Beyond::Disk(disk.spared));
        }
        self.max_memory.filter(|most| takes_more(self.group, *most)).map(|_| Beyond::Memory)
    }
}

/// Returns the number of bytes that an ordinary user can still write to the disk of a folder.
fn free(folder: &Path) -> Option<u64> {
    let of = rustix::fs::statvfs(folder).ok()?;
    Some(of.f_bavail.saturating_mul(of.f_frsize))
}

/// Returns whether the processes of a group use more memory than `most` bytes. First, shared memory is counted for
/// each process, which is fast. Only if that sum is too large, shared memory is counted once, which is slow for the
/// kernel. A process for which the kernel does not permit the slow count is counted with all its shared memory.
#[cfg(target_os = "linux")]
fn takes_more(group: u32, most: u64) -> bool {
    let whole = |process: u32| kilobytes(process, "status", &["RssAnon:", "RssShmem:"]).unwrap_or_default();
    let shared = |process: u32| match kilobytes(process, "smaps_rollup", &["Pss_Anon:", "Pss_Shmem:"]) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => whole(process),
        // The process has ended.
        Err(_) => 0,
        Ok(kilobytes) => kilobytes,
    };
    let (members, most) = (members(group), most / 1024);
    members.iter().map(|process| whole(*process)).sum::<u64>() > most
        && members.iter().map(|process| shared(*process)).sum::<u64>() > most
}

/// Returns false: systems other than Linux do not report memory without another program.
#[cfg(not(target_os = "linux"))]
fn takes_more(_: u32, _: u64) -> bool {
    false
}

/// Returns the sum of the kilobytes in the lines of a process's file in `/proc` that begin with one of
/// `names`.
#[cfg(target_os = "linux")]
fn kilobytes(process: u32, file: &str, names: &[&str]) -> std::io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/{file}"))?;
    let of = |line: &str| {
        let number = names.iter().find_map(|name| line.strip_prefix(name))?;
        number.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    Ok(text.lines().filter_map(of).sum())
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::sandbox::SandboxOptions;

    // spec: TE-58
    #[test]
    fn watch_stops_a_command_before_the_reserved_disk_space_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let group = rustix::process::getpgrp();
        let options = SandboxOptions { min_free_disk: u64::MAX, ..SandboxOptions::default() };
        let cage = Cage::new(&crate::Workspace::new(folder.path()).unwrap(), Access::Read, options);
        let mut watch = Watch::new(group, &cage, Some(folder.path()), true);
        assert_eq!(watch.check(), None);
        watch.disks[0].spared = u64::MAX;
        assert_eq!(watch.check(), Some(Beyond::Disk(u64::MAX)));
    }

    // spec: TE-58
    #[test]
    fn watch_sums_process_memory_without_a_cgroup() {
        let folder = tempfile::tempdir().unwrap();
        let group = rustix::process::getpgrp();
        let cage = Cage::new(
            &crate::Workspace::new(folder.path()).unwrap(),
            Access::Read,
            SandboxOptions::default(),
        );
        let mut watch = Watch::new(group, &cage, Some(folder.path()), false);
        assert_eq!(watch.check(), None);
        watch.max_memory = Some(4096);
        assert_eq!(watch.check(), Some(Beyond::Memory));
        assert_eq!(Watch::new(group, &cage, Some(folder.path()), true).max_memory, None);
    }
}
