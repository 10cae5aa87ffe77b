//! Warns once of unreadable messages, however many there are and however often they are read.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::RunId;

/// The number of skipped messages of each run at the last warning. Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skipped(Arc<Mutex<HashMap<RunId, usize>>>);

impl Skipped {
    /// Warns of skipped messages to `run`, if their number changed since the last warning.
    pub(crate) fn warn(&self, run: &RunId, problems: &[String]) {
        let mut warned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match problems.len() {
            0 => warned.remove(run),
            count => warned.insert(run.clone(), count),
        };
        let Some(first) = problems.first().filter(|_| before != Some(problems.len())) else { return };
        match problems.len() - 1 {
            0 => tracing::warn!("a message to run {run} is skipped: {first}"),
            others => tracing::warn!("a message to run {run} is skipped, and {others} others: {first}"),
        }
    }
}
