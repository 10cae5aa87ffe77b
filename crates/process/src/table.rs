//! Reads process groups from the system: their leader and its start time.
//!
//! The system reuses process ids, but not while a group has the id. So if a group has the id of a group in the log,
//! the start time of its leader decides: with the start time in the log it is the same group, with another start time
//! it is another group.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archon_types::{ProcessGroup, ToolError};

use super::number;

#[cfg(target_os = "linux")]
pub(super) use system::boot;
#[cfg(target_os = "linux")]
pub use system::{members, start_ticks};

/// Takes snapshots of all processes of the system, and keeps only the newest one. Calls that end together share this
/// snapshot, because a snapshot reads a file for each process. Clones share the snapshot.
#[derive(Clone, Default)]
pub struct Table(Arc<Mutex<Arc<Look>>>);

/// A snapshot of all processes.
#[derive(Default)]
pub(super) struct Look {
    /// The snapshot's number, counted from 1.
    pub(super) number: u64,
    processes: Vec<system::Process>,
}

impl Table {
    /// Returns the number of the newest snapshot.
    pub(super) fn newest(&self) -> u64 {
        self.snapshot().number
    }

    /// Returns the newest snapshot if its number is higher than `earlier`; otherwise takes a new snapshot.
    pub(super) fn after(&self, earlier: u64) -> Arc<Look> {
        let mut look = self.snapshot();
        if look.number <= earlier {
            *look = Arc::new(Look { number: look.number + 1, processes: system::all().collect() });
        }
        look.clone()
    }

    fn snapshot(&self) -> MutexGuard<'_, Arc<Look>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Look {
    /// Returns whether the group had a process that had not ended.
    pub(super) fn has_member(&self, group: &ProcessGroup) -> bool {
        system::living_members(&self.processes, group).next().is_some()
    }
}

/// Returns the group that a process leads.
pub(super) fn group_of(leader: u32) -> Result<ProcessGroup, ToolError> {
    let pid =
        number(leader).ok_or_else(|| ToolError::InvalidArgs(format!("{leader} is not a process id")))?;
    match rustix::process::getpgid(Some(pid)) {
        Ok(group) if group == pid => Ok(ProcessGroup::new(leader, system::started(leader))),
        Ok(_) => Err(ToolError::InvalidArgs(format!("process {leader} leads no process group"))),
        Err(e) => Err(ToolError::Failed(format!("the group of process {leader} cannot be read: {e}"))),
    }
}

/// Returns whether a group with this id exists; its processes may all be zombies.
pub(super) fn is_there(group: &ProcessGroup) -> bool {
    number(group.id)
        .is_some_and(|id| rustix::process::test_kill_process_group(id) != Err(rustix::io::Errno::SRCH))
}

/// Returns whether the group has a process that has not ended.
pub(super) fn is_alive(group: &ProcessGroup) -> bool {
    is_alive_by(group, || system::living_members(&system::all().collect::<Vec<_>>(), group).next().is_some())
}

/// Like [`is_alive`], but calls `has_member` to look for other processes if the leader has ended.
pub(super) fn is_alive_by(group: &ProcessGroup, has_member: impl FnOnce() -> bool) -> bool {
    is_there(group) && system::leader_is_alive(group).unwrap_or_else(has_member)
}

/// Returns the start time of the group's leader, even if the leader is gone. `None` if the group was started
/// before this boot.
#[cfg(target_os = "linux")]
pub(super) fn ticks_of(group: &ProcessGroup) -> Option<u64> {
    group.leader_started.strip_prefix(&boot())?.strip_prefix('/')?.parse().ok()
}

#[cfg(target_os = "linux")]
pub(super) mod system {
    use std::fs;

    use archon_types::ProcessGroup;

    /// A process as in `/proc/PID/stat`; see proc(5).
    pub(crate) struct Process {
        pub(crate) pid: u32,
        state: char,
        group: u32,
        /// Start time in clock ticks since the boot.
        started: u64,
    }

    impl Process {
        pub(crate) fn read(pid: u32) -> Option<Self> {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The program's name is in parentheses and may contain anything.
            let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
            let state = fields.next()?.chars().next()?;
            let group = fields.nth(1)?.parse().ok()?;
            let started = fields.nth(16)?.parse().ok()?;
            Some(Self { pid, state, group, started })
        }

        pub(crate) fn has_ended(&self) -> bool {
            matches!(self.state, 'Z' | 'X')
        }

        pub(crate) fn mark(&self) -> String {
            format!("{}/{}", boot(), self.started)
        }
    }

    /// Returns the id of this boot.
    pub(crate) fn boot() -> String {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    }

    pub(super) fn started(pid: u32) -> String {
        Process::read(pid).map(|process| process.mark()).unwrap_or_default()
    }

    /// Returns the start time of a process in clock ticks since the boot, or `None` if there is no such process.
    pub fn start_ticks(pid: u32) -> Option<u64> {
        Process::read(pid).filter(|process| !process.has_ended()).map(|process| process.started)
    }

    /// Returns the ids of all processes.
    pub(crate) fn ids() -> impl Iterator<Item = u32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    /// Returns all processes.
    pub(crate) fn all() -> impl Iterator<Item = Process> {
        ids().filter_map(Process::read)
    }

    /// Returns the processes of a group that have not ended.
    pub fn members(group: u32) -> Vec<u32> {
        let is_member = |process: &Process| process.group == group && !process.has_ended();
        all().filter(is_member).map(|process| process.pid).collect()
    }

    /// Returns the processes of a group that have not ended.
    pub(crate) fn living_members<'a>(
        processes: &'a [Process],
        group: &ProcessGroup,
    ) -> impl Iterator<Item = &'a Process> {
        let id = group.id;
        processes.iter().filter(move |process| process.group == id && !process.has_ended())
    }

    /// Returns whether the group's leader runs; `None` if the leader has ended, but other processes of the
    /// group may run.
    pub(super) fn leader_is_alive(group: &ProcessGroup) -> Option<bool> {
        match Process::read(group.id) {
            Some(leader) if leader.mark() != group.leader_started => Some(false),
            Some(leader) if !leader.has_ended() => Some(true),
            _ => None,
        }
    }
}

/// On systems other than Linux the start time of a process is not known without another program, so groups
/// are known only while their call runs.
#[cfg(not(target_os = "linux"))]
mod system {
    use archon_types::ProcessGroup;

    pub(super) fn started(_: u32) -> String {
        String::new()
    }

    /// A placeholder: processes are not read here.
    pub(super) struct Process;

    pub(super) fn all() -> impl Iterator<Item = Process> {
        std::iter::empty()
    }

    pub(super) fn living_members<'a>(
        processes: &'a [Process],
        _: &ProcessGroup,
    ) -> impl Iterator<Item = &'a Process> {
        processes.iter()
    }

    pub(super) fn leader_is_alive(_: &ProcessGroup) -> Option<bool> {
        Some(true)
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::{
        io::{BufRead, BufReader},
        os::unix::process::CommandExt,
        process::{Child, Command, Stdio},
    };

    use super::*;
    use crate::{RUN_VARIABLE, owner::is_of, signal};
    use rustix::process::Signal;

    /// Starts a group with a shell that reports when it is ready and reads until its input ends.
    fn start(script: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).process_group(0).env(RUN_VARIABLE, "r1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        child
    }

    #[test]
    fn is_alive_is_false_for_a_later_group_with_the_same_number() {
        let mut child = start("echo ready; read -r _");
        let group = group_of(child.id()).unwrap();
        assert!(is_alive(&group) && is_of(&group, &"r1".into()));
        // As if the number was reused: the log has another start time.
        let (boot, ticks) = group.leader_started.split_once('/').unwrap();
        let ticks: u64 = ticks.parse().unwrap();
        for other in [format!("{boot}/{}", ticks - 1), format!("other/{ticks}"), String::new()] {
            let other = ProcessGroup::new(child.id(), other);
            assert!(!is_alive(&other) && !is_of(&other, &"r1".into()), "{other:?}");
        }
        signal(&group, Signal::KILL);
        child.wait().unwrap();
        assert!(!is_alive(&group));
    }

    #[test]
    fn is_of_recognises_a_group_without_a_leader_by_its_members() {
        let mut child = start("exec 3<&0; (read -r _ <&3) & echo ready");
        // While it is open, the member only reads.
        let _input = child.stdin.take();
        let group = group_of(child.id()).unwrap();
        child.wait().unwrap();
        assert!(is_alive(&group) && is_of(&group, &"r1".into()));
        assert!(!is_of(&group, &"r2".into()), "a member that another run started");
        let earlier = ProcessGroup::new(group.id, "an earlier start of the system/1");
        assert!(!is_of(&earlier, &"r1".into()));
        signal(&group, Signal::KILL);
        while is_alive(&group) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn is_of_recognises_a_member_during_repeated_exec() {
        let again = r#"n=$1; [ $n -gt 0 ] && exec /bin/sh -c "$2" sh $((n - 1)) "$2"; read -r _ <&3"#;
        let script = format!("exec 3<&0; /bin/sh -c '{again}' sh 100000 '{again}' & echo ready");
        let mut child = start(&script);
        let _input = child.stdin.take();
        let group = group_of(child.id()).unwrap();
        child.wait().unwrap();
        for look in 0..300 {
            assert!(is_of(&group, &"r1".into()), "look {look}");
        }
        signal(&group, Signal::KILL);
    }

    #[test]
    fn process_table_snapshot_is_shared_by_earlier_callers() {
        let mut child = start("exec 3<&0; (read -r _ <&3) & echo ready");
        // While it is open, the member only reads.
        let _input = child.stdin.take();
        let group = group_of(child.id()).unwrap();
        child.wait().unwrap();
        let table = Table::default();
        let before = table.newest();
        let (first, second) = (table.after(before), table.after(before));
        assert!(Arc::ptr_eq(&first, &second) && first.has_member(&group));
        signal(&group, Signal::KILL);
        while is_alive(&group) {
            std::thread::yield_now();
        }
        assert!(first.has_member(&group), "a look shows what was");
        assert!(!table.after(first.number).has_member(&group), "and a later one what is");
    }

    #[test]
    fn group_of_a_process_that_leads_no_group_is_an_error() {
        let mut child =
            Command::new("/bin/sh").args(["-c", "read -r _"]).stdin(Stdio::piped()).spawn().unwrap();
        for (pid, problem) in
            [(child.id(), "leads no process group"), (0, "not a process id"), (1, "not a process id")]
        {
            let e = group_of(pid).unwrap_err().to_string();
            assert!(e.contains(problem), "{e}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
