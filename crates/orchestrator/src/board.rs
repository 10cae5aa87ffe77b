//! What a team shares: entries with versions, changed only by who knows the newest.

use std::collections::BTreeMap;

use archon_types::{AgentId, Json, SharedItem, Timestamp};
use serde::{Deserialize, Serialize};

/// The shared context of a team.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Board(BTreeMap<String, SharedItem>);

/// Somebody else wrote in between.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key:?} is at version {found} by now, not at {expected}: read it again")]
pub struct Stale {
    /// Which entry.
    pub key: String,
    /// What the writer expected.
    pub expected: u64,
    /// What there is; 0 for nothing.
    pub found: u64,
}

impl Board {
    /// The entry under `key`.
    pub fn get(&self, key: &str) -> Option<&SharedItem> {
        self.0.get(key)
    }

    /// All entries, by their keys.
    pub fn items(&self) -> impl Iterator<Item = (&str, &SharedItem)> {
        self.0.iter().map(|(key, item)| (key.as_str(), item))
    }

    /// The version under `key`, 0 for none.
    pub fn version(&self, key: &str) -> u64 {
        self.get(key).map_or(0, |item| item.version)
    }

    /// Whether a write would be taken.
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
