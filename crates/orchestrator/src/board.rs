//! The shared context of a team: entries with versions, so that a writer notices other writes.

use std::collections::BTreeMap;

use archon_types::{AgentId, Json, SharedItem, Timestamp};
use serde::{Deserialize, Serialize};

/// The shared entries of a team, by key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Board(BTreeMap<String, SharedItem>);

/// The error of a write to an entry that has another version than the writer expected, because another write came
/// first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shared entry {key:?} has version {found} now, not {expected}: read it again")]
pub struct Stale {
    /// Key of the entry.
    pub key: String,
    /// The version that the writer expected; 0 if no entry was expected.
    pub expected: u64,
    /// The version that the entry has; 0 if there is no entry.
    pub found: u64,
}

impl Board {
    /// Returns the entry with this key.
    pub fn get(&self, key: &str) -> Option<&SharedItem> {
        self.0.get(key)
    }

    /// Returns all entries, ordered by key.
    pub fn items(&self) -> impl Iterator<Item = (&str, &SharedItem)> {
        self.0.iter().map(|(key, item)| (key.as_str(), item))
    }

    /// Returns the version of the entry with this key; 0 if there is no entry.
    pub fn version(&self, key: &str) -> u64 {
        self.get(key).map_or(0, |item| item.version)
    }

    /// Checks that a write to an entry is allowed. Without an expected version it always is.
    ///
    /// # Errors
    /// The entry has another version than the writer expects.
    pub fn check(&self, key: &str, expected: Option<u64>) -> Result<(), Stale> {
        let found = self.version(key);
        match expected {
            Some(expected) if expected != found => Err(Stale { key: key.to_owned(), expected, found }),
            _ => Ok(()),
        }
    }

    pub(crate) fn write(&mut self, key: &str, value: Json, by: AgentId, at: Timestamp) {
        let version = self.version(key) + 1;
        self.0.insert(key.to_owned(), SharedItem::new(value, version, by, at));
    }
}
