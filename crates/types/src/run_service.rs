//! The one handle on runs: a command, a server, an editor or another agent starts, watches, answers and resumes every
//! kind of run through these traits.
//!
//! | to | use |
//! |---|---|
//! | start a run once per key, find it, list runs | [`StartRuns::start`], [`StartRuns::get`], [`StartRuns::list`] |
//! | read its records, or watch it as often as you like | [`StartRuns::records`], [`StartRuns::watch`] |
//! | show the messages of a session | [`StartRuns::history`] |
//! | go on after a crash, a cancel, a failure or a limit | [`StartRuns::resume`], [`StartRuns::resume_unfinished`] |
//! | steer, cancel, answer questions | [`AnswerRuns`] |
//! | let runs go on whose questions nobody answered in time | [`AnswerRuns::sweep`] |
//! | fork, delete, prune, erase a tenant | [`KeepRuns`] |
//!
//! A [`RunAgent`] is the other side: an agent of one kind whose runs a service begins and resumes.

use std::pin::Pin;

use futures_core::{Stream, future::BoxFuture};
use serde::Serialize;

use crate::{
    AgentId, AgentMessage, Answer, Context, Event, ExecutionLimits, Message, MoreLimits, Origin, Outcome,
    PendingApproval, Reply, RunError, RunFilter, RunHead, RunId, RunKind, Salvaged, SessionId, TenantId,
    Timestamp,
};

/// All that can be done with runs. Every type that has the three parts is one.
pub trait RunService: StartRuns + AnswerRuns + KeepRuns {}

impl<T: StartRuns + AnswerRuns + KeepRuns + ?Sized> RunService for T {}

/// Starts, resumes, lists and watches runs.
pub trait StartRuns: Send + Sync {
    /// Starts a run in the background. Returns once its first records are in the journal.
    ///
    /// A request with a [`key`](StartRun::key) that started a run before starts none: that run is returned, whatever
    /// its status.
    ///
    /// # Errors
    /// The prompt is empty, the session is busy, the key started something else, no such agent is registered, the
    /// agent refuses, or the journal failed.
    fn start<'a>(&'a self, request: StartRun) -> BoxFuture<'a, Result<StartedRun, RunError>>;

    /// Resumes a run by its id alone, in the background. Returns once the journal has the records that resume it.
    ///
    /// A run that another one called is resumed with the run that a person started.
    ///
    /// # Errors
    /// The run is unknown, in use, has ended, has met a limit that `more` does not raise, or its agent is not
    /// registered.
    fn resume<'a>(
        &'a self,
        run: &'a RunId,
        more: &'a MoreLimits,
    ) -> BoxFuture<'a, Result<StartedRun, RunError>>;

    /// The head of a run. Damage in the middle of a long log is seen by [`records`](Self::records) only.
    ///
    /// # Errors
    /// The run is unknown: the nearest ids are named. Or the journal failed.
    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, RunError>>;

    /// The runs that a filter lets through, the last written first; the next page begins after the
    /// [`place`](RunHead::place) of the last.
    ///
    /// # Errors
    /// The journal failed.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, RunError>>;

    /// The records of a run behind the one with sequence number `after`, or all; of a damaged log those before the
    /// damage, and the damage.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn records<'a>(&'a self, run: &'a RunId, after: Option<u64>)
    -> BoxFuture<'a, Result<Salvaged, RunError>>;

    /// The records behind `after`, then what happens live, until the run ends or waits for somebody. Dropping a
    /// watcher cancels nothing, and any number may watch.
    ///
    /// Events of runs that it calls are part of it while this process works on them. Of a run that another process
    /// works on there are records only, a moment later. An error is the last that a watcher is told.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn watch<'a>(&'a self, run: &'a RunId, after: Option<u64>) -> BoxFuture<'a, Result<Watch, RunError>>;

    /// The messages of a session, for whoever shows it: the conversation as its newest run has it. What was compacted is
    /// its summary; [`records`](Self::records) have every word. Empty for a session without runs. Until a parallel loop has
    /// chosen a branch, that is the conversation before it.
    ///
    /// Tenants may have sessions of the same name: `tenant` says whose is meant; without it, the one with the newest run.
    ///
    /// # Errors
    /// The log of the newest run, or of one that it goes on from, cannot be read.
    fn history<'a>(
        &'a self,
        session: &'a SessionId,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<Message>, RunError>>;

    /// Waits until a run ends or waits for somebody, and says how it stands.
    ///
    /// # Errors
    /// [`RunError::Failed`]: the run failed. As [`get`](Self::get); or the run stopped without an end, and can be
    /// resumed.
    fn reply<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Reply, RunError>>;

    /// Resumes every run whose process died, all or one tenant's: for the start of a service. Each is named with
    /// what became of it.
    ///
    /// # Errors
    /// The journal cannot be listed.
    fn resume_unfinished<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<ResumedRuns, RunError>>;
}

/// Talks to runs: steers, cancels and answers them, in whatever process they work.
pub trait AnswerRuns: Send + Sync {
    /// Leaves a message that the model reads next: calls that were not started are skipped.
    ///
    /// # Errors
    /// The run is unknown, has ended, or is of a kind that reads no messages.
    fn steer<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>>;

    /// Leaves a message that the model reads when the run would end.
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    fn follow_up<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>>;

    /// Cancels a run. One that nobody works on is resumed for as long as it takes to end.
    ///
    /// # Errors
    /// The run is unknown or has ended.
    fn cancel<'a>(&'a self, run: &'a RunId, reason: &'a str) -> BoxFuture<'a, Result<(), RunError>>;

    /// The questions that wait for people, the oldest first: all, or one tenant's.
    ///
    /// # Errors
    /// The journal cannot be listed.
    fn questions<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, RunError>>;

    /// Answers a question by its id; the run that it stands with goes on. False if the question was answered before,
    /// has expired, or is not there: then nothing changes.
    ///
    /// # Errors
    /// The journal failed, changed arguments do not fit the tool, or the run cannot be resumed.
    fn answer<'a>(&'a self, request_id: &'a str, answer: Answer) -> BoxFuture<'a, Result<bool, RunError>>;

    /// Resumes the runs with a question whose time is over, so that each goes on as if somebody had said no, and those
    /// with an answer that no process resumed them for. Each is named with what became of it. A service sweeps from time to time, since nothing else looks at the time of a
    /// question whose run is at rest.
    ///
    /// # Errors
    /// The journal cannot be listed.
    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<ResumedRuns, RunError>>;
}

/// Forks and removes runs.
pub trait KeepRuns: Send + Sync {
    /// Begins another run where `run` stood after `turns` of its turns, or where it stands. Resume it, or go on with
    /// a prompt in its session: [`Fork::wants_answer`] tells.
    ///
    /// # Errors
    /// The run is unknown, has fewer turns, or is of a kind without turns.
    fn fork<'a>(&'a self, run: &'a RunId, turns: Option<u32>) -> BoxFuture<'a, Result<Fork, RunError>>;

    /// Deletes a run that has ended or waits, with all that is kept for it.
    ///
    /// # Errors
    /// The run is unknown, somebody works on it, or other runs need it.
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), RunError>>;

    /// Deletes the runs that have ended and were last written before `before`. Runs that others need stay.
    ///
    /// # Errors
    /// The journal cannot be listed, or cannot delete.
    fn prune<'a>(&'a self, before: Timestamp) -> BoxFuture<'a, Result<Removed, RunError>>;

    /// Cancels and deletes every run of a tenant. Memories and credentials of the tenant are kept elsewhere and stay.
    ///
    /// # Errors
    /// As [`prune`](Self::prune).
    fn erase<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Removed, RunError>>;
}

/// A run to be started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StartRun {
    /// The prompt.
    pub prompts: Vec<AgentMessage>,
    /// The agent, by the id under which it is registered; the service's own by default.
    pub agent: Option<AgentId>,
    /// The kind of the run: one agent may be registered for several.
    pub kind: RunKind,
    /// The idempotency key of the request, unique for a tenant.
    pub key: Option<String>,
    /// Goes on in this session; a session of its own by default.
    pub session: Option<SessionId>,
    /// What happens if the newest run of the session works or waits.
    pub when_busy: WhenBusy,
    /// On whose behalf; `local` by default.
    pub tenant: Option<TenantId>,
    /// What differs in this run from the agent's others.
    pub settings: RunSettings,
}

/// What differs in one run from the agent's others. It stands in the run's log, and holds for whoever resumes it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunSettings {
    /// How far the run may go, instead of as far as the agent's others.
    pub limits: Option<ExecutionLimits>,
    /// Standing instructions, instead of the agent's.
    pub system: Option<String>,
    /// The names of the agent's tools that the run has; all by default.
    pub tools: Option<Vec<String>>,
}

impl RunSettings {
    /// Refuses what a run of one agent alone can have, for a kind in which several work.
    ///
    /// # Errors
    /// [`RunError::NotForKind`], if a system text or tools are set.
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
    /// A run of the service's own agent on a task, in a session of its own.
    pub fn new(task: impl Into<String>) -> Self {
        Self::with_messages(vec![Message::user(task, Timestamp::default()).into()])
    }

    /// A run that begins with messages of any content. Those without a date are dated when the run starts.
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

    /// The same request for another agent.
    pub fn agent(mut self, agent: impl Into<AgentId>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// The same request for a run of another kind.
    pub fn kind(mut self, kind: RunKind) -> Self {
        self.kind = kind;
        self
    }

    /// The same request with an idempotency key.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The same request in a session.
    pub fn session(mut self, session: impl Into<SessionId>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// The same request with another choice for a busy session.
    pub fn when_busy(mut self, choice: WhenBusy) -> Self {
        self.when_busy = choice;
        self
    }

    /// The same request on behalf of a tenant.
    pub fn tenant(mut self, tenant: impl Into<TenantId>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// The same request with limits for this run.
    pub fn limits(mut self, limits: ExecutionLimits) -> Self {
        self.settings.limits = Some(limits);
        self
    }

    /// The same request with standing instructions for this run.
    pub fn system(mut self, instructions: impl Into<String>) -> Self {
        self.settings.system = Some(instructions.into());
        self
    }

    /// The same request with the names of the agent's tools that this run has.
    pub fn tools<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.settings.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }
}

/// What happens to a message for a session whose newest run works or waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenBusy {
    /// It is refused with [`RunError::SessionBusy`].
    #[default]
    Refuse,
    /// The run reads it when it would end, as with [`AnswerRuns::follow_up`]; if it ends without reading it, the message
    /// begins the next run of the session. The key of such a request is not kept: sent again, it is queued again.
    Queue,
    /// It starts a run beside the other. What is said in one of the two is not known in the other.
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
    /// How this came to be the run.
    pub how: Started,
}

/// How a service came by a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Started {
    /// It was started now.
    New,
    /// It was resumed now.
    Resumed,
    /// The idempotency key had started it before.
    Before,
    /// It works on something already, and reads the message when it would end.
    Queued,
}

/// A run that was forked off another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fork {
    /// The new run. Resume it, or go on with a prompt in its session.
    pub run: RunId,
    /// The session of both runs.
    pub session: SessionId,
    /// The run that it leaves.
    pub of: RunId,
    /// How many of that run's records it has in common.
    pub records: u64,
    /// How many of that run's turns.
    pub turns: u32,
    /// Whether the model has the next word; if not, the fork waits for a prompt.
    pub wants_answer: bool,
}

impl StartedRun {
    /// A run and how it came about.
    pub fn new(run: RunId, session: SessionId, how: Started) -> Self {
        Self { run, session, how }
    }
}

/// What was deleted, and what was not.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Removed {
    /// The runs that are gone.
    pub runs: Vec<RunId>,
    /// Runs that stay, with the reason.
    pub left: Vec<(RunId, RunError)>,
}

/// Runs that were to be resumed, each with what became of it. It iterates over them.
///
/// One run that cannot go on holds up no other, so it is an error here alone, and must not be dropped:
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
    /// The runs that go on.
    pub fn started(&self) -> impl Iterator<Item = &StartedRun> {
        self.0.iter().filter_map(|(_, resumed)| resumed.as_ref().ok())
    }

    /// The runs that could not be resumed, each with the reason.
    pub fn failures(&self) -> impl Iterator<Item = (&RunId, &RunError)> {
        self.0.iter().filter_map(|(run, resumed)| Some((run, resumed.as_ref().err()?)))
    }

    /// The runs that go on, if all do.
    ///
    /// # Errors
    /// That of the first run that could not be resumed.
    pub fn all_ok(self) -> Result<Vec<StartedRun>, RunError> {
        self.0.into_iter().map(|(_, resumed)| resumed).collect()
    }

    /// How many runs were to be resumed.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no run was to be resumed.
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

/// The events of a run, as [`StartRuns::watch`] gives them.
pub type Watch = Pin<Box<dyn Stream<Item = Result<Event, RunError>> + Send>>;

/// An agent of one kind whose runs a service begins and resumes.
///
/// What the run needs to go on stands in its log: whoever resumes it names nothing again. A run that fails is an outcome
/// here, since its log has it; the service makes an error of it.
pub trait RunAgent: Send + Sync {
    /// The kind of its runs.
    fn kind(&self) -> RunKind;

    /// Its id, which stands in the logs of its runs: they are resumed by it.
    fn id(&self) -> AgentId;

    /// Begins the run that `context` names, and works on it until it ends or waits.
    ///
    /// # Errors
    /// The run could not be begun, or not be kept, or its kind cannot have the settings: the error names the kind.
    fn begin<'a>(
        &'a self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        settings: RunSettings,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>>;

    /// Resumes the run that `context` names where its log ends, with larger limits from now on.
    ///
    /// # Errors
    /// The run cannot be resumed.
    fn resume<'a>(
        &'a self,
        more: &'a MoreLimits,
        context: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, RunError>>;

    /// Checks an answer to a question of a run before it is kept, as far as this agent can tell: changed arguments
    /// meet the tool, a changed plan is checked. Any answer can be taken by default.
    ///
    /// # Errors
    /// The answer cannot be taken; the question stays open.
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
