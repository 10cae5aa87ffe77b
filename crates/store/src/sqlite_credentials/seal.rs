//! Encrypts secrets: XChaCha20-Poly1305 with a random nonce for each row.

use archon_types::CredentialKey;
#[cfg(feature = "encryption")]
pub use sealing_key::SealingKey;

/// A known text whose encrypted form is stored, so that a wrong key is noticed. [`place_of`] never returns
/// this text.
const CHECK: &[u8] = b"archon credentials";

/// The cipher. Without the feature `encryption` the type has no values, so nothing can be encrypted.
#[cfg(feature = "encryption")]
type Cipher = chacha20poly1305::XChaCha20Poly1305;
#[cfg(not(feature = "encryption"))]
type Cipher = std::convert::Infallible;

/// Encrypts and decrypts secrets with one key.
pub(super) struct Seal(Cipher);

impl Seal {
    pub(super) fn close(&self, key: &CredentialKey, text: &[u8]) -> Result<Vec<u8>, String> {
        self.close_for(&place_of(key), text)
    }

    /// Returns the decrypted text; `None` if the row was changed, moved, or sealed with another key.
    pub(super) fn open(&self, key: &CredentialKey, body: &[u8]) -> Option<Vec<u8>> {
        self.open_for(&place_of(key), body)
    }

    pub(super) fn check(&self) -> Result<Vec<u8>, String> {
        self.close_for(CHECK, CHECK)
    }

    pub(super) fn fits(&self, check: &[u8]) -> bool {
        self.open_for(CHECK, check).as_deref() == Some(CHECK)
    }
}

/// Returns the bytes that bind an encrypted secret to its account. Two accounts never have the same bytes.
fn place_of(key: &CredentialKey) -> Vec<u8> {
    serde_json::json!([key.tenant.as_str(), key.service, key.account]).to_string().into_bytes()
}

#[cfg(not(feature = "encryption"))]
impl Seal {
    fn close_for(&self, _: &[u8], _: &[u8]) -> Result<Vec<u8>, String> {
        match self.0 {}
    }

    fn open_for(&self, _: &[u8], _: &[u8]) -> Option<Vec<u8>> {
        match self.0 {}
    }
}

#[cfg(feature = "encryption")]
mod sealing_key {
    use std::path::Path;

    use archon_types::{CredentialError, Secret};
    use chacha20poly1305::{
        Key, XNonce,
        aead::{Aead, Generate, KeyInit, Payload},
    };

    use super::{Cipher, Seal};
    use crate::key_file;

    /// The key that encrypts credentials: 32 random bytes, which the application keeps outside of the
    /// database.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_store::{SealingKey, SqliteCredentials};
    /// use archon_types::{Clock, CredentialError};
    ///
    /// fn open(hex: &str, clock: Arc<dyn Clock>) -> Result<SqliteCredentials, CredentialError> {
    ///     SqliteCredentials::open_sealed("data/credentials.db", &SealingKey::from_hex(hex)?, clock)
    /// }
    /// ```
    #[derive(Clone, Debug)]
    pub struct SealingKey(Secret<[u8; 32]>);

    impl SealingKey {
        /// Uses this key. Do not use a password as a key; derive the key from it.
        pub fn new(key: [u8; 32]) -> Self {
            Self(Secret::new(key))
        }

        /// Reads the key from this file. If the file does not exist, it is created, for its owner only. Keep
        /// the file where no tool of an agent can read it, and copy it with the database: without the key
        /// the sealed credentials are lost.
        ///
        /// # Errors
        /// [`CredentialError::Sealed`] if the file is not a key; [`CredentialError::Storage`] if the file
        /// cannot be read or created.
        pub fn in_file(path: impl AsRef<Path>) -> Result<Self, CredentialError> {
            let path = path.as_ref();
            let found = key_file::read(path).and_then(|found| found.map_or_else(|| key_file::make(path), Ok));
            found.map(Self::new).map_err(|e| match e.kind() {
                std::io::ErrorKind::InvalidData => {
                    CredentialError::Sealed(format!("{}: {e}", path.display()))
                }
                _ => CredentialError::Storage(format!("cannot read or make {}: {e}", path.display())),
            })
        }

        /// Parses a key from 64 hexadecimal digits, for instance from an environment variable.
        ///
        /// # Errors
        /// [`CredentialError::Sealed`] if the text is not such a key.
        pub fn from_hex(digits: &str) -> Result<Self, CredentialError> {
            let no_key = "the key must have 64 hexadecimal digits (32 random bytes)";
            let key = key_file::from_hex(digits.trim());
            key.map(Self::new).ok_or_else(|| CredentialError::Sealed(no_key.to_owned()))
        }
    }

    impl Seal {
        pub(in super::super) fn new(key: &SealingKey) -> Self {
            Self(Cipher::new(&Key::from(*key.0.expose())))
        }

        pub(super) fn close_for(&self, place: &[u8], text: &[u8]) -> Result<Vec<u8>, String> {
            let nonce =
                XNonce::try_generate().map_err(|e| format!("the system has no random numbers: {e}"))?;
            let sealed = self.0.encrypt(&nonce, Payload { msg: text, aad: place });
            let sealed = sealed.map_err(|_| "credentials are too large to be sealed".to_owned())?;
            Ok([nonce.as_slice(), &sealed].concat())
        }

        pub(super) fn open_for(&self, place: &[u8], body: &[u8]) -> Option<Vec<u8>> {
            let (nonce, sealed) = body.split_first_chunk::<24>()?;
            self.0.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: place }).ok()
        }
    }
}
