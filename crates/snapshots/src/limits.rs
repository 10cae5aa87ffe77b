//! Limits: the size of a workspace, the number of snapshots, and the time to wait for another process.

use std::time::Duration;

/// Limits of the snapshots of one workspace.
///
/// ```
/// use std::time::Duration;
///
/// use archon_snapshots::SnapshotLimits;
///
/// let limits = SnapshotLimits::default()
///     .with_entries(10_000)
///     .with_bytes(500_000_000)
///     .with_kept(50)
///     .with_lock_wait(Duration::from_secs(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotLimits {
    /// Maximum number of files, links and folders, without ignored ones. Default 50,000.
    pub entries: usize,
    /// Maximum size of all files together in bytes, without ignored ones. Default 2 GB. The store has at most twice
    /// this size: older snapshots are removed.
    pub bytes: u64,
    /// Maximum number of snapshots that remain after the store is pruned. The store is pruned once it has 50 more than
    /// this. Default 200.
    pub kept: usize,
    /// Maximum time to wait for another process that works on the snapshots of the workspace. Default 5 s.
    pub lock_wait: Duration,
}

impl Default for SnapshotLimits {
    fn default() -> Self {
        Self { entries: 50_000, bytes: 2_000_000_000, kept: 200, lock_wait: Duration::from_secs(5) }
    }
}

impl SnapshotLimits {
    /// Sets the maximum number of files, links and folders, without ignored ones. Default 50,000.
    #[must_use]
    pub fn with_entries(mut self, entries: usize) -> Self {
        self.entries = entries;
        self
    }

    /// Sets the maximum size of all files together in bytes, without ignored ones. Default 2 GB.
    #[must_use]
    pub fn with_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the maximum number of snapshots that remain after the store is pruned. Default 200.
    #[must_use]
    pub fn with_kept(mut self, kept: usize) -> Self {
        self.kept = kept;
        self
    }

    /// Sets the maximum time to wait for another process that works on the snapshots of the workspace. Default 5 s.
    #[must_use]
    pub fn with_lock_wait(mut self, lock_wait: Duration) -> Self {
        self.lock_wait = lock_wait;
        self
    }
}
