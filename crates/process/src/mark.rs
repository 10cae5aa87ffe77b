//! Marks processes with a value that their children inherit, so that a group's processes are recognised even
//! if they cleared their environment, left the group, or lost its leader.
//!
//! Limits of a process are inherited, and other processes can read them. The mark is the limit of real-time processor
//! time (`RLIMIT_RTTIME`, microseconds). A limit of more than a hundred thousand years has no effect, so its low bits
//! can hold the leader's process id and start time, which identify a group among all groups since the boot. Only the
//! soft limit is set, so a process can still set a limit of its own.

use std::{fs, os::fd::OwnedFd};

use archon_types::{Clock, ProcessGroup};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, pidfd_open, pidfd_send_signal, prlimit,
};

use super::{LOOK, REMOVAL, number, table};

/// The bit that every mark has. A mark is the value of a process limit, `RLIMIT_RTTIME`, and this bit makes
/// the value larger than any that a program would set.
const MARKED: u64 = 1 << 62;
/// Number of bits for the process id in a mark; see `kernel.pid_max` in proc(5).
const NUMBER: u32 = 22;
/// Number of bits for the start time in a mark, in clock ticks since the boot.
const TICKS: u32 = 62 - NUMBER;

/// Marks a process and all its future children as members of the group that `leader` leads. If the system
/// refuses the mark, the processes are recognised by their environment alone.
pub fn mark(process: Pid, leader: u32) {
    let Some(mark) = table::start_ticks(leader).and_then(|ticks| of_parts(leader, ticks)) else { return };
    // The hard limit is inherited from us, and must not be lowered.
    let maximum = getrlimit(Resource::Rttime).maximum;
    if let Err(e) = prlimit(Some(process), Resource::Rttime, Rlimit { current: Some(mark), maximum }) {
        tracing::debug!(target: "archon::process", %e, "a process is not marked");
    }
}

/// Returns whether a process has the mark of the group. False for a group that was started before this boot.
pub(super) fn is_of(process: u32, group: &ProcessGroup) -> bool {
    let mark = of_group(group);
    mark.is_some() && mark == of_process(process)
}

/// Kills all processes with the mark of these groups, even those that left their group. Returns the groups that still
/// have a marked process.
pub(super) async fn end_strays(groups: &[ProcessGroup], clock: &dyn Clock) -> Vec<ProcessGroup> {
    let end = clock.now() + REMOVAL;
    loop {
        let strays = kill_strays(groups);
        let now = clock.now();
        if strays.is_empty() || now >= end {
            return strays.into_iter().map(|(_, group)| group.clone()).collect();
        }
        clock.sleep_until(end.min(now + LOOK)).await;
    }
}

/// Kills the processes that have the mark of these groups now, and returns them.
pub(super) fn kill_strays(groups: &[ProcessGroup]) -> Vec<(u32, &ProcessGroup)> {
    let strays = strays(groups);
    for (process, group) in &strays {
        tracing::info!(target: "archon::process", group = group.id, process, "a process of before is ended");
        kill_if(*process, || is_of(*process, group));
    }
    strays
}

/// Opens a handle on a process, so that its id is not reused, and kills the process if `is_it` is then true.
pub fn kill_if(process: u32, is_it: impl FnOnce() -> bool) {
    let Some(handle) = handle(process) else { return };
    if is_it() {
        // A process that has ended ignores the signal.
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
}

fn handle(process: u32) -> Option<OwnedFd> {
    pidfd_open(number(process)?, PidfdFlags::empty()).ok()
}

fn strays(groups: &[ProcessGroup]) -> Vec<(u32, &ProcessGroup)> {
    let marks: Vec<_> = groups.iter().filter_map(|group| Some((of_group(group)?, group))).collect();
    if marks.is_empty() {
        return Vec::new();
    }
    let stray = |process| {
        let mark = of_process(process)?;
        marks.iter().find(|(of, _)| *of == mark).map(|(_, group)| (process, *group))
    };
    table::system::ids().filter_map(stray).collect()
}

fn of_group(group: &ProcessGroup) -> Option<u64> {
    of_parts(group.id, table::ticks_of(group)?)
}

fn of_parts(leader: u32, ticks: u64) -> Option<u64> {
    let fits = leader < 1 << NUMBER && ticks < 1 << TICKS;
    fits.then(|| MARKED | ticks << NUMBER | u64::from(leader))
}

/// Returns the mark of a process; `None` if it has no mark, or is a zombie (a zombie still has its limits).
fn of_process(process: u32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    let mark = line.split_ascii_whitespace().next()?.parse().ok().filter(|soft| *soft >= MARKED)?;
    table::start_ticks(process).map(|_| mark)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        os::unix::process::CommandExt,
        process::{Child, Command, Stdio},
    };

    use super::*;
    use crate::{RUN_VARIABLE, end_surviving, real_clock::RealClock, signal};

    /// Returns a marked group whose leader has ended, the input of the last process of the group, and the id of that
    /// process. The process has an empty environment and ends when its input is closed.
    fn orphan(before: &str) -> (ProcessGroup, std::process::ChildStdin, u32) {
        let script =
            format!("read -r _; exec 3<&0; {before} env -i /bin/sh -c 'echo $$; read -r _ <&3; exit' & exit");
        let mut leader: Child = Command::new("/bin/sh")
            .args(["-c", &script])
            .env(RUN_VARIABLE, "r1")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let group = table::group_of(leader.id()).unwrap();
        mark(number(group.id).unwrap(), group.id);
        let mut input = leader.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, b"\n").unwrap();
        let mut line = String::new();
        BufReader::new(leader.stdout.take().unwrap()).read_line(&mut line).unwrap();
        leader.wait().unwrap();
        (group, input, line.trim().parse().unwrap())
    }

    // spec: TE-39, TE-58
    #[test]
    fn is_of_recognises_a_process_without_an_environment_by_its_group() {
        let (group, _input, process) = orphan("");
        assert!(is_of(process, &group) && crate::owner::is_of(&group, &"another".into()));
        let (boot, ticks) = group.leader_started.split_once('/').unwrap();
        let ticks: u64 = ticks.parse().unwrap();
        for other in [
            ProcessGroup::new(group.id, format!("{boot}/{}", ticks + 1)),
            ProcessGroup::new(group.id, format!("other/{ticks}")),
            ProcessGroup::new(group.id + 1, group.leader_started.clone()),
        ] {
            assert!(!is_of(process, &other), "{other:?}");
        }
        signal(&group, Signal::KILL);
    }

    #[test]
    fn is_of_a_zombie_is_false_although_it_has_the_mark() {
        let mut leader = Command::new("/bin/sh")
            .args(["-c", "read -r _"])
            .process_group(0)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let group = table::group_of(leader.id()).unwrap();
        mark(number(group.id).unwrap(), group.id);
        assert!(is_of(group.id, &group));
        drop(leader.stdin.take());
        while table::start_ticks(group.id).is_some() {
            std::thread::yield_now();
        }
        assert!(!is_of(group.id, &group) && strays(std::slice::from_ref(&group)).is_empty());
        leader.wait().unwrap();
    }

    // spec: TE-39, TE-58
    #[tokio::test]
    async fn a_process_that_left_its_group_is_ended_with_the_rest() {
        let (group, _input, process) = orphan("setsid");
        assert!(!table::is_alive(&group) && is_of(process, &group));
        let earlier = ProcessGroup::new(group.id, "an earlier start of the system/1");
        let clock = RealClock::new();
        end_surviving(&[earlier], &"r1".into(), &clock).await;
        assert!(is_of(process, &group), "another's group is left alone");
        let remaining = end_surviving(std::slice::from_ref(&group), &"r1".into(), &clock).await;
        assert!(remaining.is_empty(), "{remaining:?}");
        assert!(!is_of(process, &group));
    }
}
