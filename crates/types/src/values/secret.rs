//! A wrapper for secret values: keys, tokens, passwords.

use std::fmt;

/// A secret value. Formatting it shows only `****`, and it cannot be serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T = String>(T);

impl<T> Secret<T> {
    /// Wraps a secret value.
    pub fn new(secret: T) -> Self {
        Self(secret)
    }

    /// Returns the secret value, for code that has to send it.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("****")
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("****")
    }
}

super::from_text!(Secret<String> = Secret::new);
