//! Child runs: permissions, limits, journal, state after a crash, and the result for the calling run.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;

use crate::{
    CancellationToken,
    config::{ExecutionLimits, Lease, LimitReached},
    log::{
        InboxEntry, Journal, JournalError, Origin, Outcome, OutcomeStatus, Record, RecordBody, RunStarted,
        inbox_of, read_if_exists,
    },
    messages::{ToolResult, ToolResultStatus, metadata},
    tools::{Answer, ApprovalRequest},
    values::{CallId, RunId},
};

use super::{
    context::Context,
    delegation::{CallerLog, Delegation},
};

/// The reason why a run cannot be started, resumed or answered, or cannot start child runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunRefused {
    /// The run exists already, but belongs to another call.
    #[error("run {run} already exists and does not belong to this call of run {caller}")]
    NotOfThisCall {
        /// The run that exists.
        run: RunId,
        /// The calling run.
        caller: RunId,
    },
    /// The run has ended.
    #[error("run {run} has ended")]
    Ended {
        /// The run that has ended.
        run: RunId,
    },
    /// The run has ended at a limit, and the request to resume the run does not raise this limit.
    #[error("run {run} has ended: {limit}")]
    AtLimit {
        /// The run that has reached the limit.
        run: RunId,
        /// The limit that the run would reach again.
        limit: LimitReached,
    },
    /// The run has no open question to which the answer belongs.
    #[error("run {run} has no open question about call {call}")]
    NoQuestion {
        /// The run that the answer is for.
        run: RunId,
        /// The call that the answer names.
        call: CallId,
    },
    /// The run is at the maximum depth, so it cannot start child runs.
    #[error("a run at depth {depth} cannot start child runs: the maximum depth is {max}")]
    TooDeep {
        /// The depth of the run.
        depth: u32,
        /// The maximum depth of a run.
        max: u32,
    },
}

impl RunRefused {
    /// Returns the run that the error names; `None` if it names none.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::NotOfThisCall { run, .. }
            | Self::Ended { run }
            | Self::AtLimit { run, .. }
            | Self::NoQuestion { run, .. } => Some(run),
            Self::TooDeep { .. } => None,
        }
    }

    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NotOfThisCall { .. } => "choose another id for one of the runs",
            Self::Ended { .. } => "start a new run",
            Self::AtLimit { .. } => "resume the run with larger limits: `MoreLimits`",
            Self::NoQuestion { .. } => "list the open questions of the run first",
            Self::TooDeep { .. } => "raise `max_depth`",
        }
    }
}

/// Checks that a run may be resumed. `ended` is the outcome of the run, if there is one. `limit` is the limit
/// that the resumed run would reach again, if any. `may_retry` returns true if it is useful to resume a
/// failed run.
///
/// # Errors
/// The run has ended, or has reached the limit.
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

/// The state of a child run, as the journal has it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CalledRun {
    /// The child run was never started.
    Absent,
    /// The child run was cut off, or cancelled together with its caller, and must be resumed.
    CutOff,
    /// The child run has ended, and is not repeated.
    Ended(Box<Outcome>),
    /// A run with this id exists, but another call or no call started it.
    OfAnother,
}

impl Delegation {
    /// Returns the origin of the child run: this call of the calling run.
    pub fn origin(&self) -> Origin {
        Origin::CalledBy { run: self.caller.clone(), call: self.call }
    }

    /// Starts the child run with `begin`, resumes it with `resume` if it was cut off, or returns its outcome
    /// if it has ended. Only one of the two futures is polled.
    ///
    /// # Errors
    /// The error of the polled future; the run exists but belongs to another call; or the journal failed.
    pub async fn attach<E: From<JournalError> + From<RunRefused>>(
        &self,
        begin: impl Future<Output = Result<Outcome, E>> + Send,
        resume: impl Future<Output = Result<Outcome, E>> + Send,
    ) -> Result<Outcome, E> {
        match self.find().await? {
            CalledRun::Absent => begin.await,
            CalledRun::CutOff => resume.await,
            CalledRun::Ended(outcome) => Ok(*outcome),
            CalledRun::OfAnother => {
                Err(RunRefused::NotOfThisCall { run: self.child.clone(), caller: self.caller.clone() }.into())
            }
        }
    }

    /// Reads the child run's log from the journal, and returns the state of the child run.
    ///
    /// # Errors
    /// The journal cannot read the log of the child run.
    pub async fn find(&self) -> Result<CalledRun, JournalError> {
        let Some(records) = read_if_exists(&*self.journal, &self.child).await? else {
            return Ok(CalledRun::Absent);
        };
        if RunStarted::of(&records).is_none_or(|started| started.origin != self.origin()) {
            return Ok(CalledRun::OfAnother);
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

/// Returns true if the journal has no log of the child run `child`. Call this only if the caller's log has a
/// [`RecordBody::ChildRunCreated`] record for the child run: then the log did exist and is lost.
///
/// # Errors
/// The journal cannot read the log of the child run.
pub async fn is_log_lost(journal: &dyn Journal, child: &RunId) -> Result<bool, JournalError> {
    Ok(read_if_exists(journal, child).await?.is_none())
}

/// Checks that the logs of the child runs of all open calls, and of the branches of parallel loops, can be
/// read, at every level below the run with these records. Without this check, a call or a branch whose log
/// cannot be read would end as failed, and its work would be lost or repeated.
///
/// # Errors
/// The journal cannot read one of the logs.
pub async fn check_called(journal: &dyn Journal, records: &[Arc<Record>]) -> Result<(), JournalError> {
    let mut open = open_runs(records);
    while let Some(run) = open.pop() {
        // A run without a log was not started before the crash.
        let records = read_if_exists(journal, &run).await?.unwrap_or_default();
        open.extend(open_runs(&records));
    }
    Ok(())
}

/// Returns the child runs of calls that have started and not ended, and the branches of a parallel loop.
fn open_runs(records: &[Arc<Record>]) -> Vec<RunId> {
    let (mut open, mut of_branches) = (BTreeMap::new(), Vec::new());
    for record in records {
        match &record.body {
            RecordBody::ParallelStarted { branches, .. } => {
                of_branches.extend(branches.iter().map(|branch| branch.run.clone()));
            }
            RecordBody::ToolCallStarted { call, child_run: Some(run), .. } => {
                open.insert(*call, run.clone());
            }
            RecordBody::ToolCallFinished { call, .. } => {
                open.remove(call);
            }
            _ => {}
        }
    }
    open.into_values().chain(of_branches).collect()
}

impl Context {
    /// Returns the delegation that this context's run works for; `None` if the run is not the child run of
    /// the delegation, for instance in the calling run itself.
    pub fn called_by(&self) -> Option<&Delegation> {
        self.delegation.as_deref().filter(|by| by.child == self.run)
    }

    /// Returns the journal of the run: for a child run the journal of its caller, otherwise `own`, the
    /// journal of the agent.
    pub fn journal<'a>(&'a self, own: &'a Arc<dyn Journal>) -> &'a Arc<dyn Journal> {
        self.called_by().map_or(own, |by| &by.journal)
    }

    /// Gives the child run access to the log of its caller, to record there that the log of the child run was
    /// created; see [`CallerLog`]. Does nothing in a context without a delegation.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use archon_types::{CallerLog, Context};
    ///
    /// fn of_call(context: Context, log: Arc<dyn CallerLog>) -> Context {
    ///     context.with_caller_log(log)
    /// }
    /// ```
    pub fn with_caller_log(mut self, log: Arc<dyn CallerLog>) -> Self {
        self.delegation = self.delegation.map(|by| Arc::new(Delegation::clone(&by).with_caller_log(log)));
        self
    }

    /// Returns the limits of the run: `own` or, for a child run, `own` lowered to the limits that the caller
    /// allows.
    pub fn limits(&self, own: ExecutionLimits) -> ExecutionLimits {
        match self.called_by() {
            Some(by) => by.narrow(own, self.depth),
            None => own,
        }
    }

    /// Checks that the run may start child runs: its depth must be below `max`, the maximum depth of a run.
    ///
    /// # Errors
    /// [`RunRefused::TooDeep`] if this run already has the maximum depth.
    pub fn may_delegate(&self, max: u32) -> Result<(), RunRefused> {
        let depth = self.depth;
        if depth < max { Ok(()) } else { Err(RunRefused::TooDeep { depth, max }) }
    }

    /// Returns the context of the child run that `call` starts. The id of the child run is derived from the
    /// call, so that the child run is found again after a crash.
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
        child.begin_child(self.run.of_call(call));
        child.delegation = Some(Arc::new(Delegation::new(self.run.clone(), call, lease, max_depth, journal)));
        child
    }
}

/// The line that follows an answer that the token limit cut off, for readers that get no [`Outcome`].
pub const CUT_OFF: &str = "[Cut off: the limit of tokens of one answer; the answer is not complete]";

impl Outcome {
    /// Returns the outcome of a child run, a run of `agent`, as the tool result of the call that started it.
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

    /// Returns the question that the calling run logs for `call` while the child run, a run of `agent`, waits
    /// for an answer. The log of the child run has the details.
    pub fn to_question(&self, call: CallId, agent: &str) -> ApprovalRequest {
        let summary = format!("run {} waits for an answer", self.run);
        let mut request =
            ApprovalRequest::new(format!("{}.{call}", self.run), summary, json!({ "run": self.run }));
        agent.clone_into(&mut request.agent_name);
        request
    }
}

/// Posts an answer to the inbox of the child run that asked the question `asked`. Does nothing if no child run asked
/// it, but the run itself.
///
/// # Errors
/// The child run has no log ([`JournalError::UnknownRun`]), the journal has no inbox
/// ([`JournalError::Unsupported`]), or the journal failed.
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
