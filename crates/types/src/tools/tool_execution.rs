//! The number of calls of one turn that run in parallel.

use serde::{Deserialize, Serialize};

/// The strategy for the calls of one turn. Results are in the order of the calls, and a call that fails stops
/// no other. Calls run in parallel only if all their tools are [safe for
/// that](crate::ToolAnnotations::concurrency_safe); otherwise they run one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolExecutionStrategy {
    /// All calls in parallel.
    #[default]
    Parallel,
    /// One after the other, even if the tools allow more.
    Sequential,
    /// In batches; steering messages are read between two batches and skip the calls that have not started.
    Batched {
        /// The number of calls in a batch; 0 counts as 1.
        size: u32,
    },
}

impl ToolExecutionStrategy {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
