//! What a thread gives up before it starts a command: Landlock for files, TCP, signals; then seccomp.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};
use seccompiler::BpfProgram;

use super::{Access, Cage, Network, UnixSockets, mounts::Mounts, syscalls};

/// The first version that guards everything that changes a file's content (Linux 6.2).
const NEEDED: ABI = ABI::V3;

/// What programs need of the system to start at all. Nothing in it is a secret: of `/etc` only what is listed.
const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    // All of it: which process a command will be is not known before, and programs read about themselves there. Of others
    // they see names, command lines and states; environments, memory and open files are kept from them.
    "/proc",
    "/sys/devices/system/cpu",
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/login.defs",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// Devices that hold nothing.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What a thread has to give up; made before, applied there.
pub(super) struct Restrictions {
    mounts: Option<Mounts>,
    scratch: PathBuf,
    files: RulesetCreated,
    calls: [BpfProgram; 2],
}

impl Restrictions {
    /// For a command in the process group `group` with a scratch folder of its own.
    pub(super) fn new(
        cage: &Cage,
        group: u32,
        scratch: &Path,
        mounts: Option<Mounts>,
    ) -> Result<Self, String> {
        let files = files(cage).map_err(|e| format!("Landlock: {e}"))?;
        let known =
            syscalls::filter(group, cage.access, &cage.options).map_err(|e| format!("seccomp: {e}"))?;
        Ok(Self { mounts, scratch: scratch.to_owned(), files, calls: [known, syscalls::absent()] })
    }

    /// Takes it from the calling thread, and from all that it starts, for good.
    pub(super) fn apply(self) -> Result<(), String> {
        // Landlock lets nobody mount, and knows a mount only once it is there.
        self.mounts.map_or(Ok(()), |mounts| mounts.apply())?;
        let files = self.files.add_rules(path_beneath_rules([&self.scratch], writing()));
        let status = files.and_then(RulesetCreated::restrict_self).map_err(|e| format!("Landlock: {e}"))?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err("Landlock: the kernel did not take the rules".to_owned());
        }
        give_up_capabilities().map_err(|e| format!("capabilities: {e}"))?;
        self.calls
            .iter()
            .try_for_each(|calls| seccompiler::apply_filter(calls))
            .map_err(|e| format!("seccomp: {e}"))
    }
}

/// Leaves root what an ordinary user has, and access to files that belong to others: Landlock says which. With
/// "no new privileges" set, no program gets the rest back. Root's right to trace others would let a command read
/// our environment in `/proc` although Landlock is on: a test shows it without this.
fn give_up_capabilities() -> std::io::Result<()> {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

    let left = capabilities(None)?.permitted & CapabilitySet::DAC_OVERRIDE;
    let sets = CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}

/// What of it this kernel lacks.
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

/// What may be done in a folder that may be written.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(ABI::V5) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
}

/// All but the scratch folder.
fn files(cage: &Cage) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        // What later kernels guard is guarded there.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))?
        .scope(Scope::Signal)?;
    if cage.options.unix_sockets == UnixSockets::Denied {
        // Those that have a name and no file.
        rules = rules.scope(Scope::AbstractUnixSocket)?;
    }
    if cage.options.network == Network::Denied {
        rules = rules.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    let read = AccessFs::from_read(ABI::V5);
    let write = writing();
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate;
    let (read_roots, write_roots): (&[PathBuf], &[PathBuf]) = match cage.access {
        Access::Read => (&cage.roots, &[]),
        Access::Write => (&[], &cage.roots),
    };
    let write_granted = match cage.access {
        Access::Read => &[][..],
        Access::Write => &cage.options.write[..],
    };
    rules
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(read_roots, read))?
        .add_rules(path_beneath_rules(&cage.options.read, read))?
        .add_rules(path_beneath_rules(write_roots, write))?
        .add_rules(path_beneath_rules(write_granted, write))
}
