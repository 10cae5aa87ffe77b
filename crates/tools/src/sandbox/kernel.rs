//! Makes a thread, or a child before it becomes the command, give up rights: Landlock for files, TCP and
//! signals, then seccomp.

use std::{
    ffi::CString,
    io,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::fs::{Mode, OFlags};
use seccompiler::BpfProgram;

use super::{
    Access, Cage, Network, UnixSockets,
    mounts::{self, Maker, Mounts, Plan},
    syscalls,
};

/// The first version of Landlock that covers every operation that changes a file's content (Linux 6.2).
const NEEDED: ABI = ABI::V3;

/// System files that programs need to start. Of `/etc` only files without secrets are listed.
///
/// All of `/proc` is listed, because programs read about themselves there, and the command's process number
/// is not known before. Of other processes, a command sees names, command lines and states, but not
/// environments, memory or open files.
const SYSTEM: &str = "/bin /sbin /usr /lib /lib32 /lib64 /libx32 /opt /nix/store /proc /sys/devices/system/cpu \
    /etc/alternatives /etc/bash.bashrc /etc/ca-certificates /etc/crypto-policies /etc/debian_version \
    /etc/gai.conf /etc/group /etc/host.conf /etc/hostname /etc/hosts /etc/inputrc /etc/ld.so.cache \
    /etc/ld.so.conf /etc/ld.so.conf.d /etc/locale.alias /etc/locale.conf /etc/localtime /etc/login.defs \
    /etc/magic /etc/mime.types /etc/nsswitch.conf /etc/os-release /etc/passwd /etc/perl /etc/pki/tls/certs \
    /etc/profile /etc/profile.d /etc/protocols /etc/resolv.conf /etc/services /etc/shells /etc/ssl/certs \
    /etc/ssl/openssl.cnf /etc/terminfo /etc/timezone";

/// Devices without data.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The restrictions of a command. They are prepared first; then a thread or process starts, which applies them to
/// itself.
pub(super) struct Restrictions {
    mounts: Option<Plan>,
    maker: Maker,
    scratch: CString,
    /// The Landlock rules; `apply` takes them.
    files: Option<RulesetCreated>,
    calls: [BpfProgram; 2],
}

/// The step of [`Restrictions::apply`] that failed, with its error.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed<'r> {
    #[error("{0}")]
    Mounts(mounts::Failed<'r>),
    #[error("scratch folder: {0}")]
    Scratch(io::Error),
    #[error("Landlock: {0}")]
    Landlock(RulesetError),
    /// Landlock accepted the rules, but does not enforce them.
    #[error("Landlock: the kernel does not enforce the rules")]
    NotEnforced,
    #[error("capabilities: {0}")]
    Capabilities(io::Error),
    #[error("seccomp: {0}")]
    Seccomp(seccompiler::Error),
}

/// Keeps only an error number, because a child process can report nothing else.
impl From<Failed<'_>> for io::Error {
    fn from(failed: Failed<'_>) -> Self {
        match failed {
            Failed::Mounts(failed) => failed.into(),
            Failed::Scratch(e) | Failed::Capabilities(e) => e,
            _ => rustix::io::Errno::ACCESS.into(),
        }
    }
}

impl Restrictions {
    /// Prepares restrictions for a command in the process group `group` with a scratch folder.
    pub(super) fn new(
        cage: &Cage,
        group: u32,
        scratch: &Path,
        mounts: Option<Mounts>,
    ) -> Result<Self, String> {
        let maker = if mounts.is_some() { mounts::maker()? } else { Maker::Thread };
        let mounts = mounts.map(|mounts| mounts.plan(maker)).transpose()?;
        let files = Some(files(cage).map_err(|e| format!("Landlock: {e}"))?);
        let known =
            syscalls::filter(group, cage.access, &cage.options).map_err(|e| format!("seccomp: {e}"))?;
        let scratch = CString::new(scratch.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        Ok(Self { mounts, maker, scratch, files, calls: [known, syscalls::absent()] })
    }

    /// Returns which of the two applies the restrictions to itself: the thread that starts the command, or
    /// the command's own process.
    pub(super) fn maker(&self) -> Maker {
        self.maker
    }

    /// Removes the rights from the maker: from the calling thread at once, or from the child of `command` before
    /// it becomes the command.
    pub(super) fn apply_to(mut self, command: &mut Command) -> Result<Maker, String> {
        let maker = self.maker;
        match maker {
            Maker::Thread => self.apply().map_err(|why| why.to_string())?,
            Maker::Child => {
                let apply = move || self.apply().map_err(io::Error::from);
                // SAFETY: it makes system calls, and neither allocates nor takes a lock.
                #[allow(unsafe_code, reason = "only a process with one thread enters a user namespace")]
                unsafe {
                    command.pre_exec(apply);
                }
            }
        }
        Ok(maker)
    }

    /// Applies the restrictions to the calling thread and everything that it starts; nothing can undo that.
    /// Allocates no memory unless it fails.
    fn apply(&mut self) -> Result<(), Failed<'_>> {
        // Landlock forbids mounting, and knows only mounts that exist, so mounts come first.
        self.mounts.as_ref().map_or(Ok(()), Plan::apply).map_err(Failed::Mounts)?;
        let files = self.files.take().ok_or(Failed::NotEnforced)?;
        let scratch = rustix::fs::open(&*self.scratch, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let scratch = scratch.map_err(|e| Failed::Scratch(e.into()))?;
        let files = files.add_rule(PathBeneath::new(scratch, writing()));
        let status = files.and_then(RulesetCreated::restrict_self).map_err(Failed::Landlock)?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err(Failed::NotEnforced);
        }
        drop_capabilities(self.maker).map_err(Failed::Capabilities)?;
        self.calls.iter().try_for_each(|calls| seccompiler::apply_filter(calls)).map_err(Failed::Seccomp)
    }
}

/// Removes root's capabilities except the access to other users' files, which Landlock limits. In a user
/// namespace all capabilities are removed. With "no new privileges" no program gets them back. Root's right
/// to trace processes would let a command read our environment in `/proc` despite Landlock, as a test
/// shows.
fn drop_capabilities(maker: Maker) -> io::Result<()> {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

    let remaining = match maker {
        Maker::Thread => capabilities(None)?.permitted & CapabilitySet::DAC_OVERRIDE,
        Maker::Child => CapabilitySet::empty(),
    };
    let sets =
        CapabilitySets { effective: remaining, permitted: remaining, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}

/// Returns a sentence that names the missing feature of this kernel, or `None` if nothing is missing.
pub(super) fn missing() -> Option<String> {
    let needed = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .and_then(Ruleset::create);
    match needed {
        Err(_) => Some("the kernel has no Landlock of version 3 (Linux 6.2)".to_owned()),
        Ok(_) if !syscalls::is_supported() => {
            Some("there is no seccomp filter for this processor".to_owned())
        }
        Ok(_) => None,
    }
}

/// Returns the kinds of access that Landlock allows in folders that may be written.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(ABI::V5) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

/// Makes the Landlock rules for all files except the scratch folder.
fn files(cage: &Cage) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        // Rights that only later kernels know are handled if possible.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))?
        .scope(Scope::Signal)?;
    if cage.options.unix_sockets == UnixSockets::Denied {
        // Sockets with a name but without a file.
        rules = rules.scope(Scope::AbstractUnixSocket)?;
    }
    if cage.options.network == Network::Denied {
        rules = rules.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    let read = AccessFs::from_read(ABI::V5);
    let write = writing();
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let nothing: &[PathBuf] = &[];
    let (read_roots, write_roots, write_granted) = match cage.access {
        Access::Read => (&*cage.roots, nothing, nothing),
        Access::Write => (nothing, &*cage.roots, &*cage.options.write),
    };
    rules
        .create()?
        .add_rules(path_beneath_rules(SYSTEM.split_whitespace(), read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(read_roots, read))?
        .add_rules(path_beneath_rules(&cage.options.read, read))?
        .add_rules(path_beneath_rules(write_roots, write))?
        .add_rules(path_beneath_rules(write_granted, write))
}
