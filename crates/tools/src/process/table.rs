//! What the system says of processes: who leads which group since when, and whose it is.
//!
//! Numbers of processes are used again, but none while a group has it. So a group is the one that a log names
//! if the process of its number was started when the log says, and it is not if that process was started at
//! another time. When its leader is gone and others of the group are left, the group is the run's if one of
//! them has the run's name in its environment, which it inherited from the leader.

use archon_types::{ProcessGroup, RunId, ToolError};

use super::number;

/// The group that a process leads.
pub(super) fn group_of(leader: u32) -> Result<ProcessGroup, ToolError> {
    let pid = number(leader).ok_or_else(|| ToolError::InvalidArgs(format!("{leader} is no process")))?;
    match rustix::process::getpgid(Some(pid)) {
        Ok(group) if group == pid => Ok(ProcessGroup::new(leader, system::started(leader))),
        Ok(_) => Err(ToolError::InvalidArgs(format!("process {leader} leads no process group"))),
        Err(e) => Err(ToolError::Failed(format!("process {leader} cannot be looked at: {e}"))),
    }
}

/// Whether a group of this number is there; its processes may have ended and wait for their parents to notice.
pub(super) fn is_there(group: &ProcessGroup) -> bool {
    number(group.id)
        .is_some_and(|id| rustix::process::test_kill_process_group(id) != Err(rustix::io::Errno::SRCH))
}

/// Whether any process of the group is there that has not ended.
pub(super) fn is_alive(group: &ProcessGroup) -> bool {
    is_there(group) && system::is_alive(group)
}

/// Whether the group is there and was started by a call of `run`.
pub(super) fn is_of(group: &ProcessGroup, run: &RunId) -> bool {
    is_alive(group) && system::is_of(group, run)
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    use archon_types::{ProcessGroup, RunId};

    use crate::process::RUN_VARIABLE;

    /// A process as `/proc/PID/stat` shows it; see proc(5).
    struct Process {
        pid: u32,
        state: char,
        group: u32,
        /// Clock ticks since the system was started.
        started: u64,
    }

    impl Process {
        fn read(pid: u32) -> Option<Self> {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The program's name is in parentheses and may hold anything.
            let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
            let state = fields.next()?.chars().next()?;
            let group = fields.nth(1)?.parse().ok()?;
            let started = fields.nth(16)?.parse().ok()?;
            Some(Self { pid, state, group, started })
        }

        fn has_ended(&self) -> bool {
            matches!(self.state, 'Z' | 'X')
        }

        fn mark(&self) -> String {
            format!("{}/{}", boot(), self.started)
        }
    }

    /// Another one after each start of the system.
    fn boot() -> String {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    }

    pub(super) fn started(pid: u32) -> String {
        Process::read(pid).map(|process| process.mark()).unwrap_or_default()
    }

    pub(super) fn is_alive(group: &ProcessGroup) -> bool {
        match Process::read(group.id) {
            Some(leader) if leader.mark() != group.started => false,
            Some(leader) if !leader.has_ended() => true,
            _ => members(group).next().is_some(),
        }
    }

    pub(super) fn is_of(group: &ProcessGroup, run: &RunId) -> bool {
        if Process::read(group.id).is_some_and(|leader| leader.mark() == group.started) {
            return true;
        }
        let since_boot = group.started.starts_with(&boot());
        since_boot && members(group).any(|member| belongs_to(&member, run))
    }

    /// The processes of a group that have not ended.
    fn members(group: &ProcessGroup) -> impl Iterator<Item = Process> {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let id = group.id;
        pids.filter_map(Process::read).filter(move |process| process.group == id && !process.has_ended())
    }

    fn belongs_to(process: &Process, run: &RunId) -> bool {
        let variable = format!("{RUN_VARIABLE}={run}");
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    }
}

/// Other systems do not say when a process was started in a way that needs no other program, so there a group
/// is known for as long as its call runs, and not afterwards.
#[cfg(not(target_os = "linux"))]
mod system {
    use archon_types::{ProcessGroup, RunId};

    pub(super) fn started(_: u32) -> String {
        String::new()
    }

    pub(super) fn is_alive(_: &ProcessGroup) -> bool {
        true
    }

    pub(super) fn is_of(_: &ProcessGroup, _: &RunId) -> bool {
        false
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
    use crate::process::{RUN_VARIABLE, signal};
    use rustix::process::Signal;

    /// A group of a shell that says when it is ready and reads until its input ends.
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
    fn a_group_is_told_from_a_later_one_of_its_number() {
        let mut child = start("echo ready; read -r _");
        let group = group_of(child.id()).unwrap();
        assert!(is_alive(&group) && is_of(&group, &"r1".into()));
        // The number was used again: the log names another start.
        let (boot, ticks) = group.started.split_once('/').unwrap();
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
    fn a_group_that_lost_its_leader_is_known_by_what_its_members_inherited() {
        let mut child = start("(read -r _; sleep 1000) & echo ready");
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
    fn what_leads_no_group_is_refused() {
        let mut child =
            Command::new("/bin/sh").args(["-c", "read -r _"]).stdin(Stdio::piped()).spawn().unwrap();
        for (pid, problem) in [(child.id(), "leads no process group"), (0, "no process"), (1, "no process")] {
            let e = group_of(pid).unwrap_err().to_string();
            assert!(e.contains(problem), "{e}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
