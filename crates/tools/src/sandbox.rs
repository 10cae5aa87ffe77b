//! The sandbox: the kernel limits a command to granted folders, network, processes and memory.
//!
//! A thread of its own starts the command (`sandbox/start.rs`), and first gives up the rights that the command may not
//! have (`kernel.rs`): Landlock forbids all files outside of the granted folders, and a seccomp filter (`syscalls.rs`)
//! forbids the network and leaving the process group. The command inherits both, and the thread ends. Limits of memory, files and
//! processor time are set from outside on a shell that waits for a line before it becomes the command. If the
//! system allows cgroups, they limit processes and memory. See
//! `docs/adr/0010-a-thread-gives-up-what-a-command-may-not-do.md`.
//!
//! Before that, a mount namespace is made (`sandbox/mounts.rs`). In it everything outside of the granted folders is
//! read-only, also modes and times. In the granted folders, control files are read-only (`control.rs`), files that
//! rules deny are read-only or hidden, and excluded folders ([`Workspace::without`]) are empty. The thread makes the
//! namespace if it may mount; otherwise the command's own process makes it in a user namespace, between `fork` and
//! `exec`. If the kernel allows neither, control files are compared and restored after the command; [`gaps`] describes
//! the remaining gaps.
//!
//! A command may run on after its call (`sandbox/background.rs`). It is refused where no mounts can be made, and new
//! control files are reported at its end.
//!
//! Servers can be sandboxed too ([`ServerSandbox`]), but without the comparison of control files and without limits of
//! resources.
//!
//! No process of a command can leave the process group, so one signal ends them all, whatever signals they
//! ignore.
//!
//! Linux only. On other systems, and on kernels before 6.2, commands are refused unless
//! [`Isolation::WithoutKernel`] is set.

mod background;
#[cfg(target_os = "linux")]
mod cgroup;
mod compare;
mod control;
mod guarded;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod maker;
#[cfg(target_os = "linux")]
mod mounts;
mod run;
#[cfg(target_os = "linux")]
mod scratch;
mod search_path;
mod server;
mod start;
#[cfg(target_os = "linux")]
mod syscalls;
mod toolchains;
mod watch;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use crate::Workspace;

pub use server::ServerSandbox;

pub(crate) use background::{Background, Ending, MOST_UNREAD, Unread};
pub(crate) use run::{End, Ended, Finished, run};

/// The grants and limits of a sandboxed command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxOptions {
    /// Files and folders that commands may read and execute, in addition to the workspace and the system's
    /// programs: for instance a toolchain in the home folder.
    pub read: Vec<PathBuf>,
    /// Folders that commands may write, in addition to the workspace (unless it is read-only) and a scratch
    /// folder that is deleted after the call. Control files (files that can start a program, such as
    /// `.git/config`) can be changed there, unlike in the workspace.
    pub write: Vec<PathBuf>,
    /// Access to the network. Default denied.
    pub network: Network,
    /// Access to Unix sockets of this machine's services. Default denied, even with a network.
    pub unix_sockets: UnixSockets,
    /// Variables of the command's environment, in addition to `PATH`, the language, the time zone, the user's
    /// name, and `HOME` and `TMPDIR`, which are the scratch folder. No other variables are passed on, so that
    /// a command does not get API keys.
    ///
    /// In the default `PATH`, folders that commands may write are moved to the end, so that a project's
    /// program cannot replace a program of the system; relative folders are removed. A `PATH` that is given
    /// here is used unchanged: give a `PATH` if a project's own programs should come first, for instance
    /// those of a Python environment.
    pub env: BTreeMap<String, String>,
    /// Maximum number of processes and threads that a command has at a time. Default 256.
    pub max_processes: u32,
    /// Maximum memory of a command with all its processes, in bytes. It includes shared memory and files that
    /// are kept in memory. Default 4 GiB.
    ///
    /// Without a memory cgroup, which an ordinary user often lacks, the value limits the private memory of each
    /// process, whose address space is limited to 12 GiB more. The sum of all processes is then checked five
    /// times a second, and a command above the limit is ended. So a command may have more for a moment, and
    /// files in memory are limited only by [`max_file_size`](Self::max_file_size).
    pub max_memory: u64,
    /// Maximum size of a file that is written, in bytes. Default 1 GiB.
    pub max_file_size: u64,
    /// Number of bytes that must stay free on disks that a command may write to. Default 1 GiB, or half of
    /// the free space at the command's start if less than 2 GiB was free. The free space is checked five
    /// times a second, and a command that leaves less is stopped; files that it wrote to the workspace stay.
    /// There is no other limit of the total disk space of a command.
    pub min_free_disk: u64,
    /// Maximum size in bytes of the scratch folder (`HOME` and `TMPDIR` of the command). Default 1 GiB. If
    /// mounts can be made, the folder is in memory and counts as the command's memory. Otherwise it is a
    /// folder on disk, and only [`max_file_size`](Self::max_file_size) limits it.
    pub max_scratch: u64,
    /// Maximum processor time of each process. Default 10 minutes.
    pub max_cpu_time: Duration,
    /// Number of bytes that are kept of the standard output, and of the standard error: half from the
    /// beginning, half from the end. Default 256 KiB.
    pub max_output: usize,
    /// Number of bytes of standard output and standard error together after which a command is stopped. Default 64 MiB.
    pub max_flood: u64,
    /// Decides what happens to commands if the kernel cannot sandbox them. Default: they are refused.
    pub isolation: Isolation,
}

/// A command's access to the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Network {
    /// No sockets can be created, of any kind, except the Unix sockets that [`UnixSockets`] allows.
    #[default]
    Denied,
    /// IPv4 and IPv6 sockets can be created, and the netlink sockets with which programs list this machine's
    /// network addresses and routes.
    Granted,
}

/// A command's access to services of this machine by Unix sockets: docker, D-Bus, an ssh agent. Such a
/// service acts with its own rights, outside of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnixSockets {
    /// No Unix sockets can be created, except pairs that connect two processes of the same command.
    #[default]
    Denied,
    /// All Unix sockets can be used. The kernel cannot limit them to folders.
    Granted,
}

/// Decides what happens to commands if the kernel cannot sandbox them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// Commands are refused.
    #[default]
    Required,
    /// Commands run without a sandbox, with all rights of this process. Their process group is still ended with their
    /// call, but a process that left the group runs on. Commands in the background also run where no mounts can be
    /// made.
    WithoutKernel,
}

/// A command's access to the workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    #[default]
    Read,
    Write,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            read: Vec::new(),
            write: Vec::new(),
            network: Network::default(),
            unix_sockets: UnixSockets::default(),
            env: BTreeMap::new(),
            max_processes: 256,
            max_memory: 4 << 30,
            max_file_size: 1 << 30,
            min_free_disk: 1 << 30,
            max_scratch: 1 << 30,
            max_cpu_time: Duration::from_secs(600),
            max_output: 256 * 1024,
            max_flood: 64 << 20,
            isolation: Isolation::default(),
        }
    }
}

/// Returns a text that names the missing part of the sandbox on this system; `None` if commands can be sandboxed.
///
/// ```
/// if let Some(missing) = archon_tools::sandbox::missing() {
///     eprintln!("bash will be refused: {missing}");
/// }
/// ```
pub fn missing() -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        scratch::remove_stale();
        kernel::missing().or_else(cgroup::missing)
    }
    #[cfg(not(target_os = "linux"))]
    Some("there is no sandbox for this system".to_owned())
}

/// Returns a text that lists the gaps of the sandbox on this system; `None` if there are none. There are gaps
/// if the kernel allows this user neither mounts nor a user namespace with mounts, as in many containers.
///
/// ```
/// if let Some(open) = archon_tools::sandbox::gaps() {
///     eprintln!("commands are sandboxed, but {open}");
/// }
/// ```
pub fn gaps() -> Option<String> {
    #[cfg(target_os = "linux")]
    let why = mounts::maker().err()?;
    #[cfg(not(target_os = "linux"))]
    let why = "this system has no mounts for one command";
    Some(format!(
        "no mounts can be made for commands ({why}): control files such as .git/config are compared and restored after each \
         command, but not protected before; commands can read files that a rule denies to read_file; they can change \
         modes and times of files outside the workspace; in a workspace with Archon's own folders no command can run, and in \
         the background none at all"
    ))
}

/// The reason why no command runs in the background where no mounts can be made.
const NO_BACKGROUND: &str = "No mounts can be made for commands on this system, so a command in the background could change control files such as \
     .git/config while the person works. The command was not started. Use bash for a command that ends by itself, or \
     ask the person to start this one in a terminal; `archon doctor` says why there are no mounts.";

/// The sandbox of a tool: options and folders.
#[derive(Clone, Debug)]
pub(crate) struct Cage {
    pub(crate) options: SandboxOptions,
    pub(crate) roots: Vec<PathBuf>,
    /// Excluded folders ([`Workspace::without`]), each with a description for error texts.
    pub(crate) excluded: Arc<[(PathBuf, String)]>,
    pub(crate) access: Access,
    /// The missing part of the system, as returned by [`missing`]; determined once.
    pub(crate) missing: Option<String>,
}

impl Cage {
    pub(crate) fn new(workspace: &Workspace, access: Access, mut options: SandboxOptions) -> Self {
        // Resolve links now, so that a later link leads nowhere else, and folders that belong to no workspace
        // are found.
        for granted in options.read.iter_mut().chain(&mut options.write) {
            if let Ok(real) = granted.canonicalize() {
                *granted = real;
            }
        }
        let (roots, excluded) = (workspace.roots().to_vec(), workspace.all_excluded().into());
        Self { options, roots, excluded, access, missing: missing() }
    }

    /// Returns whether the kernel sandboxes commands.
    pub(crate) fn is_closed(&self) -> bool {
        self.missing.is_none()
    }

    /// Returns the reason why no command may run, or `None` if commands may run.
    pub(crate) fn refusal(&self) -> Option<String> {
        let missing = self.missing.as_ref().filter(|_| self.options.isolation == Isolation::Required)?;
        Some(format!(
            "Commands cannot be restricted to the workspace on this system: {missing}. The command was not run. Use the \
             file tools instead; the person can allow commands without a sandbox."
        ))
    }

    /// Returns the reason why no command may run in the background, or `None` if commands may.
    pub(crate) fn refusal_in_background(&self) -> Option<String> {
        let is_refused = self.options.isolation == Isolation::Required && !self.holds_places();
        self.refusal().or_else(|| is_refused.then(|| NO_BACKGROUND.to_owned()))
    }
}
