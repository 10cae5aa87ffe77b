//! A key in a file of its own, created when it is first needed: 32 random bytes, readable by its owner only.

use std::{
    collections::hash_map::RandomState,
    fs,
    hash::{BuildHasher, Hasher},
    io::{self, Write},
    path::Path,
};

use crate::files::{if_exists, make_directory, name_new, private, read_file, sync_directory};

/// 32 random bytes.
pub(crate) type Key = [u8; 32];

/// Parses a key from 64 hexadecimal digits.
pub(crate) fn from_hex(digits: &str) -> Option<Key> {
    let digits = digits.as_bytes();
    let mut key = [0; 32];
    if digits.len() != 2 * key.len() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(key)
}

/// Reads the key in this file; `None` if the file does not exist.
pub(crate) fn read(path: &Path) -> io::Result<Option<Key>> {
    let Some(bytes) = if_exists(read_file(path))? else { return Ok(None) };
    let no_key = || io::Error::new(io::ErrorKind::InvalidData, "the file is not a key of 32 bytes");
    Key::try_from(bytes.as_slice()).map(Some).map_err(|_| no_key())
}

/// Creates the key file and returns its key. If another process creates it first, returns that process's
/// key.
pub(crate) fn make(path: &Path) -> io::Result<Key> {
    let folder = path.parent().unwrap_or(Path::new(""));
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        make_directory(folder).map_err(io::Error::other)?;
    }
    // A temporary name that no other process uses: the hasher's keys are random, and differ for each hasher.
    let unfinished = path.with_extension(format!("{:016x}", RandomState::new().build_hasher().finish()));
    let made = write_new(&unfinished).and_then(|()| name_new(&unfinished, path));
    let _ = fs::remove_file(&unfinished);
    match made {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    sync_directory(folder).map_err(io::Error::other)?;
    read(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn write_new(path: &Path) -> io::Result<()> {
    let mut file = private().write(true).create_new(true).open(path)?;
    file.write_all(&random()?)?;
    file.sync_all()
}

#[cfg(unix)]
fn random() -> io::Result<Key> {
    let mut bytes = [0; 32];
    io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes)
}

/// Generates 32 bytes from 128 random bits, which SipHash expands. The standard library gives no direct access
/// to the system's random numbers.
#[cfg(not(unix))]
fn random() -> io::Result<Key> {
    let state = RandomState::new();
    let mut bytes = [0; 32];
    for (place, part) in bytes.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&state.hash_one(place).to_ne_bytes());
    }
    Ok(bytes)
}
