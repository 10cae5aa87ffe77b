//! Defines the [`Agent`] trait, the outcome of a run, and the context that a run and its calls get.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    CallsUnderWay, Clock, CredentialStore, Delegation, FailureKind, Ids, Journal, LimitReached, NullSink,
    ProcessLog, Redactor, Reply, ResponseFormat, RunConfig, RunError, RunId, SeenResult, SessionId, Sink,
    Spending, StopReason, Subject, TenantId, ToolSpec, Usage,
};

/// Works on tasks: a ReAct agent, a planning agent, a team or a remote agent.
pub trait Agent: Send + Sync {
    /// Returns the agent's name, for people and for delegation.
    fn name(&self) -> &str;

    /// Works on the task until there is an outcome. A failure is an outcome too.
    ///
    /// With a [`Context::delegation`] the run may already exist, from before a crash. It is resumed then:
    /// work that has ended is not repeated.
    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome>;

    /// Returns the configuration of the agent's runs, for the log of a run that calls it, so that another
    /// process can build the same agent and resume. Default: none; then only the program that built the agent
    /// can resume.
    fn config(&self) -> Option<RunConfig> {
        None
    }

    /// Returns the same agent with structured output of this format, where its provider supports that. The
    /// caller checks the answer. Default: none; then the task has to describe the format.
    fn in_form(&self, form: &ResponseFormat) -> Option<Arc<dyn Agent>> {
        let _ = form;
        None
    }

    /// Returns the spending of a run of this agent that has no outcome yet, from its log in `journal`.
    /// Default none: then the run counts with its whole lease.
    fn used<'a>(&'a self, run: &'a RunId, journal: &'a dyn Journal) -> BoxFuture<'a, Option<Spending>> {
        let _ = (run, journal);
        Box::pin(std::future::ready(None))
    }
}

impl<A: Agent + ?Sized> Agent for Arc<A> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome> {
        (**self).run(task, context)
    }

    fn config(&self) -> Option<RunConfig> {
        (**self).config()
    }

    fn in_form(&self, form: &ResponseFormat) -> Option<Arc<dyn Agent>> {
        (**self).in_form(form)
    }

    fn used<'a>(&'a self, run: &'a RunId, journal: &'a dyn Journal) -> BoxFuture<'a, Option<Spending>> {
        (**self).used(run, journal)
    }
}

/// The end of a run, as its log keeps it. A caller that starts runs gets a [`Reply`], or a [`RunError`] if
/// the run failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Outcome {
    /// The run.
    pub run: RunId,
    /// The status: finished, failed, at a limit, cancelled or suspended.
    #[serde(flatten)]
    pub status: OutcomeStatus,
    /// The last text of the agent; read it with [`Outcome::answer`] or [`Outcome::said`].
    pub(crate) answer: String,
    /// The model's stop reason for the final answer. [`StopReason::Length`]: the token limit cut the answer
    /// off. [`StopReason::Refusal`]: the model declined, so it is no answer.
    #[serde(default, skip_serializing_if = "StopReason::is_stop")]
    pub stop_reason: StopReason,
    /// The error of a failed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of the error; see [`Outcome::failure_kind`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// The number of turns.
    pub turns: u32,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// Estimated tokens of calls for which the service reported no usage, and of calls that were lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// The cost of the run's model calls in millionths of a currency unit; none if the run has no price. A
    /// call without reported tokens counts as the amount that was reserved for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Tokens and money that child runs used.
    #[serde(default, skip_serializing_if = "Spending::is_zero")]
    pub delegated: Spending,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl Outcome {
    /// Creates an outcome without an answer.
    pub fn new(run: RunId, status: OutcomeStatus) -> Self {
        Self {
            run,
            status,
            answer: String::new(),
            stop_reason: StopReason::Stop,
            error: None,
            failure: None,
            turns: 0,
            usage: Usage::default(),
            uncounted: 0,
            cost: None,
            delegated: Spending::default(),
        }
    }

    /// Creates the outcome of a run that failed.
    pub fn failed(run: RunId, failure: FailureKind, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), failure: Some(failure), ..Self::new(run, OutcomeStatus::Failed) }
    }

    /// Sets the answer, or a partial answer, and returns the outcome.
    pub fn with_answer(mut self, answer: impl Into<String>) -> Self {
        self.answer = answer.into();
        self
    }

    /// Sets the answer, or a partial answer.
    pub fn set_answer(&mut self, answer: impl Into<String>) {
        self.answer = answer.into();
    }

    /// Returns the final answer, or the last text of a run that waits, was cancelled or met a limit. None if
    /// the run failed or has no text.
    pub fn answer(&self) -> Option<&str> {
        self.last_text().filter(|_| self.status != OutcomeStatus::Failed)
    }

    /// Returns the last text of the agent, also of a run that failed. For a failed plan or team it is the
    /// partial result.
    pub fn last_text(&self) -> Option<&str> {
        Some(self.answer.as_str()).filter(|said| !said.is_empty())
    }

    pub(crate) fn into_said(self) -> String {
        self.answer
    }

    /// Returns the kind of the failure; none if the run did not fail.
    pub fn failure_kind(&self) -> Option<FailureKind> {
        (self.status == OutcomeStatus::Failed).then(|| self.failure.unwrap_or(FailureKind::Other))
    }

    /// Returns the outcome of a run, also of one that failed, for code that treats both alike.
    ///
    /// # Errors
    /// Returns the error unchanged if it holds no outcome, for instance if the run could not be started.
    pub fn of_result(result: Result<Reply, RunError>) -> Result<Self, RunError> {
        match result {
            Ok(reply) => Ok(reply.into_outcome()),
            Err(RunError::Failed { outcome } | RunError::NotFinished { outcome }) => Ok(*outcome),
            Err(error) => Err(error),
        }
    }

    /// Returns all that the run used: its own model calls and its child runs.
    pub fn spending(&self) -> Spending {
        let mut all =
            Spending::new(self.usage.total().saturating_add(self.uncounted), self.cost.unwrap_or_default());
        all += self.delegated;
        all
    }

    /// Returns true if the model declined to answer: by its stop reason, or by the words of the answer. Such
    /// an answer is shown unchanged; the model is not asked again.
    pub fn is_refusal(&self) -> bool {
        self.stop_reason == StopReason::Refusal || crate::refusal::is_refusal(&self.answer)
    }

    /// Returns true if the answer was cut off by its token limit.
    pub fn is_cut(&self) -> bool {
        self.stop_reason == StopReason::Length
    }

    /// Returns true if the run has its answer. To tell the other cases apart, match a [`Reply`].
    pub fn is_finished(&self) -> bool {
        self.status == OutcomeStatus::Finished
    }
}

/// The status of a run that ended or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", content = "detail", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutcomeStatus {
    /// There is an answer.
    Finished,
    /// The run could not go on; `error` has the reason.
    Failed,
    /// A limit was reached.
    Limit(LimitReached),
    /// It was cancelled, and can be resumed.
    Cancelled,
    /// It waits for a person or a timer.
    Suspended,
}

/// The data that a run passes to its parts as an argument; there are no globals or task-locals.
#[derive(Clone)]
#[non_exhaustive]
pub struct Context {
    /// The current run.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// The tenant for which it works.
    pub tenant: TenantId,
    /// 0 for the run that a person started, one more for each delegation.
    pub depth: u32,
    /// Cancels the run.
    pub cancel: CancellationToken,
    /// Receives the events of the run and of its child runs. Each event names its run.
    pub sink: Arc<dyn Sink>,
    /// The source of the time.
    pub clock: Arc<dyn Clock>,
    /// The source of new ids.
    pub ids: Arc<dyn Ids>,
    /// The tenant's credentials, if the application supplied any.
    pub credentials: Option<Arc<dyn CredentialStore>>,
    /// The secrets of the run: its providers' keys, and the credentials of its tools. They are removed from
    /// everything before it is kept or shown.
    pub redactor: Redactor,
    /// Logs the processes that the run's calls start; set by the loop that runs them.
    pub processes: Option<Arc<dyn ProcessLog>>,
    /// The call that the run works for. In the context of a tool that is an agent: the current call.
    pub delegation: Option<Arc<Delegation>>,
    /// True if a person can be asked, now or later. Code that needs consent then returns
    /// [`Executed::Suspended`](crate::Executed::Suspended) or [`OutcomeStatus::Suspended`] and waits.
    pub can_ask: bool,
    /// The [binding](crate::binding) hash of the approved call: the prepared call may run if its hash is
    /// equal. Set by the loop for this one call; calls that it makes itself do not inherit it.
    pub agreed: Option<Arc<str>>,
    /// True if the call is a part of an approved call whose question listed its parts, such as a composite
    /// tool. Then only permission rules can ask about it again.
    pub agreed_above: bool,
    /// Rules under which the person wants no questions for the rest of the session.
    pub trusted: Arc<[String]>,
    /// The permission bound of the runs above: this run and its child runs may do no more.
    pub ceiling: Option<Arc<dyn Ceiling>>,
    /// The tools that led to this call, the outermost first, to detect tools that call each other in a
    /// circle.
    pub tools_above: Arc<[String]>,
    /// The results that the run's model sees, oldest first; set by the loop for the tool that removes results
    /// from the window ([`CLEANUP_TOOL`](crate::CLEANUP_TOOL)).
    pub results: Option<Arc<[SeenResult]>>,
    /// The calls of the run that are under way; set by the loop that runs them. While a call waits for other
    /// members of a team, the run may be dropped, and later resumed, if nothing else is under way. Without it
    /// the run is never dropped; so it is for calls that a tool makes.
    pub under_way: Option<CallsUnderWay>,
}

/// The permission bound of a run: the most that it may do. A bound can only restrict.
pub trait Ceiling: Send + Sync {
    /// Returns the strictest decision of the runs above about a call of this tool.
    fn verdict(&self, tool: &ToolSpec, subject: &Subject, run: &Context) -> Permit;
}

/// The decision about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permit {
    /// The call may run.
    Allow,
    /// A person has to decide.
    Ask,
    /// The call may not run, because of this rule.
    Deny(String),
}

impl Context {
    /// Creates a context at depth 0 for the tenant `local`, without watchers.
    pub fn new(run: RunId, session: SessionId, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        let clock = clock.for_run().unwrap_or(clock);
        Self {
            run,
            session,
            tenant: TenantId::new("local"),
            depth: 0,
            cancel: CancellationToken::new(),
            sink: Arc::new(NullSink),
            clock,
            ids,
            credentials: None,
            redactor: Redactor::default(),
            processes: None,
            delegation: None,
            can_ask: false,
            agreed: None,
            agreed_above: false,
            trusted: Arc::new([]),
            ceiling: None,
            tools_above: Arc::new([]),
            results: None,
            under_way: None,
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("run", &self.run)
            .field("session", &self.session)
            .field("tenant", &self.tenant)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

/// The state of a planning agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AgentState {
    /// It has not started.
    #[default]
    Idle,
    /// A plan is being made.
    Planning,
    /// Subtasks are being worked on.
    Executing,
    /// The plan is being changed.
    Replanning,
    /// It has an answer.
    Finished,
    /// It ended without an answer.
    Error,
}

/// The state of a ReAct loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReactState {
    /// It has not started.
    #[default]
    Idle,
    /// The model is being asked.
    Thinking,
    /// Tools are running.
    Acting,
    /// The model is to be given the results.
    Observing,
    /// It has an answer.
    Finished,
    /// It ended without an answer.
    Error,
}

impl ReactState {
    /// Returns true if the loop may go from this state to `next`.
    ///
    /// An answer that cannot be parsed becomes an observation, not an error, so `Thinking` may go to
    /// `Observing`. Repeated failures and a cancel lead to `Error`. Every state that is not final may go to
    /// `Finished`, for instance at a limit.
    pub fn may_become(self, next: Self) -> bool {
        use ReactState::{Acting, Error, Finished, Idle, Observing, Thinking};
        matches!(
            (self, next),
            (Idle | Acting | Observing, Thinking)
                | (Thinking, Acting)
                | (Thinking | Acting, Observing)
                | (Idle | Thinking | Acting | Observing, Finished | Error)
        )
    }
}
