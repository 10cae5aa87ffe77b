//! The index: the stamp and the hash of each file of the workspace, so that an unchanged file is not read again.

use std::{collections::HashMap, fs, path::Path};

use crate::{
    SnapshotError,
    beneath::Stamp,
    store::replace,
    tree::{Hash, Reader, hash},
};

/// The stamp, size and hash of each file and link at the latest snapshot, by path.
#[derive(Default)]
pub(crate) struct Index(HashMap<Vec<u8>, Known>);

/// The index entry of a file or link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) stamp: Stamp,
    /// The size of the content that was read, in bytes.
    pub(crate) size: u64,
    pub(crate) hash: Hash,
}

/// The first bytes of the index file, which identify its format.
const FORMAT: &[u8] = b"archon-index-1\n";

/// The longest interval in which a file may change twice and keep the same time, in nanoseconds: the system's clock
/// for file times is coarse. A snapshot does not trust the time of a file that changed within this interval before
/// it.
const TICK: i64 = 100_000_000;

/// The same interval for file systems that keep times in whole seconds.
const LONG_TICK: i64 = 2_000_000_000;

impl Index {
    /// Reads the index. Returns an empty index if the file is missing or damaged; the next snapshot then reads all
    /// files.
    pub(crate) fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_default();
        Self::decode(&bytes).unwrap_or_default()
    }

    /// Writes the index of the files that a snapshot found. `began` is the start time of the snapshot, in nanoseconds
    /// since the Unix epoch. A file that changed shortly before is left out, because it may change again without a
    /// new time.
    pub(crate) fn write(path: &Path, found: &[(Vec<u8>, Known)], began: i64) -> Result<(), SnapshotError> {
        let mut body = Vec::with_capacity(found.len() * 128);
        for (path, known) in found.iter().filter(|(_, known)| known.stamp.is_settled(began)) {
            let Stamp { modified, changed, size, inode } = known.stamp;
            body.extend(modified.to_be_bytes());
            body.extend(changed.to_be_bytes());
            body.extend(size.to_be_bytes());
            body.extend(inode.to_be_bytes());
            body.extend(known.size.to_be_bytes());
            body.extend(known.hash);
            body.extend(path);
            body.push(0);
        }
        replace(path, &[FORMAT, &hash(&body), &body])
    }

    /// Returns the entry of a path; `None` if there is none or the file has another stamp.
    pub(crate) fn get(&self, path: &[u8], stamp: &Stamp) -> Option<Known> {
        self.0.get(path).filter(|known| known.stamp == *stamp).copied()
    }

    /// Returns the number of files and links.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the hashes of the contents that the index refers to.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = Hash> {
        self.0.values().map(|known| known.hash)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes.strip_prefix(FORMAT)?);
        if reader.array::<32>()? != hash(reader.0) {
            return None;
        }
        let mut files = HashMap::with_capacity(reader.0.len() / 100);
        while !reader.0.is_empty() {
            let stamp = Stamp {
                modified: i64::from_be_bytes(reader.array()?),
                changed: i64::from_be_bytes(reader.array()?),
                size: u64::from_be_bytes(reader.array()?),
                inode: u64::from_be_bytes(reader.array()?),
            };
            let size = u64::from_be_bytes(reader.array()?);
            let hash = reader.array()?;
            files.insert(reader.text()?.to_vec(), Known { stamp, size, hash });
        }
        Some(Self(files))
    }
}

impl Stamp {
    /// Returns true if a change after `began` is certain to give the file another stamp.
    fn is_settled(&self, began: i64) -> bool {
        is_before(self.modified.max(self.changed), began)
    }

    /// Returns true if the file, its name or its permissions were changed after `ended`.
    pub(crate) fn is_changed_after(&self, ended: i64) -> bool {
        self.modified.max(self.changed) > ended
    }

    /// Returns true if the content was certainly last changed before `began`. Moving a file does not change this
    /// time.
    pub(crate) fn is_older(&self, began: i64) -> bool {
        is_before(self.modified, began)
    }
}

fn is_before(time: i64, began: i64) -> bool {
    let tick = if time % 1_000_000_000 == 0 { LONG_TICK } else { TICK };
    time.saturating_add(tick) < began
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_modified_at(modified: i64) -> Known {
        let stamp = Stamp { modified, changed: modified, size: 3, inode: 7 };
        Known { stamp, size: 3, hash: hash(b"abc") }
    }

    #[test]
    fn read_after_write_returns_the_settled_files_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        let (old, new, whole) =
            (entry_modified_at(5), entry_modified_at(9_950_000_001), entry_modified_at(9_000_000_000));
        let found = [(b"old".to_vec(), old), (b"new".to_vec(), new), (b"whole".to_vec(), whole)];
        Index::write(&path, &found, 10_000_000_000).unwrap();
        let index = Index::read(&path);
        assert_eq!(index.get(b"old", &old.stamp), Some(old));
        assert_eq!(index.get(b"old", &new.stamp), None);
        assert_eq!(index.get(b"new", &new.stamp), None);
        assert_eq!(index.get(b"whole", &whole.stamp), None);
    }

    #[test]
    fn read_of_a_damaged_index_returns_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index");
        Index::write(&path, &[(b"a".to_vec(), entry_modified_at(5))], 10_000_000_000).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(Index::read(&path).hashes().count(), 0);
    }
}
