//! The seal on what is secret: XChaCha20-Poly1305 with a random nonce for each row.

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

    /// What is sealed so that a key can be told from another; no account has an empty name for everything.
    const CHECK: &[u8] = b"archon credentials";

    /// The key that credentials are sealed with: 32 random bytes that the application keeps elsewhere.
    #[derive(Clone, Debug)]
    pub struct SealingKey(Secret<[u8; 32]>);

    impl SealingKey {
        /// A key of the caller's. A password is no key; derive one from it.
        pub fn new(key: [u8; 32]) -> Self {
            Self(Secret::new(key))
        }

        /// The key in this file. If it is not there, it is made, for its owner alone. Keep it where no tool of an agent
        /// reads, and copy it where the database is copied to: without it what is sealed is lost.
        ///
        /// # Errors
        /// [`CredentialError::Sealed`]: the file holds no key; [`CredentialError::Storage`]: it cannot be read or made.
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

        /// A key as 64 hexadecimal digits, as an environment variable may hold it.
        ///
        /// # Errors
        /// [`CredentialError::Sealed`]: it is none.
        pub fn from_hex(digits: &str) -> Result<Self, CredentialError> {
            let digits = digits.trim().as_bytes();
            let no_key =
                || CredentialError::Sealed("a key is 64 hexadecimal digits, 32 random bytes".to_owned());
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

        /// The text; `None` if it was changed, moved, or sealed with another key.
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

    /// Which account a body belongs to, told apart whatever its names hold.
    fn place_of(key: &CredentialKey) -> Vec<u8> {
        serde_json::json!([key.tenant.as_str(), key.service, key.account]).to_string().into_bytes()
    }
}

/// Without the feature nothing is sealed.
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
