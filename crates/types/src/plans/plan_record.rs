//! The records of a plan's run besides its calls: the settings, the plan, and the changes of the plan.
//!
//! The work of a subtask is a call. So the start, the lease and the result of a subtask are logged with the
//! same records as for calls of tools and sub-agents. The call's command is the command that the plan gave to
//! the subtask.

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

/// A record of a plan's run. A record marked "Derived" follows from earlier records of the log; every other
/// record has new data from outside the run, such as an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanRecord {
    /// The settings of the run, directly after the first record.
    Settings(PlanSettings),
    /// The inputs of the plan: the task's context and the memories recalled for the goal.
    Inputs {
        /// The shared data of the task, which become [`Task::context`].
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
    /// A fixed plan, logged before the goal: no planner is asked, not even after a failure.
    FixedPlan {
        /// The plan's subtasks.
        subtasks: Vec<SubTask>,
    },
    /// The planner is asked for a first or a new plan. Derived.
    PlanningStarted {
        /// The id of the command to ask the planner. The records of the planner's answer repeat this id.
        command: CommandId,
        /// The number of the attempt, from 0. Each answer that is not a valid plan leads to another attempt.
        attempt: u32,
        /// The reason for a new plan; `None` for the first plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The spending of the planner for one request. This record comes before the record of the planner's
    /// answer.
    PlanningPaid {
        /// The id from the [`PlanningStarted`](Self::PlanningStarted) record of the request.
        command: CommandId,
        /// The tokens and the money that the planner used.
        spent: Spending,
    },
    /// The planner made a valid plan.
    Planned {
        /// The id from the [`PlanningStarted`](Self::PlanningStarted) record of the request.
        command: CommandId,
        /// The plan.
        task: Box<Task>,
        /// Warnings about the plan, to show to people.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// The planner made no plan, or an invalid plan, which was not started.
    Rejected {
        /// The id from the [`PlanningStarted`](Self::PlanningStarted) record of the request.
        command: CommandId,
        /// The number of the attempt, from 0.
        attempt: u32,
        /// All problems, each with advice on how to solve it.
        problems: Vec<String>,
        /// True if another answer to the same request may be valid.
        retryable: bool,
        /// The kind of the failure, if known, for instance that the planner's model gave no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<FailureKind>,
    },
    /// A change of the plan, which applies at once, or after a person's approval ([`Confirm::Each`]).
    Replanned {
        /// The id from the [`PlanningStarted`](Self::PlanningStarted) record of the request.
        command: CommandId,
        /// The change.
        diff: Box<PlanDiff>,
        /// Warnings about the change, to show to people.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// A new plan for the rest of the task was requested.
    ReplanRequested {
        /// The reason for the new plan.
        reason: String,
        /// The subtasks that may change although they did not fail.
        targets: Vec<SubTaskId>,
    },
    /// A subtask is skipped because its condition is false. Derived.
    Skipped {
        /// The call that would have done the subtask.
        call: CallId,
        /// The reason for skipping the subtask.
        reason: String,
    },
    /// The list of a loop (a subtask with [`SubTaskRules::each`](crate::SubTaskRules::each)) was evaluated.
    /// The plan now has the subtasks of all items of the list, and the loop waits for these subtasks.
    LoopExpanded {
        /// The id of the call that does the loop.
        call: CallId,
        /// The subtasks of all items.
        subtasks: Vec<SubTask>,
        /// For each item, the subtasks that may give the item's result; the first subtask with a result gives
        /// it.
        results: Vec<Vec<SubTaskId>>,
    },
    /// All items of a loop are done. The result of the loop is the list of the items' results. Derived.
    LoopFinished {
        /// The id of the call that does the loop.
        call: CallId,
    },
    /// The plan is paused: no subtask starts.
    Paused {
        /// The reason for the pause, or the person who paused the plan, to show to people.
        reason: String,
    },
    /// The plan goes on after a pause.
    Unpaused,
    /// The final answer is being written. Derived.
    AnswerStarted {
        /// The id of the command to write the answer. The record of the answer repeats this id.
        command: CommandId,
    },
    /// The final answer was written. If it must match a schema, it is then checked, and written again if it
    /// does not match.
    AnswerFinished {
        /// The id from the [`AnswerStarted`](Self::AnswerStarted) record.
        command: CommandId,
        /// The answer.
        answer: String,
        /// The subtasks that the answer is based on.
        citations: Vec<Citation>,
        /// The tokens and the money that writing the answer used.
        #[serde(default, skip_serializing_if = "Spending::is_zero")]
        spent: Spending,
    },
    /// No answer that matches the required schema could be written, and the results of the subtasks do not
    /// match the schema either.
    AnswerFailed {
        /// The id from the [`AnswerStarted`](Self::AnswerStarted) record.
        command: CommandId,
        /// The reason why no answer was written.
        problem: String,
        /// The kind of the failure.
        failure: FailureKind,
    },
}

impl PlanRecord {
    /// Returns true if the record has new data from outside the run; false if it follows from earlier
    /// records.
    pub fn is_input(&self) -> bool {
        !matches!(
            self,
            Self::PlanningStarted { .. }
                | Self::Skipped { .. }
                | Self::LoopFinished { .. }
                | Self::AnswerStarted { .. }
        )
    }

    /// Returns true if the record must be on the storage medium before the run goes on.
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
    /// The id of the subtask.
    pub subtask: SubTaskId,
    /// The description of the subtask.
    pub description: String,
    /// The run that did the subtask; `None` if no run did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

impl Citation {
    /// Creates a citation of a subtask. `run` is the run that did the subtask.
    pub fn new(subtask: &SubTask, run: Option<RunId>) -> Self {
        Self { subtask: subtask.id.clone(), description: subtask.description.clone(), run }
    }
}

/// The settings of a plan's run. The log stores them, so that a resumed run works the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct PlanSettings {
    /// The maximum number of subtasks that run in parallel. Default 4; 0 counts as 1.
    pub max_concurrent: u32,
    /// For each limited resource, by its name, the maximum number of subtasks that use it at the same time. A
    /// tool's name is a resource too, which every subtask with this tool uses.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, u32>,
    /// The rules for making a new plan after a failure.
    pub replan: ReplanPolicy,
    /// The maximum number of requests to the planner for one plan: the first request and those that repair an
    /// invalid plan. Default 2.
    pub planning_attempts: u32,
    /// The plans that a person must confirm. Default none.
    pub confirm: Confirm,
    /// The delay before a failed subtask is retried, in milliseconds. Default 0.
    pub retry_delay_ms: u64,
    /// The time that a question waits for a person, in milliseconds. A question without an answer counts as
    /// refused, but a question about a call in doubt waits without an end. Default 30 minutes.
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

/// The plans that a person must confirm before their execution.
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
    /// The first plan, and each later change of the plan.
    Each,
}

/// The rules by which failed subtasks lead to a new plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ReplanPolicy {
    /// The number of failures of a subtask that lead to a new plan instead of a retry. Default 3.
    pub same_subtask: u32,
    /// The number of different subtasks that must fail in a row, without a success between them, to cause a
    /// new plan. Default 2; `None` if such failures cause no new plan.
    pub consecutive: Option<u32>,
    /// The consequence of the failure of a critical subtask. Default [`OnCritical::Replan`].
    pub critical: OnCritical,
    /// The minimum confidence (0.0 to 1.0) of a successful result; a lower confidence counts as a failure.
    /// Default none, because most results report no confidence.
    pub confidence: Option<f64>,
    /// The maximum number of new plans in a run. Default 3; 0 for none.
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

/// A change of a running plan. Subtasks that the change does not name stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct PlanDiff {
    /// The new subtasks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<SubTask>,
    /// The new definitions of existing subtasks, which start again with the same id.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<SubTask>,
    /// The ids of the subtasks to remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<SubTaskId>,
}

impl PlanDiff {
    /// Returns true if the change is empty.
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.replace.is_empty() && self.remove.is_empty()
    }
}

impl Answer {
    /// Returns the plan as the person edited it; `None` if the answer is not [`Answer::Edit`].
    ///
    /// # Errors
    /// The edit is not a valid task.
    pub fn edited_plan(&self) -> Option<Result<Task, serde_json::Error>> {
        match self {
            Self::Edit { arguments } => Some(serde_json::from_value(arguments.clone())),
            _ => None,
        }
    }
}
