//! Answers as values: a type says which form the answer has, and the answer is read as that type.
//!
//! The form is in the run's first record, so whoever takes the run up asks for the same. An answer that does not fit
//! is sent back within the run, with what is wrong with it; what was found is in the log. The answer of a plan or of a
//! team is what is put together at its end; what its subtasks come to may be of any form.

use archon_types::{FormCheck, Json, Outcome, Reply, ResponseFormat};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, json};

use crate::{Archon, ParallelReply, RunError, RunHandle, RunOptions};

/// The form that answers must have; for [`Archon::answering`].
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerForm {
    format: ResponseFormat,
    check: FormCheck,
}

/// A value, and the outcome of the run that gave it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Typed<T> {
    /// What the run answered.
    pub value: T,
    /// How it came to it. Its `answer` is the JSON of the value.
    pub outcome: Outcome,
}

impl AnswerForm {
    /// The form of a type. Services want an object, so another type is the one field `value` of an object.
    pub fn of<T: JsonSchema>() -> Self {
        Self::new(T::schema_name(), object_of::<T>())
    }

    /// JSON of a schema (draft 2020-12), which the model is told by this name.
    pub fn new(name: impl Into<String>, schema: Json) -> Self {
        let format = ResponseFormat { name: name.into(), schema };
        Self { format, check: FormCheck::default() }
    }

    /// How many answers that do not fit are sent back; 2 by default.
    pub fn with_retries(mut self, retries: u32) -> Self {
        self.check.retries = retries;
        self
    }

    #[cfg(feature = "planner")]
    pub(crate) fn of_plan(self, agent: archon_planner::PlanningAgent) -> archon_planner::PlanningAgent {
        agent.with_form(self.format, self.check)
    }

    #[cfg(feature = "orchestrator")]
    pub(crate) fn of_team(self, team: archon_orchestrator::Team) -> archon_orchestrator::Team {
        team.with_form(self.format, self.check)
    }
}

impl<T: DeserializeOwned + JsonSchema> Typed<T> {
    /// Reads the answer of a run that was started with [`AnswerForm::of`] this type, of a loop, a plan or a team, whoever
    /// took it up since. The last words at a limit are an answer too, if they fit: [`Outcome::status`] tells.
    ///
    /// # Errors
    /// [`RunError::NotTyped`]: the answer is of another type. [`RunError::NotFinished`]: there is none, because the run
    /// met a limit, waits or was cancelled.
    pub fn of(reply: Reply) -> Result<Self, RunError> {
        let outcome = match reply {
            Reply::AtLimit(..) if reply.outcome().said().is_some() => reply.into_outcome(),
            reply => reply.into_answer()?.into_outcome(),
        };
        match read(&outcome) {
            Ok(value) => Ok(Self { value, outcome }),
            Err(problem) => Err(RunError::NotTyped { problem, outcome: Box::new(outcome) }),
        }
    }
}

impl Archon {
    /// The same agent, whose answers are JSON of this form. Tools stay as they are. An answer that does not fit is
    /// sent back; when that was done often enough, the run fails and says what does not fit, and where.
    ///
    /// This holds for whatever the agent begins: its runs and conversations, its calls as a tool of another agent, and
    /// the answers of its plans (`planning`, `run_task`), teams (`team`) and parallel loops
    /// ([`parallel`](Self::parallel), of which each branch answers in the form).
    /// The subtasks of a plan and the jobs of a team are not held to it.
    pub fn answering(&self, form: AnswerForm) -> Self {
        let mut archon = self.clone();
        archon.agent = archon.agent.with_form(form.format, form.check);
        archon
    }

    /// The form of this agent's answers, if they have one.
    pub(crate) fn form(&self) -> Option<AnswerForm> {
        let own = self.agent.options();
        Some(AnswerForm { format: own.form()?.clone(), check: own.form_check? })
    }

    /// Works on a task until there is an answer that is a `T`, in a session of its own.
    ///
    /// ```no_run
    /// use archon::schemars::{self, JsonSchema};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct City {
    ///     name: String,
    ///     /// How many people live there.
    ///     people: u64,
    /// }
    ///
    /// # async fn run() -> Result<(), archon::RunError> {
    /// let agent = archon::Archon::builder().model("ollama:qwen3").build()?;
    /// let city = agent.run_typed::<City>("The largest city of France?").await?.value;
    /// println!("{}: {}", city.name, city.people);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run) and [`Typed::of`]. An answer that does not fit, after all that were sent back, is a
    /// [`RunError::Failed`] of the kind [`Form`](archon_types::FailureKind::Form).
    pub async fn run_typed<T>(&self, task: impl Into<String>) -> Result<Typed<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        self.run_typed_with(task, RunOptions::default()).await
    }

    /// As [`run_typed`](Self::run_typed), on the caller's own task. To watch, start an agent that is
    /// [`answering`](Self::answering) in the form, and wait with [`RunHandle::typed`].
    ///
    /// # Errors
    /// As [`run_typed`](Self::run_typed); and the session of `options` has no run.
    pub async fn run_typed_with<T>(
        &self,
        task: impl Into<String>,
        options: RunOptions,
    ) -> Result<Typed<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        Typed::of(self.answering(AnswerForm::of::<T>()).run_with(task, options).await?)
    }
}

#[cfg(feature = "planner")]
impl crate::Planning {
    /// The same, whose answer is JSON of this form: what is put together at the end of a plan. One that does not fit is
    /// sent back; when that was done often enough, the run fails and says what does not fit, and where. Subtasks may
    /// come to anything.
    ///
    /// Where the last results are the answer as they are, they must fit; this agent's model is asked only if they do
    /// not. A conclusion of the program's own ([`with`](Self::with)) is told of the form and held to it.
    pub fn answering(&self, form: AnswerForm) -> Self {
        self.clone().with(|agent| form.of_plan(agent))
    }

    /// Makes a plan and follows it until there is an answer that is a `T`.
    ///
    /// ```no_run
    /// use archon::schemars::{self, JsonSchema};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Trip {
    ///     city: String,
    ///     days: u8,
    /// }
    ///
    /// # async fn run() -> Result<(), archon::RunError> {
    /// let agent = archon::Archon::builder().model("ollama:qwen3").build()?;
    /// let planning = agent.planning(agent.planner());
    /// let trip = planning.run_typed::<Trip>("Plan a trip to the largest city of France").await?.value;
    /// println!("{} days in {}", trip.days, trip.city);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run) and [`Typed::of`]. An answer that does not fit, after all that were sent back, is a
    /// [`RunError::Failed`] of the kind [`Form`](archon_types::FailureKind::Form); resuming the run tries again.
    pub async fn run_typed<T>(&self, task: impl Into<String>) -> Result<Typed<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        self.run_typed_with(task, RunOptions::default()).await
    }

    /// As [`run_typed`](Self::run_typed), with options. To watch, start what is [`answering`](Self::answering) in the
    /// form, and wait with [`RunHandle::typed`].
    ///
    /// # Errors
    /// As [`run_typed`](Self::run_typed) and [`run_with`](Self::run_with).
    pub async fn run_typed_with<T>(
        &self,
        task: impl Into<String>,
        options: RunOptions,
    ) -> Result<Typed<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        Typed::of(self.answering(AnswerForm::of::<T>()).run_with(task, options).await?)
    }
}

#[cfg(feature = "orchestrator")]
impl crate::Teamwork {
    /// The same team, whose answer is JSON of this form: what the lead puts together. If it does not fit, the lead puts
    /// it together anew, with what is wrong; when that was done often enough, the run fails and says what does not fit,
    /// and where. Members may answer anything, and a reviewer sees only what fits.
    pub fn answering(&self, form: AnswerForm) -> Self {
        self.clone().with(|team| form.of_team(team))
    }

    /// Works on a task until there is an answer that is a `T`.
    ///
    /// ```no_run
    /// use archon::schemars::{self, JsonSchema};
    ///
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Finding {
    ///     rises: bool,
    ///     millimetres_a_year: f64,
    /// }
    ///
    /// # async fn run(team: archon::Teamwork) -> Result<(), archon::RunError> {
    /// let finding = team.run_typed::<Finding>("Does the sea rise?").await?.value;
    /// println!("{} mm a year", finding.millimetres_a_year);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run) and [`Typed::of`]. An answer that does not fit, after all that were sent back, is a
    /// [`RunError::Failed`] of the kind [`Form`](archon_types::FailureKind::Form); resuming the run tries again.
    pub async fn run_typed<T>(&self, task: impl Into<String>) -> Result<Typed<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        self.run_typed_with(task, RunOptions::default()).await
    }

    /// As [`run_typed`](Self::run_typed), with options. To watch, start a team that is [`answering`](Self::answering) in
    /// the form, and wait with [`RunHandle::typed`].
    ///
    /// # Errors
    /// As [`run_typed`](Self::run_typed) and [`run_with`](Self::run_with).
    pub async fn run_typed_with<T>(
        &self,
        task: impl Into<String>,
        options: RunOptions,
    ) -> Result<Typed<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        Typed::of(self.answering(AnswerForm::of::<T>()).run_with(task, options).await?)
    }
}

impl ParallelReply {
    /// Reads the answer of the branch that was chosen, where the branches answer in the form of this type: they are
    /// [`answering`](Archon::answering) in it, or the agent is that made the [`Parallel`](crate::Parallel).
    ///
    /// # Errors
    /// As [`Typed::of`].
    pub fn typed<T: DeserializeOwned + JsonSchema>(self) -> Result<Typed<T>, RunError> {
        Typed::of(self.reply)
    }
}

impl RunHandle {
    /// Waits for the reply, and reads its answer; also of a plan or a team, and of a run that was taken up.
    ///
    /// # Errors
    /// As [`reply`](Self::reply) and [`Typed::of`].
    pub async fn typed<T: DeserializeOwned + JsonSchema>(self) -> Result<Typed<T>, RunError> {
        Typed::of(self.reply().await?)
    }
}

fn read<T: DeserializeOwned + JsonSchema>(outcome: &Outcome) -> Result<T, String> {
    // What was said at a limit and does not fit.
    if let Some(misfit) = &outcome.error {
        return Err(misfit.clone());
    }
    let answer = outcome.answer().unwrap_or_default();
    let refused = |error: serde_json::Error| format!("the answer is of another type: {error}");
    if is_object(&schema_of::<T>()) {
        return serde_json::from_str(answer).map_err(refused);
    }
    let mut fields: Map<String, Json> = serde_json::from_str(answer).map_err(refused)?;
    serde_json::from_value(fields.remove(VALUE).unwrap_or_default()).map_err(refused)
}

/// The schema of a type, or of an object with the type as its one field.
fn object_of<T: JsonSchema>() -> Json {
    let schema = schema_of::<T>();
    if is_object(&schema) {
        return schema;
    }
    // Not the root, which a type that holds itself would refer to.
    let mut generator = SchemaGenerator::default();
    let value = generator.subschema_for::<T>().to_value();
    json!({
        "type": "object",
        "properties": {VALUE: value},
        "required": [VALUE],
        "additionalProperties": false,
        "$defs": generator.take_definitions(true)
    })
}

fn schema_of<T: JsonSchema>() -> Json {
    SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

fn is_object(schema: &Json) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object")
}

/// The field of what is no object by itself.
const VALUE: &str = "value";
