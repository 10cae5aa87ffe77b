//! Finds out if a group of processes belongs to a run.
//!
//! A group belongs to a run if the start time of its leader is the one in the log (`table.rs`). If the leader is gone
//! and other processes of the group are left, the group belongs to the run if one of them has the group's mark
//! (`mark.rs`) or the run's id in its environment, both inherited from the leader.

use archon_types::{ProcessGroup, RunId};

use crate::table::is_alive;

/// Returns whether the group exists and was started by a call of `run`.
pub(super) fn is_of(group: &ProcessGroup, run: &RunId) -> bool {
    is_alive(group) && system::is_of(group, run)
}

#[cfg(target_os = "linux")]
mod system {
    use std::{fs, io, io::Read, thread, time::Duration};

    use archon_types::{ProcessGroup, RunId};

    use crate::{
        RUN_VARIABLE, mark,
        table::system::{Process, all, boot, living_members},
    };

    pub(super) fn is_of(group: &ProcessGroup, run: &RunId) -> bool {
        if Process::read(group.id).is_some_and(|leader| leader.mark() == group.leader_started) {
            return true;
        }
        let since_boot = group.leader_started.starts_with(&boot());
        since_boot
            && living_members(&all().collect::<Vec<_>>(), group)
                .any(|member| mark::is_of(member.pid, group) || belongs_to(member, run))
    }

    fn belongs_to(process: &Process, run: &RunId) -> bool {
        let variable = format!("{RUN_VARIABLE}={run}");
        let environment = environment(process.pid);
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    }

    /// Reads a process's environment. It is empty for a moment during `exec`, so it is read again.
    fn environment(pid: u32) -> Vec<u8> {
        for _ in 0..BECOMING {
            match read_at_once(&format!("/proc/{pid}/environ")) {
                Ok(environment) if !environment.is_empty() => return environment,
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                _ if Process::read(pid).is_none_or(|process| process.has_ended()) => break,
                _ => thread::sleep(Duration::from_millis(1)),
            }
        }
        Vec::new()
    }

    /// Reads a file with a single read: during `exec` a second read of `environ` could find an early end.
    fn read_at_once(path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let read = fs::File::open(path)?.read(&mut bytes)?;
            if read < bytes.len() {
                bytes.truncate(read);
                return Ok(bytes);
            }
            bytes.resize(2 * read, 0);
        }
    }

    /// Maximum number of reads, one millisecond apart, before the environment counts as empty.
    const BECOMING: u32 = 1_000;
}

/// On systems other than Linux the start time of a process is not known, so no group is proved to belong to a
/// run.
#[cfg(not(target_os = "linux"))]
mod system {
    use archon_types::{ProcessGroup, RunId};

    pub(super) fn is_of(_: &ProcessGroup, _: &RunId) -> bool {
        false
    }
}
