//! A value with a cached encoding in a provider's format, because many requests carry the same value: tools,
//! instructions. For messages see [`Transcript`](crate::Transcript).

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use super::content_hash::ContentHash;

/// A value, such as the tools of a run, with a cache of its text in a provider's format.
///
/// Tools and instructions are sent again with every request. The first provider that encodes the value caches
/// the encoded text here; the value is immutable, so the text stays valid. A text in a second format (after a
/// fallback to another protocol) is not cached.
#[derive(Clone, Default)]
pub struct Encoded<T> {
    value: T,
    text: OnceLock<(&'static str, Arc<str>)>,
    hash: OnceLock<u64>,
}

impl<T> Encoded<T> {
    /// Wraps a value that is not encoded yet.
    pub fn new(value: T) -> Self {
        Self { value, text: OnceLock::new(), hash: OnceLock::new() }
    }

    /// Returns the text of the value in `format`: the cached text, or the result of `encode`.
    ///
    /// `format` names the encoding, including every option that changes its output.
    pub fn encode(&self, format: &'static str, encode: impl FnOnce(&T) -> String) -> Arc<str> {
        match self.text.get() {
            Some((f, text)) if same(f, format) => text.clone(),
            Some(_) => encode(&self.value).into(),
            None => {
                let text: Arc<str> = encode(&self.value).into();
                let _ = self.text.set((format, text.clone()));
                text
            }
        }
    }

    /// Calls `write` with the text of the value in `format`, without cloning the shared pointer to a cached
    /// text.
    pub fn with_encoded<R>(
        &self,
        format: &'static str,
        encode: impl FnOnce(&T) -> String,
        write: impl FnOnce(&str) -> R,
    ) -> R {
        match self.text.get() {
            Some((f, text)) if same(f, format) => write(text),
            _ => write(&self.encode(format, encode)),
        }
    }

    /// Returns the value without its cached encoding.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T: serde::Serialize> Encoded<T> {
    /// Returns the hash of the value, which is computed once.
    pub(crate) fn content_hash(&self) -> u64 {
        *self.hash.get_or_init(|| ContentHash::of(&self.value))
    }
}

/// Returns true if two formats are equal. Formats are constants, so equal formats mostly have the same
/// pointer, and the comparison is fast.
fn same(a: &'static str, b: &'static str) -> bool {
    std::ptr::eq(a, b) || a == b
}

impl<T> Deref for Encoded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> From<T> for Encoded<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: fmt::Debug> fmt::Debug for Encoded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Encoded<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: serde::Serialize> serde::Serialize for Encoded<T> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(s)
    }
}

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Encoded<T> {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        T::deserialize(d).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_encoded_once_per_format_and_never_in_the_wrong_one() {
        let calls = std::cell::Cell::new(0);
        let encoded = Encoded::new(7);
        let encode = |format| {
            encoded.encode(format, |v| {
                calls.set(calls.get() + 1);
                format!("{format}:{v}")
            })
        };
        assert_eq!(&*encode("a"), "a:7");
        assert_eq!(&*encode("a"), "a:7");
        assert_eq!(calls.get(), 1);
        assert_eq!(&*encode("b"), "b:7");
        assert_eq!(&*encode("a"), "a:7");
        assert_eq!(calls.get(), 2);
    }
}
