//! Probes read the data of conditions.

use std::collections::BTreeMap;

use archon_types::{BoxFuture, Json};

/// Reads data for conditions, such as the price of a stock. A probe changes nothing.
pub trait Probe: Send + Sync {
    /// Returns the data for the arguments of a condition.
    ///
    /// # Errors
    /// The text says what failed and what to do.
    fn read<'a>(&'a self, arguments: &'a BTreeMap<String, Json>) -> BoxFuture<'a, Result<Json, String>>;
}
