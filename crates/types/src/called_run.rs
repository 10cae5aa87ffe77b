//! A run that works for a call of another run: what it may do, where it is kept, whether it is there from before a
//! crash, and what it is to its caller when it has ended.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;

use crate::{
    ApprovalRequest, CallId, CallerLog, CancellationToken, Context, Delegation, ExecutionLimits, Journal,
    JournalError, Lease, LimitReached, Origin, Outcome, OutcomeStatus, Record, RecordBody, RunId, SessionId,
    ToolResult, ToolResultStatus, metadata,
};

/// Why a run is neither begun nor taken up, whoever was to drive it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunRefused {
    /// The run is there and works for another call.
    #[error("run {run} is there and does not work for this call of {caller}")]
    NotOfThisCall {
        /// The run.
        run: RunId,
        /// Who calls.
        caller: RunId,
    },
    /// The run has ended.
    #[error("run {run} has ended")]
    Ended {
        /// The run.
        run: RunId,
    },
    /// The run has met a limit, and is to be taken up with no more of it.
    #[error("run {run} has ended: {limit}")]
    AtLimit {
        /// The run.
        run: RunId,
        /// The limit.
        limit: LimitReached,
    },
    /// Nobody asked what was answered.
    #[error("run {run} has no question {call} that is open")]
    NoQuestion {
        /// The run.
        run: RunId,
        /// The call that the answer names.
        call: CallId,
    },
    /// The run is too deep below the one that a person started to begin others.
    #[error("a run that begins others cannot be at depth {depth}: there may be none below {max}")]
    TooDeep {
        /// Where the run is.
        depth: u32,
        /// The deepest that a run may be.
        max: u32,
    },
}

impl RunRefused {
    /// The run that it is about, if it names one.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::NotOfThisCall { run, .. }
            | Self::Ended { run }
            | Self::AtLimit { run, .. }
            | Self::NoQuestion { run, .. } => Some(run),
            Self::TooDeep { .. } => None,
        }
    }

    /// What can be done about it, in a line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::NotOfThisCall { .. } => "choose another id for one of the runs",
            Self::Ended { .. } => "begin another run",
            Self::AtLimit { .. } => "take it up with more of that: `MoreLimits`",
            Self::NoQuestion { .. } => "look at the run's questions first",
            Self::TooDeep { .. } => "raise `max_depth`",
        }
    }
}

/// How the run of a call stands in the journal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CalledRun {
    /// It was never begun.
    Absent,
    /// It was cut off, or cancelled with its caller, and goes on.
    CutOff,
    /// It has ended, and is not done again.
    Ended(Box<Outcome>),
    /// There is a run of that name which another call started, or none.
    OfAnother,
}

impl Delegation {
    /// Where the called run comes from.
    pub fn origin(&self) -> Origin {
        Origin::CalledBy { run: self.caller.clone(), call: self.call }
    }

    /// Works on what the call wants done: begins its run, takes it up where it was cut off, or finds it done. Only
    /// one of the two futures is ever polled.
    ///
    /// # Errors
    /// Those of the two; there is a run of that name which does not work for this call; or the journal failed.
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

    /// How the called run stands in the journal.
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
            // A cancelled run whose caller goes on goes on with it.
            Some(RecordBody::RunFinished(outcome)) if outcome.status != OutcomeStatus::Cancelled => {
                CalledRun::Ended(outcome.clone())
            }
            _ => CalledRun::CutOff,
        })
    }
}

/// Whether a called run's log is lost: its caller's log says that it had one ([`RecordBody::ChildBegun`]).
///
/// # Errors
/// The journal cannot read the run.
pub async fn is_lost(journal: &dyn Journal, child: &RunId) -> Result<bool, JournalError> {
    match journal.read(child).await {
        Err(JournalError::UnknownRun { .. }) => Ok(true),
        found => found.map(|_| false),
    }
}

/// Makes sure that a run with these records finds its calls again: the logs of the runs that its open calls began can
/// be read, and those below them. A call whose run cannot be read would end as failed, and its work be begun again by
/// another call.
///
/// # Errors
/// The journal cannot read one of the logs.
pub async fn check_called(journal: &dyn Journal, records: &[Arc<Record>]) -> Result<(), JournalError> {
    let mut open = open_runs(records);
    while let Some(run) = open.pop() {
        match journal.read(&run).await {
            // It was not begun before the crash.
            Err(JournalError::UnknownRun { .. }) => {}
            records => open.extend(open_runs(&records?)),
        }
    }
    Ok(())
}

/// The runs of calls that have no end.
fn open_runs(records: &[Arc<Record>]) -> Vec<RunId> {
    let mut open = BTreeMap::new();
    for record in records {
        match &record.body {
            RecordBody::ToolStarted { call, child_run: Some(run), .. } => {
                open.insert(*call, run.clone());
            }
            RecordBody::ToolFinished { call, .. } => {
                open.remove(call);
            }
            _ => {}
        }
    }
    open.into_values().collect()
}

impl Context {
    /// The call that this context's run works for; none while the context is a caller's own.
    pub fn called_by(&self) -> Option<&Delegation> {
        self.delegation.as_deref().filter(|by| by.child == self.run)
    }

    /// Where the run is kept: beside its caller, or where its agent keeps its `own` runs.
    pub fn journal<'a>(&'a self, own: &'a Arc<dyn Journal>) -> &'a Arc<dyn Journal> {
        self.called_by().map_or(own, |by| &by.journal)
    }

    /// The same context, where the run says in its caller's log that it has a log; see [`CallerLog`].
    pub fn with_caller_log(mut self, log: Arc<dyn CallerLog>) -> Self {
        self.delegation = self.delegation.map(|by| Arc::new(Delegation::clone(&by).with_caller_log(log)));
        self
    }

    /// How far the run may go: as its agent's `own` runs may, and no further than its caller allows.
    pub fn limits(&self, own: ExecutionLimits) -> ExecutionLimits {
        match self.called_by() {
            Some(by) => by.narrow(own, self.depth),
            None => own,
        }
    }

    /// Whether the run may begin others, where none may be deeper than `max`.
    ///
    /// # Errors
    /// [`RunRefused::TooDeep`].
    pub fn may_delegate(&self, max: u32) -> Result<(), RunRefused> {
        let depth = self.depth;
        if depth < max { Ok(()) } else { Err(RunRefused::TooDeep { depth, max }) }
    }

    /// The context of the run that `call` starts. Its id follows from the call, so that it is found again.
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
        child.agreed_above = false;
        child.run = self.run.of_call(call);
        child.session = SessionId::new(child.run.as_str().replace('.', "-"));
        child.delegation = Some(Arc::new(Delegation::new(self.run.clone(), call, lease, max_depth, journal)));
        child
    }
}

/// The line behind an answer that the limit of its tokens cut off, for whoever reads it instead of an [`Outcome`].
pub const CUT_OFF: &str = "[Cut off: the limit of tokens of one answer; the answer is not complete]";

impl Outcome {
    /// What the run came to, as the result of the call that `agent` worked for.
    pub fn to_result(&self, agent: &str) -> ToolResult {
        let said = self.said().unwrap_or_default().trim();
        let result = match self.status {
            OutcomeStatus::Finished if self.is_cut() => ToolResult::success(format!("{said}\n{CUT_OFF}")),
            OutcomeStatus::Finished => ToolResult::success(self.said().unwrap_or_default()),
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

    /// The question that `call` has while its run, one of `agent`, waits; what the run waits for stands in its own log.
    pub fn to_question(&self, call: CallId, agent: &str) -> ApprovalRequest {
        let summary = format!("run {} waits for an answer", self.run);
        let mut request =
            ApprovalRequest::new(format!("{}.{call}", self.run), summary, json!({ "run": self.run }));
        agent.clone_into(&mut request.agent_name);
        request
    }
}
