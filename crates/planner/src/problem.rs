//! The problems that a plan can have, each with its place and a remedy.

use std::fmt;

use archon_types::{SubTaskId, format_money};

/// A problem of a plan.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlanProblem {
    /// The subtask, if the problem belongs to one.
    pub subtask: Option<SubTaskId>,
    /// The kind of the problem.
    pub kind: ProblemKind,
}

impl PlanProblem {
    /// Makes a problem of the whole plan.
    pub fn of_plan(kind: ProblemKind) -> Self {
        Self { subtask: None, kind }
    }

    /// Makes a problem of one subtask.
    pub fn of(subtask: &SubTaskId, kind: ProblemKind) -> Self {
        Self { subtask: Some(subtask.clone()), kind }
    }

    /// Returns true if the plan cannot be followed because of it.
    pub fn is_error(&self) -> bool {
        !matches!(
            self.kind,
            ProblemKind::OverDecomposed { .. }
                | ProblemKind::UnknownResource { .. }
                | ProblemKind::DependencyTwice { .. }
                | ProblemKind::Kept { .. }
        )
    }

    /// Returns the remedy in one line.
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
    #[error("this is {found}, not a plan")]
    NotAPlan { found: String },
    #[error("step {place} has no {field:?}")]
    MissingField { place: usize, field: &'static str },
    #[error("{field:?} of step {place} is {found}, not {expected}")]
    WrongType { place: usize, field: String, expected: &'static str, found: String },
    #[error("{field:?} of step {place} is not known")]
    UnknownField { place: usize, field: String, nearest: Option<String> },
    #[error("it has tool_args and no tool_name")]
    ArgumentsWithoutTool,
    #[error("the goal is empty")]
    EmptyGoal,
    #[error("the plan has no subtasks")]
    NoSubtasks,
    #[error("the plan has {found} subtasks; at most {max} are allowed")]
    TooMany { found: usize, max: usize },
    #[error("the plan has {found} subtasks, and most goals need no more than {typical}")]
    OverDecomposed { found: usize, typical: usize },
    #[error("the id {id:?} cannot be referred to")]
    BadId { id: String },
    #[error("the id is there {count} times")]
    DuplicateId { count: usize },
    #[error("it does not say what is to be done")]
    EmptyDescription,
    #[error("it is {status} before the plan began")]
    Begun { status: String },
    #[error("it depends on itself")]
    DependsOnItself,
    #[error("it depends on {dependency}, which the plan does not have")]
    UnknownDependency { dependency: SubTaskId, nearest: Option<String> },
    #[error("it names its dependency {dependency} twice")]
    DependencyTwice { dependency: SubTaskId },
    #[error("Cycle detected in dependency graph: {}", way(path))]
    Cycle { path: Vec<SubTaskId> },
    #[error("there is no tool {tool:?}")]
    UnknownTool { tool: String, nearest: Option<String>, way: Option<String> },
    #[error("the arguments for {tool} are {found}, not an object")]
    ArgumentsNotAnObject { tool: String, found: String },
    #[error("the arguments for {tool} do not fit at {at}: {problem}")]
    BadArguments { tool: String, at: String, problem: String },
    #[error("the schema of {tool} cannot be read: {problem}")]
    BadSchema { tool: String, problem: String },
    #[error("{reference} refers to the subtask itself")]
    RefersToItself { reference: String },
    #[error("{reference} refers to {head}, which may not be done yet")]
    NotUpstream { reference: String, head: String },
    #[error("{reference} refers to nothing that is known")]
    UnknownReference { reference: String, nearest: Option<String> },
    #[error("{reference} points into the values known at the start, which have no such part")]
    NoSuchPart { reference: String },
    #[error("the condition {condition:?} cannot be read: {problem}")]
    BadCondition { condition: String, problem: String },
    #[error("the name {name:?} stands for more than one thing")]
    NameTaken { name: String },
    #[error("it may be tried 0 times")]
    NoAttempts,
    #[error("it uses {resource:?}, for which there is no limit")]
    UnknownResource { resource: String },
    #[error("the subtasks will need about {needed} tokens, and there are {available}")]
    OverTokens { needed: u64, available: u64 },
    #[error("the subtasks will cost about {}, and {} is left", format_money(*needed), format_money(*available))]
    OverCost { needed: u64, available: u64 },
    #[error("the longest way through takes about {needed_ms} ms, and there are {available_ms}")]
    OverTime { needed_ms: u64, available_ms: u64 },
    #[error("the change begins {status} work again")]
    TouchesDone { status: String },
    #[error("the change touches it, and it does not depend on what failed")]
    OutOfReach,
    #[error("the change names it, and the plan does not have it")]
    NotInPlan,
    #[error("the new plan says something else of it, and it stays as it was")]
    Kept { why: &'static str },
    #[error("it may have been done already, and a person said no to doing it again")]
    SaidNo,
    #[error("the change changes nothing")]
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
            Self::EmptyGoal => "say what is to be reached".into(),
            Self::NoSubtasks => "plan at least one subtask".into(),
            Self::TooMany { max, .. } => format!("plan at most {max} subtasks, each a unit of work"),
            Self::OverDecomposed { .. } => "merge steps in a row that use the same tool".into(),
            Self::BadId { .. } => "use letters, digits, '_' and '-', at most 100".into(),
            Self::DuplicateId { .. } => "give each subtask an id of its own".into(),
            Self::EmptyDescription => "say in \"description\" what is to be done".into(),
            Self::Begun { .. } => "leave \"status\" and \"result\" out of a new plan".into(),
            Self::DependsOnItself => "take its own id out of its dependencies".into(),
            Self::UnknownDependency { nearest, .. } => {
                or_nearest(nearest, "add the subtask, or drop the dependency")
            }
            Self::DependencyTwice { .. } => "name it once".into(),
            Self::Cycle { path } => match path.as_slice() {
                [first, .., last, _] => {
                    format!("drop the dependency of {first} on {last}, or merge the steps")
                }
                _ => "drop one of the dependencies".into(),
            },
            Self::UnknownTool { way: Some(way), .. } => way.clone(),
            Self::UnknownTool { nearest, .. } => or_nearest(nearest, "name a tool that there is, or none"),
            Self::ArgumentsNotAnObject { .. } => "write the arguments as an object".into(),
            Self::BadArguments { tool, .. } => format!("write what the schema of {tool} asks for"),
            Self::BadSchema { .. } => "repair the tool".into(),
            Self::RefersToItself { .. } => "refer to a subtask that comes before".into(),
            Self::NotUpstream { head, .. } => format!("add {head} to the dependencies"),
            Self::UnknownReference { nearest, .. } => {
                or_nearest(nearest, "refer to a subtask that comes before, or write {{…}} for plain braces")
            }
            Self::NoSuchPart { .. } => "refer to a part that is there".into(),
            Self::BadCondition { .. } => "write a comparison such as {step} == 'yes'".into(),
            Self::NameTaken { .. } => "choose another save_as".into(),
            Self::NoAttempts => "allow at least one try".into(),
            Self::UnknownResource { .. } => "give the resource a number, or leave it out".into(),
            Self::OverTokens { .. } | Self::OverCost { .. } => "plan fewer subtasks, or allow more".into(),
            Self::OverTime { .. } => "let more run side by side, or allow more time".into(),
            Self::TouchesDone { .. } => "leave what is done or under way as it is".into(),
            Self::OutOfReach => "name it as a target, or leave it as it is".into(),
            Self::NotInPlan => "name subtasks that the plan has".into(),
            Self::Kept { why } => (*why).to_owned(),
            Self::SaidNo => "go another way, or leave it out".into(),
            Self::NoChange => "change what failed".into(),
        }
    }
}

/// Returns a problem with its remedy, in one line.
pub fn with_remedy(problem: &PlanProblem) -> String {
    format!("{problem} ({})", problem.remedy())
}

fn way(path: &[SubTaskId]) -> String {
    path.iter().map(SubTaskId::as_str).collect::<Vec<_>>().join(" → ")
}
