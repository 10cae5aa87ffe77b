//! Stores contents by their hash, each content once.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::{
    SnapshotError,
    error::store,
    tree::{Hash, hash},
};

/// Contents of fewer bytes are hashed in memory, so that nothing is written if the store already has them.
const IN_MEMORY: usize = 1 << 20;

/// The contents of one workspace's snapshots.
pub(crate) struct Objects {
    folder: PathBuf,
    /// Folder of the files that are being written.
    unfinished: PathBuf,
    /// The index file. It is removed together with a damaged content, because it refers to the content.
    index: PathBuf,
    /// Number of bytes stored since the last call of `take_added`.
    added: AtomicU64,
}

impl Objects {
    pub(crate) fn open(folder: &Path) -> Result<Self, SnapshotError> {
        let own = Self {
            folder: folder.join("objects"),
            unfinished: folder.join("unfinished"),
            index: folder.join("index"),
            added: AtomicU64::new(0),
        };
        for folder in [&own.folder, &own.unfinished] {
            fs::create_dir_all(folder).map_err(store(folder))?;
        }
        Ok(own)
    }

    /// Stores a content, and returns its hash.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<Hash, SnapshotError> {
        let hash = hash(bytes);
        if !self.has(&hash, bytes.len() as u64) {
            let mut file = self.begin()?;
            file.write_all(bytes).map_err(store(file.path()))?;
            self.finish(file, (&hash, bytes.len() as u64))?;
        }
        Ok(hash)
    }

    /// Stores the content of a file, and returns its hash and its size in bytes. The inner error comes from reading
    /// `from`, the outer one from the store.
    pub(crate) fn write_from(&self, from: &mut File) -> Result<io::Result<(Hash, u64)>, SnapshotError> {
        let mut first = Vec::new();
        if let Err(error) = Read::by_ref(from).take(IN_MEMORY as u64).read_to_end(&mut first) {
            return Ok(Err(error));
        }
        if first.len() < IN_MEMORY {
            return Ok(Ok((self.write(&first)?, first.len() as u64)));
        }
        let (mut file, mut hasher, mut size) = (self.begin()?, Sha256::new(), 0);
        let mut part = first;
        while !part.is_empty() {
            hasher.update(&part);
            file.write_all(&part).map_err(store(file.path()))?;
            size += part.len() as u64;
            part.clear();
            if let Err(error) = Read::by_ref(from).take(IN_MEMORY as u64).read_to_end(&mut part) {
                return Ok(Err(error));
            }
        }
        let hash = hasher.finalize().into();
        if !self.has(&hash, size) {
            self.finish(file, (&hash, size))?;
        }
        Ok(Ok((hash, size)))
    }

    /// Returns a content; `None` if it is missing or damaged. A damaged content is removed.
    pub(crate) fn read(&self, id: &Hash) -> Option<Vec<u8>> {
        let bytes = fs::read(self.path(id)).ok()?;
        if hash(&bytes) != *id {
            self.discard(id);
            return None;
        }
        Some(bytes)
    }

    /// Writes a content to `to`.
    ///
    /// # Errors
    /// The content is missing or damaged, or cannot be written to `to`. A damaged content is removed.
    pub(crate) fn copy(&self, id: &Hash, to: &mut dyn Write) -> io::Result<()> {
        let mut from = File::open(self.path(id)).inspect_err(|_| self.discard(id))?;
        let (mut hasher, mut part) = (Sha256::new(), vec![0; 1 << 16]);
        loop {
            let count = from.read(&mut part)?;
            let Some(bytes) = part.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
            hasher.update(bytes);
            to.write_all(bytes)?;
        }
        if Hash::from(hasher.finalize()) != *id {
            self.discard(id);
            return Err(io::Error::other("its content in the store of snapshots is damaged"));
        }
        Ok(())
    }

    /// Removes a damaged content and the index, so that the next snapshot reads all files and stores the content
    /// again.
    fn discard(&self, id: &Hash) {
        let _ = fs::remove_file(self.path(id));
        let _ = fs::remove_file(&self.index);
    }

    /// Removes each content for which `is_needed` returns false, and unfinished files. No other process may write
    /// meanwhile.
    pub(crate) fn remove(&self, is_needed: impl Fn(&Hash) -> bool) -> Result<(), SnapshotError> {
        for path in paths(&self.unfinished)? {
            fs::remove_file(&path).map_err(store(&path))?;
        }
        for folder in paths(&self.folder)?.into_iter().filter(|path| path.is_dir()) {
            for path in paths(&folder)? {
                let name =
                    path.strip_prefix(&self.folder).unwrap_or(&path).to_string_lossy().replace('/', "");
                let is_kept = name.parse::<crate::SnapshotId>().is_ok_and(|id| is_needed(&id.0));
                if !is_kept {
                    fs::remove_file(&path).map_err(store(&path))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the number of bytes stored since the last call.
    pub(crate) fn take_added(&self) -> u64 {
        self.added.swap(0, Ordering::Relaxed)
    }

    /// Returns the size of a content in bytes; 0 if the store does not have it.
    pub(crate) fn size(&self, id: &Hash) -> u64 {
        fs::metadata(self.path(id)).map_or(0, |of| of.len())
    }

    /// Returns true if the store has a content of this size. A file of another size was cut off by a power cut.
    fn has(&self, id: &Hash, size: u64) -> bool {
        fs::metadata(self.path(id)).is_ok_and(|of| of.len() == size)
    }

    fn begin(&self) -> Result<NamedTempFile, SnapshotError> {
        NamedTempFile::new_in(&self.unfinished).map_err(store(&self.unfinished))
    }

    fn finish(&self, file: NamedTempFile, (id, size): (&Hash, u64)) -> Result<(), SnapshotError> {
        let path = self.path(id);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(store(folder))?;
        file.persist(&path).map_err(|error| store(&path)(error.error))?;
        self.added.fetch_add(size, Ordering::Relaxed);
        Ok(())
    }

    fn path(&self, id: &Hash) -> PathBuf {
        let name = crate::SnapshotId(*id).to_string();
        let (first, rest) = name.split_at(2);
        self.folder.join(first).join(rest)
    }
}

fn paths(folder: &Path) -> Result<Vec<PathBuf>, SnapshotError> {
    let entries = fs::read_dir(folder).map_err(store(folder))?;
    entries.map(|entry| Ok(entry.map_err(store(folder))?.path())).collect()
}
