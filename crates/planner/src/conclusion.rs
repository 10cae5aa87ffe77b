//! The final answer of a plan: put together from the results of its subtasks, with a note of which.

use std::sync::Arc;

use archon_types::{
    AssistantMessage, BoxFuture, CUT_OFF, Content, Context, Expenses, FallbackModel, FormProblem, Lease,
    Message, ModelPrice, PlanError, Provider, Request, RequestOptions, ResponseFormat, Spending, StopReason,
    SubTask, SubTaskId, SubTaskStatus, Task, json_in, misfit_note,
};

use crate::{PlanGraph, ask::Asked};

/// Puts the final answer of a plan together.
pub trait Conclude: Send + Sync {
    /// The answer to the task's query, from the results of its completed subtasks, for no more than what is left.
    ///
    /// # Errors
    /// [`PlanError`] when there is none; the results themselves are the answer then, if they have the form that it must
    /// have.
    fn conclude<'a>(
        &'a self,
        question: ConclusionQuestion<'a>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Conclusion, PlanError>>;
}

/// A request for the final answer of a plan.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConclusionQuestion<'a> {
    /// The query, and the subtasks with their results.
    pub task: &'a Task,
    /// What is to be known beside the query: what the project says, what was said before.
    pub background: &'a str,
    /// What it may take at most.
    pub left: Lease,
    /// The form that the answer must have, if it must have one. Whoever asks holds the answer against it.
    pub form: Option<&'a ResponseFormat>,
    /// The last answer, if it did not fit.
    pub misfit: Option<Misfit<'a>>,
}

/// An answer that did not fit.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Misfit<'a> {
    /// The answer.
    pub answer: &'a str,
    /// What was wrong with it.
    pub problems: &'a [FormProblem],
}

impl<'a> ConclusionQuestion<'a> {
    /// A question about a task, without a background and in any form.
    pub fn new(task: &'a Task, left: Lease) -> Self {
        Self { task, background: "", left, form: None, misfit: None }
    }

    /// The same question, whose answer must have this form.
    pub fn in_form(mut self, form: &'a ResponseFormat) -> Self {
        self.form = Some(form);
        self
    }

    /// The same question again, as the last answer did not fit.
    pub fn after(mut self, answer: &'a str, problems: &'a [FormProblem]) -> Self {
        self.misfit = Some(Misfit { answer, problems });
        self
    }

    /// Whether an answer has the form that it must have.
    fn fits(&self, answer: &str) -> bool {
        self.form.is_none_or(|form| form.problems(&json_in(answer)).is_empty())
    }
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
        question: ConclusionQuestion<'a>,
        _: &'a Context,
    ) -> BoxFuture<'a, Result<Conclusion, PlanError>> {
        Box::pin(async move { Ok(Self::of(question.task)) })
    }
}

/// A model writes the answer, and cites subtasks by their ids in square brackets. The answer of an agent that did all
/// there was to do is taken as it is, and so are results where the model is small: it would only spoil them.
///
/// An answer that must have a form is JSON, in which nothing is cited: it rests on all results. What would be taken as
/// it is must fit; if it does not, the model is asked. It reads an answer of its own that did not fit again, with what is
/// wrong with it.
pub struct LlmConclusion {
    model: Asked,
    options: RequestOptions,
    is_for_forms: bool,
}

impl LlmConclusion {
    /// A model that writes answers.
    pub fn new(provider: Arc<dyn Provider>, model: impl Into<String>) -> Self {
        let model = Asked { provider, model: model.into(), price: None, others: Vec::new() };
        Self { model, options: RequestOptions::default(), is_for_forms: false }
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

    /// The same, where the results are the answer, as of [`LastResults`]: the model is asked only for a form that they do
    /// not have.
    pub fn for_forms(mut self) -> Self {
        self.is_for_forms = true;
        self
    }

    /// The results, where they are the answer without anybody being asked.
    fn as_it_is(&self, question: &ConclusionQuestion<'_>) -> Option<Conclusion> {
        let task = question.task;
        let is_small = || self.model.provider.capabilities(&self.model.model).is_small;
        let whole = || whole_answer(task).filter(|_| !self.is_for_forms);
        let results = || match (self.is_for_forms, is_small()) {
            (true, _) => Some(LastResults::of(task)),
            (false, true) => Some(as_they_are(task)),
            (false, false) => None,
        };
        let conclusion = whole().or_else(results)?;
        question.fits(&conclusion.answer).then_some(conclusion)
    }

    fn request(&self, question: &ConclusionQuestion<'_>, context: &Context) -> Request {
        let ConclusionQuestion { task, background, form, misfit, .. } = question;
        let how = match form {
            Some(_) => "Answer with JSON of the form that is asked for, and with nothing else.".to_owned(),
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
        let now = context.clock.now();
        let mut messages = vec![Message::user(text, now)];
        if let Some(misfit) = misfit {
            // Services refuse an empty message.
            if !misfit.answer.trim().is_empty() {
                let content = vec![Content::text(misfit.answer)];
                let said = AssistantMessage { content, timestamp: now, ..AssistantMessage::default() };
                messages.push(Message::Assistant(said));
            }
            messages
                .push(Message::user(misfit_note(misfit.problems, "the whole JSON, and nothing else"), now));
        }
        let mut request = Request::new(self.model.model.clone(), messages);
        let mut options = self.options.clone();
        options.response_format = form.cloned().or(options.response_format);
        request.options = Arc::new(options);
        request
    }
}

/// Characters of a result that the model reads.
const LONGEST: usize = 16_000;

impl Conclude for LlmConclusion {
    fn conclude<'a>(
        &'a self,
        question: ConclusionQuestion<'a>,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Conclusion, PlanError>> {
        Box::pin(async move {
            if let Some(conclusion) = self.as_it_is(&question) {
                return Ok(conclusion);
            }
            let (task, expenses) = (question.task, Expenses::default());
            let request = self.request(&question, context);
            let answer = self.model.ask(request, Some(question.left), &expenses, context).await?;
            let mut text = answer.text();
            if question.form.is_some() {
                let mut conclusion = Conclusion::new(text, LastResults::of(task).citations);
                conclusion.spent = expenses.total();
                return Ok(conclusion);
            }
            if text.trim().is_empty() {
                // It is paid for, and what there is has to do.
                let mut results = LastResults::of(task);
                results.spent = expenses.total();
                return Ok(results);
            }
            if answer.stop_reason == StopReason::Length {
                text.push('\n');
                text.push_str(CUT_OFF);
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
