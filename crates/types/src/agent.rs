//! Agents: a task in, an outcome out, and the context that is handed down a run.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{
    Clock, CredentialStore, Delegation, FailureKind, Ids, LimitReached, NullSink, ProcessLog, Redactor,
    Reply, ResponseFormat, RunConfig, RunError, RunId, SeenResult, SessionId, Sink, Spending, StopReason,
    Subject, TenantId, ToolSpec, Usage,
};

/// Something that works on a task: a ReAct agent, a planning agent, a team, an agent elsewhere.
pub trait Agent: Send + Sync {
    /// The agent's name, for people and for delegation.
    fn name(&self) -> &str;

    /// Works on the task until there is an outcome. Failures are outcomes too.
    ///
    /// With a [`Context::delegation`] the run may be there already, from before a crash. What has ended
    /// then is not repeated, and what was cut off goes on.
    fn run<'a>(&'a self, task: &'a str, context: &'a Context) -> BoxFuture<'a, Outcome>;

    /// What its runs begin with, for the log of a run that calls it: whoever resumes that run elsewhere builds the same
    /// agent from it. None by default: then only the program that built the agent can.
    fn config(&self) -> Option<RunConfig> {
        None
    }

    /// The same agent, whose model is asked for answers in this form where its service knows forms. Whoever asks holds
    /// the answer against the form. None by default: then the task has to describe it.
    fn in_form(&self, form: &ResponseFormat) -> Option<Arc<dyn Agent>> {
        let _ = form;
        None
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
}

/// How a run ended, as its log keeps it. Who starts runs gets a [`Reply`], or a [`RunError`] if it failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Outcome {
    /// The run.
    pub run: RunId,
    /// How it ended.
    #[serde(flatten)]
    pub status: OutcomeStatus,
    /// What was said last: [`Outcome::answer`], [`Outcome::said`].
    pub(crate) answer: String,
    /// Why the model ended the final answer. [`StopReason::Length`]: the limit of its tokens cut the answer off.
    /// [`StopReason::Refusal`]: it is no answer.
    #[serde(default, skip_serializing_if = "StopReason::is_stop")]
    pub stop_reason: StopReason,
    /// Why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of that: [`Outcome::failure_kind`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// Turns that were taken.
    pub turns: u32,
    /// Tokens of all model calls.
    pub usage: Usage,
    /// Tokens of calls that no service counted, and of calls that were lost: an estimate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// What they cost, where the run has a price: millionths of a currency unit. A call whose tokens
    /// nobody reported counts as what was set aside for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// What the agents used that it called, in tokens and money.
    #[serde(default, skip_serializing_if = "Spending::is_zero")]
    pub delegated: Spending,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl Outcome {
    /// An outcome without an answer yet.
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

    /// A run that failed before it could say more.
    pub fn failed(run: RunId, failure: FailureKind, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), failure: Some(failure), ..Self::new(run, OutcomeStatus::Failed) }
    }

    /// The same outcome with an answer, or with the best there is.
    pub fn with_answer(mut self, answer: impl Into<String>) -> Self {
        self.answer = answer.into();
        self
    }

    /// Sets the answer, or the best there is.
    pub fn set_answer(&mut self, answer: impl Into<String>) {
        self.answer = answer.into();
    }

    /// The final answer, or the best there is of a run that waits, was cancelled or met a limit. None if the run failed,
    /// or said nothing.
    pub fn answer(&self) -> Option<&str> {
        self.said().filter(|_| self.status != OutcomeStatus::Failed)
    }

    /// What was said last, however the run ended: of a plan or a team that failed, what there is so far.
    pub fn said(&self) -> Option<&str> {
        Some(self.answer.as_str()).filter(|said| !said.is_empty())
    }

    pub(crate) fn into_said(self) -> String {
        self.answer
    }

    /// Why the run failed; none if it did not.
    pub fn failure_kind(&self) -> Option<FailureKind> {
        (self.status == OutcomeStatus::Failed).then(|| self.failure.unwrap_or(FailureKind::Other))
    }

    /// The record of a run that ended, whether it failed or not: for whoever shows both alike.
    ///
    /// # Errors
    /// Those that are not about how the run ended.
    pub fn of_result(result: Result<Reply, RunError>) -> Result<Self, RunError> {
        match result {
            Ok(reply) => Ok(reply.into_outcome()),
            Err(RunError::Failed { outcome } | RunError::NotFinished { outcome }) => Ok(*outcome),
            Err(error) => Err(error),
        }
    }

    /// All that the run used: its own model calls, and the agents that it called.
    pub fn spending(&self) -> Spending {
        let mut all =
            Spending::new(self.usage.total().saturating_add(self.uncounted), self.cost.unwrap_or_default());
        all += self.delegated;
        all
    }

    /// Whether the answer declines to do what was asked: the service says so, or its words do. Such an answer is shown
    /// as it is: nobody argues with it.
    pub fn is_refusal(&self) -> bool {
        self.stop_reason == StopReason::Refusal || crate::refusal::is_refusal(&self.answer)
    }

    /// Whether the answer was cut off by the limit of its tokens.
    pub fn is_cut(&self) -> bool {
        self.stop_reason == StopReason::Length
    }

    /// Whether the agent answered. Who has to say more matches a [`Reply`].
    pub fn is_finished(&self) -> bool {
        self.status == OutcomeStatus::Finished
    }
}

/// How a run ended, or that it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", content = "detail", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutcomeStatus {
    /// There is an answer.
    Finished,
    /// It could not go on; `error` says why.
    Failed,
    /// A limit was reached.
    Limit(LimitReached),
    /// It was cancelled, and can be resumed.
    Cancelled,
    /// It waits for somebody.
    Suspended,
}

/// What is handed down a run, explicitly: never a global, never hidden in a task-local.
#[derive(Clone)]
#[non_exhaustive]
pub struct Context {
    /// The run that works.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// On whose behalf.
    pub tenant: TenantId,
    /// 0 for the run that a person started, one more for each delegation.
    pub depth: u32,
    /// Fires when the run is to stop.
    pub cancel: CancellationToken,
    /// Receives the run's events, and those of the runs that it calls. Each names its run.
    pub sink: Arc<dyn Sink>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Identity.
    pub ids: Arc<dyn Ids>,
    /// The tenant's accounts, if the application gave any.
    pub credentials: Option<Arc<dyn CredentialStore>>,
    /// The secrets that the run holds: its providers' keys, and the credentials that its tools are given. They are
    /// taken out of everything before it is kept or shown.
    pub redactor: Redactor,
    /// Writes down the processes that the run's calls start; set by the loop that runs them.
    pub processes: Option<Arc<dyn ProcessLog>>,
    /// The call that the run works for; in the context of a tool that is an agent, the call under way.
    pub delegation: Option<Arc<Delegation>>,
    /// Somebody can be asked, at once or later: who would act without consent says what it waits for instead
    /// ([`Executed::Suspended`](crate::Executed::Suspended), [`OutcomeStatus::Suspended`]).
    pub can_ask: bool,
    /// To what a person agreed, of the call that is prepared ([`binding`](crate::binding)): it may run if it is exactly
    /// that. Set by the loop for this one call; none for whatever a call makes itself.
    pub agreed: Option<Arc<str>>,
    /// The call is a part of one that a person agreed to, and the question named its parts, as those of a composite tool
    /// are: only rules ask about it once more.
    pub agreed_above: bool,
    /// Rules under which a person wants no questions for the rest of the session.
    pub trusted: Arc<[String]>,
    /// What the runs above may do: a run that they call may do no more.
    pub ceiling: Option<Arc<dyn Ceiling>>,
    /// The tools that call each other on the way here, the outermost first.
    pub tools_above: Arc<[String]>,
    /// The results that the run's model sees, oldest first; set by the loop for the tool that gives some up
    /// ([`CLEANUP_TOOL`](crate::CLEANUP_TOOL)).
    pub results: Option<Arc<[SeenResult]>>,
}

/// What those above a run may do. It can only narrow.
pub trait Ceiling: Send + Sync {
    /// What they would have to ask about, or may not do at all, of a call of this tool.
    fn verdict(&self, tool: &ToolSpec, subject: &Subject, run: &Context) -> Permit;
}

/// What may be done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permit {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It may not run, because of this rule.
    Deny(String),
}

impl Context {
    /// A context at depth 0 for the tenant `local`, which nobody watches.
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

/// What a planning agent is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AgentState {
    /// Nothing yet.
    #[default]
    Idle,
    /// A plan is being made.
    Planning,
    /// Subtasks are being worked on.
    Executing,
    /// The plan is being changed.
    Replanning,
    /// There is an answer.
    Finished,
    /// There will be none.
    Error,
}

/// What a loop of thinking and acting is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReactState {
    /// Nothing yet.
    #[default]
    Idle,
    /// The model is being asked.
    Thinking,
    /// Tools are running.
    Acting,
    /// Results go to the model.
    Observing,
    /// There is an answer.
    Finished,
    /// There will be none.
    Error,
}

impl ReactState {
    /// Whether the loop may go from here to `next`.
    ///
    /// An answer that cannot be understood is an observation, not an error, so thinking goes on to
    /// observing; repeated failures or a cancel end in an error. A limit or a goal that is met ends
    /// the loop wherever it is.
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
