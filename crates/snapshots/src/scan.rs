//! Scans a workspace, and stores new contents.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    SnapshotError, SnapshotLimits,
    beneath::{Folder, Found, Stamp},
    index::{Index, Known},
    objects::Objects,
    rules::{self, Rules},
    tree::{Entry, Files, Hash, Kind, encode},
};

/// A function that writes the index.
type Save<'a> = &'a dyn Fn(&[(Vec<u8>, Known)]) -> Result<(), SnapshotError>;

/// One scan of a workspace.
pub(crate) struct Scan<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) index: &'a Index,
    pub(crate) workspace: &'a Path,
    pub(crate) limits: SnapshotLimits,
    /// Folders that snapshots leave out, relative to the workspace.
    pub(crate) without: &'a [PathBuf],
    /// Earlier snapshots. A file of one of them is part of the new snapshot even if it is ignored now.
    pub(crate) known: &'a [&'a Files],
    /// Called after each file that was read, with all files that were found so far.
    save: Save<'a>,
    /// True if the files are only counted, and nothing is stored.
    is_check_only: bool,
    /// The path of the folder or file that is looked at, relative to the workspace.
    path: Vec<u8>,
    rules: Rules,
    /// All files and links that were found.
    pub(crate) found: Vec<(Vec<u8>, Known)>,
    /// Number of files and links that were read.
    pub(crate) read: usize,
    entries: usize,
    bytes: u64,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        (objects, index): (&'a Objects, &'a Index),
        (workspace, without): (&'a Path, &'a [PathBuf]),
        limits: SnapshotLimits,
        known: &'a [&'a Files],
        save: Save<'a>,
    ) -> Self {
        Self {
            objects,
            index,
            workspace,
            limits,
            without,
            known,
            save,
            is_check_only: false,
            path: Vec::new(),
            rules: Rules::above(workspace),
            found: Vec::new(),
            read: 0,
            entries: 0,
            bytes: 0,
        }
    }

    /// Returns the hash of the workspace's tree.
    pub(crate) fn run(&mut self, root: &Folder) -> Result<Hash, SnapshotError> {
        let names = root.names().map_err(|source| self.unreadable(source))?;
        self.folder(root, &names, false)
    }

    /// Checks that the workspace is within the limits, without reading or storing a file.
    pub(crate) fn check(mut self, root: &Folder) -> Result<(), SnapshotError> {
        self.is_check_only = true;
        self.run(root).map(|_| ())
    }

    fn folder(
        &mut self,
        folder: &Folder,
        names: &[OsString],
        is_ignored: bool,
    ) -> Result<Hash, SnapshotError> {
        let has_rules = names.iter().any(|name| name == rules::NAME);
        let end = self.path.len();
        if has_rules {
            self.rules.enter(folder, if end == 0 { 0 } else { end + 1 });
        }
        let mut tree = Vec::with_capacity(names.len());
        for name in names.iter().filter(|name| *name != ".git") {
            if end > 0 {
                self.path.push(b'/');
            }
            self.path.extend(name.as_bytes());
            let entry = self.entry(folder, name, is_ignored)?;
            tree.extend(entry.map(|entry| (name.as_bytes().to_vec(), entry)));
            self.path.truncate(end);
        }
        if has_rules {
            self.rules.leave();
        }
        if self.is_check_only { Ok([0; 32]) } else { self.objects.write(&encode(&tree)) }
    }

    /// Returns the entry with this name; `None` if snapshots leave it out, or if it is gone.
    fn entry(
        &mut self,
        folder: &Folder,
        name: &OsStr,
        is_ignored: bool,
    ) -> Result<Option<Entry>, SnapshotError> {
        let Some(found) = folder.find(name).map_err(|source| self.unreadable(source))? else {
            return Ok(None);
        };
        let is_folder = found.kind == Kind::Folder;
        let path = Path::new(OsStr::from_bytes(&self.path));
        if is_folder && self.without.iter().any(|without| without == path) {
            return Ok(None);
        }
        // As in git, no rule can include a path again if its folder is ignored.
        let is_ignored = is_ignored || self.rules.ignore(&self.path, is_folder);
        if is_ignored && !self.known.iter().any(|files| files.contains_key(path)) {
            return Ok(None);
        }
        self.count(&found)?;
        match found.kind {
            Kind::Folder => self.subfolder(folder, name, found.mode, is_ignored),
            Kind::File | Kind::Link if !self.is_check_only => self.content(folder, name, &found),
            _ => Ok(Some(Entry::OTHER)),
        }
    }

    fn subfolder(
        &mut self,
        folder: &Folder,
        name: &OsStr,
        mode: u16,
        is_ignored: bool,
    ) -> Result<Option<Entry>, SnapshotError> {
        // Reading the names needs another permission than opening the folder.
        match folder.enter(name).and_then(|inner| Ok((inner.names()?, inner))) {
            Ok((names, inner)) => {
                let hash = self.folder(&inner, &names, is_ignored)?;
                Ok(Some(Entry { kind: Kind::Folder, mode, size: 0, hash }))
            }
            Err(error) => self.without_content(error),
        }
    }

    fn content(
        &mut self,
        folder: &Folder,
        name: &OsStr,
        found: &Found,
    ) -> Result<Option<Entry>, SnapshotError> {
        let known = if let Some(known) = self.index.get(&self.path, &found.stamp) {
            self.found.push((self.path.clone(), known));
            known
        } else {
            self.read += 1;
            let (hash, size) = match self.store(folder, name, found.kind)? {
                Ok(stored) => stored,
                Err(error) => return self.without_content(error),
            };
            let known = Known { stamp: found.stamp, size, hash };
            self.found.push((self.path.clone(), known));
            (self.save)(&self.found)?;
            known
        };
        let mode = if found.kind == Kind::Link { 0 } else { found.mode };
        Ok(Some(Entry { kind: found.kind, mode, size: known.size, hash: known.hash }))
    }

    fn store(
        &self,
        folder: &Folder,
        name: &OsStr,
        kind: Kind,
    ) -> Result<io::Result<(Hash, u64)>, SnapshotError> {
        if kind == Kind::Link {
            return Ok(match folder.target(name) {
                Ok(target) => Ok((self.objects.write(&target)?, target.len() as u64)),
                Err(error) => Err(error),
            });
        }
        match folder.open_file(name) {
            Ok(mut file) => self.objects.write_from(&mut file),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Returns the entry of a file or folder that could not be opened: `None` if it is gone or has another kind now,
    /// an entry without content if it may not be read.
    fn without_content(&self, error: io::Error) -> Result<Option<Entry>, SnapshotError> {
        let is_link = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ if is_link => Ok(None),
            io::ErrorKind::PermissionDenied | io::ErrorKind::Other => Ok(Some(Entry::OTHER)),
            _ => Err(self.unreadable(error)),
        }
    }

    fn count(&mut self, found: &Found) -> Result<(), SnapshotError> {
        self.entries += 1;
        if found.kind == Kind::File {
            self.bytes = self.bytes.saturating_add(found.stamp.size);
        }
        if self.entries > self.limits.entries || self.bytes > self.limits.bytes {
            return Err(SnapshotError::TooLarge {
                workspace: self.workspace.to_owned(),
                limits: self.limits,
            });
        }
        Ok(())
    }

    fn unreadable(&self, source: io::Error) -> SnapshotError {
        SnapshotError::Workspace { path: self.workspace.join(OsStr::from_bytes(&self.path)), source }
    }
}

/// Returns the stamp of each file and link that a scan found, by path.
pub(crate) fn stamps(found: &[(Vec<u8>, Known)]) -> HashMap<PathBuf, Stamp> {
    let path = |path: &[u8]| PathBuf::from(OsStr::from_bytes(path));
    found.iter().map(|(name, known)| (path(name), known.stamp)).collect()
}
