//! Snapshots of the workspace that a run works in, so that its effects can be undone.

use futures_core::future::BoxFuture;

/// Takes snapshots of the files in a workspace, so that the effects of a run can be undone.
///
/// ```
/// use std::sync::Mutex;
///
/// use archon_types::{BoxFuture, WorkspaceSnapshots};
///
/// /// Numbers the snapshots, and leaves the copying to a file system that keeps every version.
/// #[derive(Default)]
/// struct Numbered(Mutex<u64>);
///
/// impl WorkspaceSnapshots for Numbered {
///     fn take(&self, _before: Option<String>) -> BoxFuture<'static, Result<String, String>> {
///         let mut number = self.0.lock().expect("no panic");
///         *number += 1;
///         Box::pin(std::future::ready(Ok(format!("version-{number}"))))
///     }
/// }
/// ```
pub trait WorkspaceSnapshots: Send + Sync {
    /// Starts background work that makes the next snapshot faster, and returns at once. Called when a run
    /// begins. Default: does nothing.
    fn prepare(&self) {}

    /// Takes a snapshot, and returns its id. For a snapshot after the effects of a turn, `before` is the id
    /// of the snapshot before these effects; otherwise `None`.
    ///
    /// # Errors
    /// The reason why no snapshot can be taken, to show to people. The run goes on without snapshots.
    fn take(&self, before: Option<String>) -> BoxFuture<'static, Result<String, String>>;
}
