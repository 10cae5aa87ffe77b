//! The check of a plan before anything of it runs: all problems at once, each with what to do about it.

use std::collections::{HashMap, HashSet};

use archon_types::{Json, PlanSettings, SubTask, SubTaskId, SubTaskStatus, Task, ToolDefinition, nearest};

use crate::{
    PlanGraph, arguments,
    condition::Condition,
    problem::{PlanProblem, ProblemKind},
    references::{Piece, Reference, pieces, references, resolve_text},
    template::around,
};

/// What a plan is checked against.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckOptions {
    /// The tools that a subtask may name.
    pub tools: Vec<ToolDefinition>,
    /// How the plan will be followed.
    pub settings: PlanSettings,
    /// What there is to spend; without it nothing is estimated.
    pub budget: Option<PlanBudget>,
    /// How many subtasks there may be.
    pub size: PlanSize,
}

impl CheckOptions {
    /// A check with these tools, and defaults for the rest.
    pub fn new(tools: Vec<ToolDefinition>) -> Self {
        Self { tools, ..Self::default() }
    }
}

/// How many subtasks a plan may have.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PlanSize {
    /// More than this are refused. Default 200.
    pub max: usize,
    /// More than this are remarked upon. Default 20.
    pub typical: usize,
}

impl Default for PlanSize {
    fn default() -> Self {
        Self { max: 200, typical: 20 }
    }
}

/// What there is to spend on a plan, and what a subtask is expected to take of it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PlanBudget {
    /// Tokens in all.
    pub tokens: u64,
    /// Money in millionths, if it has a limit.
    pub cost: Option<u64>,
    /// Time in milliseconds.
    pub duration_ms: u64,
    /// Tokens of a subtask that a model works on. Default 1,000: less is hardly possible.
    pub tokens_each: u64,
    /// Money of such a subtask, in millionths. Default 0.
    pub cost_each: u64,
}

impl PlanBudget {
    /// A budget of tokens and time.
    pub fn new(tokens: u64, duration_ms: u64) -> Self {
        Self { tokens, cost: None, duration_ms, tokens_each: 1_000, cost_each: 0 }
    }
}

/// Everything that is wrong with a plan that is not begun. It can be followed if no problem is an error.
pub fn check(task: &Task, options: &CheckOptions) -> Vec<PlanProblem> {
    let mut problems = Vec::new();
    for subtask in &task.subtasks {
        if subtask.status() != SubTaskStatus::initial(subtask.dependencies()) || subtask.result().is_some() {
            let status = match subtask.result() {
                Some(_) => "done".to_owned(),
                None => subtask.status().to_string(),
            };
            problems.push(PlanProblem::of(&subtask.id, ProblemKind::Begun { status }));
        }
    }
    problems.extend(check_running(task, options));
    problems
}

/// As [`check`], for a plan that is being followed: what is done may be done.
pub fn check_running(task: &Task, options: &CheckOptions) -> Vec<PlanProblem> {
    let mut problems: Vec<_> = sizes(task, options).into_iter().map(PlanProblem::of_plan).collect();
    if task.subtasks.len() > options.size.max {
        // What is refused for its size is not read to its end.
        return problems;
    }
    let graph = PlanGraph::new(&task.subtasks);
    let mut check = Check { task, options, graph, names: HashMap::new(), problems: Vec::new() };
    check.ids();
    for subtask in task.subtasks.iter().filter(|s| s.status() != SubTaskStatus::Completed) {
        check.subtask(subtask);
    }
    let cycles = check.graph.cycles();
    check.problems.extend(cycles.into_iter().map(|path| PlanProblem::of_plan(ProblemKind::Cycle { path })));
    problems.extend(check.problems);
    problems.extend(budget(task, options).into_iter().map(PlanProblem::of_plan));
    problems
}

fn sizes(task: &Task, options: &CheckOptions) -> Vec<ProblemKind> {
    let (found, size) = (task.subtasks.len(), options.size);
    let mut problems = Vec::new();
    if task.goal.trim().is_empty() {
        problems.push(ProblemKind::EmptyGoal);
    }
    if found == 0 {
        problems.push(ProblemKind::NoSubtasks);
    } else if found > size.max {
        problems.push(ProblemKind::TooMany { found, max: size.max });
    } else if found > size.typical {
        problems.push(ProblemKind::OverDecomposed { found, typical: size.typical });
    }
    problems
}

fn budget(task: &Task, options: &CheckOptions) -> Vec<ProblemKind> {
    let Some(budget) = options.budget else { return Vec::new() };
    // What failed is not begun again as it stands.
    let open = |s: &&SubTask| !matches!(s.status(), SubTaskStatus::Completed | SubTaskStatus::Failed);
    let worked_on = task.subtasks.iter().filter(open).filter(|s| s.tool_args().is_none()).count() as u64;
    let mut problems = Vec::new();
    let needed = worked_on.saturating_mul(budget.tokens_each);
    if needed > budget.tokens {
        problems.push(ProblemKind::OverTokens { needed, available: budget.tokens });
    }
    let needed = worked_on.saturating_mul(budget.cost_each);
    if let Some(available) = budget.cost.filter(|cost| needed > *cost) {
        problems.push(ProblemKind::OverCost { needed, available });
    }
    let length = |id: &SubTaskId| {
        task.get_subtask(id).filter(open).and_then(|s| s.rules.expected_ms).unwrap_or_default()
    };
    let work: u64 = task.subtasks.iter().map(|s| length(&s.id)).fold(0, u64::saturating_add);
    let (_, longest) = PlanGraph::new(&task.subtasks).critical_path(length);
    let needed_ms = longest.max(work / u64::from(options.settings.max_concurrent.max(1)));
    if needed_ms > budget.duration_ms {
        problems.push(ProblemKind::OverTime { needed_ms, available_ms: budget.duration_ms });
    }
    problems
}

struct Check<'a> {
    task: &'a Task,
    options: &'a CheckOptions,
    graph: PlanGraph,
    /// Second names of results, and whose they are.
    names: HashMap<&'a str, &'a SubTaskId>,
    problems: Vec<PlanProblem>,
}

impl<'a> Check<'a> {
    fn ids(&mut self) {
        let mut counts: HashMap<&SubTaskId, usize> = HashMap::new();
        for subtask in &self.task.subtasks {
            let count = counts.entry(&subtask.id).or_default();
            *count += 1;
            if *count == 2 {
                let count = self.task.subtasks.iter().filter(|s| s.id == subtask.id).count();
                self.add(subtask, ProblemKind::DuplicateId { count });
            }
            if !is_id(subtask.id.as_str()) {
                self.add(subtask, ProblemKind::BadId { id: subtask.id.to_string() });
            }
        }
        for subtask in &self.task.subtasks {
            let Some(name) = subtask.rules.save_as.as_deref() else { continue };
            let is_taken = counts.contains_key(&SubTaskId::new(name)) && name != subtask.id.as_str();
            // What is done is known under its own name.
            let is_done = matches!(subtask.status(), SubTaskStatus::Completed | SubTaskStatus::Failed);
            let is_known = !is_done && self.task.context.contains_key(name);
            let is_wrong = is_taken || is_known || !is_id(name);
            let is_second = || self.names.contains_key(name) && !self.are_alternatives(name);
            if is_wrong || is_second() {
                self.add(subtask, ProblemKind::NameTaken { name: name.to_owned() });
            } else {
                self.names.insert(name, &subtask.id);
            }
        }
    }

    /// Steps of which conditions choose one may share a name, with one that they stand in for.
    fn are_alternatives(&self, name: &str) -> bool {
        let named = self.task.subtasks.iter().filter(|s| s.rules.save_as.as_deref() == Some(name));
        named.filter(|s| s.rules.when.is_none()).count() <= 1
    }

    fn subtask(&mut self, subtask: &'a SubTask) {
        if subtask.description.trim().is_empty() {
            self.add(subtask, ProblemKind::EmptyDescription);
        }
        if subtask.rules.max_attempts == Some(0) {
            self.add(subtask, ProblemKind::NoAttempts);
        }
        for resource in &subtask.rules.resources {
            if !self.options.settings.resources.contains_key(resource) {
                self.add(subtask, ProblemKind::UnknownResource { resource: resource.clone() });
            }
        }
        self.dependencies(subtask);
        self.tool(subtask, subtask);
        if let Some(each) = &subtask.rules.each {
            self.steps(subtask, &each.steps);
        }
        self.references(subtask);
    }

    /// The steps of a loop, of which the loop is told.
    fn steps(&mut self, whole: &'a SubTask, steps: &'a [SubTask]) {
        for step in steps {
            self.tool(whole, step);
            if let Some(each) = &step.rules.each {
                self.steps(whole, &each.steps);
            }
        }
    }

    fn dependencies(&mut self, subtask: &'a SubTask) {
        let mut seen = HashSet::new();
        for dependency in subtask.dependencies() {
            if *dependency == subtask.id {
                self.add(subtask, ProblemKind::DependsOnItself);
            } else if self.task.get_subtask(dependency).is_none() {
                let nearest = self.nearest_id(dependency.as_str(), subtask);
                self.add(subtask, ProblemKind::UnknownDependency { dependency: dependency.clone(), nearest });
            }
            if !seen.insert(dependency) {
                self.add(subtask, ProblemKind::DependencyTwice { dependency: dependency.clone() });
            }
        }
    }

    /// The tools of a subtask, of which `whole` is told.
    fn tool(&mut self, whole: &'a SubTask, subtask: &'a SubTask) {
        let named =
            subtask.tool_name().into_iter().chain(subtask.rules.fallback_tools.iter().map(String::as_str));
        for name in named {
            let Some(tool) = self.options.tools.iter().find(|tool| tool.name == name) else {
                let all = self.options.tools.iter().map(|tool| tool.name.as_str());
                let nearest = nearest(name, all).map(str::to_owned);
                self.add(whole, ProblemKind::UnknownTool { tool: name.to_owned(), nearest });
                continue;
            };
            if let Some(arguments) = subtask.tool_args() {
                // What the context brings is not missing.
                let arguments = with_context(tool, arguments, &self.task.context);
                for problem in arguments::problems(tool, &arguments) {
                    self.add(whole, problem);
                }
            }
        }
    }

    fn references(&mut self, subtask: &'a SubTask) {
        let mut all = subtask.tool_args().map(references).unwrap_or_default();
        all.extend(subtask.rules.each.as_deref().map(around).unwrap_or_default());
        if let Some(condition) = &subtask.rules.when {
            match Condition::parse(condition) {
                Ok(condition) => all.extend(condition.references()),
                Err(problem) => {
                    self.add(subtask, ProblemKind::BadCondition { condition: condition.clone(), problem });
                }
            }
        }
        let upstream: HashSet<SubTaskId> = self.graph.upstream(&subtask.id).into_iter().cloned().collect();
        let mut seen = HashSet::new();
        for reference in all {
            if seen.insert(reference.to_string()) {
                self.reference(subtask, &reference, &upstream);
            }
        }
    }

    fn reference(&mut self, subtask: &'a SubTask, reference: &Reference, upstream: &HashSet<SubTaskId>) {
        let head = reference.head.as_str();
        let whose =
            self.names.get(head).copied().or_else(|| self.task.get_subtask(&head.into()).map(|s| &s.id));
        let text = reference.to_string();
        let problem = match whose {
            Some(id) if *id == subtask.id => Some(ProblemKind::RefersToItself { reference: text }),
            Some(id) if upstream.contains(id) => None,
            // Of several steps with one name any may be the one that is done.
            Some(_) if self.names.contains_key(head) && self.any_upstream(head, upstream) => None,
            Some(id) => Some(ProblemKind::NotUpstream { reference: text, head: id.to_string() }),
            None if self.task.context.contains_key(head) => {
                let known = |name: &str| self.task.context.get(name).cloned();
                resolve_text(&text, &known).is_err().then_some(ProblemKind::NoSuchPart { reference: text })
            }
            None if reference.may_be_text() => None,
            None => {
                let nearest = self.nearest_id(head, subtask);
                Some(ProblemKind::UnknownReference { reference: text, nearest })
            }
        };
        if let Some(problem) = problem {
            self.add(subtask, problem);
        }
    }

    fn any_upstream(&self, name: &str, upstream: &HashSet<SubTaskId>) -> bool {
        let mut named = self.task.subtasks.iter().filter(|s| s.rules.save_as.as_deref() == Some(name));
        named.any(|s| upstream.contains(&s.id))
    }

    fn nearest_id(&self, name: &str, except: &SubTask) -> Option<String> {
        let ids = self.task.subtasks.iter().filter(|s| s.id != except.id).map(|s| s.id.as_str());
        nearest(name, ids.chain(self.task.context.keys().map(String::as_str))).map(str::to_owned)
    }

    fn add(&mut self, subtask: &SubTask, kind: ProblemKind) {
        self.problems.push(PlanProblem::of(&subtask.id, kind));
    }
}

fn with_context(tool: &ToolDefinition, arguments: &Json, context: &serde_json::Map<String, Json>) -> Json {
    let mut arguments = arguments.clone();
    let properties = tool.parameters.get("properties").and_then(Json::as_object);
    if let (Some(properties), Json::Object(entries)) = (properties, &mut arguments) {
        for name in properties.keys().filter(|name| context.contains_key(*name)) {
            // A reference may be any value.
            entries.entry(name.clone()).or_insert_with(|| Json::String(format!("{{{name}}}")));
        }
    }
    arguments
}

/// Whether references can name it.
fn is_id(id: &str) -> bool {
    let whole = match pieces(&format!("{{{id}}}")).as_slice() {
        [Piece::Reference(reference)] => reference.path.is_empty(),
        _ => false,
    };
    whole && !id.contains(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
}
