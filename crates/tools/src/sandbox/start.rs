//! Starts a command so that its limits apply before it does anything.
//!
//! First comes a shell that only waits. It leads the process group, and the run's log names the group
//! before there is a command. Then a thread gives up the rights that the command may not have and starts a
//! second waiting shell in that group. The second shell gets its limits, and then a line of input, upon
//! which it becomes the command. If only a child can make the mounts ([`Maker::Child`]), the child also
//! gives up the rights.

use std::{
    fs::File,
    io::{self, Write},
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::Path,
    process::{Command, Stdio},
};

use archon_types::{ToolContext, ToolError};
use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use tokio::process::{Child, ChildStdin};

use super::{
    Cage,
    guarded::{Guarded, Owner},
    search_path::search_path,
    watch::Watch,
};
#[cfg(target_os = "linux")]
use super::{kernel::Restrictions, mounts::Maker};
use archon_process::{self as process, KeptGroup, RUN_VARIABLE};

/// Number of bytes of address space that programs may reserve and never use: a WebAssembly memory takes 10
/// GiB.
#[cfg(target_os = "linux")]
const RESERVED: u64 = 12 << 30;

/// A running command. Dropping it kills its process group.
pub(super) struct Started {
    pub(super) child: Child,
    /// The command's input; `None` if a call owns the command.
    pub(super) input: Option<ChildStdin>,
    leader: Child,
    /// The process group; `None` if a call owns the command.
    _kept: Option<KeptGroup>,
    pub(super) group: Pid,
    #[cfg(target_os = "linux")]
    cgroup: Option<super::cgroup::Cgroup>,
    scratch: Option<TempDir>,
}

impl Started {
    /// Kills all processes of the command.
    pub(super) fn kill(&self) {
        kill(self.group);
    }

    /// Returns whether a process was killed for lack of memory, if the system reports that.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.cgroup.as_ref().is_some_and(super::cgroup::Cgroup::ran_out_of_memory);
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// Returns a watch on the limits that the kernel does not enforce.
    pub(super) fn watch(&self, cage: &Cage) -> Watch {
        #[cfg(target_os = "linux")]
        let memory_is_held = self.cgroup.as_ref().is_some_and(super::cgroup::Cgroup::holds_memory);
        #[cfg(not(target_os = "linux"))]
        let memory_is_held = false;
        Watch::new(self.group, cage, self.scratch.as_ref().map(TempDir::path), memory_is_held)
    }

    /// Waits for the killed processes and removes the resources of the command.
    pub(super) async fn finish(mut self) {
        self.kill();
        let _ = self.child.wait().await;
        let _ = self.leader.wait().await;
        // Dropping the value removes the rest.
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.leader.id().is_some() {
            self.kill();
        }
        let scratch = self.scratch.take();
        #[cfg(target_os = "linux")]
        if let Some(cgroup) = self.cgroup.take().filter(|cgroup| !cgroup.remove()) {
            // The last processes of a large group may take a moment; do not wait here.
            std::thread::spawn(move || {
                cgroup.remove_soon();
                drop(scratch);
            });
            return;
        }
        drop(scratch);
    }
}

/// Kills the process group of a running command. The leader of the group has not been waited for, so the kernel cannot
/// have given its id to another group.
pub(super) fn kill(group: Pid) {
    let _ = rustix::process::kill_process_group(group, Signal::KILL);
}

/// Asks the processes of a running command to end.
pub(super) fn terminate(group: Pid) {
    let _ = rustix::process::kill_process_group(group, Signal::TERM);
}

/// Starts the command; program, arguments, working directory and added variables are taken from `command`.
pub(super) async fn start(
    command: &Command,
    cage: &Cage,
    guarded: &Guarded,
    owner: Owner,
    context: &ToolContext,
) -> Result<Started, ToolError> {
    if let Some(refusal) = cage.refusal() {
        return Err(ToolError::PermissionDenied(refusal));
    }
    let failed = |e: io::Error| {
        ToolError::Resource(format!("{} cannot be started: {e}", command.get_program().display()))
    };
    #[cfg(target_os = "linux")]
    let scratch = super::scratch::create().map_err(failed)?;
    #[cfg(not(target_os = "linux"))]
    let scratch = TempDir::with_prefix("archon-call-").map_err(failed)?;
    let leader = leader(context).spawn().map_err(failed)?;
    let group = leader.id().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
    let kept = owner.register(group, context).await?;
    let held = waiting_shell(command, cage, owner, context, scratch.path(), group);
    #[cfg(target_os = "linux")]
    let held = Held {
        restrictions: cage
            .is_closed()
            .then(|| {
                let mounts = guarded.mounts(scratch.path(), command.get_current_dir());
                Restrictions::new(cage, group, scratch.path(), mounts)
            })
            .transpose()
            .map_err(|why| restriction_error(&why))?,
        command: held,
    };
    #[cfg(not(target_os = "linux"))]
    let (held, _) = (Held { command: held }, guarded);
    #[cfg(target_os = "linux")]
    let alone = held.restrictions.as_ref().is_some_and(|rights| rights.maker() == Maker::Child);
    let mut child = held.spawn().await?;
    let id = child.id().and_then(pid).ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
    let word = child.stdin.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
    let mut started = Started {
        child,
        input: None,
        leader,
        _kept: kept,
        group: pid(group).ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?,
        #[cfg(target_os = "linux")]
        cgroup: None,
        scratch: Some(scratch),
    };
    #[cfg(target_os = "linux")]
    limit(&mut started, id, cage, alone).map_err(failed)?;
    #[cfg(not(target_os = "linux"))]
    let _ = (id, &mut started);
    started.input = owner.go(word).map_err(failed)?;
    Ok(started)
}

impl Owner {
    /// Names the group in the run's log. Returns the group if this process owns it.
    async fn register(self, leader: u32, context: &ToolContext) -> Result<Option<KeptGroup>, ToolError> {
        if self == Self::Call {
            return context.register_process(leader).await.map(|()| None);
        }
        let kept = KeptGroup::of(leader)?;
        if let Some(processes) = &context.processes {
            processes.uses(kept.group()).await?;
        }
        Ok(Some(kept))
    }

    /// Returns the script of the shell that waits for a line and then becomes the command.
    fn script(self) -> &'static str {
        match self {
            Self::Call => "read -r _ && exec \"$0\" \"$@\" </dev/null",
            Self::Process => "read -r _ && exec \"$0\" \"$@\"",
        }
    }

    /// Sends the line for which the shell waits. The shell leaves the rest of the pipe to the command, so the
    /// input is returned if this process owns the command.
    fn go(self, word: ChildStdin) -> io::Result<Option<ChildStdin>> {
        let word = File::from(word.into_owned_fd()?);
        // If the shell ended by itself, its exit status says so.
        let _ = (&word).write_all(b"\n");
        if self == Self::Call {
            return Ok(None);
        }
        ChildStdin::from_std(std::process::ChildStdin::from(OwnedFd::from(word))).map(Some)
    }
}

/// Returns the command of the group's leader: a shell that waits until this process ends, and then kills
/// the group, whatever the environment of its processes is. It ignores SIGTERM, so that it ends last.
fn leader(context: &ToolContext) -> tokio::process::Command {
    let mut leader = Command::new("/bin/sh");
    leader
        .args(["-c", "trap '' TERM; read -r _; kill -KILL 0"])
        .env_clear()
        .env(RUN_VARIABLE, context.run.run.as_str())
        .process_group(0);
    leader.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut leader = tokio::process::Command::from(leader);
    leader.kill_on_drop(true);
    leader
}

fn waiting_shell(
    command: &Command,
    cage: &Cage,
    owner: Owner,
    context: &ToolContext,
    scratch: &Path,
    group: u32,
) -> tokio::process::Command {
    let mut held = Command::new("/bin/sh");
    held.arg("-c").arg(owner.script()).arg(command.get_program()).args(command.get_args());
    held.env_clear();
    held.envs(process::passed_on());
    let inside = [&*cage.roots, &*cage.options.write].concat();
    match std::env::var_os("PATH").and_then(|path| search_path(&path, &inside)) {
        Some(path) => held.env("PATH", path),
        None => held.env_remove("PATH"),
    };
    held.env("HOME", scratch).env("TMPDIR", scratch);
    // A folder of ordinary files that looks like a git folder has settings that run programs.
    held.env("GIT_CONFIG_COUNT", "1");
    held.env("GIT_CONFIG_KEY_0", "safe.bareRepository").env("GIT_CONFIG_VALUE_0", "explicit");
    held.envs(&cage.options.env);
    held.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    held.env(RUN_VARIABLE, context.run.run.as_str());
    if owner == Owner::Process {
        held.envs(KeptGroup::variable());
    }
    if let Some(directory) = command.get_current_dir() {
        held.current_dir(directory);
    }
    // A group's number is a process number, so it fits.
    held.process_group(group.cast_signed());
    held.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut held = tokio::process::Command::from(held);
    held.kill_on_drop(true);
    held
}

/// A command that is ready to start, and the restrictions that it must get.
struct Held {
    command: tokio::process::Command,
    #[cfg(target_os = "linux")]
    restrictions: Option<Restrictions>,
}

impl Held {
    /// Starts the command from a new thread, because a thread never gets back a right that it gave up.
    async fn spawn(self) -> Result<Child, ToolError> {
        let runtime = tokio::runtime::Handle::current();
        let (sender, spawned) = tokio::sync::oneshot::channel();
        let thread = std::thread::Builder::new().name("archon-command".to_owned()).spawn(move || {
            let _entered = runtime.enter();
            let _ = sender.send(self.spawn_here());
        });
        thread.map_err(|e| {
            ToolError::Resource(format!("the thread that starts the command cannot be created: {e}"))
        })?;
        spawned.await.unwrap_or_else(|_| {
            Err(ToolError::Failed("the thread that starts the command ended without a result".to_owned()))
        })
    }

    #[cfg(target_os = "linux")]
    fn spawn_here(mut self) -> Result<Child, ToolError> {
        let mut in_child = false;
        if let Some(restrictions) = self.restrictions {
            let maker =
                restrictions.apply_to(self.command.as_std_mut()).map_err(|why| restriction_error(&why))?;
            in_child = maker == Maker::Child;
        }
        // Our own descriptors close by themselves, but not inherited ones or those of C libraries. This
        // applies to the whole process, where it has no effect, as it only matters when another program is
        // executed.
        close_fds::set_fds_cloexec(3, &[]);
        self.command.spawn().map_err(|e| match in_child {
            true => restriction_error(&e),
            false => ToolError::Resource(format!("the shell of the command cannot be started: {e}")),
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn spawn_here(mut self) -> Result<Child, ToolError> {
        self.command
            .spawn()
            .map_err(|e| ToolError::Resource(format!("the shell of the command cannot be started: {e}")))
    }
}

#[cfg(target_os = "linux")]
fn restriction_error(why: &dyn std::fmt::Display) -> ToolError {
    ToolError::PermissionDenied(format!(
        "The command cannot be restricted to the workspace ({why}), so it was not run."
    ))
}

/// Sets the limits of the waiting shell, which the command inherits. `alone` is true if the shell has a user
/// namespace of its own, where the kernel counts the user's processes separately.
#[cfg(target_os = "linux")]
fn limit(started: &mut Started, process: Pid, cage: &Cage, alone: bool) -> io::Result<()> {
    use super::cgroup::{self, Cgroup};
    use rustix::process::{Resource, Rlimit, prlimit};

    let options = &cage.options;
    let group = started.group.as_raw_nonzero().get().unsigned_abs();
    let cgroup = Cgroup::create(group, options.max_processes, options.max_memory);
    let holds_memory = cgroup.as_ref().is_some_and(Cgroup::holds_memory);
    started.cgroup = cgroup;
    // Shared memory does not count as a process's data, so without a cgroup the address space is limited.
    let addresses = (!holds_memory).then(|| (Resource::As, options.max_memory.saturating_add(RESERVED)));
    let limits = [
        (Resource::Core, 0),
        (Resource::Fsize, options.max_file_size),
        (Resource::Data, options.max_memory),
        (Resource::Cpu, options.max_cpu_time.as_secs().max(1)),
    ];
    for (resource, most) in limits.into_iter().chain(addresses) {
        // At the soft limit of processor time the kernel sends a signal that says so, at the hard one SIGKILL.
        let hard = if resource == Resource::Cpu { most.saturating_add(1) } else { most };
        let limit = Rlimit { current: Some(most), maximum: Some(hard) };
        prlimit(Some(process), resource, limit)?;
    }
    process::mark(process, group);
    match &started.cgroup {
        Some(cgroup) => cgroup.add(process.as_raw_nonzero().get().unsigned_abs()),
        // Limits of a user do not apply to root.
        None if cage.is_closed() && rustix::process::geteuid().is_root() => {
            Err(io::Error::other(cgroup::cannot_count()))
        }
        None => {
            let others = if alone { 0 } else { cgroup::processes_of_user()? };
            cgroup::limit_user(process, others + u64::from(options.max_processes))
        }
    }
}

fn pid(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::Workspace;
    use crate::sandbox::{Access, SandboxOptions, cgroup::Cgroup, missing};

    // spec: TE-58
    #[tokio::test]
    async fn root_starts_nothing_where_its_processes_cannot_be_counted() {
        if missing().is_some() || !rustix::process::geteuid().is_root() {
            println!("SKIP: not root, or no cgroup can be made here");
            return;
        }
        let wait = || {
            let mut shell = tokio::process::Command::new("/bin/sh");
            shell.args(["-c", "read -r _"]).stdin(Stdio::piped()).process_group(0).kill_on_drop(true);
            shell.spawn().unwrap()
        };
        let (child, leader) = (wait(), wait());
        let (process, group) = (pid(child.id().unwrap()).unwrap(), leader.id().unwrap());
        // The name is taken, so no cgroup can be made.
        let taken = Cgroup::create(group, 9, 1 << 20).unwrap();
        let group = pid(group).unwrap();
        let mut started =
            Started { child, input: None, leader, _kept: None, group, cgroup: None, scratch: None };
        let mut cage = Cage::new(&Workspace::new("/").unwrap(), Access::Read, SandboxOptions::default());
        let refused = limit(&mut started, process, &cage, false).unwrap_err().to_string();
        assert!(refused.contains("cannot be limited"), "{refused}");
        cage.missing = Some("something".to_owned());
        assert!(limit(&mut started, process, &cage, false).is_ok(), "it is known that nothing is held");
        drop(started);
        assert!(taken.remove());
    }
}
