//! The snapshots of a workspace around the effects of a run, so that they can be undone.

use serde::{Deserialize, Serialize};

/// A snapshot of the workspace was taken, or could not be.
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
    /// The reason why no snapshot could be taken, for people. The run takes no more snapshots then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The place of a snapshot among the effects of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SnapshotPlace {
    /// Before calls that may change something.
    Before,
    /// After them.
    After,
}

impl WorkspaceSnapshot {
    /// Creates the record's content from what a source of snapshots returned.
    pub fn new(place: SnapshotPlace, turn: u32, taken: Result<String, String>) -> Self {
        let (tree, problem) = match taken {
            Ok(tree) => (Some(tree), None),
            Err(problem) => (None, Some(problem)),
        };
        Self { place, turn, tree, problem }
    }
}
