//! Encrypts secrets: XChaCha20-Poly1305 with a random nonce for each row.

#[cfg(not(feature = "encryption"))]
pub(super) use without::Seal;

#[cfg(feature = "encryption")]
pub(super) use with::Seal;
#[cfg(feature = "encryption")]
pub use with::SealingKey;

#[cfg(feature = "encryption")]
mod with {
    use std::path::Path;

    use archon_types::{CredentialError, CredentialKey, Secret};
    use chacha20poly1305::{
        Key, XChaCha20Poly1305, XNonce,
        aead::{Aead, Generate, KeyInit, Payload},
    };

    use crate::key_file;

    /// A text that is sealed to recognise the right key; it differs from the encoded place of every account.
    const CHECK: &[u8] = b"archon credentials";

    /// The key that encrypts credentials: 32 random bytes, which the application keeps outside of the
    /// database.
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
            let digits = digits.trim().as_bytes();
            let no_key = || {
                CredentialError::Sealed(
                    "the key must have 64 hexadecimal digits (32 random bytes)".to_owned(),
                )
            };
            if digits.len() != 64 {
                return Err(no_key());
            }
            let mut key = [0; 32];
            for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
                let value =
                    |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
                *byte = match (value(pair[0]), value(pair[1])) {
                    (Some(high), Some(low)) => high << 4 | low,
                    _ => return Err(no_key()),
                };
            }
            Ok(Self::new(key))
        }
    }

    pub(in super::super) struct Seal(XChaCha20Poly1305);

    impl Seal {
        pub(in super::super) fn new(key: &SealingKey) -> Self {
            Self(XChaCha20Poly1305::new(&Key::from(*key.0.expose())))
        }

        pub(in super::super) fn close(&self, key: &CredentialKey, text: &[u8]) -> Result<Vec<u8>, String> {
            self.close_for(&place_of(key), text)
        }

        /// Returns the decrypted text; `None` if the row was changed, moved, or sealed with another key.
        pub(in super::super) fn open(&self, key: &CredentialKey, body: &[u8]) -> Option<Vec<u8>> {
            self.open_for(&place_of(key), body)
        }

        pub(in super::super) fn check(&self) -> Result<Vec<u8>, String> {
            self.close_for(CHECK, CHECK)
        }

        pub(in super::super) fn fits(&self, check: &[u8]) -> bool {
            self.open_for(CHECK, check).as_deref() == Some(CHECK)
        }

        fn close_for(&self, place: &[u8], text: &[u8]) -> Result<Vec<u8>, String> {
            let nonce =
                XNonce::try_generate().map_err(|e| format!("the system has no random numbers: {e}"))?;
            let sealed = self.0.encrypt(&nonce, Payload { msg: text, aad: place });
            let sealed = sealed.map_err(|_| "credentials are too large to be sealed".to_owned())?;
            Ok([nonce.as_slice(), &sealed].concat())
        }

        fn open_for(&self, place: &[u8], body: &[u8]) -> Option<Vec<u8>> {
            let (nonce, sealed) = body.split_first_chunk::<24>()?;
            self.0.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: place }).ok()
        }
    }

    /// Returns the account of a body as bytes; two accounts never give the same bytes.
    fn place_of(key: &CredentialKey) -> Vec<u8> {
        serde_json::json!([key.tenant.as_str(), key.service, key.account]).to_string().into_bytes()
    }
}

/// The seal in a build without the feature: the type has no values, so nothing is encrypted.
#[cfg(not(feature = "encryption"))]
mod without {
    use archon_types::CredentialKey;

    pub(in super::super) enum Seal {}

    impl Seal {
        pub(in super::super) fn close(&self, _: &CredentialKey, _: &[u8]) -> Result<Vec<u8>, String> {
            match *self {}
        }

        pub(in super::super) fn open(&self, _: &CredentialKey, _: &[u8]) -> Option<Vec<u8>> {
            match *self {}
        }

        pub(in super::super) fn check(&self) -> Result<Vec<u8>, String> {
            match *self {}
        }

        pub(in super::super) fn fits(&self, _: &[u8]) -> bool {
            match *self {}
        }
    }
}
