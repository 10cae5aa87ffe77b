//! The seccomp filters: system calls that a command may not make.
//!
//! Landlock protects files by path. These filters refuse what Landlock does not cover: sockets, leaving the
//! process group, changing limits, changing owners (and without write access modes and times), System V
//! shared memory, scheduling of other processes, new namespaces, and administration of the machine, in case
//! we are root. The lists contain refused calls instead of allowed ones, because the refused calls are a
//! closed set. Calls newer than the lists fail as unknown, which programs must expect on older kernels
//! anyway.

use std::collections::BTreeMap;

use libc::{c_long, *};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use super::{Access, Network, SandboxOptions, UnixSockets};

/// System calls without names in `libc`. Their numbers are the same on all processors, as are all numbers
/// from 424 on.
mod new {
    use libc::c_long;

    pub(super) const SETXATTRAT: c_long = 463;
    pub(super) const REMOVEXATTRAT: c_long = 466;
    pub(super) const OPEN_TREE_ATTR: c_long = 467;
    pub(super) const FILE_SETATTR: c_long = 469;
    /// The highest call number in Linux 6.18. Before raising it, check what the new calls can do.
    pub(super) const HIGHEST: c_long = FILE_SETATTR;
}

/// The `ioctl` requests that set attributes of a file, which need no write access to it; `linux/fs.h`:
/// `FS_IOC_SETFLAGS`, `FS_IOC32_SETFLAGS`, `FS_IOC_FSSETXATTR`.
const ATTRIBUTES: [u64; 3] = [0x4008_6602, 0x4004_6602, 0x401c_5820];

/// System calls that are always refused.
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
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fsopen,
    SYS_fspick,
    SYS_init_module,
    // It can create sockets and open files without these calls.
    SYS_io_uring_setup,
    SYS_kexec_file_load,
    SYS_kexec_load,
    SYS_keyctl,
    SYS_mount,
    SYS_mount_setattr,
    SYS_move_mount,
    SYS_open_by_handle_at,
    SYS_open_tree,
    new::OPEN_TREE_ATTR,
    SYS_perf_event_open,
    SYS_pidfd_getfd,
    SYS_pivot_root,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_quotactl,
    SYS_quotactl_fd,
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

/// System calls that change owners and attributes of files, which Landlock does not cover.
const OWNERS: &[c_long] = &[
    SYS_fchown,
    SYS_fchownat,
    SYS_fremovexattr,
    SYS_fsetxattr,
    SYS_lremovexattr,
    SYS_lsetxattr,
    SYS_removexattr,
    SYS_setxattr,
    new::FILE_SETATTR,
    new::REMOVEXATTRAT,
    new::SETXATTRAT,
    #[cfg(target_arch = "x86_64")]
    SYS_chown,
    #[cfg(target_arch = "x86_64")]
    SYS_lchown,
];

/// System V shared memory, queues and semaphores. A command could reach those of other processes by number,
/// and those that the command makes would stay after its end.
const SYSTEM_V: &[c_long] = &[
    SYS_msgctl,
    SYS_msgget,
    SYS_msgrcv,
    SYS_msgsnd,
    SYS_semctl,
    SYS_semget,
    SYS_semop,
    SYS_semtimedop,
    SYS_shmat,
    SYS_shmctl,
    SYS_shmget,
];

/// Scheduling calls whose first argument is a process, where 0 is the caller.
const SCHEDULING: &[c_long] =
    &[SYS_sched_setaffinity, SYS_sched_setattr, SYS_sched_setparam, SYS_sched_setscheduler];

/// Scheduling calls with a kind and a number, where the number 0 is the caller; each with the kind that
/// means a process.
const PRIORITIES: [(c_long, u64); 2] = [(SYS_setpriority, 0), (SYS_ioprio_set, 1)];

/// Flags of new namespaces. In its own namespace a command would have all rights, and could attack more of
/// the kernel.
const NAMESPACES: [c_int; 8] = [
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    // CLONE_NEWTIME, only for `unshare`.
    0x80,
];

/// System calls that change modes and times of files. A command with write access needs them, for instance to
/// link a program.
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

/// System calls that set a file's mode, each with the index of the argument for the mode.
const MODE_OF: &[(c_long, u8)] = &[
    (SYS_fchmod, 1),
    (SYS_fchmodat, 2),
    (SYS_fchmodat2, 2),
    (SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (SYS_mknod, 1),
];

/// System calls that set a mode if they create the file, each with the index of the argument for the flags.
/// The argument after it is the mode.
const OPENING: &[(c_long, u8)] = &[
    (SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (SYS_open, 1),
];

/// Flags with which the calls in [`OPENING`] create a file. The first is the bit that only `O_TMPFILE` has.
const MAKING: [u64; 2] = [0o20_000_000, 0o100];

/// The set-user-ID bit: such a program runs as its owner. The bit for groups is allowed, because folders of
/// shared projects have it, and a filter cannot see whether a file is a folder.
const SET_UID: u64 = 0o4000;

/// Makes the filter for a command in the process group `group`; refused calls fail with EPERM.
pub(super) fn filter(
    group: u32,
    access: Access,
    options: &SandboxOptions,
) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut refuse = |call: c_long, when: Vec<SeccompRule>| {
        rules.insert(call, when);
    };
    let always = [ADMINISTRATION, OWNERS, SYSTEM_V];
    always.into_iter().flatten().for_each(|call| refuse(*call, Vec::new()));
    for (call, mode) in MODE_OF {
        refuse(*call, vec![rule([has(*mode, SET_UID)?])?]);
    }
    for (call, flags) in OPENING {
        let makes = |flag| rule([has(*flags, flag)?, has(flags + 1, SET_UID)?]);
        refuse(*call, MAKING.into_iter().map(makes).collect::<Result<_, _>>()?);
    }
    if access == Access::Read {
        MODES.iter().for_each(|call| refuse(*call, Vec::new()));
    }
    let attributes = ATTRIBUTES.into_iter().map(|request| rule([is(1, request)?]));
    refuse(SYS_ioctl, attributes.collect::<Result<_, _>>()?);
    refuse(SYS_socket, refused_sockets(options)?);
    if options.unix_sockets == UnixSockets::Denied {
        refuse(SYS_socketpair, refused_pairs()?);
    }
    // The signal that ends the call would not reach another session or group.
    refuse(SYS_setsid, Vec::new());
    refuse(SYS_setpgid, vec![rule([is_not(1, u64::from(group))?])?]);
    // Root could raise its limits.
    refuse(SYS_prlimit64, vec![rule([is_set(2)?])?]);
    refuse(SYS_setrlimit, Vec::new());
    for call in SCHEDULING {
        refuse(*call, vec![rule([is_not(0, 0)?])?]);
    }
    for (call, process) in PRIORITIES {
        refuse(call, vec![rule([is_not(0, process)?])?, rule([is_not(1, 0)?])?]);
    }
    refuse(SYS_unshare, any_of(&NAMESPACES)?);
    // The lowest byte of the flags is the exit signal, so `CLONE_NEWTIME` does not exist here.
    refuse(SYS_clone, any_of(&NAMESPACES[..7])?);
    let arch: TargetArch = std::env::consts::ARCH.try_into()?;
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EPERM.unsigned_abs()), arch)?;
    Ok(filter.try_into()?)
}

/// Returns the rules that refuse sockets; an empty list refuses all of them. Families are allowed by a list,
/// because there are forty-five, some of which reach the host of a virtual machine.
fn refused_sockets(options: &SandboxOptions) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let mut families = Vec::new();
    if options.network == Network::Granted {
        families.extend([AF_INET, AF_INET6, AF_NETLINK]);
    }
    if options.unix_sockets == UnixSockets::Granted {
        families.push(AF_UNIX);
    }
    if families.is_empty() {
        return Ok(Vec::new());
    }
    let of_none = families.iter().map(|family| is_not(0, bits(*family)));
    let other = rule(of_none.collect::<Result<Vec<_>, _>>()?)?;
    // Of netlink, only the service that lists addresses and routes is allowed.
    let netlink = [is(0, bits(AF_NETLINK))?, is_not(2, bits(NETLINK_ROUTE))?];
    Ok(vec![other, rule(netlink)?])
}

/// Makes rules that match if the first argument has one of these flags.
fn any_of(flags: &[c_int]) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    flags.iter().map(|flag| rule([has(0, bits(*flag))?])).collect()
}

/// Returns the rules that refuse pairs of connected sockets. A datagram socket could later be connected to
/// any other socket; a stream socket cannot.
fn refused_pairs() -> Result<Vec<SeccompRule>, seccompiler::Error> {
    const KIND: u64 = 0xf;
    let of_kind = |kind: c_int| {
        let (length, compare) = (SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(KIND));
        rule([SeccompCondition::new(1, length, compare, bits(kind))?])
    };
    let other = rule([is_not(0, bits(AF_UNIX))?])?;
    Ok(vec![other, of_kind(SOCK_DGRAM)?, of_kind(SOCK_RAW)?])
}

/// Makes a second filter, for calls that fail with ENOSYS as if they did not exist.
///
/// These are all system calls newer than [`new::HIGHEST`], and on x86-64 the calls of the x32 interface,
/// whose numbers are higher still. Also `clone3` and `openat2`, whose arguments a filter cannot see: `clone3`
/// could start a process in another cgroup, `openat2` could create a file that runs as its owner. Libraries
/// then use `clone` and `openat`.
pub(super) fn absent() -> BpfProgram {
    // A filter's input begins with the call's number; `struct seccomp_data`. Codes of `linux/filter.h` fit
    // into 16 bits.
    const LOAD: u32 = BPF_LD | BPF_W | BPF_ABS;
    let step = |code: u32, (jt, jf): (u8, u8), k: u32| sock_filter { code: code as u16, jt, jf, k };
    let number = |call: c_long| u32::try_from(call).unwrap_or(u32::MAX);
    vec![
        step(LOAD, (0, 0), 0),
        step(BPF_JMP | BPF_JGT | BPF_K, (3, 0), number(new::HIGHEST)),
        step(BPF_JMP | BPF_JEQ | BPF_K, (2, 0), number(SYS_clone3)),
        step(BPF_JMP | BPF_JEQ | BPF_K, (1, 0), number(SYS_openat2)),
        step(BPF_RET | BPF_K, (0, 0), SECCOMP_RET_ALLOW),
        step(BPF_RET | BPF_K, (0, 0), SECCOMP_RET_ERRNO | ENOSYS.unsigned_abs()),
    ]
}

/// Returns whether there is a filter for this processor.
pub(super) fn is_supported() -> bool {
    TargetArch::try_from(std::env::consts::ARCH).is_ok()
}

/// Returns a constant of C as the number with which a filter compares an argument.
fn bits(constant: c_int) -> u64 {
    constant.unsigned_abs().into()
}

/// Makes a rule that matches if all conditions hold.
fn rule(conditions: impl Into<Vec<SeccompCondition>>) -> Result<SeccompRule, seccompiler::Error> {
    Ok(SeccompRule::new(conditions.into())?)
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)?)
}

/// Makes the condition that this bit of an argument is set.
fn has(argument: u8, bit: u64) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bit), bit)?)
}

/// Makes a condition that a pointer is not null.
fn is_set(argument: u8) -> Result<SeccompCondition, seccompiler::Error> {
    Ok(SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates the filter for a call; supports only the instructions that it has.
    fn answer(filter: &[sock_filter], call: u32) -> u32 {
        let mut at = 0;
        loop {
            let step = &filter[at];
            let (code, k) = (u32::from(step.code), step.k);
            let holds = match code {
                _ if code == BPF_RET | BPF_K => return k,
                _ if code == BPF_JMP | BPF_JGT | BPF_K => call > k,
                _ if code == BPF_JMP | BPF_JEQ | BPF_K => call == k,
                _ => {
                    at += 1;
                    continue;
                }
            };
            at += 1 + usize::from(if holds { step.jt } else { step.jf });
        }
    }

    // spec: TE-39
    #[test]
    fn calls_newer_than_the_lists_are_not_there() {
        let (there, absent) = (SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | 38);
        let cases = [
            (0, there),
            (434, there),
            (435, absent),
            (436, there),
            (437, absent),
            (438, there),
            (469, there),
            (470, absent),
            (0x4000_0027, absent),
        ];
        for (call, expected) in cases {
            assert_eq!(answer(&super::absent(), call), expected, "{call}");
        }
    }
}
