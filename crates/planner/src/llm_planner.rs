//! A planner that asks a model: the prompt, the schema of the answer, and the repair of answers that are
//! not a valid plan.

use std::{
    collections::HashSet,
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use archon_types::{
    ApiErrorKind, AssistantMessage, Content, Encoded, FallbackModel, Json, Message, ModelPrice, PlanError,
    Planner, PlanningContext, Provider, ProviderError, RequestOptions, ResponseFormat, StopReason, SubTask,
    SubTaskId, SubTaskRules, SubTaskStatus, Task, TaskId, TeamRole,
};
use serde_json::json;

use crate::{
    CheckOptions, PlanGraph, PlanProblem, ProblemKind, Reading,
    ask::Asked,
    check_running,
    plan_output::{plan_outline, plan_schema},
    problem::{all_with_remedies, with_remedy},
    read_plan, step_by_step,
    texts::join,
};

/// A planner that asks a model. If the service supports structured output, the answer must fit a schema;
/// otherwise the plan is searched for in the text. An invalid plan is sent back to the model with all its
/// problems.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_planner::{LlmPlanner, LlmPlannerOptions};
/// use archon_types::{FallbackModel, ModelPrice, Provider};
///
/// fn planner(provider: Arc<dyn Provider>) -> LlmPlanner {
///     let mut options = LlmPlannerOptions::default();
///     options.repairs = 1;
///     LlmPlanner::new(provider, "gpt-5-mini")
///         .with_options(options)
///         .with_price(ModelPrice::new(250_000, 2_000_000))
///         .with_fallbacks(vec![FallbackModel::new("ollama", "qwen3")])
/// }
/// ```
pub struct LlmPlanner {
    model: Asked,
    options: LlmPlannerOptions,
    /// True once the service has refused a schema.
    has_refused_schema: AtomicBool,
}

/// Options of an [`LlmPlanner`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LlmPlannerOptions {
    /// Sampling and other options of requests. Default temperature: 0.1.
    pub request: RequestOptions,
    /// Maximum number of times that an invalid answer is sent back. Default 2. A plan with a cycle is
    /// sent back once.
    pub repairs: u32,
    /// The rule for structured output: requests with a JSON Schema that the answer must fit. Default
    /// [`Structured::Auto`].
    pub structured: Structured,
    /// Roles of a team. If there are any, each subtask of the plan names the role that should do the subtask. Default:
    /// none.
    pub roles: Vec<TeamRole>,
    /// Exact number of subtasks, for models that are too small to choose the shape of a plan; see
    /// [`plan_outline`]. Default: none.
    pub outline: Option<u32>,
    /// The source of the plan's shape. Default [`Shape::Auto`].
    pub shape: Shape,
}

/// The source of a plan's shape. The shape is the subtasks and their dependencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// `StepByStep` if the provider declares the model as small and the options set no outline and no roles;
    /// otherwise `Model`.
    #[default]
    Auto,
    /// The model chooses the shape.
    Model,
    /// The words of the goal: each instruction of the goal becomes a subtask, and the model is asked for
    /// one tool call at a time.
    StepByStep,
}

/// The rule for asking a service for a plan in structured output, which must fit a JSON Schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Structured {
    /// Use structured output unless the service refuses it.
    #[default]
    Auto,
    /// Never use structured output; the model writes text.
    Never,
}

impl Default for LlmPlannerOptions {
    fn default() -> Self {
        let mut request = RequestOptions::default();
        request.temperature = Some(0.1);
        let structured = Structured::default();
        Self { request, repairs: 2, structured, roles: Vec::new(), outline: None, shape: Shape::Auto }
    }
}

archon_types::setters! {
impl LlmPlanner {
    /// Replaces all options of the planner. Default: `LlmPlannerOptions::default`.
    pub fn with_options(self, options: LlmPlannerOptions) -> Self { self.options = options }

    /// Sets the price of the model's tokens. Default: the price that the provider's capabilities have.
    pub fn with_price(self, price: ModelPrice) -> Self { self.model.price = Some(price) }

    /// Names the models that the provider may ask instead of this one, with their prices. An answer is charged with
    /// the price of the model that gave it. Default: none.
    pub fn with_fallbacks(self, models: Vec<FallbackModel>) -> Self { self.model.others = models }
}
}

impl LlmPlanner {
    /// Creates a planner that asks this model of the provider.
    pub fn new(provider: Arc<dyn Provider>, model: impl Into<String>) -> Self {
        let (model, options) = (Asked::new(provider, model), LlmPlannerOptions::default());
        Self { model, options, has_refused_schema: AtomicBool::new(false) }
    }

    fn goes_step_by_step(&self) -> bool {
        let LlmPlannerOptions { outline, roles, shape, .. } = &self.options;
        match shape {
            Shape::Auto => outline.is_none() && roles.is_empty() && self.model.is_small(),
            shape => *shape == Shape::StepByStep,
        }
    }

    /// Asks the model until `accept` accepts a plan, or until the repairs are used up.
    async fn plan<T>(
        &self,
        prompt: String,
        context: &PlanningContext,
        accept: impl Fn(Option<String>, Vec<SubTask>) -> Result<T, Vec<PlanProblem>>,
    ) -> Result<T, PlanError> {
        let mut messages = vec![Message::user(prompt, context.run.clock.now())];
        let mut problems = Vec::new();
        for _ in 0..=self.options.repairs {
            let had_cycle = cycle(&problems).is_some();
            let answer = self.ask(messages.clone(), context).await?;
            let text = answer.text();
            // A part of a plan that was cut off may look like a plan.
            let reading = match answer.stop_reason {
                StopReason::Length => Reading::Strict,
                _ => Reading::Lenient,
            };
            let found = read_plan(&text, reading).and_then(|read| accept(read.goal, read.subtasks));
            problems = match found {
                Ok(accepted) => return Ok(accepted),
                Err(problems) => problems,
            };
            if had_cycle && cycle(&problems).is_some() {
                break;
            }
            let said = AssistantMessage { content: vec![Content::text(text)], ..answer };
            messages.push(Message::Assistant(said));
            messages.push(Message::user(repair(&problems), context.run.clock.now()));
        }
        Err(refusal(problems))
    }

    async fn ask(
        &self,
        messages: Vec<Message>,
        context: &PlanningContext,
    ) -> Result<AssistantMessage, PlanError> {
        let is_structured =
            self.options.structured == Structured::Auto && !self.has_refused_schema.load(Ordering::Relaxed);
        let ask = |format: Option<ResponseFormat>| {
            let mut options = self.options.request.clone();
            options.response_format = format;
            let mut request = self.model.request(messages.clone(), options);
            request.system = Some(Arc::new(Encoded::new(SYSTEM.to_owned())));
            self.model.ask_in(request, context)
        };
        let schema = || match self.options.outline {
            Some(subtasks) => plan_outline(subtasks, &context.tools),
            None => with_roles(plan_schema(&context.tools), &self.options.roles),
        };
        let format = is_structured.then(|| ResponseFormat { name: "plan".into(), schema: schema() });
        match ask(format).await {
            Err(PlanError::Model(ProviderError::Api { kind: ApiErrorKind::InvalidRequest, .. }))
                if is_structured =>
            {
                self.has_refused_schema.store(true, Ordering::Relaxed);
                ask(None).await
            }
            answer => answer,
        }
    }
}

impl Planner for LlmPlanner {
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        let options = check_options(context);
        let task_of = |subtasks| {
            let mut task = Task::new(TaskId::new(context.run.run.as_str()), goal).with_subtasks(subtasks);
            task.context = context.values.clone();
            task
        };
        if self.goes_step_by_step() {
            let made = step_by_step::subtasks(&self.model, &self.options.request, goal, context).await?;
            return accepted(task_of(made), &options).map_err(refusal);
        }
        let asked = format!("{}{}", prompt(goal, context), roles_text(&self.options.roles));
        self.plan(asked, context, |said, subtasks| {
            let mut task = task_of(subtasks);
            task.goal = said.filter(|said| !said.trim().is_empty()).unwrap_or_else(|| goal.to_owned());
            accepted(task, &options)
        })
        .await
    }

    async fn replan(&self, task: &Task, reason: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        let options = check_options(context);
        if self.goes_step_by_step() {
            let new = step_by_step::open_part(task).ok_or(PlanError::Fixed)?;
            return accepted(new, &options).map_err(refusal);
        }
        let stays = stays(task, &context.targets);
        let roles = roles_text(&self.options.roles);
        let progress = progress(task, reason, &context.targets);
        let prompt = format!("{}{roles}{progress}", prompt(&task.goal, context));
        self.plan(prompt, context, |_, subtasks| {
            let mut new = task.clone();
            let is_named = |old: &SubTask| subtasks.iter().any(|s| s.id == old.id);
            new.subtasks.retain(|old| stays(old) && !is_named(old));
            let done = task.subtasks.iter().filter(|s| is_named(s) && is_done(s));
            new.subtasks.extend(done.cloned());
            for subtask in &subtasks {
                match task.get_subtask(&subtask.id) {
                    Some(old) if is_done(old) => {}
                    old => new.subtasks.push(with_rules_of(old, subtask.clone())),
                }
            }
            accepted(new, &options)
        })
        .await
    }
}

fn accepted(task: Task, options: &CheckOptions) -> Result<Task, Vec<PlanProblem>> {
    let mut problems = check_running(&task, options);
    problems.retain(PlanProblem::is_error);
    if problems.is_empty() { Ok(task) } else { Err(problems) }
}

/// Returns the options with which the planner checks its plans. The driver of the plan checks more.
fn check_options(context: &PlanningContext) -> CheckOptions {
    let mut options = CheckOptions::new(context.tools.clone());
    options.size.max = context.max_subtasks.unwrap_or(options.size.max);
    options
}

/// Returns true if the subtask is done, running or skipped. A failure that may be ignored counts as done.
fn is_done(subtask: &SubTask) -> bool {
    match subtask.status() {
        SubTaskStatus::Completed | SubTaskStatus::Executing => true,
        SubTaskStatus::Failed => subtask.rules.on_failure.may_be_left_out(),
        _ => false,
    }
}

fn has_failed(subtask: &SubTask) -> bool {
    subtask.status() == SubTaskStatus::Failed && !is_done(subtask)
}

/// Returns a filter for the subtasks that stay in the plan although the new plan does not name them. These are the
/// subtasks that are done or running, and those that a replan does not affect: they have not failed, are not a
/// target, and do not depend on a failed subtask or a target.
fn stays(task: &Task, targets: &[SubTaskId]) -> impl Fn(&SubTask) -> bool {
    let graph = PlanGraph::new(&task.subtasks);
    let failed = task.subtasks.iter().filter(|s| has_failed(s)).map(|s| &s.id);
    let gone: Vec<_> = failed.chain(targets).collect();
    let mut lost: HashSet<SubTaskId> = gone.iter().map(|id| (*id).clone()).collect();
    for id in gone {
        lost.extend(graph.downstream(id).into_iter().cloned());
    }
    move |subtask| is_done(subtask) || !lost.contains(&subtask.id)
}

/// Copies the rules of the replaced subtask to the new one if the planner's answer sets no rules. If it does, still
/// copies the gate and the review (the questions to a person before and after the subtask), unless the answer sets
/// them too.
fn with_rules_of(old: Option<&SubTask>, mut new: SubTask) -> SubTask {
    let Some(old) = old else { return new };
    if new.rules == SubTaskRules::default() {
        new.rules = old.rules.clone();
        // Fallback tools are called with the arguments of the tool that they replace.
        if new.tool_name() != old.tool_name() {
            new.rules.fallback_tools.clear();
        }
    }
    new.rules.gate = new.rules.gate.take().or_else(|| old.rules.gate.clone());
    new.rules.review = new.rules.review.take().or_else(|| old.rules.review.clone());
    new.critical |= old.critical;
    new
}

fn cycle(problems: &[PlanProblem]) -> Option<&[SubTaskId]> {
    problems.iter().find_map(|problem| match &problem.kind {
        ProblemKind::Cycle { path } => Some(path.as_slice()),
        _ => None,
    })
}

fn refusal(problems: Vec<PlanProblem>) -> PlanError {
    match cycle(&problems) {
        Some(path) => PlanError::Cycle { path: path.to_vec() },
        None => PlanError::Unreadable { problem: all_with_remedies(&problems) },
    }
}

const SYSTEM: &str = "You plan. You break a goal down into the fewest subtasks that reach it, each one meaningful \
tool call or one coherent unit of thought; three to five are usual. Subtasks that do not need each other do not \
depend on each other, so that they can run at the same time. You do not carry anything out.

Answer with JSON only: {\"subtasks\": [{\"id\", \"description\", \"expected_output\", \"tool_name\", \"tool_args\", \
\"dependencies\", \"critical\"}]}.
- id: short, letters, digits and _.
- description: what is to be done, complete in itself.
- expected_output: what a good result looks like.
- tool_name: one of the tools, or null for a step of thinking.
- tool_args: an object, if the arguments are known; {id} stands for the result of another subtask, {id.field[0]} for a \
part of it. Leave it out to let the tool's user choose.
- dependencies: the ids of the subtasks whose results are needed.
- critical: true if the goal cannot be reached without it.";

fn prompt(goal: &str, context: &PlanningContext) -> String {
    let mut text = format!("Goal: {goal}\n");
    if context.tools.is_empty() {
        text.push_str("\nThere are no tools.\n");
    } else {
        text.push_str("\nTools:\n");
        for tool in &context.tools {
            let parameters = tool.parameters.get("properties").unwrap_or(&tool.parameters);
            let _ = writeln!(text, "- {}: {} Arguments: {parameters}", tool.name, tool.description);
        }
    }
    if !context.values.is_empty() {
        text.push_str("\nKnown (refer to it by {name}):\n");
        for (name, value) in &context.values {
            let shown: String = value.to_string().chars().take(SHOWN).collect();
            let _ = writeln!(text, "- {name}: {shown}");
        }
    }
    if !context.memories.is_empty() {
        text.push_str("\nRemembered from before:\n");
        context.memories.iter().for_each(|memory| _ = writeln!(text, "- {memory}"));
    }
    if !context.background.is_empty() {
        let _ = writeln!(text, "\nBackground:\n{}", context.background);
    }
    if !context.completed.is_empty() {
        text.push_str("\nDone already:\n");
        context.completed.iter().for_each(|done| _ = writeln!(text, "- {}: {}", done.id, done.description));
    }
    if let Some(failure) = &context.failure {
        let _ = writeln!(text, "\nAn earlier plan did not work: {failure}");
    }
    text
}

/// Returns the roles, and the way in which a subtask names its role, for the prompt.
fn roles_text(roles: &[TeamRole]) -> String {
    if roles.is_empty() {
        return String::new();
    }
    let lines = roles.iter().map(|role| format!("- {}: {}\n", role.name, role.prompt));
    let lines: String = lines.collect();
    format!(
        "\nWho does the work (each subtask says whose it is: {{\"rules\": {{\"role\": NAME}}}}):\n{lines}"
    )
}

/// Adds the choice of a role to the schema of subtasks, if there are roles.
fn with_roles(mut schema: Json, roles: &[TeamRole]) -> Json {
    let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
    if let (false, Some(items)) = (names.is_empty(), schema.pointer_mut("/properties/subtasks/items")) {
        let role = json!({"type": "object", "properties": {"role": {"enum": names}}, "required": ["role"]});
        items["properties"]["rules"] = role;
        items["required"] = json!(["id", "description", "dependencies", "rules"]);
    }
    schema
}

/// Maximum length of a value in the prompt, in characters.
const SHOWN: usize = 500;

fn progress(task: &Task, reason: &str, targets: &[SubTaskId]) -> String {
    let mut text = "\nA plan is under way:\n".to_owned();
    for subtask in &task.subtasks {
        let result = subtask.result().map(|result| result.text()).filter(|text| !text.is_empty());
        let result = result.map(|text| format!(" => {}", text.chars().take(SHOWN).collect::<String>()));
        let (id, what, result) = (&subtask.id, &subtask.description, result.unwrap_or_default());
        let status = match (subtask.status(), has_failed(subtask)) {
            (SubTaskStatus::Failed, false) => "failed, and done without".to_owned(),
            (status, false) if !is_done(subtask) && targets.contains(id) => {
                format!("{status}, to be replaced")
            }
            (status, _) => status.to_string(),
        };
        let after = join(subtask.dependencies(), ", ");
        let only = match &subtask.rules.when {
            Some(condition) => format!(" (only if {condition}; {{\"rules\": {{\"when\"}}}} changes that)"),
            None => String::new(),
        };
        let _ = writeln!(text, "- [{status}] {id} (after: {after}): {what}{only}{result}");
    }
    let _ = write!(
        text,
        "\nWhat went wrong: {reason}\n\nGo another way. Answer with the subtasks that take the place of those that \
         failed or are to be replaced and of those that wait for them, under new ids. What is completed stays: depend on it, do not repeat \
         it. A subtask that waits for one of those and is still wanted has to be in the answer, with its id."
    );
    text
}

fn repair(problems: &[PlanProblem]) -> String {
    let lines: String = problems.iter().map(|problem| format!("- {}\n", with_remedy(problem))).collect();
    format!("That plan cannot be followed:\n{lines}Answer with the whole corrected plan, as JSON only.")
}
