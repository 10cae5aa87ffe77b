//! Collections, which own memories. Access to a collection never reaches a collection outside of it.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::values::TenantId;

/// A collection of memories. Collections form a tree of owners: a name has parts from the general to the
/// particular with `:` between them, as in `team:eng:alice`. The root has an empty name and contains all
/// other collections.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Collection(Arc<str>);

impl Collection {
    /// The maximum length of a name in bytes.
    pub const MAX_BYTES: usize = 512;

    /// Creates a collection from a name such as `team:eng:alice`.
    ///
    /// # Errors
    /// [`MemoryError::Collection`] for an empty name or part, control characters, or a name longer than
    /// [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, MemoryError> {
        let name = name.into();
        let problem = match &*name {
            "" => "it is empty",
            n if n.len() > Self::MAX_BYTES => "it is longer than 512 bytes",
            n if n.split(':').any(str::is_empty) => "it has an empty part",
            n if n.chars().any(char::is_control) => "it has a control character",
            _ => return Ok(Self(name)),
        };
        let shown = name.chars().take(80).collect();
        Err(MemoryError::Collection { name: shown, problem })
    }

    /// Returns the root, which contains all other collections, for code that maintains the whole store.
    pub fn root() -> Self {
        Self(Arc::from(""))
    }

    /// Returns the collection `name` within this one: in `team:eng`, the child `alice` is `team:eng:alice`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn child(&self, name: &str) -> Result<Self, MemoryError> {
        match self.is_root() {
            true => Self::new(name),
            false => Self::new(format!("{}:{name}", self.0)),
        }
    }

    /// Returns true if this collection is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if `other` is this collection or within it, as `team:eng:alice` is within `team:eng`.
    pub fn contains(&self, other: &Self) -> bool {
        let rest = other.0.strip_prefix(&*self.0);
        self.is_root() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    }

    /// Returns `inner`, which must be this collection or within it; for `None`, returns this collection.
    ///
    /// # Errors
    /// [`MemoryError::OutOfScope`] if `inner` is not this collection or within it.
    pub fn narrowed(&self, inner: Option<&Self>) -> Result<Self, MemoryError> {
        match inner {
            None => Ok(self.clone()),
            Some(inner) if self.contains(inner) => Ok(inner.clone()),
            Some(other) => Err(MemoryError::OutOfScope { collection: other.clone(), scope: self.clone() }),
        }
    }

    /// Returns the name; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Collection {
    fn default() -> Self {
        Self::root()
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "(root)" } else { &self.0 })
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Parses a collection name. An empty text is the root.
impl TryFrom<String> for Collection {
    type Error = MemoryError;

    fn try_from(name: String) -> Result<Self, MemoryError> {
        if name.is_empty() { Ok(Self::root()) } else { Self::new(name) }
    }
}

impl From<Collection> for String {
    fn from(collection: Collection) -> Self {
        collection.0.as_ref().to_owned()
    }
}

impl std::str::FromStr for Collection {
    type Err = MemoryError;

    fn from_str(name: &str) -> Result<Self, MemoryError> {
        Self::new(name)
    }
}

impl TryFrom<&TenantId> for Collection {
    type Error = MemoryError;

    fn try_from(tenant: &TenantId) -> Result<Self, MemoryError> {
        Self::new(tenant.as_str())
    }
}

/// The error of an access to memories or to their store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The storage failed, for instance because it is full, read-only or missing.
    #[error("cannot {action} memory at {place}: {source}")]
    Storage {
        /// The action, for instance `write`.
        action: &'static str,
        /// The file or database.
        place: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The embedder failed to make a vector of a text.
    #[error("embedding with {embedder} failed: {problem}")]
    Embedding {
        /// The [`id`](crate::Embedder::id) of the embedder.
        embedder: String,
        /// The description of the problem.
        problem: String,
    },
    /// A model call for the memory failed, or its answer could not be used.
    #[error("the memory got no usable answer from the model {model}: {problem}")]
    Model {
        /// The name of the model.
        model: String,
        /// The description of the problem.
        problem: String,
    },
    /// A stored entry is damaged.
    #[error("memory entry {id} is damaged: {problem}")]
    Corrupt {
        /// The id of the entry.
        id: String,
        /// The description of the damage.
        problem: String,
    },
    /// An entry is invalid, so it cannot be stored.
    #[error("memory entry {id} cannot be stored: {problem}")]
    Invalid {
        /// The id of the entry.
        id: String,
        /// The description of the problem.
        problem: String,
    },
    /// A query of the memory is invalid.
    #[error("the memory query is invalid: {problem}")]
    Question {
        /// The description of the problem.
        problem: String,
    },
    /// A text is not a valid name of a collection.
    #[error("`{name}` is not a valid collection name: {problem}")]
    Collection {
        /// The text, cut after 80 characters.
        name: String,
        /// The description of the problem.
        problem: &'static str,
    },
    /// A collection is outside of the collection that the memory is bound to.
    #[error("collection `{collection}` is not within `{scope}`")]
    OutOfScope {
        /// The collection that was requested.
        collection: Collection,
        /// The collection that the memory is bound to.
        scope: Collection,
    },
    /// The entries that a change depends on were changed in the meantime.
    #[error("another writer changed the memories at the same time; this change was not made")]
    Changed,
    /// A newer version of Archon wrote the store.
    #[error("the memories at {place} have format {found}; this version reads formats up to {supported}")]
    FutureStore {
        /// The location of the store, for instance a file or a database.
        place: String,
        /// The number of the format in which the store is written.
        found: u32,
        /// The newest format that this version reads.
        supported: u32,
    },
    /// The store does not support an action.
    #[error("this memory does not support {what}")]
    Unsupported {
        /// The action, for instance `listing entries`.
        what: &'static str,
    },
}

impl MemoryError {
    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Storage { .. } => "check that the storage exists, is writable and has free space",
            Self::Embedding { .. } => "check the embedder's model and address; search by keyword still works",
            Self::Model { .. } => "try again, or use a function that needs no model",
            Self::Corrupt { .. } => "delete the entry; all other entries can be read",
            Self::Invalid { .. } => "correct the entry; no change of the batch was stored",
            Self::Question { .. } => "correct the query",
            Self::Collection { .. } => "name it like `user:anna` or `team:eng:anna`",
            Self::OutOfScope { .. } => "use a memory that is bound to this collection",
            Self::Changed => "read the memories and make the change again",
            Self::FutureStore { .. } => "use the version of archon that wrote the memories, or a newer one",
            Self::Unsupported { .. } => "use a store that supports it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: M-27
    #[test]
    fn collection_contains_itself_and_its_descendants_only() {
        let of = |name: &str| Collection::try_from(name.to_owned()).unwrap();
        let table = [
            ("team:eng", "team:eng", true),
            ("team:eng", "team:eng:alice", true),
            ("team:eng", "team:engine", false),
            ("team:eng", "team", false),
            ("team:eng:alice", "team:eng", false),
            ("", "team:eng", true),
            ("team:eng", "", false),
            ("user:x", "user:xy", false),
        ];
        for (outer, inner, expected) in table {
            assert_eq!(of(outer).contains(&of(inner)), expected, "{outer} {inner}");
        }
        assert_eq!(Collection::root().child("a").unwrap().child("b").unwrap(), of("a:b"));
    }

    // spec: M-27
    #[test]
    fn collection_new_invalid_name_is_refused_with_the_problem() {
        let long = "x".repeat(513);
        for (name, problem) in [
            ("", "it is empty"),
            ("a::b", "it has an empty part"),
            (":a", "it has an empty part"),
            ("a:", "it has an empty part"),
            ("a\nb", "it has a control character"),
            (&long, "it is longer than 512 bytes"),
        ] {
            let error = Collection::new(name).unwrap_err().to_string();
            assert!(error.ends_with(problem), "{error}");
        }
    }
}
