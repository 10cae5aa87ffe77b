//! Child runs: their permissions and limits, their journal, their state after a crash, and their result for
//! the caller.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;

use crate::{
    CancellationToken,
    config::{ExecutionLimits, Lease, LimitReached},
    log::{InboxEntry, Journal, JournalError, Origin, Outcome, OutcomeStatus, Record, RecordBody, inbox_of},
    messages::{ToolResult, ToolResultStatus, metadata},
    tools::{Answer, ApprovalRequest},
    values::{CallId, RunId, SessionId},
};

use super::{
    context::Context,
    delegation::{CallerLog, Delegation},
};

/// The reason why a run is neither started nor resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunRefused {
    /// The run exists, but works for another call.
    #[error("run {run} is there and does not work for this call of {caller}")]
    NotOfThisCall {
        /// The run.
        run: RunId,
        /// The run that calls.
        caller: RunId,
    },
    /// The run has ended.
    #[error("run {run} has ended")]
    Ended {
        /// The run.
        run: RunId,
    },
    /// The run has met a limit, and the resumption does not raise it.
    #[error("run {run} has ended: {limit}")]
    AtLimit {
        /// The run.
        run: RunId,
        /// The limit.
        limit: LimitReached,
    },
    /// The answer is for a question that is not open.
    #[error("run {run} has no question {call} that is open")]
    NoQuestion {
        /// The run.
        run: RunId,
        /// The call that the answer names.
        call: CallId,
    },
    /// The run is too deep to start child runs.
    #[error("a run that begins others cannot be at depth {depth}: there may be none below {max}")]
    TooDeep {
        /// The depth of the run.
        depth: u32,
        /// The greatest depth of a run.
        max: u32,
    },
}

impl RunRefused {
    /// Returns the run that the error is about, if it names one.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::NotOfThisCall { run, .. }
            | Self::Ended { run }
            | Self::AtLimit { run, .. }
            | Self::NoQuestion { run, .. } => Some(run),
            Self::TooDeep { .. } => None,
        }
    }

    /// Returns advice, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NotOfThisCall { .. } => "choose another id for one of the runs",
            Self::Ended { .. } => "begin another run",
            Self::AtLimit { .. } => "resume it with higher limits: `MoreLimits`",
            Self::NoQuestion { .. } => "look at the run's questions first",
            Self::TooDeep { .. } => "raise `max_depth`",
        }
    }
}

/// Checks that a run may be resumed. `limit` is the limit that still holds for the run; `may_retry` returns
/// true if another try of a failed run makes sense.
///
/// # Errors
/// The run has ended, or is at the limit.
pub fn may_resume(
    run: &RunId,
    ended: Option<&Outcome>,
    limit: Option<LimitReached>,
    may_retry: impl FnOnce() -> bool,
) -> Result<(), RunRefused> {
    match ended.map(|outcome| outcome.status) {
        None | Some(OutcomeStatus::Cancelled) => Ok(()),
        Some(OutcomeStatus::Failed) if may_retry() => Ok(()),
        Some(OutcomeStatus::Limit(_)) => match limit {
            Some(limit) => Err(RunRefused::AtLimit { run: run.clone(), limit }),
            None => Ok(()),
        },
        Some(_) => Err(RunRefused::Ended { run: run.clone() }),
    }
}

/// The state of a child run in the journal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CalledRun {
    /// It was never started.
    Absent,
    /// It was cut off, or cancelled together with its caller, and is to be resumed.
    CutOff,
    /// It has ended, and is not repeated.
    Ended(Box<Outcome>),
    /// A run with this id exists, but another call or no call started it.
    OfAnother,
}

impl Delegation {
    /// Returns the origin of the child run.
    pub fn origin(&self) -> Origin {
        Origin::CalledBy { run: self.caller.clone(), call: self.call }
    }

    /// Starts the child run, resumes it where it was cut off, or returns its outcome if it has ended. Only
    /// one of the two futures is ever polled.
    ///
    /// # Errors
    /// Those of the two futures; the run exists but does not work for this call; or the journal failed.
    pub async fn attach<E: From<JournalError> + From<RunRefused>>(
        &self,
        begin: impl Future<Output = Result<Outcome, E>> + Send,
        take_up: impl Future<Output = Result<Outcome, E>> + Send,
    ) -> Result<Outcome, E> {
        match self.find().await? {
            CalledRun::Absent => begin.await,
            CalledRun::CutOff => take_up.await,
            CalledRun::Ended(outcome) => Ok(*outcome),
            CalledRun::OfAnother => {
                Err(RunRefused::NotOfThisCall { run: self.child.clone(), caller: self.caller.clone() }.into())
            }
        }
    }

    /// Returns the state of the child run in the journal.
    ///
    /// # Errors
    /// The journal cannot read the run.
    pub async fn find(&self) -> Result<CalledRun, JournalError> {
        let records = match self.journal.read(&self.child).await {
            Err(JournalError::UnknownRun { .. }) => return Ok(CalledRun::Absent),
            records => records?,
        };
        match records.first().map(|first| &first.body) {
            Some(RecordBody::RunStarted(started)) if started.origin == self.origin() => {}
            _ => return Ok(CalledRun::OfAnother),
        }
        Ok(match records.last().map(|last| &last.body) {
            // A cancelled child run goes on together with its caller.
            Some(RecordBody::RunFinished(outcome)) if outcome.status != OutcomeStatus::Cancelled => {
                CalledRun::Ended(outcome.clone())
            }
            _ => CalledRun::CutOff,
        })
    }
}

/// Returns true if a child run's log is lost: its caller's log says that it had one
/// ([`RecordBody::ChildRunCreated`]).
///
/// # Errors
/// The journal cannot read the run.
pub async fn is_log_lost(journal: &dyn Journal, child: &RunId) -> Result<bool, JournalError> {
    match journal.read(child).await {
        Err(JournalError::UnknownRun { .. }) => Ok(true),
        found => found.map(|_| false),
    }
}

/// Checks that the logs of all child runs of open calls can be read, at every level below a run with these
/// records. Otherwise such a call would end as failed, and another call would repeat its work.
///
/// # Errors
/// The journal cannot read one of the logs.
pub async fn check_called(journal: &dyn Journal, records: &[Arc<Record>]) -> Result<(), JournalError> {
    let mut open = open_runs(records);
    while let Some(run) = open.pop() {
        match journal.read(&run).await {
            // It was not started before the crash.
            Err(JournalError::UnknownRun { .. }) => {}
            records => open.extend(open_runs(&records?)),
        }
    }
    Ok(())
}

/// Returns the child runs of calls that have no end.
fn open_runs(records: &[Arc<Record>]) -> Vec<RunId> {
    let mut open = BTreeMap::new();
    for record in records {
        match &record.body {
            RecordBody::ToolCallStarted { call, child_run: Some(run), .. } => {
                open.insert(*call, run.clone());
            }
            RecordBody::ToolCallFinished { call, .. } => {
                open.remove(call);
            }
            _ => {}
        }
    }
    open.into_values().collect()
}

impl Context {
    /// Returns the call that this context's run works for; none while the context is that of the caller.
    pub fn called_by(&self) -> Option<&Delegation> {
        self.delegation.as_deref().filter(|by| by.child == self.run)
    }

    /// Returns the journal of the run: its caller's for a child run, otherwise its agent's `own`.
    pub fn journal<'a>(&'a self, own: &'a Arc<dyn Journal>) -> &'a Arc<dyn Journal> {
        self.called_by().map_or(own, |by| &by.journal)
    }

    /// Sets the caller's log, in which a child run records that it has a log; see [`CallerLog`].
    pub fn with_caller_log(mut self, log: Arc<dyn CallerLog>) -> Self {
        self.delegation = self.delegation.map(|by| Arc::new(Delegation::clone(&by).with_caller_log(log)));
        self
    }

    /// Returns the limits of the run: its agent's `own`, and for a child run no more than the caller allows.
    pub fn limits(&self, own: ExecutionLimits) -> ExecutionLimits {
        match self.called_by() {
            Some(by) => by.narrow(own, self.depth),
            None => own,
        }
    }

    /// Checks if the run may start child runs, if no run may be deeper than `max`.
    ///
    /// # Errors
    /// [`RunRefused::TooDeep`].
    pub fn may_delegate(&self, max: u32) -> Result<(), RunRefused> {
        let depth = self.depth;
        if depth < max { Ok(()) } else { Err(RunRefused::TooDeep { depth, max }) }
    }

    /// Returns the context of the child run that `call` starts. The run's id is derived from the call, so
    /// that it is found again.
    pub fn of_call(
        &self,
        call: CallId,
        lease: Lease,
        max_depth: u32,
        journal: Arc<dyn Journal>,
        cancel: CancellationToken,
    ) -> Self {
        let mut child = self.clone();
        child.depth += 1;
        child.cancel = cancel;
        (child.agreed_above, child.under_way) = (false, None);
        child.run = self.run.of_call(call);
        child.session = SessionId::new(child.run.as_str().replace('.', "-"));
        child.delegation = Some(Arc::new(Delegation::new(self.run.clone(), call, lease, max_depth, journal)));
        child
    }
}

/// The line after an answer that was cut off by its token limit, for readers that get no [`Outcome`].
pub const CUT_OFF: &str = "[Cut off: the limit of tokens of one answer; the answer is not complete]";

impl Outcome {
    /// Returns the outcome as the result of the call that `agent` worked for.
    pub fn to_result(&self, agent: &str) -> ToolResult {
        let said = self.last_text().unwrap_or_default().trim();
        let result = match self.status {
            OutcomeStatus::Finished if self.is_cut() => ToolResult::success(format!("{said}\n{CUT_OFF}")),
            OutcomeStatus::Finished => ToolResult::success(self.last_text().unwrap_or_default()),
            OutcomeStatus::Limit(limit) if said.is_empty() => {
                ToolResult::error(format!("{agent} was stopped before it had an answer: {limit}"))
            }
            OutcomeStatus::Limit(limit) => {
                ToolResult::success(format!("{said}\n[Stopped: {limit}; the answer may not be complete]"))
            }
            OutcomeStatus::Cancelled => {
                ToolResult::failed(ToolResultStatus::Cancelled, "Cancelled", "its run was cancelled")
            }
            _ => ToolResult::error(self.error.clone().unwrap_or_else(|| format!("{agent} failed"))),
        };
        let mut result = result
            .with_metadata(metadata::AGENT, agent)
            .with_metadata(metadata::CONVERSATION_HISTORY, self.run.as_str())
            .with_metadata(metadata::ITERATIONS, self.turns)
            .with_metadata(metadata::FINAL_STATE, json!(self.status)["status"].clone())
            .with_metadata(metadata::TOKEN_USAGE, self.spending().tokens);
        result.child_run = Some(self.run.clone());
        result
    }

    /// Returns the question of `call` while its run, one of `agent`, waits. The run's own log has what it
    /// waits for.
    pub fn to_question(&self, call: CallId, agent: &str) -> ApprovalRequest {
        let summary = format!("run {} waits for an answer", self.run);
        let mut request =
            ApprovalRequest::new(format!("{}.{call}", self.run), summary, json!({ "run": self.run }));
        agent.clone_into(&mut request.agent_name);
        request
    }
}

/// Leaves the answer to a question of a child run for that run. A question of the run itself has no run below,
/// and nothing is left.
///
/// # Errors
/// The child run keeps no log ([`JournalError::UnknownRun`]), the journal has no inbox
/// ([`JournalError::Unsupported`]), or it failed.
pub async fn answer_below(
    journal: &dyn Journal,
    asked: &ApprovalRequest,
    answer: Answer,
    context: &Context,
) -> Result<(), JournalError> {
    let Some(asker) = asked.asker() else { return Ok(()) };
    journal.read(&asker.run).await?;
    let entry = InboxEntry::new(context.ids.fresh("in"), context.clock.now(), asked.answered(answer));
    inbox_of(journal)?.post(&asker.run, entry).await
}
