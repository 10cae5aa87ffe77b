//! Opens folders of a workspace one path component at a time, without following links. So a folder that is moved or
//! replaced by a link meanwhile cannot lead out of the workspace.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Component, Path},
};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RawMode, Stat},
};

use crate::tree::Kind;

/// A folder that is held open.
pub(crate) struct Folder(OwnedFd);

/// The times, size and inode of a file. If they are the same later, the file counts as unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The time of the last change of the content (mtime), in nanoseconds since the Unix epoch.
    pub(crate) modified: i64,
    /// The time of the last change of the content or the metadata (ctime), in nanoseconds since the Unix epoch.
    pub(crate) changed: i64,
    pub(crate) size: u64,
    pub(crate) inode: u64,
}

/// The kind, permissions and stamp of an entry of a folder.
pub(crate) struct Found {
    pub(crate) kind: Kind,
    /// The permissions: the lowest 9 bits of the mode.
    pub(crate) mode: u16,
    pub(crate) stamp: Stamp,
}

impl Folder {
    /// Opens the workspace.
    pub(crate) fn root(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(CWD, path, folder_flags(), Mode::empty())?))
    }

    /// Opens a folder in this one.
    pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(&self.0, name, folder_flags(), Mode::empty())?))
    }

    /// Opens the folder that contains `path`, and returns it with the last component of `path`. `path` is relative to
    /// this folder.
    pub(crate) fn parent_of<'p>(&self, path: &'p Path) -> io::Result<(Self, &'p OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut folder = Self(self.0.try_clone()?);
        for step in path.parent().into_iter().flat_map(Path::components) {
            let Component::Normal(step) = step else { return Err(io::ErrorKind::InvalidInput.into()) };
            folder = folder.enter(step)?;
        }
        Ok((folder, name))
    }

    /// Returns the names in the folder, in order.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name.to_vec()));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the entry with this name; `None` if there is none.
    pub(crate) fn find(&self, name: &OsStr) -> io::Result<Option<Found>> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Found::of(&stat))),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        // `NONBLOCK`, so that a pipe that takes the place of the file cannot block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = File::from(rustix::fs::openat(&self.0, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
    }

    /// Returns the target of a link.
    pub(crate) fn target(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.0, name, Vec::new())?.into_bytes())
    }

    /// Removes a file or link, or an empty folder.
    pub(crate) fn remove(&self, name: &OsStr, is_folder: bool) -> io::Result<()> {
        let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        Ok(rustix::fs::unlinkat(&self.0, name, flags)?)
    }

    /// Creates a folder.
    pub(crate) fn create_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?)
    }

    /// Sets the permissions of a folder in this one.
    pub(crate) fn set_mode(&self, name: &OsStr, mode: u16) -> io::Result<()> {
        let folder = self.enter(name)?;
        let special = rustix::fs::fstat(&folder.0)?.st_mode & !0o777;
        Ok(rustix::fs::fchmod(&folder.0, Mode::from_raw_mode(special | RawMode::from(mode)))?)
    }

    /// Creates or replaces the file `name` atomically; `write` writes its content.
    pub(crate) fn put_file(
        &self,
        name: &OsStr,
        mode: u16,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.put(name, |temporary| {
            // Other users cannot read it before it has its permissions.
            let file = rustix::fs::openat(&self.0, temporary, flags, Mode::from_raw_mode(0o600))?;
            let mut file = File::from(file);
            write(&mut file)?;
            Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(RawMode::from(mode)))?)
        })
    }

    /// Creates or replaces the link `name` atomically.
    pub(crate) fn put_link(&self, name: &OsStr, target: &[u8]) -> io::Result<()> {
        let target = OsStr::from_bytes(target);
        self.put(name, |temporary| Ok(rustix::fs::symlinkat(target, &self.0, temporary)?))
    }

    fn put(&self, name: &OsStr, make: impl FnOnce(&str) -> io::Result<()>) -> io::Result<()> {
        let is_free = |name: &String| matches!(self.find(OsStr::new(name)), Ok(None));
        let mut names = (0..1_000).map(|number| format!(".archon-{}-{number}.tmp", std::process::id()));
        let temporary = names.find(is_free).ok_or_else(|| io::Error::other("no name for a file is free"))?;
        let put =
            make(&temporary).and_then(|()| Ok(rustix::fs::renameat(&self.0, &temporary, &self.0, name)?));
        if put.is_err() {
            let _ = rustix::fs::unlinkat(&self.0, &temporary, AtFlags::empty());
        }
        put
    }
}

impl Found {
    #[allow(clippy::useless_conversion, reason = "the types of the fields differ between systems")]
    fn of(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Symlink => Kind::Link,
            FileType::Directory => Kind::Folder,
            _ => Kind::Other,
        };
        let nanoseconds =
            |seconds: i128, rest: i128| i64::try_from(seconds * 1_000_000_000 + rest).unwrap_or_default();
        Self {
            kind,
            mode: u16::try_from(stat.st_mode & 0o777).unwrap_or_default(),
            stamp: Stamp {
                modified: nanoseconds(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
                changed: nanoseconds(stat.st_ctime.into(), stat.st_ctime_nsec.into()),
                size: u64::try_from(stat.st_size).unwrap_or_default(),
                inode: stat.st_ino.into(),
            },
        }
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}
