//! Checks a plan before it runs: reports all problems at once, each with a remedy.

use std::collections::{BTreeMap, HashMap, HashSet};

use archon_types::{Json, PlanSettings, SubTask, SubTaskId, SubTaskStatus, Task, ToolDefinition, nearest};

use crate::{
    PlanGraph, arguments,
    condition::Condition,
    problem::{PlanProblem, ProblemKind},
    references::{Reference, Unresolved, is_name, references, resolve_text},
    template::around,
};

/// Options of the check of a plan.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckOptions {
    /// The tools that a subtask may name.
    pub tools: Vec<ToolDefinition>,
    /// Known tools that are not available. The key is the name; the value tells how to get the tool, and is the remedy
    /// of the problem if a plan names this tool. Default: none.
    pub missing_tools: BTreeMap<String, String>,
    /// The settings with which the plan will be followed. The check uses the limit of concurrent subtasks and the names
    /// of the resources.
    pub settings: PlanSettings,
    /// The available budget. If the estimated spending of the plan is higher, the check reports a problem. Default:
    /// none, so nothing is estimated.
    pub budget: Option<PlanBudget>,
    /// Limits of the number of subtasks.
    pub size: PlanSize,
}

impl CheckOptions {
    /// Creates options with these tools, and defaults for the rest.
    pub fn new(tools: Vec<ToolDefinition>) -> Self {
        Self { tools, ..Self::default() }
    }
}

/// Limits of the number of subtasks of a plan.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PlanSize {
    /// Maximum number of subtasks; larger plans are refused. Default 200.
    pub max: usize,
    /// Number of subtasks above which a plan gets a warning. Default 20.
    pub typical: usize,
}

impl Default for PlanSize {
    fn default() -> Self {
        Self { max: 200, typical: 20 }
    }
}

/// The budget of a plan, and the expected spending of a subtask.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PlanBudget {
    /// Available tokens.
    pub tokens: u64,
    /// Available cost in millionths of a currency unit, if the cost is limited.
    pub cost: Option<u64>,
    /// Available time in ms.
    pub duration_ms: u64,
    /// Expected tokens of a subtask that an agent executes. Default 1,000, which is about the least
    /// possible.
    pub tokens_each: u64,
    /// Expected cost of such a subtask, in millionths of a currency unit. Default 0.
    pub cost_each: u64,
}

impl PlanBudget {
    /// Creates a budget of tokens and time in ms, without a cost limit.
    pub fn new(tokens: u64, duration_ms: u64) -> Self {
        Self { tokens, cost: None, duration_ms, tokens_each: 1_000, cost_each: 0 }
    }
}

/// Returns all problems of a plan that has not started. The plan can be followed if none of the problems
/// is an error.
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

/// Checks a plan that is being followed, like [`check`]. Subtasks may have started; completed subtasks are
/// not checked again.
pub fn check_running(task: &Task, options: &CheckOptions) -> Vec<PlanProblem> {
    let mut problems: Vec<_> = sizes(task, options).into_iter().map(PlanProblem::of_plan).collect();
    if task.subtasks.len() > options.size.max {
        // A plan that is refused for its size is not checked further.
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
    // A failed subtask is not executed again unchanged.
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
    /// The `save_as` names of results, with their subtasks.
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
            if !is_name(subtask.id.as_str()) {
                self.add(subtask, ProblemKind::BadId { id: subtask.id.to_string() });
            }
        }
        for subtask in &self.task.subtasks {
            let Some(name) = subtask.rules.save_as.as_deref() else { continue };
            let is_taken = counts.contains_key(&SubTaskId::new(name)) && name != subtask.id.as_str();
            // A finished subtask's value is in the context under its `save_as` name.
            let is_done = matches!(subtask.status(), SubTaskStatus::Completed | SubTaskStatus::Failed);
            let is_known = !is_done && self.task.context.contains_key(name);
            let is_second = || self.names.contains_key(name) && !self.are_alternatives(name);
            if !is_name(name) {
                self.add(subtask, ProblemKind::BadName { name: name.to_owned() });
            } else if is_taken || is_known || is_second() {
                self.add(subtask, ProblemKind::NameTaken { name: name.to_owned() });
            } else {
                self.names.insert(name, &subtask.id);
            }
        }
    }

    /// Returns true if at most one of the subtasks with this `save_as` name is unconditional.
    /// Alternatives that conditions choose may share a name.
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

    /// Checks the steps of a loop. Problems are reported for the loop.
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

    /// Checks the tools of a subtask. Problems are reported for `whole`: the same subtask, or the loop that
    /// has it as a step.
    fn tool(&mut self, whole: &'a SubTask, subtask: &'a SubTask) {
        let named =
            subtask.tool_name().into_iter().chain(subtask.rules.fallback_tools.iter().map(String::as_str));
        for name in named {
            let Some(tool) = self.options.tools.iter().find(|tool| tool.name == name) else {
                let all = self.options.tools.iter().map(|tool| tool.name.as_str());
                let nearest = nearest(name, all).map(str::to_owned);
                let way = self.options.missing_tools.get(name).cloned();
                self.add(whole, ProblemKind::UnknownTool { tool: name.to_owned(), nearest, way });
                continue;
            };
            if let Some(arguments) = subtask.tool_args() {
                // Arguments that the context supplies are not missing.
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
            // If several subtasks share a name, any of them may have the result.
            Some(_) if self.names.contains_key(head) && self.any_upstream(head, upstream) => None,
            Some(id) => Some(ProblemKind::NotUpstream { reference: text, head: id.to_string() }),
            None if self.task.context.contains_key(head) => {
                match resolve_text(&text, &|name| self.task.context.get(name).cloned()) {
                    Err(Unresolved::NoSuchPart { reference, there }) => {
                        Some(ProblemKind::NoSuchPart { reference, name: head.to_owned(), found: there })
                    }
                    _ => None,
                }
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
            // A reference may have any value.
            entries.entry(name.clone()).or_insert_with(|| Json::String(format!("{{{name}}}")));
        }
    }
    arguments
}
