//! Trees: the entries of one folder, in order, and their form in the store.

use std::{collections::BTreeMap, ffi::OsStr, fmt, os::unix::ffi::OsStrExt, path::PathBuf, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// SHA-256 of a content, a link's target or a tree.
pub(crate) type Hash = [u8; 32];

/// The id of a snapshot: the hash of its tree. Workspaces with the same files have the same id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SnapshotId(pub(crate) Hash);

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<SnapshotId> for String {
    fn from(id: SnapshotId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for SnapshotId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// Parses the output of `Display`: 64 hexadecimal digits.
impl FromStr for SnapshotId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{}' is not the id of a snapshot", text.escape_debug());
        let mut hash = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != hash.len() || !rest.is_empty() {
            return Err(wrong());
        }
        for (byte, pair) in hash.iter_mut().zip(pairs) {
            let digits = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(hash))
    }
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Link,
    Folder,
    /// An entry whose content is not stored: a pipe, a socket, a device, or a file that cannot be read.
    Other,
}

/// One entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// The permissions of a file or folder: the lowest 9 bits of the mode. 0 for a link.
    pub(crate) mode: u16,
    /// The size of a file in bytes.
    pub(crate) size: u64,
    /// The hash of the content, of the link's target, or of the folder's tree.
    pub(crate) hash: Hash,
}

impl Entry {
    pub(crate) const OTHER: Self = Self { kind: Kind::Other, mode: 0, size: 0, hash: [0; 32] };

    pub(crate) fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }
}

/// All entries of a snapshot by their path in the workspace. The hash of a folder is zero, because the map also has
/// the entries in the folder.
pub(crate) type Files = BTreeMap<PathBuf, Entry>;

pub(crate) fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// Writes the entries of a folder, which are ordered by name.
pub(crate) fn encode(entries: &[(Vec<u8>, Entry)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * 64);
    for (name, entry) in entries {
        bytes.push(match entry.kind {
            Kind::File => b'f',
            Kind::Link => b'l',
            Kind::Folder => b'd',
            Kind::Other => b'o',
        });
        bytes.extend(entry.mode.to_be_bytes());
        bytes.extend(entry.size.to_be_bytes());
        bytes.extend(entry.hash);
        bytes.extend(name);
        bytes.push(0);
    }
    bytes
}

/// Reads what [`encode`] wrote. Returns `None` if it was damaged, or has a name that no workspace can have.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<(PathBuf, Entry)>> {
    let mut reader = Reader(bytes);
    let mut entries = Vec::new();
    while let Some([kind]) = reader.array() {
        let kind = match kind {
            b'f' => Kind::File,
            b'l' => Kind::Link,
            b'd' => Kind::Folder,
            b'o' => Kind::Other,
            _ => return None,
        };
        let mode = u16::from_be_bytes(reader.array()?);
        let size = u64::from_be_bytes(reader.array()?);
        let hash = reader.array()?;
        let name = reader.text()?;
        if name.contains(&b'/') || matches!(name, b"" | b"." | b".." | b".git") {
            return None;
        }
        entries.push((PathBuf::from(OsStr::from_bytes(name)), Entry { kind, mode, size, hash }));
    }
    Some(entries)
}

/// Reads the parts of a file of the store from its beginning.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads a text up to a zero byte.
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (text, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.get(1..)?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_of_an_encoded_folder_returns_its_entries() {
        let file = Entry { kind: Kind::File, mode: 0o755, size: 3, hash: hash(b"abc") };
        let entries = vec![(b"a\xff b".to_vec(), file), (b"pipe".to_vec(), Entry::OTHER)];
        let read = decode(&encode(&entries)).unwrap();
        let names = read.iter().map(|(name, entry)| (name.as_os_str().as_bytes().to_vec(), *entry));
        assert_eq!(names.collect::<Vec<_>>(), entries);
    }

    #[test]
    fn decode_of_a_name_that_leads_elsewhere_returns_none() {
        for name in ["", ".", "..", ".git", "a/b"] {
            assert_eq!(decode(&encode(&[(name.into(), Entry::OTHER)])), None, "{name}");
        }
        assert_eq!(decode(b"f\0"), None);
    }

    #[test]
    fn an_id_that_is_printed_and_parsed_is_the_same() {
        let id = SnapshotId(hash(b"abc"));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("ba78".parse::<SnapshotId>().is_err());
        assert!("é".repeat(32).parse::<SnapshotId>().is_err());
    }
}
