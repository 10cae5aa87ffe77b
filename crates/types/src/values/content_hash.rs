//! A short, stable hash of values in their JSON form, to compare them.
//!
//! The hash is FNV-1a with 64 bits, as <http://www.isthe.com/chongo/tech/comp/fnv/> defines it. It is the
//! same on every machine and in every version, unlike the hash of the standard library. It detects accidental
//! changes, but gives no security against deliberate ones.

use serde::Serialize;

/// A hash of all values that were added, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentHash(u64);

impl ContentHash {
    /// Adds the JSON form of a value. This form marks the end of texts, lists and objects, so `ab`, `c` and
    /// `a`, `bc` give different hashes. It does not mark the end of numbers.
    pub fn add(&mut self, value: &(impl Serialize + ?Sized)) {
        // All hashed values can be written as JSON, and this writer cannot fail.
        let _ = serde_json::to_writer(&mut *self, value);
    }

    /// Returns the hash of one value.
    pub fn of(value: &(impl Serialize + ?Sized)) -> u64 {
        let mut hash = Self::default();
        hash.add(value);
        hash.0
    }

    /// Returns the hash of the values that were added so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

impl Default for ContentHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl std::io::Write for ContentHash {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn the_published_test_vectors() {
        for (text, expected) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8_u64)]
        {
            let mut hash = ContentHash::default();
            hash.write_all(text.as_bytes()).unwrap();
            assert_eq!(hash.value(), expected, "{text}");
        }
        assert_ne!(ContentHash::of(&["ab", "c"]), ContentHash::of(&["a", "bc"]));
    }
}
