//! Turns SQLite's errors into errors of memories.

use std::path::Path;

use archon_types::MemoryError;

/// Turns an error into an error with the action and the path of the database.
pub(super) fn failed<E>(action: &'static str, place: &Path) -> impl FnOnce(E) -> MemoryError
where
    E: std::error::Error + Send + Sync + 'static,
{
    let place = place.display().to_string();
    move |error| MemoryError::Storage { action, place, source: Box::new(error) }
}
