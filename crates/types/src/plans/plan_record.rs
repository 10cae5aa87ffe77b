//! The records of a plan's run besides its calls: its settings, its plan, and the changes of the plan.
//!
//! A subtask is done by a call like any other, so its start, lease and result are logged with the same
//! records as those of tools and sub-agents. The call's command is the one that the plan gave its subtask.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Json,
    config::Spending,
    models::FailureKind,
    tools::Answer,
    values::{CallId, CommandId, RunId, SubTaskId},
};

use super::task::{SubTask, Task};

/// An event in the run of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanRecord {
    /// The settings of the run; follows the first record.
    Settings(PlanSettings),
    /// The inputs of the plan: the task's context and the memories recalled for the goal.
    Inputs {
        /// Becomes [`Task::context`].
        #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Json>"))]
        context: serde_json::Map<String, Json>,
        /// The recalled memories, most relevant first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memories: Vec<String>,
        /// Background for the agents besides the goal; see
        /// [`SessionPlace::background`](crate::SessionPlace::background).
        #[serde(default, skip_serializing_if = "String::is_empty")]
        background: String,
    },
    /// A fixed plan: no planner is asked, not even after a failure. Before the goal.
    FixedPlan {
        /// The plan's subtasks.
        subtasks: Vec<SubTask>,
    },
    /// The planner is asked for a first or a new plan. Derived.
    PlanningStarted {
        /// The command that the answer must name.
        command: CommandId,
        /// The number of the attempt, from 0; grows with each answer that was not a valid plan.
        attempt: u32,
        /// The reason for a new plan; none for the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The spending of the planner for a request; before the record of its answer.
    PlanningPaid {
        /// The command of the request.
        command: CommandId,
        /// The tokens and the money.
        spent: Spending,
    },
    /// The planner made a plan that can be followed.
    Planned {
        /// The command that this answers.
        command: CommandId,
        /// The plan.
        task: Box<Task>,
        /// Warnings about the plan, for people.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// The planner made no plan, or one that cannot be followed. None of it was started.
    Rejected {
        /// The command that this answers.
        command: CommandId,
        /// The attempt.
        attempt: u32,
        /// All problems, each with a way to solve it.
        problems: Vec<String>,
        /// True if another answer to the same request may be valid.
        retryable: bool,
        /// The kind of the failure, if it is known, for instance that the planner's model gave no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<FailureKind>,
    },
    /// The plan changes from here on, or once a person agrees ([`Confirm::Each`]).
    Replanned {
        /// The command that this answers.
        command: CommandId,
        /// The change.
        diff: Box<PlanDiff>,
        /// Warnings about the change, for people.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// A new plan for the rest of the task was requested.
    ReplanRequested {
        /// The reason.
        reason: String,
        /// Subtasks that may change although they did not fail.
        targets: Vec<SubTaskId>,
    },
    /// A subtask is skipped, because its condition does not hold. Derived.
    Skipped {
        /// The call that would have done it.
        call: CallId,
        /// The reason.
        reason: String,
    },
    /// The list of a loop is known: these subtasks are added to the plan, and the loop waits for them.
    LoopExpanded {
        /// The call of the loop.
        call: CallId,
        /// The subtasks of all items.
        subtasks: Vec<SubTask>,
        /// For each item the subtasks that may give its result; the first that has one counts.
        results: Vec<Vec<SubTaskId>>,
    },
    /// All items of a loop are done; its result is the list of theirs. Derived.
    LoopFinished {
        /// The call of the loop.
        call: CallId,
    },
    /// The plan is paused: nothing new begins.
    Paused {
        /// The person or the reason behind it, for people.
        reason: String,
    },
    /// The plan goes on after a pause.
    Unpaused,
    /// The final answer is being written. Derived.
    AnswerStarted {
        /// The command that the answer must name.
        command: CommandId,
    },
    /// The final answer. If it must have a schema, it is checked next, and written again if it does not
    /// match.
    AnswerFinished {
        /// The command that this answers.
        command: CommandId,
        /// The answer.
        answer: String,
        /// The subtasks that the answer is based on.
        citations: Vec<Citation>,
        /// The spending for writing the answer.
        #[serde(default, skip_serializing_if = "Spending::is_zero")]
        spent: Spending,
    },
    /// No answer with the required schema could be written, and the results do not match it either.
    AnswerFailed {
        /// The command that this answers.
        command: CommandId,
        /// The reason.
        problem: String,
        /// The kind of the failure.
        failure: FailureKind,
    },
}

impl PlanRecord {
    /// Returns true if the record carries something from outside.
    pub fn is_input(&self) -> bool {
        !matches!(
            self,
            Self::PlanningStarted { .. }
                | Self::Skipped { .. }
                | Self::LoopFinished { .. }
                | Self::AnswerStarted { .. }
        )
    }

    /// Returns true if the record must be on the storage medium before anything else happens.
    pub fn needs_sync(&self) -> bool {
        matches!(
            self,
            Self::Planned { .. }
                | Self::Replanned { .. }
                | Self::LoopExpanded { .. }
                | Self::AnswerFinished { .. }
        )
    }
}

/// A subtask that an answer is based on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Citation {
    /// The subtask.
    pub subtask: SubTaskId,
    /// Its description.
    pub description: String,
    /// The run that did it, if a run did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

impl Citation {
    /// Creates a citation of a subtask.
    pub fn new(subtask: &SubTask, run: Option<RunId>) -> Self {
        Self { subtask: subtask.id.clone(), description: subtask.description.clone(), run }
    }
}

/// The settings of a plan's run. They are logged, so that a resumed run works the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct PlanSettings {
    /// The most subtasks that run in parallel. Default 4; 0 counts as 1.
    pub max_concurrent: u32,
    /// The most users of each resource at the same time; a resource without a number has no limit. The name
    /// of a tool is a resource of every subtask that names the tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, u32>,
    /// The rules for making a new plan after a failure.
    pub replan: ReplanPolicy,
    /// The most requests to the planner for one plan: the first and repairs. Default 2.
    pub planning_attempts: u32,
    /// The plans that a person has to confirm. Default none.
    pub confirm: Confirm,
    /// The delay before a failed subtask is tried again, milliseconds. Default 0.
    pub retry_delay_ms: u64,
    /// The time that a question waits for a person, milliseconds; without an answer it counts as a no.
    /// Default 30 minutes.
    #[serde(skip_serializing_if = "crate::tools::is_usual_wait")]
    pub question_timeout_ms: u64,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            max_concurrent: 4,
            resources: BTreeMap::new(),
            replan: ReplanPolicy::default(),
            planning_attempts: 2,
            confirm: Confirm::default(),
            retry_delay_ms: 0,
            question_timeout_ms: crate::tools::USUAL_WAIT_MS,
        }
    }
}

/// The plans that a person confirms before they are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Confirm {
    /// No plan.
    #[default]
    Never,
    /// The first plan of a run.
    First,
    /// The first plan, and each later plan that changes something.
    Each,
}

/// The rules by which failed subtasks lead to a new plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ReplanPolicy {
    /// Failures of the same subtask before a new plan is made; until then it is tried again. Default 3.
    pub same_subtask: u32,
    /// Different subtasks that fail in a row, without a success between them. Default 2.
    pub consecutive: Option<u32>,
    /// The consequence of the failure of a critical subtask.
    pub critical: OnCritical,
    /// A successful result with a lower confidence than this (0.0 to 1.0) counts as a failure. Default none:
    /// most results report no confidence.
    pub confidence: Option<f64>,
    /// The most new plans of a run. Default 3; 0 for none.
    pub max_replans: u32,
}

impl Default for ReplanPolicy {
    fn default() -> Self {
        Self {
            same_subtask: 3,
            consecutive: Some(2),
            critical: OnCritical::Replan,
            confidence: None,
            max_replans: 3,
        }
    }
}

/// The consequence of the failure of a critical subtask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnCritical {
    /// A new plan, at once.
    #[default]
    Replan,
    /// The same consequence as for other subtasks.
    AsOthers,
}

/// The changes to a running plan. Subtasks that it does not name stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct PlanDiff {
    /// New subtasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<SubTask>,
    /// Subtasks that start again with this definition and the same id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<SubTask>,
    /// Subtasks to remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<SubTaskId>,
}

impl PlanDiff {
    /// Returns true if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.replace.is_empty() && self.remove.is_empty()
    }
}

impl Answer {
    /// Returns the edited plan, if the answer to a question about a plan is an edit.
    ///
    /// # Errors
    /// The edit is not a task.
    pub fn edited_plan(&self) -> Option<Result<Task, serde_json::Error>> {
        match self {
            Self::Edit { arguments } => Some(serde_json::from_value(arguments.clone())),
            _ => None,
        }
    }
}
