//! Probes read the data of conditions.

use std::collections::BTreeMap;

use archon_types::{BoxFuture, Json};

/// Reads data for conditions, such as the price of a stock. A probe changes nothing.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use archon_triggers::Probe;
/// use archon_types::{BoxFuture, Json};
/// use serde_json::json;
///
/// /// Reads the number of files in a folder.
/// struct Files;
///
/// impl Probe for Files {
///     fn read<'a>(&'a self, arguments: &'a BTreeMap<String, Json>) -> BoxFuture<'a, Result<Json, String>> {
///         let folder = arguments.get("folder").and_then(Json::as_str).unwrap_or(".");
///         let count = std::fs::read_dir(folder).map(Iterator::count);
///         let failed = |error| format!("the folder {folder} cannot be read: {error}; name another");
///         Box::pin(std::future::ready(count.map(|count| json!({ "count": count })).map_err(failed)))
///     }
/// }
/// ```
pub trait Probe: Send + Sync {
    /// Returns the data for the arguments of a condition.
    ///
    /// # Errors
    /// The text says what failed and what to do.
    fn read<'a>(&'a self, arguments: &'a BTreeMap<String, Json>) -> BoxFuture<'a, Result<Json, String>>;
}
