//! How many of the calls of one turn are made at once.

use serde::{Deserialize, Serialize};

/// How many of the calls of one turn are made at once. Results stand in the order of the calls, and one that fails
/// stops no other, whichever it is. Calls run beside each other only if their tools are all
/// [safe to](crate::ToolAnnotations::concurrency_safe); else they are made one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolExecutionStrategy {
    /// All of them.
    #[default]
    Parallel,
    /// One after the other, whatever their tools allow.
    Sequential,
    /// So many, then the next so many; a steer is read in between and skips those behind it.
    Batched {
        /// How many; 0 counts as 1.
        size: u32,
    },
}

impl ToolExecutionStrategy {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
