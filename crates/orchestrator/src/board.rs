//! The shared context of a team: entries with versions. A writer may require that the version is
//! still the one it read.

use std::collections::BTreeMap;

use archon_types::{AgentId, Json, SharedItem, Timestamp};
use serde::{Deserialize, Serialize};

/// The shared context of a team.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Board(BTreeMap<String, SharedItem>);

/// Another member wrote the entry in between.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key:?} is at version {found} by now, not at {expected}: read it again")]
pub struct Stale {
    /// Key of the entry.
    pub key: String,
    /// The version that the writer expected.
    pub expected: u64,
    /// The version that the entry has; 0 if there is no entry.
    pub found: u64,
}

impl Board {
    /// Returns the entry under `key`.
    pub fn get(&self, key: &str) -> Option<&SharedItem> {
        self.0.get(key)
    }

    /// All entries, ordered by key.
    pub fn items(&self) -> impl Iterator<Item = (&str, &SharedItem)> {
        self.0.iter().map(|(key, item)| (key.as_str(), item))
    }

    /// Returns the version under `key`, 0 for none.
    pub fn version(&self, key: &str) -> u64 {
        self.get(key).map_or(0, |item| item.version)
    }

    /// Checks that a write with this expected version is allowed.
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
