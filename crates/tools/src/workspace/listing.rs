//! Lists and walks folders.
//!
//! A walk uses paths, so a folder that is replaced by a link meanwhile would lead the walk outside.
//! Therefore each entry is looked up again from the workspace's folder, without following links.

use std::{
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::Workspace;

/// An entry in a folder of a workspace.
pub(crate) struct Entry {
    /// The entry's path within the workspace, without links.
    pub(crate) path: PathBuf,
    pub(crate) is_dir: bool,
    /// True for a regular file.
    pub(crate) is_file: bool,
    pub(crate) modified: SystemTime,
}

impl Workspace {
    /// Returns the entries of a folder, whose path is canonical, ordered by name.
    pub(crate) fn entries(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = sys::entries(self, folder)?;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// Walks a folder in a stable order; the first entry is the folder itself. Links are not followed, hidden
    /// and ignored entries are skipped, nothing outside is read, and folders that `enter` refuses are not
    /// entered.
    pub(crate) fn walk<E>(&self, folder: &Path, enter: E) -> impl Iterator<Item = Entry> + use<E>
    where
        E: Fn(&Path) -> bool + Send + Sync + 'static,
    {
        let mut walk = ignore::WalkBuilder::new(folder);
        walk.follow_links(false)
            .require_git(false)
            .parents(false)
            .git_global(false)
            .git_exclude(false)
            .sort_by_file_path(Ord::cmp)
            .filter_entry(move |entry| enter(entry.path()));
        let mut look = sys::Look::new(self.clone());
        walk.build().flatten().filter_map(move |entry| look.at(entry.path()))
    }
}

#[cfg(unix)]
mod sys {
    use std::{
        ffi::{OsStr, OsString},
        io,
        os::unix::ffi::{OsStrExt, OsStringExt},
        path::{Path, PathBuf},
        time::{Duration, SystemTime},
    };

    use rustix::{
        fd::OwnedFd,
        fs::{AtFlags, Dir, FileType},
    };

    use super::{super::Workspace, Entry};
    use crate::beneath::{self, Missing};

    pub(super) fn entries(workspace: &Workspace, folder: &Path) -> io::Result<Vec<Entry>> {
        let (root, relative) = workspace.parts(folder).ok_or(io::ErrorKind::NotFound)?;
        let open = beneath::folder(root, relative, Missing::Refuse)?;
        let mut entries = Vec::new();
        for there in Dir::read_from(&open)? {
            let name = OsString::from_vec(there?.file_name().to_bytes().to_vec());
            if name != "." && name != ".." {
                // Entries that are gone meanwhile are skipped.
                entries.extend(entry(&open, folder, &name));
            }
        }
        Ok(entries)
    }

    /// Looks up entries, and keeps the folder of the last entry open, because the next entry is often in the
    /// same folder.
    pub(super) struct Look {
        workspace: Workspace,
        folder: Option<(PathBuf, OwnedFd)>,
    }

    impl Look {
        pub(super) fn new(workspace: Workspace) -> Self {
            Self { workspace, folder: None }
        }

        pub(super) fn at(&mut self, path: &Path) -> Option<Entry> {
            let (root, relative) = self.workspace.parts(path)?;
            let (Some(name), Some(parent)) = (relative.file_name(), path.parent()) else {
                let modified = SystemTime::UNIX_EPOCH;
                return Some(Entry { path: root.to_owned(), is_dir: true, is_file: false, modified });
            };
            let open = match self.folder.take().filter(|(folder, _)| folder == parent) {
                Some((_, open)) => open,
                None => beneath::folder(root, relative.parent()?, Missing::Refuse).ok()?,
            };
            let (_, open) = self.folder.insert((parent.to_owned(), open));
            entry(open, parent, name)
        }
    }

    fn entry(open: &OwnedFd, folder: &Path, name: &OsStr) -> Option<Entry> {
        let of = rustix::fs::statat(open, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let kind = FileType::from_raw_mode(of.st_mode);
        let nanoseconds = i128::from(of.st_mtime) * 1_000_000_000 + i128::from(of.st_mtime_nsec);
        // Times before 1970 become 1970.
        let since = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default());
        Some(Entry {
            path: folder.join(name),
            is_dir: kind == FileType::Directory,
            is_file: kind == FileType::RegularFile,
            modified: SystemTime::UNIX_EPOCH + since,
        })
    }
}

#[cfg(not(unix))]
mod sys {
    use std::{fs, io, path::Path, time::SystemTime};

    use super::{super::Workspace, Entry};

    pub(super) fn entries(_: &Workspace, folder: &Path) -> io::Result<Vec<Entry>> {
        Ok(fs::read_dir(folder)?.flatten().filter_map(|there| entry(&there.path())).collect())
    }

    pub(super) struct Look(Workspace);

    impl Look {
        pub(super) fn new(workspace: Workspace) -> Self {
            Self(workspace)
        }

        pub(super) fn at(&mut self, path: &Path) -> Option<Entry> {
            entry(path).filter(|entry| self.0.contains(&entry.path))
        }
    }

    fn entry(path: &Path) -> Option<Entry> {
        let of = fs::symlink_metadata(path).ok()?;
        let modified = of.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(Entry { path: path.to_owned(), is_dir: of.is_dir(), is_file: of.is_file(), modified })
    }
}
