//! The snapshots of a workspace before and after the effects of a run, so that the effects can be undone.

use serde::{Deserialize, Serialize};

/// A snapshot of the workspace, or the reason why no snapshot could be taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WorkspaceSnapshot {
    /// The place of the snapshot.
    pub place: SnapshotPlace,
    /// The number of the turn, from 0.
    pub turn: u32,
    /// The id of the snapshot; `None` if none could be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The reason why no snapshot could be taken, for people. After such a problem the run takes no more
    /// snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The place of a snapshot: before or after the effects of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SnapshotPlace {
    /// Before calls that may change something.
    Before,
    /// After calls that may change something.
    After,
}

impl WorkspaceSnapshot {
    /// Creates the content of the record from the result of
    /// [`WorkspaceSnapshots::take`](crate::WorkspaceSnapshots::take).
    pub fn new(place: SnapshotPlace, turn: u32, taken: Result<String, String>) -> Self {
        let (tree, problem) = match taken {
            Ok(tree) => (Some(tree), None),
            Err(problem) => (None, Some(problem)),
        };
        Self { place, turn, tree, problem }
    }
}
