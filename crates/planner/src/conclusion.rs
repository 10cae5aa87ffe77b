//! The final answer of a plan: put together from the results of its subtasks, with a note of which.

use std::sync::Arc;

use archon_types::{
    BoxFuture, Context, Expenses, FallbackModel, Lease, Message, ModelPrice, PlanError, Provider, Request,
    RequestOptions, Spending, SubTask, SubTaskId, SubTaskStatus, Task,
};

use crate::{PlanGraph, ask::Asked};

/// Puts the final answer of a plan together.
pub trait Conclude: Send + Sync {
    /// The answer to the task's query, from the results of its completed subtasks, for no more than what is left.
    /// `background` is what is to be known beside the query: what the project says, what was said before.
    ///
    /// # Errors
    /// [`PlanError`] when there is none; the results themselves are the answer then.
    fn conclude<'a>(
        &'a self,
        task: &'a Task,
        background: &'a str,
        left: Lease,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Conclusion, PlanError>>;
}

/// A final answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Conclusion {
    /// The answer.
    pub answer: String,
    /// The subtasks that it rests on.
    pub citations: Vec<SubTaskId>,
    /// What it took.
    pub spent: Spending,
}

impl Conclusion {
    /// An answer that cost nothing.
    pub fn new(answer: impl Into<String>, citations: Vec<SubTaskId>) -> Self {
        Self { answer: answer.into(), citations, spent: Spending::default() }
    }
}

/// The answer is what the last subtasks came to, those that nothing depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastResults;

impl LastResults {
    /// The answer of a task.
    pub fn of(task: &Task) -> Conclusion {
        let graph = PlanGraph::new(&task.subtasks);
        let sinks: Vec<&SubTask> = graph
            .sinks()
            .into_iter()
            .filter_map(|id| task.get_subtask(id))
            .filter(|s| has_result(s))
            .collect();
        let used: Vec<&SubTask> = match sinks.is_empty() {
            true => task.subtasks.iter().filter(|s| has_result(s)).collect(),
            false => sinks,
        };
        let text = |s: &&SubTask| s.result().map(|r| r.text().trim().to_owned()).unwrap_or_default();
        let answer = used.iter().map(text).collect::<Vec<_>>().join("\n\n");
        let citations = task.subtasks.iter().filter(|s| has_result(s)).map(|s| s.id.clone()).collect();
        Conclusion::new(answer, citations)
    }
}

impl Conclude for LastResults {
    fn conclude<'a>(
        &'a self,
        task: &'a Task,
        _: &'a str,
        _: Lease,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Conclusion, PlanError>> {
        Box::pin(async move { Ok(Self::of(task)) })
    }
}

/// A model writes the answer, and cites subtasks by their ids in square brackets. The answer of an agent that did all
/// there was to do is taken as it is, and so are results where the model is small: it would only spoil them.
pub struct LlmConclusion {
    model: Asked,
    options: RequestOptions,
}

impl LlmConclusion {
    /// A model that writes answers.
    pub fn new(provider: Arc<dyn Provider>, model: impl Into<String>) -> Self {
        let model = Asked { provider, model: model.into(), price: None, others: Vec::new() };
        Self { model, options: RequestOptions::default() }
    }

    /// The same with a price; by default the one that the provider knows.
    pub fn with_price(mut self, price: ModelPrice) -> Self {
        self.model.price = Some(price);
        self
    }

    /// The same with the models that the provider asks in its place, each with its own price: who answers is paid.
    pub fn with_fallbacks(mut self, models: Vec<FallbackModel>) -> Self {
        self.model.others = models;
        self
    }

    /// The same with other options of its requests.
    pub fn with_options(mut self, options: RequestOptions) -> Self {
        self.options = options;
        self
    }

    fn request(&self, task: &Task, background: &str, context: &Context) -> Request {
        let mut text = format!(
            "Answer this from the results of the steps below, and from nothing else:\n{}\n\nName the steps that a \
             statement rests on in square brackets, as in [{}]. If a result that is needed is missing, say so.\n",
            task.original_query,
            task.subtasks.first().map_or("step", |s| s.id.as_str()),
        );
        for subtask in task.subtasks.iter().filter(|s| has_result(s)) {
            let result = subtask.result().map(|r| r.text()).unwrap_or_default();
            let shown: String = result.trim().chars().take(LONGEST).collect();
            text.push_str(&format!("\n[{}] {}\n{shown}\n", subtask.id, subtask.description));
        }
        if !background.is_empty() {
            text.push_str(&format!(
                "\nWhat the question is asked on, and how it is to be answered:\n{background}\n"
            ));
        }
        let mut request =
            Request::new(self.model.model.clone(), vec![Message::user(text, context.clock.now())]);
        request.options = Arc::new(self.options.clone());
        request
    }
}

/// Characters of a result that the model reads.
const LONGEST: usize = 16_000;

impl Conclude for LlmConclusion {
    fn conclude<'a>(
        &'a self,
        task: &'a Task,
        background: &'a str,
        left: Lease,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Conclusion, PlanError>> {
        Box::pin(async move {
            if let Some(whole) = whole_answer(task) {
                return Ok(whole);
            }
            if self.model.provider.capabilities(&self.model.model).is_small {
                return Ok(as_they_are(task));
            }
            let expenses = Expenses::default();
            let request = self.request(task, background, context);
            let answer = self.model.ask(request, Some(left), &expenses, context).await?;
            let mut text = answer.text();
            if text.trim().is_empty() {
                // It is paid for, and what there is has to do.
                let mut results = LastResults::of(task);
                results.spent = expenses.total();
                return Ok(results);
            }
            let mut cited = cited(task, &text);
            if cited.is_empty() {
                // An answer that names no source rests on the last results.
                cited = LastResults::of(task).citations;
                let names: Vec<String> = cited.iter().map(|id| format!("[{id}]")).collect();
                text.push_str(&format!("\n\nFrom: {}", names.join(" ")));
            }
            let mut conclusion = Conclusion::new(text, cited);
            conclusion.spent = expenses.total();
            Ok(conclusion)
        })
    }
}

/// The answer of the agent that did the only subtask.
fn whole_answer(task: &Task) -> Option<Conclusion> {
    let [only] = task.subtasks.as_slice() else { return None };
    let result = only.result().filter(|result| result.child_run.is_some() && has_result(only))?;
    Some(Conclusion::new(result.text().trim(), vec![only.id.clone()]))
}

/// What the last subtasks came to; of an outline that no tool did anything for, each thought under its heading.
fn as_they_are(task: &Task) -> Conclusion {
    let mut conclusion = LastResults::of(task);
    if task.subtasks.iter().all(|subtask| subtask.tool_name().is_none()) {
        let line = |s: &SubTask| {
            let said = s.result().map(|r| r.text().trim().to_owned()).unwrap_or_default();
            format!("{}: {said}", s.description.trim_end_matches('.'))
        };
        let lines: Vec<String> = task.subtasks.iter().filter(|s| has_result(s)).map(line).collect();
        conclusion.answer = lines.join("\n");
    }
    conclusion
}

/// The completed subtasks that a text names in square brackets, in the order of the plan.
fn cited(task: &Task, text: &str) -> Vec<SubTaskId> {
    let brackets = text.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(inner, _)| inner);
    let named: Vec<&str> = brackets.flat_map(|inner| inner.split(',')).map(str::trim).collect();
    let is_named = |s: &&SubTask| named.contains(&s.id.as_str()) && has_result(s);
    task.subtasks.iter().filter(is_named).map(|s| s.id.clone()).collect()
}

/// Whether it was done, and not only passed by.
fn has_result(subtask: &SubTask) -> bool {
    let is_null = |text: String| text == "null";
    subtask.status() == SubTaskStatus::Completed && subtask.result().is_some_and(|r| !is_null(r.text()))
}
