//! The problems that a plan can have, each with its subtask and a remedy.

use std::fmt;

use archon_types::{SubTaskId, format_money};

use crate::texts::join;

/// A problem of a plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanProblem {
    /// Id of the subtask; `None` for a problem of the whole plan.
    pub subtask: Option<SubTaskId>,
    /// The kind of the problem.
    pub kind: ProblemKind,
}

impl PlanProblem {
    /// Creates a problem of the whole plan.
    pub fn of_plan(kind: ProblemKind) -> Self {
        Self { subtask: None, kind }
    }

    /// Creates a problem of one subtask.
    pub fn of(subtask: &SubTaskId, kind: ProblemKind) -> Self {
        Self { subtask: Some(subtask.clone()), kind }
    }

    /// Returns true if the plan cannot be followed because of the problem; false for a warning.
    pub fn is_error(&self) -> bool {
        !matches!(
            self.kind,
            ProblemKind::OverDecomposed { .. }
                | ProblemKind::UnknownResource { .. }
                | ProblemKind::DependencyTwice { .. }
                | ProblemKind::MustStay { .. }
        )
    }

    /// Returns the remedy, in one line.
    pub fn remedy(&self) -> String {
        self.kind.remedy()
    }
}

impl fmt::Display for PlanProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subtask {
            Some(id) => write!(f, "subtask {id}: {}", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

/// The kinds of problems of a plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum ProblemKind {
    #[error("the text is not JSON: {problem}")]
    NotJson { problem: String },
    #[error("there is more text after the plan: {text:?}")]
    TrailingText { text: String },
    #[error("the JSON is {found}, not a plan")]
    NotAPlan { found: String },
    #[error("step {place} has no field {field:?}")]
    MissingField { place: usize, field: &'static str },
    #[error("{field:?} of step {place} is {found}, not {expected}")]
    WrongType { place: usize, field: String, expected: &'static str, found: String },
    #[error("step {place} has the unknown field {field:?}")]
    UnknownField { place: usize, field: String, nearest: Option<String> },
    #[error("the subtask has tool_args but no tool_name")]
    ArgumentsWithoutTool,
    #[error("the goal is empty")]
    EmptyGoal,
    #[error("the plan has no subtasks")]
    NoSubtasks,
    #[error("the plan has {found} subtasks; at most {max} are allowed")]
    TooMany { found: usize, max: usize },
    #[error("the plan has {found} subtasks, and most goals need no more than {typical}")]
    OverDecomposed { found: usize, typical: usize },
    #[error("the id {id:?} is not valid")]
    BadId { id: String },
    #[error("{count} subtasks have this id")]
    DuplicateId { count: usize },
    #[error("the description is empty")]
    EmptyDescription,
    #[error("the subtask has the status {status} before the plan starts")]
    Begun { status: String },
    #[error("the subtask depends on itself")]
    DependsOnItself,
    #[error("the subtask depends on {dependency}, which the plan does not have")]
    UnknownDependency { dependency: SubTaskId, nearest: Option<String> },
    #[error("the subtask lists the dependency {dependency} more than once")]
    DependencyTwice { dependency: SubTaskId },
    #[error("Cycle detected in dependency graph: {}", join(path, " → "))]
    Cycle { path: Vec<SubTaskId> },
    #[error("there is no tool {tool:?}")]
    UnknownTool { tool: String, nearest: Option<String>, way: Option<String> },
    #[error("the arguments for {tool} are {found}, not an object")]
    ArgumentsNotAnObject { tool: String, found: String },
    #[error("the arguments for {tool} are invalid at {at}: {problem}")]
    BadArguments { tool: String, at: String, problem: String },
    #[error("the JSON Schema of the tool {tool} is invalid: {problem}")]
    BadSchema { tool: String, problem: String },
    #[error("{reference} refers to the subtask itself")]
    RefersToItself { reference: String },
    #[error("{reference} refers to {head}, on which the subtask does not depend")]
    NotUpstream { reference: String, head: String },
    #[error("{reference} refers to an unknown name")]
    UnknownReference { reference: String, nearest: Option<String> },
    #[error("{reference} refers to a missing part of the initial value {name} (found: {found})")]
    NoSuchPart { reference: String, name: String, found: String },
    #[error("the condition {condition:?} is not valid: {problem}")]
    BadCondition { condition: String, problem: String },
    #[error("save_as {name:?} is not a valid name")]
    BadName { name: String },
    #[error("save_as {name:?} is already the name of another subtask, result or known value")]
    NameTaken { name: String },
    #[error("max_attempts is 0")]
    NoAttempts,
    #[error("the subtask uses the resource {resource:?}, for which no limit is set")]
    UnknownResource { resource: String },
    #[error("the plan will need about {needed} tokens, but only {available} are available")]
    OverTokens { needed: u64, available: u64 },
    #[error("the plan will cost about {}, but only {} is available", format_money(*needed), format_money(*available))]
    OverCost { needed: u64, available: u64 },
    #[error("the plan will take about {needed_ms} ms, but only {available_ms} ms are available")]
    OverTime { needed_ms: u64, available_ms: u64 },
    #[error("the change replaces or removes this subtask, which can no longer change (status {status})")]
    TouchesDone { status: String },
    #[error(
        "the change replaces or removes this subtask, which is neither a target of the replan nor depends on one"
    )]
    OutOfReach,
    #[error("the change replaces or removes this subtask, which the plan does not have")]
    NotInPlan,
    #[error("the new plan changes a subtask that must stay as it is")]
    MustStay { why: &'static str },
    #[error(
        "the subtask repeats subtask {earlier}, which may already be done, and which a person refused to repeat"
    )]
    RepeatRefused { earlier: SubTaskId },
    #[error("the change is empty")]
    NoChange,
}

impl ProblemKind {
    fn remedy(&self) -> String {
        let or_nearest = |nearest: &Option<String>, otherwise: &str| match nearest {
            Some(name) => format!("write {name:?} if that is meant; {otherwise}"),
            None => otherwise.to_owned(),
        };
        match self {
            Self::NotJson { .. } => "answer with JSON: a list of subtasks".into(),
            Self::TrailingText { .. } => "end with the last bracket of the plan".into(),
            Self::NotAPlan { .. } => "answer with a list of subtasks, or an object with \"subtasks\"".into(),
            Self::MissingField { field, .. } => format!("add {field:?}"),
            Self::WrongType { expected, .. } => format!("write {expected}"),
            Self::UnknownField { nearest, .. } => or_nearest(nearest, "leave it out"),
            Self::ArgumentsWithoutTool => "name the tool in tool_name, or leave tool_args out".into(),
            Self::EmptyGoal => "state the goal".into(),
            Self::NoSubtasks => "plan at least one subtask".into(),
            Self::TooMany { max, .. } => format!("plan at most {max} subtasks, each a unit of work"),
            Self::OverDecomposed { .. } => "merge steps in a row that use the same tool".into(),
            Self::BadId { .. } | Self::BadName { .. } => {
                "use at most 100 letters, digits, '_' and '-'".into()
            }
            Self::DuplicateId { .. } => "give each subtask an id of its own".into(),
            Self::EmptyDescription => "describe the work in \"description\"".into(),
            Self::Begun { .. } => "leave \"status\" and \"result\" out of a new plan".into(),
            Self::DependsOnItself => "remove the subtask's own id from its dependencies".into(),
            Self::UnknownDependency { nearest, .. } => {
                or_nearest(nearest, "add the subtask, or remove the dependency")
            }
            Self::DependencyTwice { .. } => "list the dependency once".into(),
            Self::Cycle { path } => cycle_remedy(path),
            Self::UnknownTool { way: Some(way), .. } => way.clone(),
            Self::UnknownTool { nearest, .. } => or_nearest(nearest, "name an existing tool, or none"),
            Self::ArgumentsNotAnObject { .. } => "write the arguments as an object".into(),
            Self::BadArguments { tool, .. } => format!("write arguments that fit the schema of {tool}"),
            Self::BadSchema { .. } => "correct the schema of the tool".into(),
            Self::RefersToItself { .. } => "refer to a subtask on which this one depends".into(),
            Self::NotUpstream { head, .. } => format!("add {head} to the dependencies"),
            Self::UnknownReference { nearest, .. } => {
                or_nearest(nearest, "refer to a subtask that comes before, or write {{…}} for plain braces")
            }
            Self::NoSuchPart { .. } => "refer to a part that the value has".into(),
            Self::BadCondition { .. } => "write a comparison such as {step} == 'yes'".into(),
            Self::NameTaken { .. } => "choose another save_as".into(),
            Self::NoAttempts => "set max_attempts to 1 or more".into(),
            Self::UnknownResource { .. } => "set a limit for the resource, or leave the resource out".into(),
            Self::OverTokens { .. } | Self::OverCost { .. } => {
                "plan fewer subtasks, or raise the budget".into()
            }
            Self::OverTime { .. } => "allow more concurrent subtasks, or more time".into(),
            Self::TouchesDone { .. } => {
                "leave subtasks unchanged that are done, have started or wait for an answer".into()
            }
            Self::OutOfReach => "name the subtask as a target, or leave it unchanged".into(),
            Self::NotInPlan => "name subtasks that the plan has".into(),
            Self::MustStay { why } => (*why).to_owned(),
            Self::RepeatRefused { .. } => "replace the subtask by other work, or leave it out".into(),
            Self::NoChange => "replace or remove the failed subtasks".into(),
        }
    }
}

fn cycle_remedy(path: &[SubTaskId]) -> String {
    match path {
        [first, .., last, _] => format!("remove the dependency of {first} on {last}, or merge the steps"),
        _ => "remove one of the dependencies".into(),
    }
}

/// Returns a problem with its remedy, in one line.
pub fn with_remedy(problem: &PlanProblem) -> String {
    format!("{problem} ({})", problem.remedy())
}

/// Returns problems with their remedies, in one line.
pub(crate) fn all_with_remedies<'a>(problems: impl IntoIterator<Item = &'a PlanProblem>) -> String {
    problems.into_iter().map(with_remedy).collect::<Vec<_>>().join("; ")
}
