//! Makes the final answer of a plan from the results of its subtasks, with citations.

use std::sync::Arc;

use archon_types::{
    AssistantMessage, BoxFuture, CUT_OFF, Content, Context, FallbackModel, Lease, Message, ModelPrice,
    PlanError, Provider, Request, RequestOptions, ResponseFormat, SchemaProblem, Spending, SpendingCounter,
    StopReason, SubTask, SubTaskId, SubTaskStatus, Task, json_in, problems_note,
};

use crate::{PlanGraph, ask::Asked};

/// Makes the final answer of a plan.
///
/// ```
/// use archon_planner::{Conclude, Conclusion, ConclusionQuestion};
/// use archon_types::{BoxFuture, Context, PlanError};
///
/// /// Joins the results of all subtasks.
/// struct Joined;
///
/// impl Conclude for Joined {
///     fn conclude<'a>(
///         &'a self,
///         question: ConclusionQuestion<'a>,
///         _context: &'a Context,
///     ) -> BoxFuture<'a, Result<Conclusion, PlanError>> {
///         let subtasks = &question.task.subtasks;
///         let texts: Vec<String> = subtasks.iter().filter_map(|step| Some(step.result()?.text())).collect();
///         let citations = subtasks.iter().map(|step| step.id.clone()).collect();
///         Box::pin(std::future::ready(Ok(Conclusion::new(texts.join("\n"), citations))))
///     }
/// }
/// ```
pub trait Conclude: Send + Sync {
    /// Returns the answer to the task's query, from the results of the completed subtasks and within the
    /// remaining budget.
    ///
    /// # Errors
    /// [`PlanError`] if there is no answer. The results are then the answer, if they fit the required
    /// schema.
    fn conclude<'a>(
        &'a self,
        question: ConclusionQuestion<'a>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Conclusion, PlanError>>;
}

/// A request for the final answer of a plan.
///
/// ```
/// use archon_planner::ConclusionQuestion;
/// use archon_types::{Lease, ResponseFormat, SchemaProblem, Task};
///
/// /// Asks again for an answer that did not fit.
/// fn again<'a>(
///     task: &'a Task,
///     format: &'a ResponseFormat,
///     problems: &'a [SchemaProblem],
/// ) -> ConclusionQuestion<'a> {
///     let budget = Lease::new(10_000, 60_000); // tokens, milliseconds
///     ConclusionQuestion::new(task, budget).with_output_format(format).after("{}", problems)
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConclusionQuestion<'a> {
    /// The query, and the subtasks with their results.
    pub task: &'a Task,
    /// Background besides the query: the project's instructions, the session history.
    pub background: &'a str,
    /// The remaining budget.
    pub budget: Lease,
    /// The schema that the answer must fit, if one is required. The caller checks the answer.
    pub output_format: Option<&'a ResponseFormat>,
    /// The last answer, if it did not fit the schema.
    pub invalid_output: Option<InvalidOutput<'a>>,
}

/// An answer that did not fit its schema.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct InvalidOutput<'a> {
    /// The answer.
    pub answer: &'a str,
    /// The problems of the answer with the schema.
    pub problems: &'a [SchemaProblem],
}

impl<'a> ConclusionQuestion<'a> {
    /// Creates a question about a task, without background and schema.
    pub fn new(task: &'a Task, budget: Lease) -> Self {
        Self { task, background: "", budget, output_format: None, invalid_output: None }
    }

    /// Sets the schema that the answer must fit.
    pub fn with_output_format(mut self, format: &'a ResponseFormat) -> Self {
        self.output_format = Some(format);
        self
    }

    /// Sets the last answer, which did not fit the schema, and its problems.
    pub fn after(mut self, answer: &'a str, problems: &'a [SchemaProblem]) -> Self {
        self.invalid_output = Some(InvalidOutput { answer, problems });
        self
    }

    /// Returns true if an answer fits the required schema, or if no schema is required.
    fn fits(&self, answer: &str) -> bool {
        self.output_format.is_none_or(|format| format.problems(&json_in(answer)).is_empty())
    }
}

/// A final answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Conclusion {
    /// Text of the answer.
    pub answer: String,
    /// Ids of the subtasks on whose results the answer is based.
    pub citations: Vec<SubTaskId>,
    /// The spending for the answer.
    pub spent: Spending,
}

impl Conclusion {
    /// Creates an answer without spending.
    pub fn new(answer: impl Into<String>, citations: Vec<SubTaskId>) -> Self {
        Self { answer: answer.into(), citations, spent: Spending::default() }
    }
}

/// Makes the final answer without a model: the answer consists of the results of the last subtasks. These are the
/// subtasks on which no other subtask depends.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastResults;

impl LastResults {
    /// Returns the results of the last subtasks as the answer of a task.
    pub fn of(task: &Task) -> Conclusion {
        let graph = PlanGraph::new(&task.subtasks);
        let sinks = graph.sinks().into_iter().filter_map(|id| task.get_subtask(id));
        let mut used: Vec<&SubTask> = sinks.filter(|s| has_result(s)).collect();
        if used.is_empty() {
            used = with_results(task).collect();
        }
        let answer = used.into_iter().map(result_text).collect::<Vec<_>>().join("\n\n");
        Conclusion::new(answer, with_results(task).map(|s| s.id.clone()).collect())
    }
}

impl Conclude for LastResults {
    fn conclude<'a>(
        &'a self,
        question: ConclusionQuestion<'a>,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Conclusion, PlanError>> {
        Box::pin(async move { Ok(Self::of(question.task)) })
    }
}

/// Lets a model write the final answer, which cites subtasks by their ids in square brackets. If the plan has only one
/// subtask, and an agent executed it, the answer of that agent is used unchanged. If the model is small, the results
/// are used unchanged, because the model would make them worse.
///
/// An answer that must fit a schema is JSON without citations, and counts as based on all results.
/// Results are used unchanged only if they fit the schema; otherwise the model is asked. After an answer
/// that did not fit, the model reads that answer and its problems.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_planner::LlmConclusion;
/// use archon_types::{FallbackModel, ModelPrice, Provider, RequestOptions};
///
/// fn conclusion(provider: Arc<dyn Provider>) -> LlmConclusion {
///     // 0.25 dollars of input and 2 dollars of output for a million tokens.
///     let price = ModelPrice::new(250_000, 2_000_000);
///     LlmConclusion::new(provider, "gpt-5-mini")
///         .with_options(RequestOptions::default().with_max_tokens(2_000))
///         .with_price(price)
///         .with_fallbacks(vec![FallbackModel::new("ollama", "qwen3")])
///         .only_for_schemas()
/// }
/// ```
pub struct LlmConclusion {
    model: Asked,
    options: RequestOptions,
    is_only_for_schemas: bool,
}

archon_types::setters! {
impl LlmConclusion {
    /// Sets the options of the model request, such as the maximum number of tokens. Default: `RequestOptions::default`.
    pub fn with_options(self, options: RequestOptions) -> Self { self.options = options }

    /// Sets the price of the model's tokens. Default: the price that the provider's capabilities have.
    pub fn with_price(self, price: ModelPrice) -> Self { self.model.price = Some(price) }

    /// Names the models that the provider may ask instead of this one, with their prices. An answer is charged with
    /// the price of the model that gave it. Default: none.
    pub fn with_fallbacks(self, models: Vec<FallbackModel>) -> Self { self.model.others = models }
}
}

impl LlmConclusion {
    /// Creates an `LlmConclusion` that asks this model of the provider to write the final answer.
    pub fn new(provider: Arc<dyn Provider>, model: impl Into<String>) -> Self {
        let model = Asked::new(provider, model);
        Self { model, options: RequestOptions::default(), is_only_for_schemas: false }
    }

    /// Uses the results as the answer, like [`LastResults`]. The model is asked only if the results do
    /// not fit the required schema.
    pub fn only_for_schemas(mut self) -> Self {
        self.is_only_for_schemas = true;
        self
    }

    /// Returns the results as the answer, if the model need not be asked; otherwise `None`.
    fn without_model(&self, question: &ConclusionQuestion<'_>) -> Option<Conclusion> {
        let task = question.task;
        let conclusion = match self.is_only_for_schemas {
            true => LastResults::of(task),
            false => whole_answer(task).or_else(|| self.model.is_small().then(|| all_results(task)))?,
        };
        question.fits(&conclusion.answer).then_some(conclusion)
    }

    fn request(&self, question: &ConclusionQuestion<'_>, context: &Context) -> Request {
        let ConclusionQuestion { task, background, output_format, invalid_output, .. } = question;
        let how = match output_format {
            Some(_) => "Answer with JSON of the requested schema, and with nothing else.".to_owned(),
            None => format!(
                "Name the steps that a statement rests on in square brackets, as in [{}]. If a result that is needed \
                 is missing, say so.",
                task.subtasks.first().map_or("step", |s| s.id.as_str())
            ),
        };
        let mut text = format!(
            "Answer this from the results of the steps below, and from nothing else:\n{}\n\n{how}\n",
            task.original_query
        );
        for subtask in with_results(task) {
            let shown: String = result_text(subtask).chars().take(LONGEST).collect();
            text.push_str(&format!("\n[{}] {}\n{shown}\n", subtask.id, subtask.description));
        }
        if !background.is_empty() {
            text.push_str(&format!(
                "\nWhat the question is asked on, and how it is to be answered:\n{background}\n"
            ));
        }
        let now = context.clock.now();
        let mut messages = vec![Message::user(text, now)];
        if let Some(InvalidOutput { answer, problems }) = *invalid_output {
            // Services refuse an empty message.
            if !answer.trim().is_empty() {
                let content = vec![Content::text(answer)];
                let said = AssistantMessage { content, timestamp: now, ..AssistantMessage::default() };
                messages.push(Message::Assistant(said));
            }
            messages.push(Message::user(problems_note(problems, "the whole JSON, and nothing else"), now));
        }
        let mut options = self.options.clone();
        options.response_format = output_format.cloned().or(options.response_format);
        self.model.request(messages, options)
    }

    /// Returns the conclusion of the model's answer, without the spending.
    fn read(question: &ConclusionQuestion<'_>, answer: &AssistantMessage) -> Conclusion {
        let (task, mut text) = (question.task, answer.text());
        if question.output_format.is_some() {
            return Conclusion::new(text, LastResults::of(task).citations);
        }
        if text.trim().is_empty() {
            return LastResults::of(task);
        }
        if answer.stop_reason == StopReason::Length {
            text.push('\n');
            text.push_str(CUT_OFF);
        }
        let mut cited = cited(task, &text);
        if cited.is_empty() {
            // An answer without citations is based on the last results.
            cited = LastResults::of(task).citations;
            let names: Vec<String> = cited.iter().map(|id| format!("[{id}]")).collect();
            text.push_str(&format!("\n\nFrom: {}", names.join(" ")));
        }
        Conclusion::new(text, cited)
    }
}

/// Maximum length of a result in the prompt, in characters.
const LONGEST: usize = 16_000;

impl Conclude for LlmConclusion {
    fn conclude<'a>(
        &'a self,
        question: ConclusionQuestion<'a>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Conclusion, PlanError>> {
        Box::pin(async move {
            if let Some(conclusion) = self.without_model(&question) {
                return Ok(conclusion);
            }
            let expenses = SpendingCounter::default();
            let request = self.request(&question, context);
            let answer = self.model.ask(request, Some(question.budget), &expenses, context).await?;
            // An empty answer has a cost, too.
            Ok(Conclusion { spent: expenses.total(), ..Self::read(&question, &answer) })
        })
    }
}

/// Returns the answer of the agent that executed the plan's only subtask; `None` for any other plan.
fn whole_answer(task: &Task) -> Option<Conclusion> {
    let [only] = task.subtasks.as_slice() else { return None };
    let result = only.result().filter(|result| result.child_run.is_some() && has_result(only))?;
    Some(Conclusion::new(result.text().trim(), vec![only.id.clone()]))
}

/// Returns the results of the last subtasks. For a plan without tools, returns each result after the
/// description of its subtask.
fn all_results(task: &Task) -> Conclusion {
    let mut conclusion = LastResults::of(task);
    if task.subtasks.iter().all(|subtask| subtask.tool_name().is_none()) {
        let line = |s: &SubTask| format!("{}: {}", s.description.trim_end_matches('.'), result_text(s));
        conclusion.answer = with_results(task).map(line).collect::<Vec<_>>().join("\n");
    }
    conclusion
}

/// Returns the completed subtasks that a text cites in square brackets, in the order of the plan.
fn cited(task: &Task, text: &str) -> Vec<SubTaskId> {
    let brackets = text.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(inner, _)| inner);
    let named: Vec<&str> = brackets.flat_map(|inner| inner.split(',')).map(str::trim).collect();
    with_results(task).filter(|s| named.contains(&s.id.as_str())).map(|s| s.id.clone()).collect()
}

fn with_results(task: &Task) -> impl Iterator<Item = &SubTask> {
    task.subtasks.iter().filter(|s| has_result(s))
}

fn result_text(subtask: &SubTask) -> String {
    subtask.result().map(|result| result.text().trim().to_owned()).unwrap_or_default()
}

/// Returns true if the subtask was executed and not skipped.
fn has_result(subtask: &SubTask) -> bool {
    subtask.status() == SubTaskStatus::Completed && subtask.result().is_some_and(|r| r.text() != "null")
}
