//! The strategy for the calls of one turn: in parallel, in sequence or in batches.

use serde::{Deserialize, Serialize};

/// The strategy for the calls of one turn. Results are in the order of the calls, and a call that fails does
/// not stop the others. Calls run in parallel only if all their tools are [safe for
/// concurrency](crate::ToolAnnotations::concurrency_safe); otherwise they run in sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolExecutionStrategy {
    /// All calls run in parallel.
    #[default]
    Parallel,
    /// The calls run in sequence, even if the tools allow more.
    Sequential,
    /// The calls run in batches, one batch after the other; the calls of a batch run in parallel. Steering
    /// messages, read between batches, skip calls that have not started.
    Batched {
        /// The maximum number of calls in a batch; 0 counts as 1.
        size: u32,
    },
}
