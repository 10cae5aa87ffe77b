//! The arguments of the tool with which a model shows people the steps of its work.

use serde::{Deserialize, Serialize};

use crate::Json;

/// The name of the tool with which a model shows its steps. Its arguments are a [`StepList`].
pub const STEP_LIST_TOOL: &str = "update_plan";

/// The steps of a model's work, as a call of [`STEP_LIST_TOOL`] has them. Each list replaces the one before.
///
/// ```
/// use archon_types::{StepList, StepStatus};
///
/// let arguments = serde_json::json!({ "steps": [{ "step": "Run the tests", "status": "in_progress" }] });
/// let list = StepList::of(&arguments).unwrap();
/// assert_eq!((list.steps[0].step.as_str(), list.steps[0].status), ("Run the tests", StepStatus::InProgress));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StepList {
    /// The reason for a change of the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The steps in their order, at most [`MAX`](Self::MAX); at most one is in progress.
    pub steps: Vec<ListedStep>,
}

/// One step of a [`StepList`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ListedStep {
    /// The step, in a few words.
    pub step: String,
    /// The progress of the step.
    pub status: StepStatus,
}

/// The progress of a [`ListedStep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepStatus {
    /// The step has not begun.
    Pending,
    /// The model works on the step.
    InProgress,
    /// The step is done.
    Completed,
}

impl StepList {
    /// The maximum number of steps.
    pub const MAX: usize = 50;

    /// Returns the list in the arguments of a call; `None` if they are not a list.
    pub fn of(arguments: &Json) -> Option<Self> {
        Self::deserialize(arguments).ok()
    }

    /// Returns the steps that are in progress.
    pub fn in_progress(&self) -> impl Iterator<Item = &ListedStep> {
        self.steps.iter().filter(|step| step.status == StepStatus::InProgress)
    }
}
