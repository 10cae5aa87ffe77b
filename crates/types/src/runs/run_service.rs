//! The traits through which a command, a server, an editor or another agent starts, watches, answers and
//! resumes runs of every kind.
//!
//! | to | use |
//! |---|---|
//! | start a run once per key, find it, list runs | [`StartRuns::start`], [`StartRuns::get`], [`StartRuns::list`] |
//! | read its records, or watch it as often as you like | [`StartRuns::records`], [`StartRuns::watch`] |
//! | show the messages of a session | [`StartRuns::history`] |
//! | go on after a crash, a cancel, a failure or a limit | [`StartRuns::resume`], [`StartRuns::resume_unfinished`] |
//! | steer, cancel, answer questions | [`AnswerRuns`] |
//! | resume runs whose questions expired | [`AnswerRuns::sweep`] |
//! | fork, delete, prune, erase a tenant | [`ManageRuns`] |
//!
//! A [`RunAgent`] is the counterpart: an agent of one kind, whose runs a service begins and resumes.

use std::pin::Pin;

use futures_core::{Stream, future::BoxFuture};
use serde::Serialize;

use crate::{
    config::{ExecutionLimits, MoreLimits, RunKind},
    log::{Event, Origin, Outcome, PendingApproval, RunFilter, RunHead, Salvaged},
    messages::{AgentMessage, Message},
    tools::Answer,
    values::{AgentId, RunId, SessionId, TenantId, Timestamp},
};

use super::{context::Context, reply::Reply, run_error::RunError};

/// The complete run service: a type that implements the three parts implements this.
pub trait RunService: StartRuns + AnswerRuns + ManageRuns {}

impl<T: StartRuns + AnswerRuns + ManageRuns + ?Sized> RunService for T {}

/// Starts, resumes, lists and watches runs.
pub trait StartRuns: Send + Sync {
    /// Starts a run in the background. Returns once its first records are in the journal.
    ///
    /// If an earlier request with the same [`key`](StartRun::key) started a run, that run is returned,
    /// whatever its status, and no new one starts.
    ///
    /// # Errors
    /// The prompt is empty, the session is busy, the key belongs to a different request, no such agent is
    /// registered, the agent refuses, or the journal failed.
    fn start<'a>(&'a self, request: StartRun) -> BoxFuture<'a, Result<StartedRun, RunError>>;

    /// Resumes a run by its id alone, in the background. Returns once the records of the resumption are in
    /// the journal.
    ///
    /// A child run is resumed together with the run at the top, which a person started.
    ///
    /// # Errors
    /// The run is unknown, in use, has ended, has met a limit that `more` does not raise, or its agent is not
    /// registered.
    fn resume<'a>(
        &'a self,
        run: &'a RunId,
        more: &'a MoreLimits,
    ) -> BoxFuture<'a, Result<StartedRun, RunError>>;

    /// Returns the head of a run. Damage in the middle of a long log may go unnoticed here;
    /// [`records`](Self::records) finds it.
    ///
    /// # Errors
    /// The run is unknown (the error names the nearest ids), or the journal failed.
    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, RunError>>;

    /// Returns the runs that match a filter, the last written first. The next page begins after the
    /// [`place`](RunHead::place) of the last run.
    ///
    /// # Errors
    /// The journal failed.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, RunError>>;

    /// Returns the records of a run after the one with sequence number `after`, or all. For a damaged log it
    /// returns the records before the damage, and the damage.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn records<'a>(&'a self, run: &'a RunId, after: Option<u64>)
    -> BoxFuture<'a, Result<Salvaged, RunError>>;

    /// Returns the records after `after`, then live events, until the run ends or is suspended. Any number of
    /// watchers may watch; dropping one cancels nothing.
    ///
    /// Events of child runs are included while this process works on them. For a run that another process
    /// works on there are records only, a moment later. After an error the stream ends.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn watch<'a>(&'a self, run: &'a RunId, after: Option<u64>) -> BoxFuture<'a, Result<Watch, RunError>>;

    /// Returns the messages of a session for display: the conversation as its newest run has it. Compacted
    /// parts appear as their summary; [`records`](Self::records) returns every word. Empty for a session
    /// without runs. Until a parallel loop has chosen a branch, this is the conversation before the loop.
    ///
    /// Tenants may have sessions of the same name: `tenant` selects one; without it, the session with the
    /// newest run is used.
    ///
    /// # Errors
    /// The log of the newest run, or of one that it continues, cannot be read.
    fn history<'a>(
        &'a self,
        session: &'a SessionId,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<Message>, RunError>>;

    /// Waits until a run ends or is suspended, and returns its reply.
    ///
    /// # Errors
    /// [`RunError::Failed`]: the run failed. Otherwise as [`get`](Self::get), or the run stopped without an
    /// end and can be resumed.
    fn reply<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Reply, RunError>>;

    /// Resumes every run whose process died, of all tenants or of one. Call it when a service starts. The
    /// result has an entry for each run, with its error if it could not be resumed.
    ///
    /// # Errors
    /// The journal cannot be listed.
    fn resume_unfinished<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<ResumedRuns, RunError>>;
}

/// Steers, cancels and answers runs, whichever process works on them.
pub trait AnswerRuns: Send + Sync {
    /// Leaves a message that the model reads in its next request; tool calls that have not started are
    /// skipped.
    ///
    /// # Errors
    /// The run is unknown, has ended, or is of a kind that reads no messages.
    fn steer<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>>;

    /// Leaves a message that the model reads when the run would otherwise end.
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    fn follow_up<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>>;

    /// Cancels a run. A run that no process works on is resumed just to end it.
    ///
    /// # Errors
    /// The run is unknown or has ended.
    fn cancel<'a>(&'a self, run: &'a RunId, reason: &'a str) -> BoxFuture<'a, Result<(), RunError>>;

    /// Returns the open questions to people, the oldest first: of all tenants, or of one.
    ///
    /// # Errors
    /// The journal cannot be listed.
    fn questions<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, RunError>>;

    /// Answers a question by its id, and resumes its run. Returns false, and changes nothing, if the question
    /// was answered before, has expired or does not exist.
    ///
    /// # Errors
    /// The journal failed, changed arguments do not fit the tool, or the run cannot be resumed.
    fn answer<'a>(&'a self, request_id: &'a str, answer: Answer) -> BoxFuture<'a, Result<bool, RunError>>;

    /// Resumes the runs with an expired question, which counts as a no, and those with an answer for which no
    /// process resumed them. The result has an entry for each run, with its error if it could not be resumed.
    /// A service has to call this from time to time, since nothing else watches the deadlines of suspended
    /// runs.
    ///
    /// # Errors
    /// The journal cannot be listed.
    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<ResumedRuns, RunError>>;
}

/// Forks and deletes runs.
pub trait ManageRuns: Send + Sync {
    /// Forks a run: the new run begins with the first `turns` turns of `run`, or with all. Resume the fork,
    /// or send a prompt to its session, as [`Fork::wants_answer`] says.
    ///
    /// # Errors
    /// The run is unknown, has fewer turns, or is of a kind without turns.
    fn fork<'a>(&'a self, run: &'a RunId, turns: Option<u32>) -> BoxFuture<'a, Result<Fork, RunError>>;

    /// Deletes a run that has ended or waits, with all that is kept for it.
    ///
    /// # Errors
    /// The run is unknown, a process works on it, or other runs need it.
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), RunError>>;

    /// Deletes the runs that have ended and were last written before `before`. Runs that others need are not
    /// deleted.
    ///
    /// # Errors
    /// The journal cannot be listed, or cannot delete.
    fn prune<'a>(&'a self, before: Timestamp) -> BoxFuture<'a, Result<Removed, RunError>>;

    /// Cancels and deletes every run of a tenant. The tenant's memories and credentials are stored elsewhere
    /// and are not deleted.
    ///
    /// # Errors
    /// As [`prune`](Self::prune).
    fn erase<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Removed, RunError>>;
}

/// A request to start a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StartRun {
    /// The prompt.
    pub prompts: Vec<AgentMessage>,
    /// The id under which the agent is registered; default: the service's own agent.
    pub agent: Option<AgentId>,
    /// The kind of the run; one agent may be registered for several.
    pub kind: RunKind,
    /// The idempotency key of the request, unique per tenant.
    pub key: Option<String>,
    /// The session to continue; default: a new session.
    pub session: Option<SessionId>,
    /// The behaviour if the newest run of the session works or waits.
    pub when_busy: WhenBusy,
    /// The tenant; default: `local`.
    pub tenant: Option<TenantId>,
    /// The settings of this run that replace the agent's.
    pub settings: RunSettings,
}

/// Settings of one run that replace the agent's. They are written to the run's log, so they also hold when it
/// is resumed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunSettings {
    /// Limits, instead of the agent's.
    pub limits: Option<ExecutionLimits>,
    /// Standing instructions, instead of the agent's.
    pub system: Option<String>,
    /// The names of the agent's tools that the run may use; default: all.
    pub tools: Option<Vec<String>>,
}

impl RunSettings {
    /// Rejects settings that only a run of a single agent can have, for a kind with several agents.
    ///
    /// # Errors
    /// [`RunError::NotForKind`], if instructions or tools are set.
    pub fn refuse_for(&self, kind: RunKind) -> Result<(), RunError> {
        let what = match self {
            Self { system: Some(_), .. } => "a system text for one run",
            Self { tools: Some(_), .. } => "tools for one run",
            _ => return Ok(()),
        };
        let instead = "start a loop with it, or give it to each of the agents when they are built";
        Err(RunError::NotForKind { kind, what, instead })
    }
}

impl StartRun {
    /// Creates a request for a run of the service's own agent on a task, in a new session.
    pub fn new(task: impl Into<String>) -> Self {
        Self::with_messages(vec![Message::user(task, Timestamp::default()).into()])
    }

    /// Creates a request with messages of any content. Messages without a date get the time at which the run
    /// starts.
    pub fn with_messages(prompts: Vec<AgentMessage>) -> Self {
        Self {
            prompts,
            agent: None,
            kind: RunKind::Loop,
            key: None,
            session: None,
            when_busy: WhenBusy::default(),
            tenant: None,
            settings: RunSettings::default(),
        }
    }

    /// Sets the agent.
    pub fn agent(mut self, agent: impl Into<AgentId>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Sets the kind of the run.
    pub fn kind(mut self, kind: RunKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the idempotency key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the session to continue.
    pub fn session(mut self, session: impl Into<SessionId>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the behaviour for a busy session.
    pub fn when_busy(mut self, choice: WhenBusy) -> Self {
        self.when_busy = choice;
        self
    }

    /// Sets the tenant.
    pub fn tenant(mut self, tenant: impl Into<TenantId>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Sets the limits of this run.
    pub fn limits(mut self, limits: ExecutionLimits) -> Self {
        self.settings.limits = Some(limits);
        self
    }

    /// Sets the standing instructions of this run.
    pub fn system(mut self, instructions: impl Into<String>) -> Self {
        self.settings.system = Some(instructions.into());
        self
    }

    /// Sets the names of the agent's tools that this run may use.
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.settings.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }
}

/// The behaviour for a message to a session whose newest run works or waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenBusy {
    /// The message is refused with [`RunError::SessionBusy`].
    #[default]
    Refuse,
    /// The run reads the message when it would otherwise end, as with [`AnswerRuns::follow_up`]; if it ends
    /// without reading it, the message begins the next run of the session. The key of such a request is not
    /// kept: if it is sent again, it is queued again.
    Queue,
    /// The message starts a parallel run in the session. Neither run sees the messages of the other.
    Branch,
}

/// A run that a service started, resumed or found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartedRun {
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: SessionId,
    /// The way in which the service got the run.
    pub how: Started,
}

/// The way in which a service got a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Started {
    /// It was started now.
    New,
    /// It was resumed now.
    Resumed,
    /// An earlier request with the same idempotency key had started it.
    Before,
    /// It was running already, and reads the message when it would otherwise end.
    Queued,
}

/// The result of forking a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fork {
    /// The new run. Resume it, or send a prompt to its session.
    pub run: RunId,
    /// The session of both runs.
    pub session: SessionId,
    /// The run that was forked.
    pub of: RunId,
    /// The number of that run's records that both share.
    pub records: u64,
    /// The number of that run's turns that both share.
    pub turns: u32,
    /// True if the model answers next, when the fork is resumed; false if the fork waits for a prompt.
    pub wants_answer: bool,
}

impl StartedRun {
    /// Creates a started run.
    pub fn new(run: RunId, session: SessionId, how: Started) -> Self {
        Self { run, session, how }
    }
}

/// The result of deleting runs.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Removed {
    /// The runs that were deleted.
    pub runs: Vec<RunId>,
    /// The runs that were not deleted, with the reason.
    pub left: Vec<(RunId, RunError)>,
}

/// The result of resuming several runs, with an entry for each. It iterates over the entries.
///
/// A run that cannot be resumed does not stop the others, so its error is reported only here and must not be
/// dropped:
///
/// ```
/// use archon_types::{RunError, StartRuns};
///
/// # async fn run(runs: &dyn StartRuns) -> Result<(), RunError> {
/// for (run, error) in runs.resume_unfinished(None).await?.failures() {
///     eprintln!("{run} cannot go on: {error} ({})", error.advice());
/// }
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # async fn run(runs: &dyn archon_types::StartRuns) -> Result<(), archon_types::RunError> {
/// runs.resume_unfinished(None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[must_use = "a run that cannot go on is named here alone: look at `failures`, or ask for `all_ok`"]
pub struct ResumedRuns(Vec<(RunId, Result<StartedRun, RunError>)>);

impl ResumedRuns {
    /// Returns the runs that were resumed.
    pub fn started(&self) -> impl Iterator<Item = &StartedRun> {
        self.0.iter().filter_map(|(_, resumed)| resumed.as_ref().ok())
    }

    /// Returns the runs that could not be resumed, each with the reason.
    pub fn failures(&self) -> impl Iterator<Item = (&RunId, &RunError)> {
        self.0.iter().filter_map(|(run, resumed)| Some((run, resumed.as_ref().err()?)))
    }

    /// Returns the resumed runs, if all could be resumed.
    ///
    /// # Errors
    /// The error of the first run that could not be resumed.
    pub fn all_ok(self) -> Result<Vec<StartedRun>, RunError> {
        self.0.into_iter().map(|(_, resumed)| resumed).collect()
    }

    /// Returns the number of runs that were to be resumed.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if no run was to be resumed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(RunId, Result<StartedRun, RunError>)> for ResumedRuns {
    fn from_iter<I: IntoIterator<Item = (RunId, Result<StartedRun, RunError>)>>(runs: I) -> Self {
        Self(runs.into_iter().collect())
    }
}

impl IntoIterator for ResumedRuns {
    type Item = (RunId, Result<StartedRun, RunError>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The event stream of [`StartRuns::watch`].
pub type Watch = Pin<Box<dyn Stream<Item = Result<Event, RunError>> + Send>>;

/// An agent of one kind whose runs a service begins and resumes.
///
/// The log of a run holds all that the agent needs to resume it. A failed run is an outcome here, since its
/// log has it; the service turns it into an error.
pub trait RunAgent: Send + Sync {
    /// Returns the kind of its runs.
    fn kind(&self) -> RunKind;

    /// Returns its id, which is written to the logs of its runs so that they can be resumed.
    fn id(&self) -> AgentId;

    /// Begins the run that `context` names, and works on it until it ends or is suspended.
    ///
    /// # Errors
    /// The run could not be begun or logged, or its kind cannot have the settings: the error names the kind.
    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        settings: RunSettings,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>>;

    /// Resumes the run that `context` names at the end of its log, with larger limits if `more` has any.
    ///
    /// # Errors
    /// The run cannot be resumed.
    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>>;

    /// Checks an answer to a question before it is kept, for instance changed arguments against the tool's
    /// schema, or a changed plan. Default: accepts every answer.
    ///
    /// # Errors
    /// The answer cannot be accepted; the question stays open.
    fn check_answer<'a>(
        &'a self,
        pending: &'a PendingApproval,
        answer: &'a Answer,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<(), RunError>> {
        let _ = (pending, answer, context);
        Box::pin(std::future::ready(Ok(())))
    }
}
