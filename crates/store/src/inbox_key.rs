//! The seal on messages to runs, which tells a message that was sent from a file that somebody put beside the log.
//!
//! A message is a line of JSON. A journal with a key writes a second line behind it: HMAC-SHA256 with the key, as
//! hexadecimal digits, over the run's id, a newline (ids have none) and the first line, in which the id of the question,
//! its binding and the answer stand. A journal without a key writes no seals and asks for none.

use std::{
    collections::hash_map::RandomState,
    fmt,
    fs::{self, OpenOptions},
    hash::{BuildHasher, Hasher},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::{InboxEntry, JournalError, RunId, Secret};
use hmac_sha256::HMAC;

use crate::files::{create_directory, read_file, storage, sync_directory};

type Key = [u8; 32];

/// The key that messages to runs are sealed with: 32 random bytes. Who has it can answer for a person, so it is kept
/// where no tool of an agent reads or writes. Clones share it.
#[derive(Clone)]
pub struct InboxKey(Arc<Source>);

struct Source {
    file: Option<PathBuf>,
    key: Mutex<Option<Secret<Key>>>,
}

impl InboxKey {
    /// A key of the caller's. A password is no key; derive one from it.
    pub fn new(key: [u8; 32]) -> Self {
        Self(Arc::new(Source { file: None, key: Mutex::new(Some(Secret::new(key))) }))
    }

    /// The key in this file, which is read when it is first needed. If it is not there, it is made, for its owner alone,
    /// when a message is first sent.
    pub fn in_file(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Source { file: Some(path.into()), key: Mutex::default() }))
    }

    /// The key; none if nobody has made it, so that nothing was sealed.
    fn read(&self) -> Result<Option<Key>, JournalError> {
        self.found(|_| Ok(None))
    }

    fn read_or_make(&self) -> Result<Option<Key>, JournalError> {
        self.found(|path| make(path).map(Some))
    }

    fn found(
        &self,
        missing: impl FnOnce(&Path) -> Result<Option<Key>, JournalError>,
    ) -> Result<Option<Key>, JournalError> {
        let mut known = self.0.key.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(path)) = (&*known, &self.0.file) {
            let key = match read(path)? {
                Some(key) => Some(key),
                None => missing(path)?,
            };
            *known = key.map(Secret::new);
        }
        Ok(known.as_ref().map(|key| *key.expose()))
    }
}

impl fmt::Debug for InboxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboxKey").field("file", &self.0.file).finish_non_exhaustive()
    }
}

/// A message as an inbox keeps it: sealed, where there is a key.
pub(crate) fn close(key: Option<&InboxKey>, run: &RunId, entry: &InboxEntry) -> Result<String, JournalError> {
    let encoded = serde_json::to_string(entry).map_err(io::Error::from);
    let mut text = encoded.map_err(storage("encode", Path::new(&entry.id)))?;
    if let Some(key) = key.map(InboxKey::read_or_make).transpose()?.flatten() {
        let seal = HMAC::mac(sealed(run, &text), key);
        text.push('\n');
        text.extend(seal.iter().map(|byte| format!("{byte:02x}")));
    }
    Ok(text)
}

/// Reads messages of a run.
pub(crate) struct Opener<'r> {
    run: &'r RunId,
    /// None where no seals are asked for; inside, none where no key was ever made.
    key: Option<Option<Key>>,
}

impl<'r> Opener<'r> {
    pub(crate) fn new(key: Option<&InboxKey>, run: &'r RunId) -> Result<Self, JournalError> {
        Ok(Self { run, key: key.map(InboxKey::read).transpose()? })
    }

    /// The message, or why it is not heard.
    pub(crate) fn open(&self, text: &[u8]) -> Result<InboxEntry, String> {
        let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
        let (message, seal) = text.split_once('\n').unwrap_or((text, ""));
        if let Some(key) = &self.key {
            let own = key
                .zip(digits(seal))
                .is_some_and(|(key, seal)| HMAC::verify(sealed(self.run, message), key, &seal));
            match (own, seal.trim_end().is_empty()) {
                (true, _) => {}
                (false, true) => return Err("it has no seal: it was not sent, but put there".to_owned()),
                (false, false) => {
                    return Err("its seal is not of this run, this message and this key".to_owned());
                }
            }
        }
        serde_json::from_str(message).map_err(|e| e.to_string())
    }
}

fn sealed(run: &RunId, message: &str) -> String {
    format!("{run}\n{message}")
}

/// 32 bytes from their hexadecimal digits.
fn digits(text: &str) -> Option<Key> {
    let text = text.trim_end().as_bytes();
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let pair =
            std::str::from_utf8(pair).ok().filter(|pair| pair.chars().all(|c| c.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

fn read(path: &Path) -> Result<Option<Key>, JournalError> {
    let bytes = match read_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(storage("read", path))?,
    };
    let no_key = "it holds no key, which is 32 bytes; remove it, and give answers that wait once more";
    Key::try_from(bytes.as_slice())
        .map(Some)
        .map_err(|_| storage("use", path)(io::Error::new(io::ErrorKind::InvalidData, no_key)))
}

/// Makes the key, unless somebody else does first: then it is theirs.
fn make(path: &Path) -> Result<Key, JournalError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    create_directory(folder)?;
    // A name that no other maker has: keys are random, and other ones for each hasher.
    let unfinished = path.with_extension(format!("{:016x}", RandomState::new().build_hasher().finish()));
    let made = write_new(&unfinished).and_then(|()| name(&unfinished, path));
    let _ = fs::remove_file(&unfinished);
    made.map_err(storage("make", path))?;
    sync_directory(folder)?;
    let gone = || storage("read", path)(io::ErrorKind::NotFound.into());
    read(path)?.ok_or_else(gone)
}

fn write_new(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(&random()?)?;
    file.sync_all()
}

/// Gives a whole file its name, and leaves one alone that has it.
fn name(unfinished: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(unfinished, path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Not every file system has links.
        Err(_) if !path.exists() => fs::rename(unfinished, path),
        linked => linked,
    }
}

#[cfg(unix)]
fn random() -> io::Result<Key> {
    let mut bytes = [0; 32];
    io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut bytes)?;
    Ok(bytes)
}

/// The standard library has no other way to the system's random numbers: 128 random bits, spread by SipHash.
#[cfg(not(unix))]
fn random() -> io::Result<Key> {
    let state = RandomState::new();
    let mut bytes = [0; 32];
    for (place, part) in bytes.chunks_exact_mut(8).enumerate() {
        part.copy_from_slice(&state.hash_one(place).to_ne_bytes());
    }
    Ok(bytes)
}
