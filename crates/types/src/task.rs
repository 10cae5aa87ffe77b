//! Tasks and subtasks: a goal, the steps towards it, and what each step may become.
//!
//! Both are values: a change returns a new one and leaves the old one as it was, so that steps
//! which run side by side cannot disturb each other.

use std::{collections::HashSet, fmt};

use serde::{Deserialize, Serialize};

use crate::{Json, PlanError, SubTaskId, TaskId, ToolResult};

/// A goal that is worked on, with its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Task {
    /// Unique everywhere, for instance `task_` and a random part.
    pub id: TaskId,
    /// What the person asked, word for word.
    pub original_query: String,
    /// What is to be reached, as the planner understood it.
    pub goal: String,
    /// The steps.
    #[serde(default)]
    pub subtasks: Vec<SubTask>,
    /// What the steps share: results by subtask id, and whatever was known at the start.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, Json>"))]
    pub context: serde_json::Map<String, Json>,
}

impl Task {
    /// A task without steps, whose goal is the query itself.
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

    /// The same task with another goal.
    pub fn with_goal(mut self, goal: impl Into<String>) -> Self {
        self.goal = goal.into();
        self
    }

    /// The same task with other steps.
    pub fn with_subtasks(mut self, subtasks: Vec<SubTask>) -> Self {
        self.subtasks = subtasks;
        self
    }

    /// The step with this id.
    pub fn get_subtask(&self, id: &SubTaskId) -> Option<&SubTask> {
        self.subtasks.iter().find(|s| s.id == *id)
    }

    /// A task in which `subtask` stands in the place of the one with the same id; `None` if there
    /// is no such step.
    #[must_use = "the task itself is unchanged"]
    pub fn update_subtask(&self, subtask: SubTask) -> Option<Self> {
        let place = self.subtasks.iter().position(|s| s.id == subtask.id)?;
        let mut task = self.clone();
        task.subtasks[place] = subtask;
        Some(task)
    }

    /// The ids of all completed steps.
    pub fn completed_ids(&self) -> HashSet<SubTaskId> {
        let completed = self.subtasks.iter().filter(|s| s.status == SubTaskStatus::Completed);
        completed.map(|s| s.id.clone()).collect()
    }

    /// The steps that may start now, in the order of the plan.
    pub fn ready_subtasks(&self) -> Vec<&SubTask> {
        let completed = self.completed_ids();
        self.subtasks.iter().filter(|s| s.is_ready(&completed)).collect()
    }

    /// The task after a new plan: completed steps stay, `subtasks` take the place of all others.
    ///
    /// A plan may name a completed step again, with the same description; it is not done twice.
    ///
    /// # Errors
    /// [`PlanError::IdTaken`] when a new step has the id of a completed one and means something else,
    /// [`PlanError::Invalid`] when two new steps share an id.
    pub fn replanned(&self, subtasks: Vec<SubTask>) -> Result<Self, PlanError> {
        let mut task = self.clone();
        task.subtasks.retain(|s| s.status == SubTaskStatus::Completed);
        for subtask in subtasks {
            match task.get_subtask(&subtask.id) {
                None => task.subtasks.push(subtask),
                Some(other) if other.status != SubTaskStatus::Completed => {
                    return Err(PlanError::Invalid { id: subtask.id, problem: "is there twice".to_owned() });
                }
                Some(done) if done.description == subtask.description => {}
                Some(_) => return Err(PlanError::IdTaken { id: subtask.id }),
            }
        }
        Ok(task)
    }
}

/// One step of a [`Task`].
///
/// Status, result, dependencies and tool have rules, so they are read through methods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "SubTaskJson")]
#[non_exhaustive]
pub struct SubTask {
    /// Unique within the task.
    pub id: SubTaskId,
    /// What is to be done, in plain words.
    pub description: String,
    /// What a good result looks like.
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
    /// Its failure makes a new plan necessary at once.
    pub critical: bool,
    /// When and how it is done, where that is not as usual.
    #[serde(skip_serializing_if = "SubTaskRules::is_default")]
    pub rules: SubTaskRules,
}

/// When and how a [`SubTask`] is done, where that is not as usual.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SubTaskRules {
    /// A second name for its result, for those that refer to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_as: Option<String>,
    /// A condition such as `{classify} == 'billing'`; where it does not hold, the step counts as done, with
    /// null for a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What a person is asked before it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// What a person is asked once it is done, who sees its result. Those that depend on it wait for a yes; a no ends the
    /// run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// The role that is to do it, where a team follows the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Tries before it has failed; the plan's setting unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Tools that are tried, in this order and with the same arguments, when its own has failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback_tools: Vec<String>,
    /// What follows when all that did not help.
    #[serde(skip_serializing_if = "OnFailure::is_default")]
    pub on_failure: OnFailure,
    /// What it uses that others cannot use at the same time without limit, by the names of the plan's settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// How long it is expected to take, milliseconds; decides who goes first, nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_ms: Option<u64>,
    /// Makes it a loop: what is done for each item of a list that is known when it may begin. Its own result is the list of
    /// the items' results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<Box<ForEach>>,
}

/// What a step that is a loop does for each item of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ForEach {
    /// A list, or a reference to one such as `{find}`.
    pub list: Json,
    /// The name of the item in what the steps refer to.
    pub item: String,
    /// The steps of one item. Those without dependencies begin first.
    pub steps: Vec<SubTask>,
    /// Of these the first that has a result has the item's.
    pub results: Vec<SubTaskId>,
    /// A list with more items than this is refused.
    pub max_items: u32,
}

impl ForEach {
    /// A loop of at most 50 items, with the last of these steps as its result.
    pub fn new(list: Json, item: impl Into<String>, steps: Vec<SubTask>) -> Self {
        let results = steps.last().map(|step| step.id.clone()).into_iter().collect();
        Self { list, item: item.into(), steps, results, max_items: 50 }
    }
}

impl SubTaskRules {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What follows when a step has failed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnFailure {
    /// Another plan, as the policy says; without one, what depends on the step is not done.
    #[default]
    Replan,
    /// The others go on without it: its result is null.
    Skip,
    /// What depends on it is not done, and there is no other plan because of it.
    Stop,
    /// A person decides: once more, on without it, or the end of what depends on it.
    Ask,
}

impl OnFailure {
    /// Whether others may go on without a step that failed.
    pub fn may_be_left_out(self) -> bool {
        matches!(self, Self::Skip | Self::Ask)
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl SubTask {
    /// A step that depends on nothing and leaves the choice of tools to whoever does it.
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

    /// The same step with other rules.
    pub fn with_rules(mut self, rules: SubTaskRules) -> Self {
        self.rules = rules;
        self
    }

    /// The same step, to be done with this tool; arguments may be left to whoever does it.
    pub fn with_tool(mut self, name: impl Into<String>, arguments: Option<Json>) -> Self {
        self.tool_name = Some(name.into());
        self.tool_args = arguments;
        self
    }

    /// The same step, not begun, after these others: blocked if there are any, pending if none.
    pub fn after(mut self, dependencies: impl IntoIterator<Item = impl Into<SubTaskId>>) -> Self {
        self.dependencies = dependencies.into_iter().map(Into::into).collect();
        self.status = SubTaskStatus::initial(&self.dependencies);
        self
    }

    /// The tool that does the step, as the plan names it.
    pub fn tool_name(&self) -> Option<&str> {
        self.tool_name.as_deref()
    }

    /// The tool's arguments, an object; never there without a tool.
    pub fn tool_args(&self) -> Option<&Json> {
        self.tool_args.as_ref()
    }

    /// The steps that must be completed first.
    pub fn dependencies(&self) -> &[SubTaskId] {
        &self.dependencies
    }

    /// How far it is.
    pub fn status(&self) -> SubTaskStatus {
        self.status
    }

    /// What came of it, once something did.
    pub fn result(&self) -> Option<&ToolResult> {
        self.result.as_ref()
    }

    /// The step as it was planned, whatever became of it.
    pub fn as_planned(&self) -> Self {
        Self { status: SubTaskStatus::initial(&self.dependencies), result: None, ..self.clone() }
    }

    /// Whether it may start: it waits, and everything that it depends on is among `completed`.
    pub fn is_ready(&self, completed: &HashSet<SubTaskId>) -> bool {
        matches!(self.status, SubTaskStatus::Pending | SubTaskStatus::Blocked)
            && self.dependencies.iter().all(|d| completed.contains(d))
    }

    /// The step in another status; this one stays as it is.
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

    /// The step with its result: completed on success, failed otherwise; this one stays as it is.
    ///
    /// # Errors
    /// [`IllegalTransition`] unless the step is executing.
    pub fn with_result(&self, result: ToolResult) -> Result<Self, IllegalTransition> {
        let status = if result.is_error() { SubTaskStatus::Failed } else { SubTaskStatus::Completed };
        Ok(Self { result: Some(result), ..self.with_status(status)? })
    }
}

/// How far a [`SubTask`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SubTaskStatus {
    /// It can be started.
    #[default]
    Pending,
    /// It is being done.
    Executing,
    /// It is done.
    Completed,
    /// It was tried and given up.
    Failed,
    /// It waits for other steps.
    Blocked,
}

impl SubTaskStatus {
    /// The status of a step that was just planned.
    pub fn initial(dependencies: &[SubTaskId]) -> Self {
        if dependencies.is_empty() { Self::Pending } else { Self::Blocked }
    }

    /// Whether a step may go from here to `next`. A retry happens while the step is executing.
    pub fn may_become(self, next: Self) -> bool {
        use SubTaskStatus::{Blocked, Completed, Executing, Failed, Pending};
        matches!(
            (self, next),
            (Pending, Executing | Blocked) | (Blocked, Pending) | (Executing, Completed | Failed)
        )
    }
}

impl fmt::Display for SubTaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Executing => "executing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        })
    }
}

/// A step was to go where it cannot go from where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("subtask {id} is {from} and cannot become {to}")]
#[non_exhaustive]
pub struct IllegalTransition {
    /// The step.
    pub id: SubTaskId,
    /// Its status.
    pub from: SubTaskStatus,
    /// The status that it was to have.
    pub to: SubTaskStatus,
}

/// A subtask as text brings it, before its rules are checked.
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
