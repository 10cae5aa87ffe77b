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
    /// The branch's run.
    pub run: RunId,
    /// The run's display name.
    pub loop_id: LoopId,
}

/// The end of a parallel loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ParallelChoice {
    /// The strategy: [`EvaluationStrategy::name`](crate::EvaluationStrategy::name).
    pub strategy: String,
    /// The configuration of the selected branch, from 0; none if no branch was selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<u32>,
    /// Tokens that the selection used.
    pub usage: Usage,
    /// The reason, if the strategy gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Warnings about the selection, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The outcome of the parallel loop's own run, with the answer of the selected branch. Its usage and its
    /// cost are those of all branches and of the selection.
    pub outcome: Outcome,
}

impl ParallelChoice {
    /// Creates the end of a loop without a selected branch.
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
