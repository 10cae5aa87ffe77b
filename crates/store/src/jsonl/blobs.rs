//! Keeps the large records of one run, each in a file named by its hash.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use archon_types::JournalError;

use crate::{
    blob::{Blob, Blobs},
    files::{create_directory, create_file, if_exists, read_file, storage, sync_directory},
};

/// The directory of a run's blobs, which exists if the run has at least one blob.
#[derive(Clone, Debug)]
pub(super) struct BlobFiles(pub(super) PathBuf);

impl BlobFiles {
    /// Writes blobs, and syncs the files and their names.
    pub(super) fn store(&self, blobs: &[Blob]) -> Result<(), JournalError> {
        create_directory(&self.0)?;
        for blob in blobs {
            let path = self.0.join(&blob.sha256);
            // A file with its hash as its name is complete: it is written under another name, and renamed
            // when it is synced. Only the run's writer does so, one at a time.
            let unfinished = self.0.join("unfinished");
            write(&unfinished, &blob.bytes).map_err(storage("write", &path)).inspect_err(|_| {
                let _ = fs::remove_file(&unfinished);
            })?;
            fs::rename(&unfinished, &path).map_err(storage("name", &path))?;
        }
        sync_directory(&self.0)
    }

    /// Removes all blobs of the run.
    pub(super) fn delete(&self) -> Result<(), JournalError> {
        if_exists(fs::remove_dir_all(&self.0)).map(drop).map_err(storage("remove", &self.0))
    }
}

impl Blobs for BlobFiles {
    fn get(&self, sha256: &str) -> Result<Option<Vec<u8>>, JournalError> {
        let path = self.0.join(sha256);
        if_exists(read_file(&path)).map_err(storage("read", &path))
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create_file(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}
