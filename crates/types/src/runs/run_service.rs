//! The traits through which a command, a server, an editor or another agent starts, watches, answers and
//! resumes runs of every kind.
//!
//! | to | use |
//! |---|---|
//! | start a run once per key, find it, list runs | [`StartRuns::start`], [`StartRuns::get`], [`StartRuns::list`] |
//! | read the records of a run, or watch the run any number of times | [`StartRuns::records`], [`StartRuns::watch`] |
//! | page back through the records of a run | [`StartRuns::records_before`] |
//! | list the agents | [`StartRuns::agents`] |
//! | show the messages of a session | [`StartRuns::history`] |
//! | resume after a crash, a cancel, a failure or a limit | [`StartRuns::resume`], [`StartRuns::resume_unfinished`] |
//! | steer, cancel, answer questions | [`AnswerRuns`] |
//! | resume runs whose questions expired | [`AnswerRuns::sweep`] |
//! | fork, delete, prune, erase a tenant | [`ManageRuns`] |
//!
//! A [`RunAgent`](crate::RunAgent) is the counterpart: an agent of one kind, whose runs a service starts and
//! resumes.

use std::pin::Pin;

use futures_core::{Stream, future::BoxFuture};
use serde::Serialize;

use crate::{
    config::{MoreLimits, RunKind},
    log::{Event, PendingApproval, RunFilter, RunHead, Salvaged},
    messages::{AgentMessage, Message},
    tools::Answer,
    values::{AgentId, RunId, SessionId, TenantId, Timestamp},
};

use super::{
    fork::{Fork, ForkOptions},
    reply::Reply,
    run_error::RunError,
    start_run::StartRun,
};

/// [`StartRuns`], [`AnswerRuns`] and [`ManageRuns`] in one trait. A type that implements all three implements this
/// trait automatically.
///
/// ```
/// use archon_types::{AnswerRuns, RunError, RunFilter, RunService, RunStatus, StartRuns};
///
/// async fn stop_all(runs: &dyn RunService) -> Result<(), RunError> {
///     for head in runs.list(&RunFilter::all().status([RunStatus::Running])).await? {
///         runs.cancel(&head.run_id, "the service ends").await?;
///     }
///     Ok(())
/// }
/// ```
pub trait RunService: StartRuns + AnswerRuns + ManageRuns {}

impl<T: StartRuns + AnswerRuns + ManageRuns + ?Sized> RunService for T {}

/// Starts, resumes, lists and watches runs.
///
/// ```
/// use archon_types::{RunError, StartRun, StartRuns};
///
/// async fn ask(runs: &dyn StartRuns, question: &str) -> Result<String, RunError> {
///     let started = runs.start(StartRun::new(question)).await?;
///     runs.reply(&started.run).await?.into_text()
/// }
/// ```
pub trait StartRuns: Send + Sync {
    /// Starts a run in the background. Returns once the first records of the run are in the journal.
    ///
    /// If an earlier request with the same [`key`](StartRun::key) started a run, that run is returned,
    /// whatever its status, and no new run starts.
    ///
    /// # Errors
    /// The prompt is empty, the session is busy, the key belongs to a different request, no such agent is
    /// registered, the agent refuses, or the journal failed.
    fn start<'a>(&'a self, request: StartRun) -> BoxFuture<'a, Result<StartedRun, RunError>>;

    /// Resumes a run by its id in the background. Returns once the journal has the records of the resumption.
    ///
    /// If `run` is a child run, or a branch of a parallel loop, the topmost run above it is resumed, and with it
    /// this run.
    ///
    /// # Errors
    /// The run is unknown, in use, has ended, is at a limit that `more` does not raise, or has no registered
    /// agent.
    fn resume<'a>(
        &'a self,
        run: &'a RunId,
        more: &'a MoreLimits,
    ) -> BoxFuture<'a, Result<StartedRun, RunError>>;

    /// Returns the head of a run. Damage in the middle of a long log may go unnoticed here;
    /// [`records`](Self::records) finds it.
    ///
    /// # Errors
    /// The run is unknown (the error names the most similar ids), or the journal failed.
    fn get<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, RunError>>;

    /// Returns the runs that match a filter, the most recently written run first. For the next page, set
    /// [`RunFilter::after`] to the [`place`](RunHead::place) of the last run of this page.
    ///
    /// # Errors
    /// The journal failed.
    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, RunError>>;

    /// Returns the records of a run after the record with the sequence number `after`; `None` for all records. For
    /// a damaged log this function returns the records before the damage, and the damage.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn records<'a>(&'a self, run: &'a RunId, after: Option<u64>)
    -> BoxFuture<'a, Result<Salvaged, RunError>>;

    /// Returns the last `most` records of a run, or the last `most` before the record with the sequence number
    /// `before`, oldest first. Damage of earlier records may go unnoticed.
    ///
    /// Default: reads all records.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn records_before<'a>(
        &'a self,
        run: &'a RunId,
        before: Option<u64>,
        most: usize,
    ) -> BoxFuture<'a, Result<Salvaged, RunError>> {
        Box::pin(async move { Ok(self.records(run, None).await?.before(before, most)) })
    }

    /// Returns the agents that can be started, sorted by kind and id. Default: empty, for a service that does not
    /// know its agents.
    fn agents(&self) -> Vec<AgentHead> {
        Vec::new()
    }

    /// Returns the records after the sequence number `after`, then live events, until the run ends or is
    /// suspended. A run may have any number of watchers; dropping the stream cancels nothing.
    ///
    /// Events of child runs are included while this process works on them. For a run of another process the
    /// stream has only records, which come with a short delay. The stream ends after an error.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    fn watch<'a>(&'a self, run: &'a RunId, after: Option<u64>) -> BoxFuture<'a, Result<Watch, RunError>>;

    /// Returns the messages of a session for display: the conversation as the newest run of the session has
    /// it. Compacted parts appear as their summary; [`records`](Self::records) returns the full text. Empty
    /// for a session without runs. Until a parallel loop has selected a branch, this is the conversation
    /// before the loop.
    ///
    /// Several tenants may have a session with the same id: `tenant` selects one. Without a tenant, the
    /// session with the newest run is used.
    ///
    /// # Errors
    /// The log of the newest run, or of a run that it continues, cannot be read.
    fn history<'a>(
        &'a self,
        session: &'a SessionId,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<Message>, RunError>>;

    /// Waits until a run ends or is suspended, and returns its reply.
    ///
    /// # Errors
    /// [`RunError::Failed`] if the run failed; [`RunError::Stopped`] or another error if the run stopped
    /// without an outcome and can be resumed; otherwise as [`get`](Self::get).
    fn reply<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Reply, RunError>>;

    /// Resumes every run whose process died, of all tenants or of one. Call this function when a service
    /// starts. The result has an entry for each run, with the error of a run that could not be resumed.
    ///
    /// # Errors
    /// The journal cannot be listed.
    fn resume_unfinished<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<ResumedRuns, RunError>>;
}

/// Steers, cancels and answers runs, in whichever process they work.
///
/// ```
/// use archon_types::{Answer, AnswerRuns, RunError};
///
/// async fn refuse_all(runs: &dyn AnswerRuns) -> Result<(), RunError> {
///     for question in runs.questions(None).await? {
///         let no = Answer::Cancel { reason: "We are closed.".to_owned() };
///         runs.answer(&question.request.request_id, no).await?;
///     }
///     Ok(())
/// }
/// ```
pub trait AnswerRuns: Send + Sync {
    /// Posts a message for the model's next request. Tool calls that have not started are skipped.
    ///
    /// # Errors
    /// The run is unknown, has ended, or is of a kind that takes no messages.
    fn steer<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>>;

    /// Posts a message that the model reads when the run would otherwise end.
    ///
    /// # Errors
    /// As [`steer`](Self::steer).
    fn follow_up<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>>;

    /// Cancels a run. A run that no process works on is resumed only to end it.
    ///
    /// # Errors
    /// The run is unknown or has ended.
    fn cancel<'a>(&'a self, run: &'a RunId, reason: &'a str) -> BoxFuture<'a, Result<(), RunError>>;

    /// Returns the open questions to people, oldest first, of all tenants or of one.
    ///
    /// # Errors
    /// The journal cannot be listed.
    fn questions<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, RunError>>;

    /// Answers a question by its id, and resumes its run. Returns false, and changes nothing, if the question
    /// was already answered, has expired or does not exist.
    ///
    /// # Errors
    /// The journal failed, changed arguments do not fit the tool, the answer trusts a rule that the question does not
    /// offer, or the run cannot be resumed.
    fn answer<'a>(&'a self, request_id: &'a str, answer: Answer) -> BoxFuture<'a, Result<bool, RunError>>;

    /// Resumes the runs with an expired question, which counts as refused, and the runs with an answer that
    /// no process has used. The result has an entry for each run, with the error of a run that could not be
    /// resumed. A service must call this function from time to time, since no other code watches the
    /// deadlines of suspended runs.
    ///
    /// # Errors
    /// The journal cannot be listed.
    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<ResumedRuns, RunError>>;
}

/// Forks and deletes runs.
///
/// ```
/// use archon_types::{ManageRuns, RunError, Timestamp};
///
/// async fn tidy(runs: &dyn ManageRuns, before: Timestamp) -> Result<usize, RunError> {
///     Ok(runs.prune(before).await?.runs.len())
/// }
/// ```
pub trait ManageRuns: Send + Sync {
    /// Forks a run: the new run begins with the records of `run` up to a place, so that the effects of tools
    /// before this place are not repeated. If [`Fork::wants_answer`] is true, then resume the fork; otherwise
    /// send a prompt to its session.
    ///
    /// A fork with a message needs the agent of the run, because the agent's input filters check the message.
    /// Such a fork counts as interrupted from the start: its session is busy until the fork is resumed.
    /// [`resume_unfinished`](StartRuns::resume_unfinished) also resumes it, for instance when a server
    /// starts.
    ///
    /// # Errors
    /// The run is unknown, has no such place, or is of a kind without turns; the message is empty; the agent is
    /// not registered, or cannot start a run.
    fn fork<'a>(&'a self, run: &'a RunId, options: ForkOptions) -> BoxFuture<'a, Result<Fork, RunError>>;

    /// Deletes a run that has ended or waits, and everything that is stored for it.
    ///
    /// # Errors
    /// The run is unknown, a process works on it, or other runs need it.
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), RunError>>;

    /// Deletes the ended runs that were last written before `before`, except for runs that other runs need.
    ///
    /// # Errors
    /// The journal cannot be listed, or does not support deletion.
    fn prune<'a>(&'a self, before: Timestamp) -> BoxFuture<'a, Result<Removed, RunError>>;

    /// Cancels and deletes every run of a tenant. The tenant's memories and credentials stay, and so do the
    /// lines that `Runs::prune_with_summaries` wrote about earlier runs.
    ///
    /// # Errors
    /// As [`prune`](Self::prune).
    fn erase<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Removed, RunError>>;
}

/// An agent of a service, as [`StartRuns::agents`] lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgentHead {
    /// The id, as in [`StartRun::agent`].
    pub id: AgentId,
    /// The kind of the agent's runs.
    pub kind: RunKind,
    /// True for the agent that works on requests that set neither an agent nor a kind.
    pub is_default: bool,
}

impl AgentHead {
    /// Creates an entry for an agent that is not the default: a request must set its id or its kind.
    pub fn new(id: AgentId, kind: RunKind) -> Self {
        Self { id, kind, is_default: false }
    }
}

/// A run that a service started, resumed or found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartedRun {
    /// The id of the run.
    pub run: RunId,
    /// The session of the run.
    pub session: SessionId,
    /// The reason why the service returns this run: started now, resumed, found or busy.
    pub how: Started,
    /// The ids of the messages that wait in the inbox of the run, in the order of the prompts. The run has
    /// received a message once its log has an
    /// [`InboxMessageReceived`](crate::RecordBody::InboxMessageReceived) record with the id of the message.
    /// Empty if the prompts began the run.
    pub message_ids: Vec<String>,
}

/// The reason why a service returns a run for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Started {
    /// The run was started now.
    New,
    /// The run was resumed now.
    Resumed,
    /// An earlier request with the same idempotency key had started the run.
    Before,
    /// The run was already under way, and reads the message when it would otherwise end, or with
    /// [`WhenBusy::Steer`](crate::WhenBusy::Steer) in its next request.
    Queued,
}

impl StartedRun {
    /// Creates the result for a run; no message waits in its inbox.
    pub fn new(run: RunId, session: SessionId, how: Started) -> Self {
        Self { run, session, how, message_ids: Vec::new() }
    }
}

/// The result of deleting runs.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Removed {
    /// The runs that were deleted.
    pub runs: Vec<RunId>,
    /// The runs that were not deleted, each with the reason.
    pub failures: Vec<(RunId, RunError)>,
}

/// The result of resuming several runs, with an entry for each run. Iterating it gives the entries.
///
/// A run that cannot be resumed does not stop the others. Only this value reports it, so it must be used:
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
#[must_use = "only this value names the runs that could not be resumed: check `failures`, or call `all_ok`"]
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

    /// Returns the resumed runs, if every run could be resumed.
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

/// The stream of events that [`StartRuns::watch`] returns.
pub type Watch = Pin<Box<dyn Stream<Item = Result<Event, RunError>> + Send>>;
