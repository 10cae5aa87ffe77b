//! The branches of a parallel loop and the choice between them.

use serde::{Deserialize, Serialize};

use crate::{
    messages::Usage,
    values::{LoopId, RunId},
};

use super::outcome::Outcome;

/// A branch of a parallel loop, as the loop's log has it before the branch starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ParallelBranch {
    /// The run of the branch.
    pub run: RunId,
    /// The display name of the run.
    pub loop_id: LoopId,
}

/// The result of a parallel loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ParallelChoice {
    /// The name of the strategy: [`EvaluationStrategy::name`](crate::EvaluationStrategy::name).
    pub strategy: String,
    /// The index of the selected branch, from 0; `None` if no branch was selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<u32>,
    /// The tokens that the selection used.
    pub usage: Usage,
    /// The reason for the choice; `None` if the strategy gave no reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Warnings about the selection, to show to people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The outcome of the parallel loop's own run, with the answer of the selected branch. Its usage and its
    /// cost include all branches and the selection.
    pub outcome: Outcome,
}

impl ParallelChoice {
    /// Creates the result of a parallel loop without a selected branch.
    pub fn none(strategy: impl Into<String>, outcome: Outcome) -> Self {
        Self {
            strategy: strategy.into(),
            selected: None,
            usage: Usage::default(),
            reason: None,
            warnings: Vec::new(),
            outcome,
        }
    }
}
