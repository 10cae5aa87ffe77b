//! Opens files below a folder step by step without following links, so that concurrent moves or new links
//! cannot lead out of the folder.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    path::{Component, Path},
};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, FileType, Mode, OFlags},
};

/// The treatment of missing folders on the way to a file or folder: they are created, or the call fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Create,
    Refuse,
}

/// A file's location: its parent folder, held open, and its name.
pub(crate) struct Place {
    folder: OwnedFd,
    name: OsString,
}

impl Place {
    /// Opens the parent folder of `relative` below `root`. Both paths must be canonical, without `..` or
    /// links.
    pub(crate) fn find(root: &Path, relative: &Path, missing: Missing) -> io::Result<Self> {
        let name = relative.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        let folder = folder(root, relative.parent().unwrap_or(Path::new("")), missing)?;
        Ok(Self { folder, name: name.to_owned() })
    }

    /// Opens the file for reading; it must be a regular file.
    pub(crate) fn open(&self) -> io::Result<File> {
        // `NONBLOCK`, so that a pipe or device cannot block before it is refused.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let before = rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(before.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
            _ => return Err(io::Error::other("it is not a regular file")),
        }
        let file = File::from(rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(file)
    }

    /// Replaces the file, or creates it, in one step: a reader sees either the old content or the new one.
    /// The mode of the old file is kept. Returns the new file.
    pub(crate) fn replace(&self, content: &[u8], old: Option<&File>) -> io::Result<File> {
        let (temporary, mut file) = self.temporary()?;
        let written = file
            .write_all(content)
            .and_then(|()| match old {
                Some(old) => file.set_permissions(old.metadata()?.permissions()),
                None => Ok(()),
            })
            .and_then(|()| Ok(rustix::fs::renameat(&self.folder, &temporary, &self.folder, &self.name)?));
        if let Err(e) = written {
            let _ = rustix::fs::unlinkat(&self.folder, &temporary, AtFlags::empty());
            return Err(e);
        }
        Ok(file)
    }

    /// Moves the file to `other`; no file may exist there.
    #[cfg(feature = "bash")]
    pub(crate) fn move_to(&self, other: &Self) -> io::Result<()> {
        let is_free = rustix::fs::statat(&other.folder, &other.name, AtFlags::SYMLINK_NOFOLLOW);
        match is_free {
            Err(rustix::io::Errno::NOENT) => {
                Ok(rustix::fs::renameat(&self.folder, &self.name, &other.folder, &other.name)?)
            }
            Err(e) => Err(e.into()),
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// Creates a symbolic link at this location; nothing may exist there.
    #[cfg(feature = "bash")]
    pub(crate) fn make_link(&self, target: &Path) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.folder, &self.name)?)
    }

    fn temporary(&self) -> io::Result<(String, File)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for number in 0..1_000 {
            let name = format!(".archon-{}-{number}.tmp", std::process::id());
            match rustix::fs::openat(&self.folder, &name, flags, Mode::from_raw_mode(0o666)) {
                Ok(file) => return Ok((name, file.into())),
                Err(rustix::io::Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Err(io::Error::other("no name for a temporary file is free"))
    }
}

/// Opens the folder `relative` below `root`. Both paths must be canonical, without `..` or links.
pub(crate) fn folder(root: &Path, relative: &Path, missing: Missing) -> io::Result<OwnedFd> {
    let mut folder = rustix::fs::openat(CWD, root, folder_flags(), Mode::empty())?;
    for component in relative.components() {
        let Component::Normal(step) = component else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is not a plain one"));
        };
        folder = enter(&folder, step, missing)?;
    }
    Ok(folder)
}

/// Opens a regular file that is not a link, for reading; a pipe or device is refused without blocking.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

fn enter(folder: &OwnedFd, step: &OsStr, missing: Missing) -> io::Result<OwnedFd> {
    let open = || rustix::fs::openat(folder, step, folder_flags(), Mode::empty());
    match open() {
        Err(rustix::io::Errno::NOENT) if missing == Missing::Create => {
            match rustix::fs::mkdirat(folder, step, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(open()?),
                Err(e) => Err(e.into()),
            }
        }
        other => Ok(other?),
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}
