//! What the run of a plan records besides its calls: how it works, which plan it follows, how that changed.
//!
//! A subtask that is worked on is a call like any other, so its start, its lease and its result are the
//! records that tools and sub-agents have. A call's command is the one that the plan gave its subtask.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Answer, CallId, CommandId, FailureKind, Json, RunId, Spending, SubTask, SubTaskId, Task};

/// One step in the life of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "plan", rename_all = "snake_case")]
#[non_exhaustive]
pub enum PlanRecord {
    /// How the run works; follows the first record.
    Settings(PlanSettings),
    /// What is known at the start: the task's context and what was remembered for the goal.
    Given {
        /// Becomes [`Task::context`].
        #[cfg_attr(feature = "schema", schemars(with = "BTreeMap<String, Json>"))]
        values: serde_json::Map<String, Json>,
        /// What was remembered, most relevant first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memories: Vec<String>,
        /// What the agents read beside the goal; see [`SessionPlace::background`](crate::SessionPlace::background).
        #[serde(default, skip_serializing_if = "String::is_empty")]
        background: String,
    },
    /// The plan, where it is fixed: no planner is asked for it, nor for another one. Before the goal.
    Fixed {
        /// The plan's subtasks.
        subtasks: Vec<SubTask>,
    },
    /// The planner is asked for a plan or for another one. Derived.
    Asked {
        /// The command that the answer must name.
        command: CommandId,
        /// From 0; grows with each answer that was no plan.
        attempt: u32,
        /// Why another plan is wanted; none for the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// What the planner itself used for a question; before the record of its answer.
    Paid {
        /// The command of the question.
        command: CommandId,
        /// What it took.
        spent: Spending,
    },
    /// The planner gave a plan that can be followed.
    Made {
        /// The command that this answers.
        command: CommandId,
        /// The plan.
        task: Box<Task>,
        /// What somebody should know about it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// The planner gave no plan, or one that cannot be followed. Nothing of it was begun.
    Rejected {
        /// The command that this answers.
        command: CommandId,
        /// Which attempt.
        attempt: u32,
        /// Everything that is wrong, each with what to do about it.
        problems: Vec<String>,
        /// Whether another answer to the same question may be better.
        retryable: bool,
        /// Why there is no plan, where a program can tell: the planner's model gave no answer, for instance.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<FailureKind>,
    },
    /// The running plan is another one from here on, or once a person agrees ([`Confirm::Each`]).
    Changed {
        /// The command that this answers.
        command: CommandId,
        /// What is different.
        diff: Box<PlanDiff>,
        /// What somebody should know about it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// Somebody wants another plan for the rest of the task.
    ReplanRequested {
        /// Why.
        reason: String,
        /// Subtasks that may change although they did not fail.
        targets: Vec<SubTaskId>,
    },
    /// A subtask is not done, because its condition does not hold. Derived.
    Skipped {
        /// The call that would have done it.
        call: CallId,
        /// Why.
        reason: String,
    },
    /// The list of a loop is known: these subtasks come into the plan, and the loop waits for them.
    Unfolded {
        /// The call of the loop.
        call: CallId,
        /// The subtasks of all items.
        subtasks: Vec<SubTask>,
        /// For each item those of which the first that has a result has the item's.
        results: Vec<Vec<SubTaskId>>,
    },
    /// All items of a loop are done: its result is the list of theirs. Derived.
    Joined {
        /// The call of the loop.
        call: CallId,
    },
    /// Nothing new begins from here on.
    Paused {
        /// Who or what asked, for people.
        reason: String,
    },
    /// The plan goes on after a pause.
    Unpaused,
    /// The final answer is being put together. Derived.
    Concluding {
        /// The command that the answer must name.
        command: CommandId,
    },
    /// The final answer. One that must have a form is held against it next, and put together anew if it does not fit.
    Concluded {
        /// The command that this answers.
        command: CommandId,
        /// The answer.
        answer: String,
        /// The subtasks that it rests on.
        citations: Vec<Citation>,
        /// What it took to put it together.
        #[serde(default, skip_serializing_if = "Spending::is_zero")]
        spent: Spending,
    },
    /// Nobody put an answer together in the form that it must have, and the results do not have it.
    NotConcluded {
        /// The command that this answers.
        command: CommandId,
        /// Why.
        problem: String,
        /// The kind of that.
        failure: FailureKind,
    },
}

impl PlanRecord {
    /// Whether the record carries something from outside.
    pub fn is_input(&self) -> bool {
        !matches!(
            self,
            Self::Asked { .. } | Self::Skipped { .. } | Self::Joined { .. } | Self::Concluding { .. }
        )
    }

    /// Whether the record must be on the medium before anything else happens.
    pub fn needs_sync(&self) -> bool {
        matches!(
            self,
            Self::Made { .. } | Self::Changed { .. } | Self::Unfolded { .. } | Self::Concluded { .. }
        )
    }
}

/// A subtask that an answer rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Citation {
    /// The subtask.
    pub subtask: SubTaskId,
    /// What it was about.
    pub description: String,
    /// The run that did it, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

impl Citation {
    /// A citation of a subtask.
    pub fn new(subtask: &SubTask, run: Option<RunId>) -> Self {
        Self { subtask: subtask.id.clone(), description: subtask.description.clone(), run }
    }
}

/// How the run of a plan works: recorded, so that it goes on as it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct PlanSettings {
    /// Subtasks that are worked on at the same time. Default 4; 0 counts as 1.
    pub max_concurrent: u32,
    /// Users of a resource at the same time; a resource without a number has no limit of its own. The name
    /// of a tool is a resource, too: that of every subtask which names the tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, u32>,
    /// When a failure leads to another plan.
    pub replan: ReplanPolicy,
    /// How often the planner is asked for one plan: the first answer and repairs of it. Default 2.
    pub planning_attempts: u32,
    /// Whether a person sees each plan before it is followed. Default never.
    pub confirm: Confirm,
    /// How long a failed subtask waits before it is tried again, milliseconds. Default 0.
    pub retry_delay_ms: u64,
    /// How long a question waits for a person, milliseconds; that nobody answers in time counts as a no. Default 30
    /// minutes.
    #[serde(skip_serializing_if = "crate::approval::is_usual_wait")]
    pub answer_within_ms: u64,
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
            answer_within_ms: crate::approval::USUAL_WAIT_MS,
        }
    }
}

/// Which plans a person sees before they are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Confirm {
    /// None.
    #[default]
    Never,
    /// The first plan of a run.
    First,
    /// The first plan, and each other plan that is to take the place of what is left of it, unless it is the same.
    Each,
}

/// When the failure of subtasks leads to another plan instead of the end of what depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ReplanPolicy {
    /// Failures of the same subtask before there is another plan; until then it is tried again. Default 3.
    pub same_subtask: u32,
    /// Different subtasks that fail one after the other, without a success between. Default 2.
    pub consecutive: Option<u32>,
    /// Whether the failure of a critical subtask leads to another plan at once.
    pub critical: OnCritical,
    /// A successful result that is less sure of itself than this (0.0 to 1.0) counts as a failure. Default
    /// none: most results do not say how sure they are.
    pub confidence: Option<f64>,
    /// Other plans that a run may have. Default 3; 0 never makes another plan.
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

/// What the failure of a critical subtask leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnCritical {
    /// Another plan, at once.
    #[default]
    Replan,
    /// What the failure of any other subtask leads to.
    AsOthers,
}

/// What another plan changes in the running one. What it does not name stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct PlanDiff {
    /// Subtasks that were not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<SubTask>,
    /// Subtasks that are begun afresh with what stands here; the id is the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<SubTask>,
    /// Subtasks that are no longer wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<SubTaskId>,
}

impl PlanDiff {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.replace.is_empty() && self.remove.is_empty()
    }
}

impl Answer {
    /// The plan that a person's answer to a plan brings, if the answer is an edit.
    ///
    /// # Errors
    /// What was edited is not a task.
    pub fn edited_plan(&self) -> Option<Result<Task, serde_json::Error>> {
        match self {
            Self::Edit { arguments } => Some(serde_json::from_value(arguments.clone())),
            _ => None,
        }
    }
}
