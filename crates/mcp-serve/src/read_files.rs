//! The files that clients have read. A tool that changes a file requires that the file was read in the same
//! session; each call of a client is a session of its own, so the results of earlier calls are passed to
//! the tool first.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{Json, SessionId, ToolResult, Toolbox, metadata};

/// The maximum number of files that are remembered. A file that is no longer remembered must be read again
/// before a tool changes it.
const FILES: usize = 64;

/// For each file, the tool that read or wrote the file last, and its result; the newest result is the last.
#[derive(Debug, Default)]
pub(crate) struct ReadFiles(Mutex<VecDeque<(String, Arc<ToolResult>)>>);

impl ReadFiles {
    /// Remembers the result of a call of `tool`, if it read or wrote a file.
    pub(crate) fn note(&self, tool: &str, result: &Arc<ToolResult>) {
        let Some(file) = file(result) else { return };
        let mut results = self.lock();
        results.retain(|(_, other)| self::file(other) != Some(file));
        results.push_back((tool.to_owned(), result.clone()));
        if results.len() > FILES {
            results.pop_front();
        }
    }

    /// Passes the results of earlier calls to the tools, for the new session of a call.
    pub(crate) fn recall(&self, session: &SessionId, toolbox: &dyn Toolbox) {
        let results = self.lock().clone();
        results.iter().for_each(|(tool, result)| toolbox.recall(session, tool, result));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Arc<ToolResult>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn file(result: &ToolResult) -> Option<&str> {
    result.metadata.get(metadata::SEEN)?.get("file").and_then(Json::as_str)
}
