//! The system calls that a command may not make, as seccomp filters.
//!
//! Landlock guards files by their path. What it does not see is refused here: sockets, ways out of the process
//! group, the limits that were set, changes of owners (and, without write access, of modes and times), and the
//! administration of the machine, for the case that we are root. The list names what is refused and
//! not what is allowed, because what it is there for is this closed set.

use std::collections::BTreeMap;

use libc::{c_long, *};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

use super::{Access, Network};

/// Refused whatever was granted.
const ADMINISTRATION: &[c_long] = &[
    SYS_acct,
    SYS_add_key,
    SYS_adjtimex,
    SYS_bpf,
    SYS_chroot,
    SYS_clock_adjtime,
    SYS_clock_settime,
    SYS_delete_module,
    SYS_finit_module,
    SYS_init_module,
    // It makes sockets and opens files without these calls.
    SYS_io_uring_setup,
    SYS_kexec_file_load,
    SYS_kexec_load,
    SYS_keyctl,
    SYS_mount,
    SYS_move_mount,
    SYS_open_by_handle_at,
    SYS_perf_event_open,
    SYS_pivot_root,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_quotactl,
    SYS_reboot,
    SYS_request_key,
    SYS_setdomainname,
    SYS_sethostname,
    SYS_setns,
    SYS_settimeofday,
    SYS_swapoff,
    SYS_swapon,
    SYS_umount2,
    SYS_userfaultfd,
];

/// Owners and attributes of files, which Landlock does not look after.
const OWNERS: &[c_long] = &[
    SYS_fchown,
    SYS_fchownat,
    SYS_fremovexattr,
    SYS_fsetxattr,
    SYS_lremovexattr,
    SYS_lsetxattr,
    SYS_removexattr,
    SYS_setxattr,
    #[cfg(target_arch = "x86_64")]
    SYS_chown,
    #[cfg(target_arch = "x86_64")]
    SYS_lchown,
];

/// Modes and times of files. A command that may write has to set them, for instance to link a program.
const MODES: &[c_long] = &[
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchmodat2,
    SYS_utimensat,
    #[cfg(target_arch = "x86_64")]
    SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    SYS_futimesat,
    #[cfg(target_arch = "x86_64")]
    SYS_utime,
    #[cfg(target_arch = "x86_64")]
    SYS_utimes,
];

/// The filter for a command in the process group `group`; each refused call fails with EPERM.
pub(super) fn filter(group: u32, access: Access, network: Network) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut refuse = |call: c_long, when: Vec<SeccompRule>| {
        rules.insert(call, when.clone());
        // The same call in the 32-bit interface of x86-64, which the kernel may have as well.
        #[cfg(target_arch = "x86_64")]
        rules.insert(call | 0x4000_0000, when);
    };
    let always = [ADMINISTRATION, OWNERS];
    always.into_iter().flatten().for_each(|call| refuse(*call, Vec::new()));
    if access == Access::Read {
        MODES.iter().for_each(|call| refuse(*call, Vec::new()));
    }
    if network == Network::Denied {
        refuse(SYS_socket, Vec::new());
    }
    // A new session or another group would be out of reach of the signal that ends the call.
    refuse(SYS_setsid, Vec::new());
    refuse(SYS_setpgid, vec![when_not(1, SeccompCmpArgLen::Dword, u64::from(group))?]);
    // Root could raise the limits that were set.
    refuse(SYS_prlimit64, vec![when_not(2, SeccompCmpArgLen::Qword, 0)?]);
    refuse(SYS_setrlimit, Vec::new());
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EPERM.unsigned_abs()), arch)?;
    Ok(filter.try_into()?)
}

/// Whether there is a filter for this processor.
pub(super) fn is_supported() -> bool {
    TargetArch::try_from(std::env::consts::ARCH).is_ok()
}

fn when_not(argument: u8, length: SeccompCmpArgLen, value: u64) -> Result<SeccompRule, seccompiler::Error> {
    let condition = SeccompCondition::new(argument, length, SeccompCmpOp::Ne, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}
