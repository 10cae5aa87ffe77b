//! Names of collections.

use archon::types::Collection;

/// A collection.
pub(crate) fn of(name: &str) -> Collection {
    Collection::new(name).unwrap()
}
