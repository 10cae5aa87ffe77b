//! The mount namespace of a command. The command can change the folders that it was granted and nothing else,
//! not even modes and times outside; some places in them are read-only or empty.
//!
//! A thread that may mount makes it for itself before it gives up the rest, and passes it on to what it
//! starts. All mounts become read-only but for those of the granted folders, which are bound on themselves
//! before. What is bound on itself cannot be renamed or removed in this namespace, nor linked to from another
//! mount.
//!
//! If somebody outside of the namespace replaces or removes a file that is bound here, the kernel takes the
//! mount away; what is there afterwards is compared (`compare.rs`).

use std::{
    fs::{self, File},
    io,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rustix::{
    fs::{StatVfsMountFlags, statvfs},
    io::Errno,
    mount::{
        MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
        mount_remount,
    },
    thread::UnshareFlags,
};

/// Mounts of one command at most: each costs some microseconds, and the kernel has a limit of its own.
const MOST: usize = 10_000;

/// The places that a command may change, and the exceptions in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts {
    /// Folders in which it may change things.
    pub(super) write: Vec<PathBuf>,
    /// Folders of them that stay where they are.
    pub(super) pinned: Vec<PathBuf>,
    /// Files and folders that stay as they are.
    pub(super) fixed: Vec<PathBuf>,
    /// Files and folders that look empty.
    pub(super) hidden: Vec<PathBuf>,
    /// A folder that is the command's own, in memory, and the bytes that it may have.
    pub(super) scratch: Option<(PathBuf, u64)>,
}

/// Why no mounts can be made here; asked once.
pub(super) fn missing() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let ask = || match std::thread::spawn(|| Mounts::default().apply()).join() {
        Ok(made) => made.err(),
        Err(_) => Some("a thread that tried it panicked".to_owned()),
    };
    MISSING.get_or_init(ask).clone()
}

impl Mounts {
    /// Makes the namespace for the calling thread, and for all that it starts.
    pub(super) fn apply(&self) -> Result<(), String> {
        if self.pinned.len() + self.fixed.len() + self.hidden.len() > MOST {
            return Err(format!("more than {MOST} places in the workspace have to be held"));
        }
        // Not sound is only the part of it that takes descriptors away from a thread (`FILES`).
        #[allow(deprecated, reason = "the only safe function for it; of namespaces it is sound")]
        rustix::thread::unshare(UnshareFlags::NEWNS).map_err(|e| format!("mount namespace: {e}"))?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
            .map_err(|e| format!("mount namespace: {e}"))?;
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |e: Errno| format!("'{path}' cannot be mounted: {e}")
        };
        let write = outermost(&self.write);
        for folder in &write {
            mount_bind_recursive(folder, folder).map_err(failed(folder))?;
        }
        for (place, flags) in mounted().map_err(|e| format!("mounts: {e}"))? {
            if write.iter().any(|folder| place.starts_with(folder)) {
                continue;
            }
            match mount_remount(&place, MountFlags::BIND | MountFlags::RDONLY | flags, "") {
                // Another mount lies over it, so nobody gets there.
                Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::INVAL) => {}
                Err(e) => return Err(failed(&place)(e)),
            }
        }
        for folder in &self.pinned {
            mount_bind_recursive(folder, folder).map_err(failed(folder))?;
        }
        for place in &self.fixed {
            mount_bind_recursive(place, place).map_err(failed(place))?;
            read_only(place).map_err(failed(place))?;
        }
        if let Some((folder, bytes)) = &self.scratch {
            empty(folder, &format!("size={},nr_inodes=256k,mode=700", (*bytes).max(1)), MountFlags::empty())
                .map_err(failed(folder))?;
        }
        self.hide().map_err(|(place, e)| failed(place)(e))
    }

    fn hide(&self) -> Result<(), (&PathBuf, Errno)> {
        for place in &self.hidden {
            let hidden = match fs::symlink_metadata(place) {
                Ok(of) if of.is_dir() => empty(place, "size=4k,mode=755", MountFlags::RDONLY),
                Ok(_) => self.empty_file().and_then(|file| {
                    mount_bind(&file, place)?;
                    let _ = fs::remove_file(&file);
                    read_only(place)
                }),
                Err(_) => Err(Errno::NOENT),
            };
            hidden.map_err(|e| (place, e))?;
        }
        Ok(())
    }

    /// A file whose name goes away as soon as it is bound elsewhere.
    fn empty_file(&self) -> Result<PathBuf, Errno> {
        let (scratch, _) = self.scratch.as_ref().ok_or(Errno::NOENT)?;
        let file = scratch.join(".empty");
        match File::create_new(&file) {
            Ok(_) => Ok(file),
            Err(e) => Err(Errno::from_io_error(&e).unwrap_or(Errno::IO)),
        }
    }
}

/// Those that lie in no other.
fn outermost(folders: &[PathBuf]) -> Vec<PathBuf> {
    let is_inside =
        |folder: &PathBuf| folders.iter().any(|other| folder != other && folder.starts_with(other));
    let mut outermost: Vec<_> = folders.iter().filter(|folder| !is_inside(folder)).cloned().collect();
    outermost.sort();
    outermost.dedup();
    outermost
}

fn empty(folder: &Path, options: &str, flags: MountFlags) -> Result<(), Errno> {
    let options = std::ffi::CString::new(options).map_err(|_| Errno::INVAL)?;
    mount("archon", folder, "tmpfs", flags | MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())
}

/// Takes from a mount that was just made what would change it; the rest of its flags stays.
fn read_only(place: &Path) -> Result<(), Errno> {
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
    mount_remount(place, MountFlags::BIND | MountFlags::RDONLY | flags, "")
}

/// All mounts of the calling thread, with the flags that have to stay; see proc_pid_mountinfo(5).
fn mounted() -> io::Result<Vec<(PathBuf, MountFlags)>> {
    // Of the thread: `/proc/self` is of the thread that the process began with.
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

/// Spaces, tabs, newlines and backslashes stand there as three octal digits.
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
    PathBuf::from(std::ffi::OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_list_of_mounts_is_read_as_it_is() {
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
