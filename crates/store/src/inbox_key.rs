//! Seals messages to runs with an HMAC, so that no other program can forge a message by writing a file into the
//! inbox.
//!
//! A message is a line of JSON. A journal with a key writes a second line after it: HMAC-SHA256 with the
//! key, in hexadecimal digits, over the run's id, a newline (ids contain none) and the first line. A journal
//! without a key writes no seals and requires none.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::{InboxEntry, JournalError, RunId, Secret};
use hmac_sha256::HMAC;

use crate::{
    blob::hex,
    files::{create_directory, storage},
    key_file::{self, Key},
};

/// The key that seals messages to runs, so that a forged message is rejected: 32 random bytes. Anyone who has
/// the key can answer in a person's name. So keep the key in a place that no tool of an agent can read or
/// write. Clones share the key.
///
/// ```
/// let key = archon_store::InboxKey::in_file("keys/inbox");
/// ```
#[derive(Clone)]
pub struct InboxKey(Arc<Source>);

struct Source {
    file: Option<PathBuf>,
    key: Mutex<Option<Secret<Key>>>,
}

impl InboxKey {
    /// Creates an inbox key from 32 random bytes. Do not use a password as a key; derive the key from it.
    pub fn new(key: [u8; 32]) -> Self {
        Self(Arc::new(Source { file: None, key: Mutex::new(Some(Secret::new(key))) }))
    }

    /// Uses the key in this file, which is read on first use. If the file does not exist, it is created, for
    /// its owner only, when the first message is sent or the first secret is derived
    /// ([`secret_for`](Self::secret_for)).
    pub fn in_file(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Source { file: Some(path.into()), key: Mutex::default() }))
    }

    /// Derives a secret for another purpose from the key: 64 hexadecimal digits, from which nobody can compute
    /// the key. The same key and the same `purpose` always give the same secret. If the key file does not
    /// exist, it is created.
    ///
    /// ```
    /// use archon_store::InboxKey;
    ///
    /// # fn main() -> Result<(), archon_types::JournalError> {
    /// let links = InboxKey::new([7; 32]).secret_for("links")?;
    /// assert_eq!(links.expose().len(), 64);
    /// assert_ne!(links.expose(), InboxKey::new([8; 32]).secret_for("links")?.expose());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The key file cannot be read or created.
    pub fn secret_for(&self, purpose: &str) -> Result<Secret<String>, JournalError> {
        let no_key = || unusable(Path::new("the inbox key"))(io::ErrorKind::NotFound.into());
        let key = self.read_or_make()?.ok_or_else(no_key)?;
        Ok(Secret::new(hex(&HMAC::mac(format!("secret for {purpose}"), key))))
    }

    /// Returns the key; `None` if the key file does not exist yet, which means that no message has been
    /// sealed.
    fn read(&self) -> Result<Option<Key>, JournalError> {
        self.read_or(|_| Ok(None))
    }

    fn read_or_make(&self) -> Result<Option<Key>, JournalError> {
        self.read_or(|path| make(path).map(Some))
    }

    fn read_or(
        &self,
        missing: impl FnOnce(&Path) -> Result<Option<Key>, JournalError>,
    ) -> Result<Option<Key>, JournalError> {
        let mut known = self.0.key.lock().unwrap_or_else(PoisonError::into_inner);
        if let (None, Some(path)) = (&*known, &self.0.file) {
            let found = key_file::read(path).map_err(unusable(path))?;
            *known = found.map_or_else(|| missing(path), |key| Ok(Some(key)))?.map(Secret::new);
        }
        Ok(known.as_ref().map(|key| *key.expose()))
    }
}

archon_types::debug_fields!(InboxKey: file = 0.file);

/// Encodes a message for an inbox, with a seal if the journal has a key.
pub(crate) fn close(key: Option<&InboxKey>, run: &RunId, entry: &InboxEntry) -> Result<String, JournalError> {
    let encoded = serde_json::to_string(entry).map_err(io::Error::from);
    let mut text = encoded.map_err(storage("encode", Path::new(&entry.id)))?;
    if let Some(key) = key.map(InboxKey::read_or_make).transpose()?.flatten() {
        let seal = hex(&HMAC::mac(sealed(run, &text), key));
        text = format!("{text}\n{seal}");
    }
    Ok(text)
}

/// Decodes messages of one run and checks their seals.
pub(crate) struct Opener<'r> {
    run: &'r RunId,
    /// The key that the seals are checked with. `None` if no seals are required; `Some(None)` if seals are
    /// required but no key exists yet.
    key: Option<Option<Key>>,
}

impl<'r> Opener<'r> {
    pub(crate) fn new(key: Option<&InboxKey>, run: &'r RunId) -> Result<Self, JournalError> {
        Ok(Self { run, key: key.map(InboxKey::read).transpose()? })
    }

    /// Returns the message, or the reason why the message is rejected.
    pub(crate) fn open(&self, text: &[u8]) -> Result<InboxEntry, String> {
        let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
        let (message, seal) = text.split_once('\n').unwrap_or((text, ""));
        if let Some(key) = &self.key {
            let own = key
                .zip(key_file::from_hex(seal.trim_end()))
                .is_some_and(|(key, seal)| HMAC::verify(sealed(self.run, message), key, &seal));
            if !own {
                return Err(match seal.trim_end() {
                    "" => "it has no seal, so no journal with the key sent it".to_owned(),
                    _ => "its seal does not match the run, the message and the key".to_owned(),
                });
            }
        }
        serde_json::from_str(message).map_err(|e| e.to_string())
    }
}

fn sealed(run: &RunId, message: &str) -> String {
    format!("{run}\n{message}")
}

fn make(path: &Path) -> Result<Key, JournalError> {
    create_directory(path.parent().unwrap_or(Path::new("")))?;
    key_file::make(path).map_err(unusable(path))
}

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    move |error| match error.kind() {
        io::ErrorKind::InvalidData => {
            let remedy = format!("{error}; remove the file, and give the pending answers again");
            storage("use", &path)(io::Error::new(io::ErrorKind::InvalidData, remedy))
        }
        _ => storage("read or make", &path)(error),
    }
}
