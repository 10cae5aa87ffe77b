//! The mount namespace of a command: only the granted folders can be changed, and outside of them not even
//! modes and times; some places within them are read-only or empty.
//!
//! A [`Plan`] lists the system calls and is made beforehand. A user who may mount (usually root) makes the
//! calls on the thread that starts the command. Any other user may mount only in a user namespace, which no
//! process with several threads can enter; there the child makes the calls between `fork` and `exec`, so they
//! must not allocate memory.
//!
//! All mounts become read-only except the granted folders, which are bind-mounted on themselves before. A
//! place that is bind-mounted on itself cannot be renamed or removed in this namespace, nor linked to from
//! another mount.
//!
//! If a file that is mounted here is replaced or removed from outside of the namespace, the kernel removes
//! the mount; the file is then compared afterwards (`compare.rs`).

use std::{
    ffi::{CStr, CString, OsString},
    fmt, fs, io,
    os::unix::{ffi::OsStringExt, process::CommandExt},
    path::PathBuf,
    process::{Command, Stdio},
    sync::OnceLock,
};

use rustix::{
    fs::{Mode, OFlags, StatVfsMountFlags, open, statvfs, unlink},
    io::Errno,
    mount::{
        MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
        mount_remount,
    },
    process::{chdir, getegid, geteuid},
    thread::UnshareFlags,
};

/// Maximum number of protected places of one command: each needs a mount, which takes some microseconds,
/// and the kernel has a limit of its own.
const MOST: usize = 10_000;

/// The places that a command may change, and the exceptions within them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts {
    /// Folders in which the command may change files.
    pub(super) write: Vec<PathBuf>,
    /// Folders within the writable folders that must not be moved.
    pub(super) pinned: Vec<PathBuf>,
    /// Files and folders that must not change.
    pub(super) fixed: Vec<PathBuf>,
    /// Files and folders that appear empty.
    pub(super) hidden: Vec<PathBuf>,
    /// The command's scratch folder in memory, and its size in bytes.
    pub(super) scratch: Option<(PathBuf, u64)>,
    /// The command's working directory.
    pub(super) directory: Option<PathBuf>,
}

/// The thread or process that makes the mount namespace of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    /// The thread that starts the command.
    Thread,
    /// The command's own process, in a user namespace, before it becomes the command.
    Child,
}

/// Returns the thread or process that can make mount namespaces on this system, or the reason why none can.
/// The test is made once.
pub(super) fn maker() -> Result<Maker, &'static str> {
    static MAKER: OnceLock<Result<Maker, String>> = OnceLock::new();
    let found = MAKER.get_or_init(|| {
        let Err(of_thread) = try_in_thread() else { return Ok(Maker::Thread) };
        match try_in_child() {
            Ok(()) => Ok(Maker::Child),
            Err(of_child) => {
                Err(format!("without a user namespace: {of_thread}; in a user namespace: {of_child}"))
            }
        }
    });
    found.as_ref().map_err(String::as_str).copied()
}

fn try_in_thread() -> Result<(), String> {
    let plan = Mounts::default().plan(Maker::Thread)?;
    let tried = std::thread::spawn(move || plan.apply().map_err(|e| e.to_string()));
    tried.join().unwrap_or_else(|_| Err("the thread of the test panicked".to_owned()))
}

fn try_in_child() -> Result<(), String> {
    let plan = Mounts::default().plan(Maker::Child)?;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", ":"]).env_clear();
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: a plan makes system calls, and neither allocates nor takes a lock.
    #[allow(unsafe_code, reason = "only a process with one thread enters a user namespace; see above")]
    unsafe {
        shell.pre_exec(move || plan.apply().map_err(io::Error::from));
    }
    match shell.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(e) => Err(e.to_string()),
    }
}

impl Mounts {
    /// Makes the list of system calls that create the mount namespace.
    ///
    /// # Errors
    /// There are too many places, or a name has a null byte.
    pub(super) fn plan(&self, maker: Maker) -> Result<Plan, String> {
        if self.pinned.len() + self.fixed.len() + self.hidden.len() > MOST {
            return Err(format!("the workspace has more than {MOST} files and folders to protect"));
        }
        let failed = |e: io::Error| format!("mounts: {e}");
        self.calls().map(|calls| Plan { user: User::of(maker), calls }).map_err(failed)
    }

    fn calls(&self) -> io::Result<Vec<Call>> {
        let mut calls = Vec::new();
        let write = outermost(&self.write);
        for folder in &write {
            calls.push(Call::Bind(c_string(folder)?));
        }
        for (place, flags) in mounted()? {
            if !write.iter().any(|folder| place.starts_with(folder)) {
                calls.push(Call::Remount(c_string(&place)?, flags));
            }
        }
        for folder in &self.pinned {
            calls.push(Call::Bind(c_string(folder)?));
        }
        for place in &self.fixed {
            let place = c_string(place)?;
            calls.extend([Call::Bind(place.clone()), Call::ReadOnly(place)]);
        }
        if let Some((folder, bytes)) = &self.scratch {
            let options = c_string(format!("size={},nr_inodes=256k,mode=700", (*bytes).max(1)))?;
            calls.push(Call::Memory(c_string(folder)?, options, MountFlags::empty()));
        }
        for place in &self.hidden {
            if fs::symlink_metadata(place)?.is_dir() {
                let options = c_string("size=4k,mode=755")?;
                calls.push(Call::Memory(c_string(place)?, options, MountFlags::RDONLY));
            } else {
                let (scratch, _) = self.scratch.as_ref().ok_or(io::ErrorKind::NotFound)?;
                let (file, place) = (c_string(scratch.join(".empty"))?, c_string(place)?);
                calls.extend([Call::Empty { file, place: place.clone() }, Call::ReadOnly(place)]);
            }
        }
        // Otherwise the working directory would stay the one below the new mount.
        if let Some(directory) = &self.directory {
            calls.push(Call::Enter(c_string(directory)?));
        }
        Ok(calls)
    }
}

/// System calls that make a mount namespace for the calling thread or process and everything that it starts.
pub(super) struct Plan {
    user: Option<User>,
    calls: Vec<Call>,
}

/// The user and group in a user namespace: the same as outside.
struct User {
    uid: String,
    gid: String,
}

enum Call {
    /// Bind-mounts a place on itself, with all mounts within it.
    Bind(CString),
    /// Makes an existing mount read-only; its other flags stay.
    Remount(CString, MountFlags),
    /// Makes one of our mounts read-only; its other flags stay.
    ReadOnly(CString),
    /// Mounts a file system in memory with these options.
    Memory(CString, CString, MountFlags),
    /// Creates an empty file, bind-mounts it on a place, and then deletes the name of the file.
    Empty { file: CString, place: CString },
    /// Changes the working directory.
    Enter(CString),
}

/// A failed system call, with the path that it was for.
#[derive(Debug)]
pub(super) struct Failed<'p> {
    place: Option<&'p CStr>,
    error: Errno,
}

impl fmt::Display for Failed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "'{}' cannot be mounted: {}", place.to_string_lossy(), self.error),
            None => write!(f, "mount namespace: {}", self.error),
        }
    }
}

impl From<Failed<'_>> for io::Error {
    fn from(failed: Failed<'_>) -> Self {
        failed.error.into()
    }
}

impl Plan {
    /// Makes the system calls. Allocates no memory unless one fails.
    pub(super) fn apply(&self) -> Result<(), Failed<'_>> {
        let on = |place| move |error| Failed { place, error };
        let of_user = if self.user.is_some() { UnshareFlags::NEWUSER } else { UnshareFlags::empty() };
        // Only unsharing a thread's descriptors (`FILES`) is unsound.
        #[allow(deprecated, reason = "the only safe function for it; of namespaces it is sound")]
        rustix::thread::unshare(UnshareFlags::NEWNS | of_user).map_err(on(None))?;
        if let Some(user) = &self.user {
            user.enter().map_err(on(None))?;
        }
        mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).map_err(on(None))?;
        self.calls.iter().try_for_each(|call| call.make().map_err(on(Some(call.place()))))
    }
}

impl User {
    fn of(maker: Maker) -> Option<Self> {
        let same = |id: u32| format!("{id} {id} 1\n");
        (maker == Maker::Child).then(|| Self { uid: same(geteuid().as_raw()), gid: same(getegid().as_raw()) })
    }

    /// Writes the user mapping. A group can be mapped only after giving up `setgroups`; see
    /// user_namespaces(7).
    fn enter(&self) -> Result<(), Errno> {
        for (file, text) in [
            (c"/proc/self/setgroups", "deny"),
            (c"/proc/self/gid_map", &self.gid),
            (c"/proc/self/uid_map", &self.uid),
        ] {
            let file = open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::io::write(file, text.as_bytes())?;
        }
        Ok(())
    }
}

impl Call {
    fn place(&self) -> &CStr {
        match self {
            Self::Bind(place)
            | Self::Remount(place, _)
            | Self::ReadOnly(place)
            | Self::Memory(place, _, _)
            | Self::Empty { place, .. }
            | Self::Enter(place) => place,
        }
    }

    fn make(&self) -> Result<(), Errno> {
        match self {
            Self::Bind(place) => mount_bind_recursive(&**place, &**place),
            Self::Remount(place, flags) => {
                match mount_remount(&**place, MountFlags::BIND | MountFlags::RDONLY | *flags, c"") {
                    // The mount is unreachable: another mount covers it or a folder above it (then no mount
                    // begins at this path), or this user may not go there.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::ACCESS) => Ok(()),
                    made => made,
                }
            }
            Self::ReadOnly(place) => read_only(place),
            Self::Memory(place, options, flags) => {
                let flags = *flags | MountFlags::NOSUID | MountFlags::NODEV;
                mount(c"archon", &**place, c"tmpfs", flags, &**options)
            }
            Self::Empty { file, place } => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                open(&**file, flags, Mode::from_raw_mode(0o644))?;
                mount_bind(&**file, &**place)?;
                unlink(&**file)
            }
            Self::Enter(place) => chdir(&**place),
        }
    }
}

fn c_string(path: impl Into<OsString>) -> io::Result<CString> {
    Ok(CString::new(path.into().into_vec())?)
}

/// Returns the folders that are not within another folder of the list.
fn outermost(folders: &[PathBuf]) -> Vec<PathBuf> {
    let is_inside =
        |folder: &PathBuf| folders.iter().any(|other| folder != other && folder.starts_with(other));
    let mut outermost: Vec<_> = folders.iter().filter(|folder| !is_inside(folder)).cloned().collect();
    outermost.sort();
    outermost.dedup();
    outermost
}

/// Makes a new mount read-only; its other flags stay.
fn read_only(place: &CStr) -> Result<(), Errno> {
    let has = statvfs(place)?.f_flag;
    let flags = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let flags =
        flags.into_iter().filter(|(of, _)| has.contains(*of)).fold(MountFlags::empty(), |all, of| all | of.1);
    mount_remount(place, MountFlags::BIND | MountFlags::RDONLY | flags, c"")
}

/// Returns all mounts of the calling thread, with the flags that must stay; see proc_pid_mountinfo(5).
fn mounted() -> io::Result<Vec<(PathBuf, MountFlags)>> {
    // The thread's own list: `/proc/self` is that of the process's first thread.
    let list = fs::read("/proc/thread-self/mountinfo")?;
    let mounts = list.split(|byte| *byte == b'\n').filter_map(|line| {
        let mut parts = line.split(|byte| *byte == b' ').skip(4);
        let (place, flags) = (parts.next()?, parts.next()?);
        Some((
            unescaped(place),
            flags.split(|byte| *byte == b',').fold(MountFlags::empty(), |all, name| all | flag(name)),
        ))
    });
    Ok(mounts.collect())
}

fn flag(name: &[u8]) -> MountFlags {
    match name {
        b"nosuid" => MountFlags::NOSUID,
        b"nodev" => MountFlags::NODEV,
        b"noexec" => MountFlags::NOEXEC,
        b"noatime" => MountFlags::NOATIME,
        b"nodiratime" => MountFlags::NODIRATIME,
        b"relatime" => MountFlags::RELATIME,
        b"nosymfollow" => MountFlags::NOSYMFOLLOW,
        _ => MountFlags::empty(),
    }
}

/// Decodes a path: spaces, tabs, newlines and backslashes are written as three octal digits.
fn unescaped(path: &[u8]) -> PathBuf {
    let mut plain = Vec::new();
    let mut rest = path;
    while let Some((first, behind)) = rest.split_first() {
        let digits =
            behind.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = behind.get(3..).unwrap_or_default();
            }
            None => {
                plain.push(*first);
                rest = behind;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn mount_path_escapes_are_decoded() {
        for (listed, place) in
            [("/a", "/a"), ("/a\\040b\\134", "/a b\\"), ("/\\9", "/\\9"), ("/a\\04", "/a\\04")]
        {
            assert_eq!(unescaped(listed.as_bytes()), Path::new(place), "{listed}");
        }
    }

    #[test]
    fn of_folders_in_each_other_the_outermost_are_left() {
        let folders = ["/a/b", "/a", "/ab", "/a"].map(PathBuf::from);
        assert_eq!(outermost(&folders), [PathBuf::from("/a"), PathBuf::from("/ab")]);
    }
}
