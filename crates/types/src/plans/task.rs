//! Tasks and subtasks: a goal, the subtasks that lead to it, and their states.
//!
//! Both are immutable: a change returns a new value, so that parallel subtasks cannot disturb each other.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::{
    Json,
    messages::ToolResult,
    values::{SubTaskId, TaskId},
};

/// A goal with its subtasks.
///
/// ```
/// use archon_types::{SubTask, Task};
///
/// let task = Task::new("task_1", "Three days in Paris")
///     .with_goal("A plan for each of three days")
///     .with_subtasks(vec![SubTask::new("weather", "Find the forecast.")]);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Task {
    /// The id, globally unique, for instance `task_` and a random part.
    pub id: TaskId,
    /// The person's request, word for word.
    pub original_query: String,
    /// The goal, as the planner understood it.
    pub goal: String,
    /// The subtasks, in the order of the plan.
    #[serde(default)]
    pub subtasks: Vec<SubTask>,
    /// The data that the subtasks share: results by subtask id, and values known at the start.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Json>"))]
    pub context: serde_json::Map<String, Json>,
}

impl Task {
    /// Creates a task without subtasks, with the query as its goal.
    pub fn new(id: impl Into<TaskId>, original_query: impl Into<String>) -> Self {
        let original_query = original_query.into();
        Self {
            id: id.into(),
            goal: original_query.clone(),
            original_query,
            subtasks: Vec::new(),
            context: serde_json::Map::new(),
        }
    }

    /// Returns the subtask with this id; `None` if there is none.
    pub fn get_subtask(&self, id: &SubTaskId) -> Option<&SubTask> {
        self.subtasks.iter().find(|s| s.id == *id)
    }

    /// Returns the task with `subtask` in place of the subtask with the same id; `None` if no subtask has
    /// this id.
    #[must_use = "the task itself is unchanged"]
    pub fn update_subtask(&self, subtask: SubTask) -> Option<Self> {
        let place = self.subtasks.iter().position(|s| s.id == subtask.id)?;
        let mut task = self.clone();
        task.subtasks[place] = subtask;
        Some(task)
    }
}

crate::setters! {
impl Task {
    /// Sets the goal, as the planner understood it. Default: the person's request.
    pub fn with_goal(self, goal: impl Into<String>) -> Self { self.goal = goal.into() }

    /// Sets the subtasks, in the order of the plan. Default none.
    pub fn with_subtasks(self, subtasks: Vec<SubTask>) -> Self { self.subtasks = subtasks }
}
}

/// One subtask of a [`Task`].
///
/// Status, result, dependencies and tool are private, because not every change is allowed: methods read and
/// change them.
///
/// ```
/// use archon_types::{OnFailure, SubTask, SubTaskRules};
///
/// let mut rules = SubTaskRules::default();
/// rules.on_failure = OnFailure::Skip;
/// let weather = SubTask::new("weather", "Find the forecast.")
///     .with_tool("forecast", Some(serde_json::json!({ "city": "Paris" })))
///     .with_rules(rules)
///     .after(["dates"]);
/// assert_eq!(weather.dependencies().len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "SubTaskJson")]
#[non_exhaustive]
pub struct SubTask {
    /// The id, unique within the task.
    pub id: SubTaskId,
    /// The work to do, in words.
    pub description: String,
    /// A description of the output that the subtask should give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_args: Option<Json>,
    dependencies: Vec<SubTaskId>,
    status: SubTaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ToolResult>,
    /// True if a failure of the subtask leads to a new plan without a retry; see
    /// [`ReplanPolicy::critical`](crate::ReplanPolicy::critical).
    pub critical: bool,
    /// The rules of this subtask that differ from the default.
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub rules: SubTaskRules,
}

/// The rules of a [`SubTask`]. By default no rule is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SubTaskRules {
    /// A second name by which other subtasks refer to the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_as: Option<String>,
    /// A condition such as `{classify} == 'billing'`. If the condition is false, the subtask is skipped: it
    /// counts as completed, with the result null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// A question to a person before the subtask starts. A yes starts the subtask; after a no the subtask
    /// fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// A question to a person about the result. Dependent subtasks wait for a yes; a no ends the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// The role of the team member that should do the subtask, if a team executes the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The maximum number of attempts before the subtask counts as failed; `None` for
    /// [`ReplanPolicy::same_subtask`](crate::ReplanPolicy::same_subtask).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// The tools to try after the subtask's own tool has failed, in this order and with the same arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback_tools: Vec<String>,
    /// The behaviour when the subtask has finally failed. Default [`OnFailure::Replan`].
    #[serde(skip_serializing_if = "crate::values::is_default")]
    pub on_failure: OnFailure,
    /// The limited resources that the subtask uses, by their names in
    /// [`PlanSettings::resources`](crate::PlanSettings::resources).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// The expected duration in milliseconds, used only for the order of subtasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_ms: Option<u64>,
    /// Makes the subtask a loop over a list, which must be known when the subtask starts. The result of the
    /// subtask is the list of the results of the items. `None` for an ordinary subtask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<Box<ForEach>>,
}

/// The body of a subtask that is a loop over a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ForEach {
    /// The list, or a reference to the result that has the list, such as `{find}`.
    pub list: Json,
    /// The name by which the subtasks of the loop refer to the item.
    pub item: String,
    /// The subtasks for one item. Subtasks without dependencies start first.
    pub steps: Vec<SubTask>,
    /// The subtasks that may give the result of an item; the first subtask with a result gives it.
    pub results: Vec<SubTaskId>,
    /// The maximum number of items; a longer list is refused.
    pub max_items: u32,
}

impl ForEach {
    /// Creates a loop over at most 50 items of `list`. The subtasks in `steps` refer to the current item by
    /// the name `item`. The result of an item is the result of the last subtask in `steps`.
    pub fn new(list: Json, item: impl Into<String>, steps: Vec<SubTask>) -> Self {
        let results = steps.last().map(|step| step.id.clone()).into_iter().collect();
        Self { list, item: item.into(), steps, results, max_items: 50 }
    }
}

/// The behaviour when a subtask has finally failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnFailure {
    /// A new plan is made, as [`ReplanPolicy`](crate::ReplanPolicy) says. Without a new plan, subtasks that
    /// depend on the failed one are not executed.
    #[default]
    Replan,
    /// The other subtasks go on; the result of the failed one is null.
    Skip,
    /// Subtasks that depend on the failed one are not executed, and its failure leads to no new plan.
    Stop,
    /// A person decides: retry the subtask, go on without its result, or give up the subtasks that depend on
    /// it.
    Ask,
}

impl OnFailure {
    /// Returns true if other subtasks may go on without the failed one.
    pub fn may_be_left_out(self) -> bool {
        matches!(self, Self::Skip | Self::Ask)
    }
}

impl SubTask {
    /// Returns advice for a person whose run failed: a simpler goal that leaves out the `failed` subtasks.
    /// `all` is the number of all subtasks.
    pub fn simpler_goal(failed: &[&Self], all: usize) -> String {
        const LONGEST: usize = 200;
        if failed.len() >= all {
            return "A simpler goal may work: a part of this one.".to_owned();
        }
        let quoted =
            |subtask: &&Self| format!("'{}'", subtask.description.chars().take(LONGEST).collect::<String>());
        let parts: Vec<String> = failed.iter().map(quoted).collect();
        format!("A simpler goal may work: the same without {}.", parts.join(" and "))
    }

    /// Creates a subtask without dependencies and without a tool.
    pub fn new(id: impl Into<SubTaskId>, description: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            description: description.into(),
            expected_output: None,
            tool_name: None,
            tool_args: None,
            dependencies: Vec::new(),
            status: SubTaskStatus::Pending,
            result: None,
            critical: false,
            rules: SubTaskRules::default(),
        }
    }

    /// Sets the rules of the subtask, such as its condition and the behaviour when it has failed. Default: no
    /// rules.
    pub fn with_rules(mut self, rules: SubTaskRules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the tool that does the subtask, and its arguments. Without `arguments`, an agent chooses them.
    pub fn with_tool(mut self, name: impl Into<String>, arguments: Option<Json>) -> Self {
        self.tool_name = Some(name.into());
        self.tool_args = arguments;
        self
    }

    /// Sets the ids of the subtasks that must be completed before this one starts. The status becomes
    /// blocked, or pending if there are no ids.
    pub fn after(mut self, dependencies: impl IntoIterator<Item = impl Into<SubTaskId>>) -> Self {
        self.dependencies = dependencies.into_iter().map(Into::into).collect();
        self.status = SubTaskStatus::initial(&self.dependencies);
        self
    }

    /// Returns the name of the tool that does the subtask; `None` if the plan sets no tool.
    pub fn tool_name(&self) -> Option<&str> {
        self.tool_name.as_deref()
    }

    /// Returns the arguments of the tool, an object; `None` if an agent chooses them, and always without a
    /// tool.
    pub fn tool_args(&self) -> Option<&Json> {
        self.tool_args.as_ref()
    }

    /// Returns the ids of the subtasks that must be completed first.
    pub fn dependencies(&self) -> &[SubTaskId] {
        &self.dependencies
    }

    /// Returns the status of the subtask.
    pub fn status(&self) -> SubTaskStatus {
        self.status
    }

    /// Returns the result of the subtask, if there is one.
    pub fn result(&self) -> Option<&ToolResult> {
        self.result.as_ref()
    }

    /// Returns the subtask as planned: without a result and with the initial status.
    pub fn as_planned(&self) -> Self {
        Self { status: SubTaskStatus::initial(&self.dependencies), result: None, ..self.clone() }
    }

    /// Returns true if the subtask may start: its status is pending or blocked, and all its dependencies are
    /// in `completed`.
    pub fn is_ready(&self, completed: &HashSet<SubTaskId>) -> bool {
        matches!(self.status, SubTaskStatus::Pending | SubTaskStatus::Blocked)
            && self.dependencies.iter().all(|d| completed.contains(d))
    }

    /// Returns a copy of the subtask with another status.
    ///
    /// # Errors
    /// [`IllegalTransition`] unless [`SubTaskStatus::may_become`] allows it.
    pub fn with_status(&self, status: SubTaskStatus) -> Result<Self, IllegalTransition> {
        if self.status.may_become(status) {
            Ok(Self { status, ..self.clone() })
        } else {
            Err(IllegalTransition { id: self.id.clone(), from: self.status, to: status })
        }
    }

    /// Returns a copy of the subtask with its result, and the status completed, or failed on an error.
    ///
    /// # Errors
    /// [`IllegalTransition`] unless the subtask is executing.
    pub fn with_result(&self, result: ToolResult) -> Result<Self, IllegalTransition> {
        let status = if result.is_error() { SubTaskStatus::Failed } else { SubTaskStatus::Completed };
        Ok(Self { result: Some(result), ..self.with_status(status)? })
    }
}

/// The status of a [`SubTask`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SubTaskStatus {
    /// The subtask can start.
    #[default]
    Pending,
    /// The subtask is being executed.
    Executing,
    /// The subtask has its result.
    Completed,
    /// The subtask has finally failed.
    Failed,
    /// The subtask waits for other subtasks.
    Blocked,
}

impl SubTaskStatus {
    /// Returns the status of a subtask that was just planned: pending without `dependencies`, otherwise
    /// blocked.
    pub fn initial(dependencies: &[SubTaskId]) -> Self {
        if dependencies.is_empty() { Self::Pending } else { Self::Blocked }
    }

    /// Returns true if the status may change to `next`. While a subtask is retried, its status stays
    /// `Executing`.
    pub fn may_become(self, next: Self) -> bool {
        use SubTaskStatus::{Blocked, Completed, Executing, Failed, Pending};
        matches!(
            (self, next),
            (Pending, Executing | Blocked) | (Blocked, Pending) | (Executing, Completed | Failed)
        )
    }
}

crate::values::named! { SubTaskStatus:
    Pending = "pending",
    Executing = "executing",
    Completed = "completed",
    Failed = "failed",
    Blocked = "blocked",
}

/// A change of a subtask's status that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("subtask {id} is {from} and cannot become {to}")]
#[non_exhaustive]
pub struct IllegalTransition {
    /// The id of the subtask.
    pub id: SubTaskId,
    /// The current status.
    pub from: SubTaskStatus,
    /// The requested status.
    pub to: SubTaskStatus,
}

/// A subtask as read from JSON, before its fields are checked.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SubTaskJson {
    id: SubTaskId,
    description: String,
    #[serde(default)]
    expected_output: Option<String>,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    tool_args: Option<Json>,
    #[serde(default)]
    dependencies: Vec<SubTaskId>,
    status: Option<SubTaskStatus>,
    #[serde(default)]
    result: Option<ToolResult>,
    #[serde(default)]
    critical: bool,
    #[serde(default)]
    rules: SubTaskRules,
}

impl TryFrom<SubTaskJson> for SubTask {
    type Error = String;

    fn try_from(json: SubTaskJson) -> Result<Self, String> {
        if json.tool_args.is_some() && json.tool_name.is_none() {
            return Err(format!("subtask {} has tool_args and no tool_name", json.id));
        }
        Ok(Self {
            status: json.status.unwrap_or_else(|| SubTaskStatus::initial(&json.dependencies)),
            id: json.id,
            description: json.description,
            expected_output: json.expected_output,
            tool_name: json.tool_name,
            tool_args: json.tool_args,
            dependencies: json.dependencies,
            result: json.result,
            critical: json.critical,
            rules: json.rules,
        })
    }
}
