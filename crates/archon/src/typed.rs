//! Structured output: a type gives the JSON schema of the answer, which is read as a value of that type.
//!
//! The first record of the run has the schema, so a resume requests the same. An answer that does not match
//! is sent back within the run, with the problems; the log has the checks. For a plan or a team the schema is
//! for the combined answer at its end; results of subtasks may have any format.

use archon_types::{Json, Outcome, OutputCheck, Reply, ResponseFormat};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, json};

use crate::{Archon, ParallelReply, RunError, RunHandle, RunOptions};

/// The JSON schema that answers must match, for [`Archon::answering`].
///
/// ```
/// use archon::OutputSchema;
///
/// # #[derive(schemars::JsonSchema)]
/// # struct City { name: String }
/// let by_type = OutputSchema::of::<City>().with_retries(3);
/// let schema = serde_json::json!({ "type": "object", "properties": { "name": { "type": "string" } } });
/// let written = OutputSchema::new("City", schema);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSchema {
    pub(crate) format: ResponseFormat,
    pub(crate) check: OutputCheck,
}

/// The answer of a run as a value of the type `T`, with the outcome of the run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Typed<T> {
    /// The value of the answer.
    pub value: T,
    /// The outcome of the run; [`Outcome::answer`] is the JSON of the value.
    pub outcome: Outcome,
}

impl OutputSchema {
    /// Creates the schema of a type. Services require an object, so any other type becomes the only field,
    /// `value`, of an object.
    pub fn of<T: JsonSchema>() -> Self {
        Self::new(T::schema_name(), object_of::<T>())
    }

    /// Creates a schema (JSON Schema draft 2020-12) with the name that the model sees.
    pub fn new(name: impl Into<String>, schema: Json) -> Self {
        let format = ResponseFormat { name: name.into(), schema };
        Self { format, check: OutputCheck::default() }
    }

    /// Sets the maximum number of answers that are sent back because they do not match. Default 2.
    pub fn with_retries(mut self, retries: u32) -> Self {
        self.check.retries = retries;
        self
    }
}

impl<T: DeserializeOwned + JsonSchema> Typed<T> {
    /// Reads the answer of a run as a `T`. The run must have the schema that [`OutputSchema::of`] makes of
    /// `T`; the run may be a loop, a plan or a team, resumed or not. The last text of a run at a limit counts
    /// as an answer if it matches; see [`Outcome::status`].
    ///
    /// # Errors
    /// [`RunError::NotTyped`] if the answer does not match the type. [`RunError::NotFinished`] if there is no
    /// answer, since the run ended at a limit, is suspended or was cancelled.
    pub fn of(reply: Reply) -> Result<Self, RunError> {
        let outcome = match reply {
            Reply::AtLimit(..) if reply.outcome().last_text().is_some() => reply.into_outcome(),
            reply => reply.into_answer()?.into_outcome(),
        };
        match read(&outcome) {
            Ok(value) => Ok(Self { value, outcome }),
            Err(problem) => Err(RunError::NotTyped { problem, outcome: Box::new(outcome) }),
        }
    }
}

impl Archon {
    /// Returns this agent with structured output: its answers must be JSON of this schema. Its tools stay the
    /// same. An answer that does not match is sent back. After the last retry the run fails, and the error
    /// has the problems.
    ///
    /// The schema applies to everything that the agent starts: its runs and conversations, its calls as a
    /// tool of another agent, and the answers of its plans (`planning`, `run_task`), teams (`team`) and
    /// parallel loops ([`parallel`](Self::parallel), in which each branch must match the schema). It does not
    /// apply to subtasks of a plan or tasks of team members.
    pub fn answering(&self, schema: OutputSchema) -> Self {
        let mut archon = self.clone();
        archon.agent = archon.agent.with_output_schema(schema.format, schema.check);
        archon
    }

    /// Returns the schema of this agent's answers; `None` if it has none.
    pub(crate) fn output_schema(&self) -> Option<OutputSchema> {
        let own = self.agent.options();
        Some(OutputSchema { format: own.output_format()?.clone(), check: own.output_check? })
    }

    /// Works on a task until there is an answer that is a `T`, in a new session.
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
    /// As [`run`](Self::run) and [`Typed::of`]. If the answer after the last retry does not match, a
    /// [`RunError::Failed`] of the kind [`StructuredOutput`](archon_types::FailureKind::StructuredOutput);
    /// resuming the run tries again.
    pub async fn run_typed<T>(&self, task: impl Into<String>) -> Result<Typed<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        self.run_typed_with(task, RunOptions::default()).await
    }

    /// Does the same as [`run_typed`](Self::run_typed), with options. To watch the run, start it with
    /// [`answering`](Self::answering), and wait with [`RunHandle::typed`].
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
        Typed::of(self.answering(OutputSchema::of::<T>()).run_with(task, options).await?)
    }
}

#[cfg(feature = "planner")]
impl crate::Planning {
    /// Returns this planning agent with structured output: the combined answer of a plan must be JSON of this
    /// schema. An answer that does not match is sent back. After the last retry the run fails, and the error
    /// has the problems. Subtasks may have any result.
    ///
    /// If the results of the last subtasks become the answer unchanged, they must match the schema; this
    /// agent's model is asked only if they do not. A conclusion of your own ([`with`](Self::with)) gets the
    /// schema, and its answer must match too.
    pub fn answering(&self, schema: OutputSchema) -> Self {
        self.clone().with(|agent| agent.with_output_schema(schema.format, schema.check))
    }

    /// Makes a plan and executes it until there is an answer that is a `T`.
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
    /// As [`run`](Self::run) and [`Typed::of`]. If the answer after the last retry does not match, a
    /// [`RunError::Failed`] of the kind [`StructuredOutput`](archon_types::FailureKind::StructuredOutput);
    /// resuming the run tries again.
    pub async fn run_typed<T>(&self, task: impl Into<String>) -> Result<Typed<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        self.run_typed_with(task, RunOptions::default()).await
    }

    /// Does the same as [`run_typed`](Self::run_typed), with options. To watch the run, start it with
    /// [`answering`](Self::answering), and wait with [`RunHandle::typed`].
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
        Typed::of(self.answering(OutputSchema::of::<T>()).run_with(task, options).await?)
    }
}

#[cfg(feature = "orchestrator")]
impl crate::Teamwork {
    /// Returns this team with structured output: the combined answer of the lead must be JSON of this schema.
    /// If it does not match, the lead gets the problems and answers again. After the last retry the run
    /// fails, and the error has the problems. Members may give any answer, and a reviewer sees only answers
    /// that match.
    pub fn answering(&self, schema: OutputSchema) -> Self {
        self.clone().with(|team| team.with_output_schema(schema.format, schema.check))
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
    /// As [`run`](Self::run) and [`Typed::of`]. If the answer after the last retry does not match, a
    /// [`RunError::Failed`] of the kind [`StructuredOutput`](archon_types::FailureKind::StructuredOutput);
    /// resuming the run tries again.
    pub async fn run_typed<T>(&self, task: impl Into<String>) -> Result<Typed<T>, RunError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        self.run_typed_with(task, RunOptions::default()).await
    }

    /// Does the same as [`run_typed`](Self::run_typed), with options. To watch the run, start it with
    /// [`answering`](Self::answering), and wait with [`RunHandle::typed`].
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
        Typed::of(self.answering(OutputSchema::of::<T>()).run_with(task, options).await?)
    }
}

impl ParallelReply {
    /// Reads the answer of the selected branch as a value. The branches must have structured output of this
    /// type: call [`answering`](Archon::answering) on each, or on the agent that created the
    /// [`Parallel`](crate::Parallel) loop.
    ///
    /// # Errors
    /// As [`Typed::of`].
    pub fn typed<T: DeserializeOwned + JsonSchema>(self) -> Result<Typed<T>, RunError> {
        Typed::of(self.reply)
    }
}

impl RunHandle {
    /// Waits for the reply and reads its answer as a value, also of a plan, a team or a resumed run.
    ///
    /// # Errors
    /// As [`reply`](Self::reply) and [`Typed::of`].
    pub async fn typed<T: DeserializeOwned + JsonSchema>(self) -> Result<Typed<T>, RunError> {
        Typed::of(self.reply().await?)
    }
}

fn read<T: DeserializeOwned + JsonSchema>(outcome: &Outcome) -> Result<T, String> {
    // The text at a limit that does not fit.
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

/// Returns the schema of a type, or of an object with the type as its only field.
fn object_of<T: JsonSchema>() -> Json {
    let schema = schema_of::<T>();
    if is_object(&schema) {
        return schema;
    }
    // A subschema instead of the root schema, because a recursive type refers to its root.
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

/// The name of the field for a type that is not an object.
const VALUE: &str = "value";
