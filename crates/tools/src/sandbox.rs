//! Commands that the kernel holds within what they were granted: folders, network, processes, memory.
//!
//! A command is started by a thread of its own, which first gives up what the command may not do: Landlock
//! leaves it the granted folders, a seccomp filter takes the network and the ways out of its process group.
//! Both pass on to what the thread starts, and the thread ends. Limits of memory, files and processor time are
//! set from outside on a shell that waits for a word before it becomes the command, and where the system lets
//! us processes and memory are counted in a cgroup. `docs/adr/0010-a-thread-gives-up-what-a-command-may-not-do.md`
//! says more.
//!
//! A mount namespace comes first (`sandbox/mounts.rs`): outside the granted folders all is
//! read-only, modes and times included, and in them control files are (`control.rs`), what rules deny is held
//! or hidden, and folders that belong to no workspace are empty. A thread that may mount makes it. For others the
//! command's own process does, in a user namespace, between `fork` and `exec`; that is the one place with `unsafe`.
//! Where the kernel allows neither, control files are compared when the command has ended, and put back;
//! [`not_held`] says what that leaves open.
//!
//! Since no process of a command can leave the group, one signal ends them all, whatever they
//! ignore and whoever started them.
//!
//! Linux only. Elsewhere, and on kernels before 6.2, commands are refused unless
//! [`Isolation::WithoutKernel`] says that this is known.

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
mod start;
#[cfg(target_os = "linux")]
mod syscalls;
mod toolchains;
mod watch;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use crate::Workspace;

pub(crate) use run::{Ended, Finished, run};

/// What a command is granted, and how it is held to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxOptions {
    /// Files and folders that may be read and run, beside the workspace and the system's programs: for instance
    /// a toolchain in the home folder.
    pub read: Vec<PathBuf>,
    /// Folders that may be written, beside the workspace (unless that is read-only) and a scratch folder that
    /// is gone when the call is. Control files in them can be changed, unlike in the workspace.
    pub write: Vec<PathBuf>,
    /// The network. Default denied.
    pub network: Network,
    /// Sockets of this machine's own services. Default denied, also with a network.
    pub unix_sockets: UnixSockets,
    /// Variables of the command's environment, beside `PATH`, the language, the time zone, the user's name and
    /// `HOME` and `TMPDIR`, which are the scratch folder. Nothing else of ours is passed on, so keys are not.
    ///
    /// Of our `PATH` the folders that commands may write come last, so that no program of a project takes the place of
    /// one of the system's, and relative ones are left out. A `PATH` that is given here is taken as it is: give one if a
    /// project's own programs are to go first, for instance those of an environment of Python.
    pub env: BTreeMap<String, String>,
    /// Processes and threads at a time. Default 256.
    pub max_processes: u32,
    /// Bytes of memory of a command with all that it started, memory that its processes share and files in memory
    /// included. Default 4 GiB. Where there is no cgroup for memory (version 1 or 2, which an ordinary user often
    /// lacks) it is the private memory of each process, and the addresses of each end 12 GiB above it. All of them
    /// together are counted five times a second, and the command is ended when they have more; so it may have more for
    /// a moment, and files in memory are held only by [`max_file_size`](Self::max_file_size).
    pub max_memory: u64,
    /// Bytes of each file that is written. Default 1 GiB.
    pub max_file_size: u64,
    /// Bytes that stay free on the disks that a command may write to. Default 1 GiB; where less than twice as much was
    /// free when it began, half of that. It is looked at five times a second, and a command that goes further is
    /// stopped. Its scratch folder goes with it; what it wrote to the workspace stays. How much of a disk that is not
    /// full a command may take is not limited.
    pub min_free_disk: u64,
    /// Bytes of the scratch folder, where a process may mount one; it is in memory then, and counts as the command's. Default
    /// 1 GiB. Where none can be mounted it is a folder on the disk, which only [`max_file_size`](Self::max_file_size)
    /// limits.
    pub max_scratch: u64,
    /// Processor time of each process. Default 10 minutes.
    pub max_cpu_time: Duration,
    /// Bytes of each of the two outputs that are kept, half from the beginning and half from the end. Default 256 KiB.
    pub max_output: usize,
    /// Bytes of output after which a command is stopped. Default 64 MiB.
    pub max_flood: u64,
    /// What happens where the kernel cannot hold a command. Default: it is refused.
    pub isolation: Isolation,
}

/// Whether a command reaches the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Network {
    /// No socket can be made, of whatever kind.
    #[default]
    Denied,
    /// Sockets of IPv4 and IPv6, and what a program needs to look up its addresses and interfaces.
    Granted,
}

/// Whether a command reaches services of this machine by their Unix sockets: docker, D-Bus, an agent for ssh keys. Such
/// a service does what it is asked with rights of its own, outside the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnixSockets {
    /// None can be made; pairs of connected ones can, by which processes of a command talk to each other.
    #[default]
    Denied,
    /// As any other program. The kernel does not see to which folder a socket belongs.
    Granted,
}

/// What happens where the kernel cannot hold a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// Commands are refused.
    #[default]
    Required,
    /// Commands run with all that this process may do. Their group is still ended with their call.
    WithoutKernel,
}

/// Whether a command may change the workspace.
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

/// What of the sandbox this system lacks, in a sentence; nothing if commands can be held.
///
/// ```
/// if let Some(missing) = archon_tools::sandbox::missing() {
///     eprintln!("bash will be refused: {missing}");
/// }
/// ```
pub fn missing() -> Option<String> {
    #[cfg(target_os = "linux")]
    {
        scratch::remove_left();
        kernel::missing().or_else(cgroup::missing)
    }
    #[cfg(not(target_os = "linux"))]
    Some("there is no sandbox for this system".to_owned())
}

/// The gaps of the sandbox on this system, in a sentence; none if there are none. There are gaps where the kernel lets
/// this user make neither mounts nor a user namespace with mounts, as in many containers.
///
/// ```
/// if let Some(open) = archon_tools::sandbox::not_held() {
///     eprintln!("commands are held, but {open}");
/// }
/// ```
pub fn not_held() -> Option<String> {
    #[cfg(target_os = "linux")]
    let why = mounts::maker().err()?;
    #[cfg(not(target_os = "linux"))]
    let why = "there are none on this system";
    Some(format!(
        "no mounts can be made for them ({why}): control files such as .git/config are compared after each command and put \
         back, and not held before; what a rule denies to read_file can be read by commands; modes and times of files \
         outside the workspace can be changed; a workspace that holds Archon's own folders has no commands"
    ))
}

/// Everything that decides what a command may do.
#[derive(Clone, Debug)]
pub(crate) struct Cage {
    pub(crate) options: SandboxOptions,
    pub(crate) roots: Vec<PathBuf>,
    /// Folders that belong to no workspace, and what each is.
    pub(crate) left_out: Arc<[(PathBuf, String)]>,
    pub(crate) access: Access,
    /// What the system lacks; asked once.
    pub(crate) missing: Option<String>,
}

impl Cage {
    pub(crate) fn new(workspace: &Workspace, access: Access, mut options: SandboxOptions) -> Self {
        // As they are now: a link in them leads nowhere else later, and folders that belong to no workspace are found in them.
        for granted in options.read.iter_mut().chain(&mut options.write) {
            if let Ok(real) = granted.canonicalize() {
                *granted = real;
            }
        }
        let (roots, left_out) = (workspace.roots().to_vec(), workspace.all_left_out().into());
        Self { options, roots, left_out, access, missing: missing() }
    }

    /// Whether the kernel holds the command.
    pub(crate) fn is_closed(&self) -> bool {
        self.missing.is_none()
    }

    /// Why no command may run here.
    pub(crate) fn refusal(&self) -> Option<String> {
        let missing = self.missing.as_ref().filter(|_| self.options.isolation == Isolation::Required)?;
        Some(format!(
            "Commands cannot be held within the workspace on this system: {missing}. The command was not run. Use the \
             file tools instead; the person can allow commands without a sandbox."
        ))
    }
}
