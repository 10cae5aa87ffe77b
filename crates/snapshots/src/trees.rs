//! Whole trees in the store: their entries, and the differences of two of them.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use crate::{
    SnapshotError, SnapshotId,
    objects::Objects,
    plan::{Change, changes},
    tree::{Entry, Files, Hash, decode, encode},
};

impl Objects {
    /// Adds to `more` the hashes of a tree and of everything below it, except those in `needed`. Nothing is below a
    /// tree that is missing or damaged.
    pub(crate) fn mark(&self, tree: &Hash, needed: &HashSet<Hash>, more: &mut HashSet<Hash>) {
        if needed.contains(tree) || !more.insert(*tree) {
            return;
        }
        for (_, entry) in self.tree(tree).unwrap_or_default() {
            if entry.is_folder() {
                self.mark(&entry.hash, needed, more);
            } else if !needed.contains(&entry.hash) {
                more.insert(entry.hash);
            }
        }
    }

    /// Returns all entries of a snapshot.
    pub(crate) fn files(&self, id: &SnapshotId) -> Result<Files, SnapshotError> {
        let mut files = Files::new();
        self.collect(&id.0, Path::new(""), &mut files)?;
        Ok(files)
    }

    /// Stores the tree of these entries, and returns its hash. Their contents are stored already.
    pub(crate) fn write_files(&self, files: &Files) -> Result<Hash, SnapshotError> {
        let mut folders: BTreeMap<&Path, Vec<(Vec<u8>, Entry)>> = BTreeMap::new();
        let write = |entries: Option<Vec<_>>| {
            let mut entries = entries.unwrap_or_default();
            entries.reverse();
            self.write(&encode(&entries))
        };
        // From the last path to the first, a folder comes after all that is in it.
        for (path, entry) in files.iter().rev() {
            let hash = if entry.is_folder() { write(folders.remove(path.as_path()))? } else { entry.hash };
            let name = path.file_name().unwrap_or_default().as_bytes().to_vec();
            let parent = path.parent().unwrap_or(Path::new(""));
            folders.entry(parent).or_default().push((name, Entry { hash, ..*entry }));
        }
        write(folders.remove(Path::new("")))
    }

    /// Returns the differences of two snapshots. Folders that are the same in both are not read.
    pub(crate) fn changes(&self, a: &SnapshotId, b: &SnapshotId) -> Result<Vec<Change>, SnapshotError> {
        let (mut old, mut new) = (Files::new(), Files::new());
        if a != b {
            self.compare((&a.0, &b.0), Path::new(""), (&mut old, &mut new))?;
        }
        Ok(changes(&old, &new))
    }

    /// Collects the entries of two trees, without those that are the same in both.
    fn compare(
        &self,
        (a, b): (&Hash, &Hash),
        below: &Path,
        (left, right): (&mut Files, &mut Files),
    ) -> Result<(), SnapshotError> {
        let mut others: HashMap<PathBuf, Entry> = self.tree(b)?.into_iter().collect();
        for (name, old) in self.tree(a)? {
            let path = below.join(&name);
            match others.remove(&name) {
                Some(new) if new == old => {}
                Some(new) if new.is_folder() && old.is_folder() => {
                    left.insert(path.clone(), plain(old));
                    right.insert(path.clone(), plain(new));
                    self.compare((&old.hash, &new.hash), &path, (&mut *left, &mut *right))?;
                }
                new => {
                    self.expand(&old, &path, left)?;
                    new.iter().try_for_each(|new| self.expand(new, &path, right))?;
                }
            }
        }
        others.iter().try_for_each(|(name, new)| self.expand(new, &below.join(name), right))
    }

    /// Collects an entry and, if it is a folder, all entries below it.
    fn expand(&self, entry: &Entry, path: &Path, files: &mut Files) -> Result<(), SnapshotError> {
        files.insert(path.to_owned(), plain(*entry));
        if entry.is_folder() { self.collect(&entry.hash, path, files) } else { Ok(()) }
    }

    fn collect(&self, tree: &Hash, below: &Path, files: &mut Files) -> Result<(), SnapshotError> {
        self.tree(tree)?.iter().try_for_each(|(name, entry)| self.expand(entry, &below.join(name), files))
    }

    fn tree(&self, hash: &Hash) -> Result<Vec<(PathBuf, Entry)>, SnapshotError> {
        let tree = self.read(hash).and_then(|bytes| decode(&bytes));
        tree.ok_or(SnapshotError::Missing { id: SnapshotId(*hash) })
    }
}

/// Returns the entry without the hash of a folder, because the entries in the folder are compared one by one.
fn plain(entry: Entry) -> Entry {
    if entry.is_folder() { Entry { hash: [0; 32], ..entry } } else { entry }
}
