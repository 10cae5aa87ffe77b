//! Parallel loops: several agents work on one task from the same conversation, and the session continues
//! with the answer that a strategy chooses.
//!
//! The parallel loop is a run whose log lists the branches before any of them starts, and then the choice. Each
//! branch is an ordinary run of the same session that continues the conversation. Run ids of branches are
//! derived from the id of the loop, so that a resume finds them: a branch that ended is used unchanged, one
//! that was cut off is resumed, and one that never started is started.

mod choice;
mod origin;

use std::{sync::Arc, time::Duration};

use archon_run::{
    Executor, InboxEffect, Machine, Next, Recorded, Reporter, RunDriver, RunLog, cancelled_alone,
};
use archon_types::{
    AgentId, AgentMessage, AuxiliaryCall, Context, EvaluationStrategy, ExecutionLimits, FailureKind,
    InboxEntry, InboxRequest, Journal, JournalError, Lease, MoreLimits, OpenMode, Origin, Outcome,
    OutcomeStatus, ParallelBranch, ParallelChoice, Record, RecordBody, RunId, RunKind, RunRefused,
    RunStarted, SessionId, check_called,
};
use futures_util::future::join_all;

use choice::lost_reservation;
pub use origin::continuation_point;

use crate::{EarlierRuns, History, LoopError, Opening, ReactAgent, fold_before, fold_chain, resume::started};

/// Several agents that work on the same task, and the strategy that chooses among their answers.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_react_loop::{LoopError, ParallelLoop, PickFirst, ReactAgent};
/// use archon_types::{ExecutionLimits, Journal};
///
/// fn both(journal: Arc<dyn Journal>, branches: Vec<ReactAgent>) -> Result<ParallelLoop, LoopError> {
///     let limits = ExecutionLimits::default().with_max_total_tokens(200_000); // of all branches together
///     Ok(ParallelLoop::new(journal, branches, Arc::new(PickFirst))?.with_limits(limits))
/// }
/// ```
#[derive(Clone)]
pub struct ParallelLoop {
    journal: Arc<dyn Journal>,
    branches: Vec<ReactAgent>,
    strategy: Arc<dyn EvaluationStrategy>,
    limits: Option<ExecutionLimits>,
}

/// The result of a parallel loop.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParallelOutcome {
    /// The session, which continues with the chosen branch.
    pub session: SessionId,
    /// The outcome of each branch, in the order of the agents.
    pub branches: Vec<Outcome>,
    /// The choice of a branch. [`ParallelChoice::outcome`] is the outcome of the parallel loop.
    pub choice: ParallelChoice,
}

impl ParallelOutcome {
    /// Returns the outcome of the chosen branch; `None` if no branch was chosen.
    pub fn selected(&self) -> Option<&Outcome> {
        self.branches.get(usize::try_from(self.choice.selected?).ok()?)
    }
}

impl ParallelLoop {
    /// Creates a parallel loop. All its runs are stored in `journal`, whatever journals the agents have.
    ///
    /// # Errors
    /// There is no branch, or the strategy cannot choose among this number of branches.
    pub fn new(
        journal: Arc<dyn Journal>,
        branches: Vec<ReactAgent>,
        strategy: Arc<dyn EvaluationStrategy>,
    ) -> Result<Self, LoopError> {
        if branches.is_empty() {
            return Err(LoopError::NoBranch);
        }
        strategy.accepts(branches.len())?;
        let branches = branches.into_iter().map(|agent| agent.with_journal(journal.clone())).collect();
        Ok(Self { journal, branches, strategy, limits: None })
    }

    /// Sets limits that the branches share: each branch gets an equal part of the tokens and the cost,
    /// and the whole time, but never more than its own limits allow. The cost of the choice is not
    /// included. Default: each branch has its own limits only.
    pub fn with_limits(mut self, limits: ExecutionLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Returns the agent id of the first branch. The log of the parallel loop has the same agent id.
    pub fn id(&self) -> AgentId {
        self.branches[0].options().agent_id.clone()
    }

    /// Returns the lease of each branch: its part of the limits of the parallel loop.
    fn lease(&self, started: &RunStarted) -> Option<Lease> {
        self.limits.as_ref()?;
        // A run keeps the limits with which it was started.
        let limits = &started.config.limits;
        let shares = self.branches.len().max(1) as u64;
        let mut lease = Lease::new(limits.max_total_tokens / shares, limits.max_duration_ms);
        lease.cost_micros = limits.max_cost_micros.map(|most| most / shares);
        Some(lease)
    }

    /// Returns the context of the loop's own run. The context redacts the secrets of all branches,
    /// because the loop's log contains their prompts.
    fn own(&self, context: &Context) -> Context {
        let own = cancelled_alone(context);
        self.branches.iter().flat_map(ReactAgent::secrets).for_each(|secrets| own.redactor.include(&secrets));
        own
    }

    /// Gives the prompts to every branch and waits for the choice. Without prompts, the branches answer
    /// the last message of the conversation. `context` names the run of the parallel loop; its
    /// cancellation token stops all branches.
    ///
    /// A branch that fails does not affect the others. If no branch has an answer, or the loop was cancelled, no
    /// branch is chosen and the session does not change. If no branch has an answer and one waits for a person,
    /// the loop is suspended until it is resumed with the answers.
    ///
    /// # Errors
    /// The journal failed.
    pub async fn begin(
        &self,
        prompts: Vec<AgentMessage>,
        origin: Origin,
        context: &Context,
    ) -> Result<ParallelOutcome, LoopError> {
        let context = &self.own(context);
        let EarlierRuns { history, runs: earlier, .. } = fold_chain(&*self.journal, &origin).await?;
        let mut started = self.branches[0].started(origin.clone(), earlier, None, context);
        started.kind = RunKind::Parallel;
        if let Some(limits) = &self.limits {
            started.config.limits = limits.clone();
        }
        let branch = |(index, agent): (usize, &ReactAgent)| {
            let own = branch_context(context, index);
            let loop_id = agent.started(origin.clone(), earlier, Some(&context.run), &own).loop_id;
            ParallelBranch { run: own.run, loop_id }
        };
        let branches = self.branches.iter().enumerate().map(branch).collect();
        let (lease, parallel) = (self.lease(&started), self.clone());
        let rest = vec![RecordBody::ParallelStarted { prompts: prompts.clone(), branches }];
        let (log, _) = RunLog::begin(&*self.journal, started, rest, context).await?;
        let context = log.context().clone();
        let work = Work { parallel, prompts, origin, history, context, lease, again: false, lost: 0 };
        work.drive(Choosing::default(), log).await
    }

    /// Resumes the parallel loop that `context` names, from the end of its log and of the logs of its
    /// branches. After a cancel, or if no branch had an answer, the branches without an answer continue.
    ///
    /// # Errors
    /// The run is unknown, in use, was cut off before its prompts were recorded, has finished, or has
    /// another number of branches; the log of a branch cannot be read; or the journal failed.
    pub async fn resume(&self, context: &Context) -> Result<ParallelOutcome, LoopError> {
        let open = self.journal.open(&context.run, OpenMode::Existing).await?;
        let started = started(&context.run, &open.records)?;
        if started.kind != RunKind::Parallel {
            return Err(LoopError::OtherKind { run: context.run.clone(), kind: started.kind });
        }
        if open.records.len() == 1 {
            // The prompts and the branches were not recorded.
            return Err(LoopError::NothingAsked { run: context.run.clone() });
        }
        let (prompts, found) = begun(&open.records).unwrap_or_default();
        if found != self.branches.len() {
            let (run, given) = (context.run.clone(), self.branches.len());
            return Err(LoopError::OtherBranches { run, found, given });
        }
        let context = open.context(&self.own(context));
        let mut machine = archon_run::fold(&open.records, |_, _| Choosing::default()).unwrap_or_default();
        let ended = machine.outcome.as_ref().map(|outcome| outcome.status);
        if ended.is_some_and(|status| !may_go_on(status)) {
            return Err(RunRefused::Ended { run: context.run }.into());
        }
        check_called(&*self.journal, &open.records).await?;
        let work = Work {
            parallel: self.clone(),
            prompts: prompts.to_vec(),
            origin: started.origin.clone(),
            history: fold_before(&*self.journal, &context.run, &open.records).await?.history,
            context: context.clone(),
            lease: self.lease(started),
            again: ended.is_some(),
            lost: lost_reservation(&open.records),
        };
        let mut log = RunLog::resume(&*self.journal, open, context);
        log.step(vec![RecordBody::Resumed], |record| machine.apply(record)).await?;
        work.drive(machine, log).await
    }
}

impl std::fmt::Debug for ParallelLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParallelLoop")
            .field("branches", &self.branches)
            .field("strategy", &self.strategy.name())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Returns the prompts of a parallel loop and the number of its branches.
fn begun(records: &[Arc<Record>]) -> Option<(&[AgentMessage], usize)> {
    match &records.get(1)?.body {
        RecordBody::ParallelStarted { prompts, branches } => Some((prompts, branches.len())),
        _ => None,
    }
}

/// Derives the run id of a branch from the id of the parallel loop.
fn branch_run(parallel: &RunId, index: impl std::fmt::Display) -> RunId {
    RunId::new(format!("{parallel}-{index}"))
}

fn may_go_on(status: OutcomeStatus) -> bool {
    matches!(status, OutcomeStatus::Cancelled | OutcomeStatus::Failed)
}

/// The state of a parallel loop: the choice, once it is made.
#[derive(Debug, Default)]
struct Choosing {
    choice: Option<Box<ParallelChoice>>,
    is_cancelled: bool,
    is_suspended: bool,
    outcome: Option<Box<Outcome>>,
}

/// The task of a parallel loop: run the branches and choose one.
struct Choose;

impl Machine for Choosing {
    const KIND: RunKind = RunKind::Parallel;
    type Task = Choose;

    fn apply(&mut self, record: &Record) {
        match &record.body {
            RecordBody::CancelRequested { .. } => self.is_cancelled = true,
            RecordBody::ParallelFinished(choice) => self.choice = Some(choice.clone()),
            RecordBody::RunFinished(outcome) => self.outcome = Some(outcome.clone()),
            RecordBody::Resumed => {
                self.is_cancelled = false;
                if self.outcome.take().is_some() {
                    // The branches without an answer are resumed, and another choice follows.
                    self.choice = None;
                }
            }
            _ => {}
        }
        self.is_suspended = matches!(record.body, RecordBody::Suspended { .. });
    }

    fn next(&self) -> Next<Choose> {
        match (&self.outcome, &self.choice) {
            (Some(outcome), _) => Next::Done(Outcome::clone(outcome)),
            (None, Some(choice)) => Next::Append(RecordBody::RunFinished(Box::new(choice.outcome.clone()))),
            (None, None) if self.is_suspended => Next::Suspend,
            (None, None) => Next::Do(Choose),
        }
    }
}

/// The executor of a parallel loop: runs the branches, and chooses one.
struct Branches {
    work: Arc<Work>,
    is_at_work: bool,
    chosen: Option<Chosen>,
}

/// The outcomes of the branches, and the choice.
type Chosen = (Vec<Outcome>, ParallelChoice);
type Run = RunDriver<Choosing, Result<Chosen, JournalError>>;

impl Executor<Choosing> for Branches {
    type Done = Result<Chosen, JournalError>;

    /// Cancelled branches end by themselves.
    const GRACE: Option<Duration> = None;

    async fn start(&mut self, _: Choose, run: &mut Run) -> Recorded {
        if std::mem::replace(&mut self.is_at_work, true) {
            return run.wait(None, self).await;
        }
        let (work, reporter) = (self.work.clone(), run.reporter());
        let failed = Outcome::failed(run.context().run.clone(), FailureKind::Panicked, "it panicked");
        let none = ParallelChoice::none(work.parallel.strategy.name(), failed);
        run.spawn(async move { work.chosen(&reporter).await }, move || Ok((Vec::new(), none)));
        Ok(())
    }

    async fn done(&mut self, chosen: Self::Done, run: &mut Run) -> Recorded {
        let (branches, choice) = chosen?;
        run.receive(self).await?;
        let status = choice.outcome.status;
        if status == OutcomeStatus::Cancelled && !run.machine.is_cancelled {
            let reason = "cancelled by the caller".to_owned();
            run.record(vec![RecordBody::CancelRequested { reason }]).await?;
        }
        let end = match status {
            // The questions are in the logs of the branches.
            OutcomeStatus::Suspended => RecordBody::Suspended { waiting: Vec::new() },
            _ => RecordBody::ParallelFinished(Box::new(choice.clone())),
        };
        self.chosen = Some((branches, choice));
        run.record(vec![end]).await
    }

    /// Records a cancel; any other message has no effect.
    fn meaning(&mut self, entry: InboxEntry, _: &Choosing) -> InboxEffect {
        InboxEffect::Record(match entry.request {
            InboxRequest::Cancel { reason } => RecordBody::CancelRequested { reason },
            _ => RecordBody::ClockRead,
        })
    }

    /// Returns no record: a cancel by the caller is recorded with the outcome, and only if the cancel
    /// changed the outcome.
    fn cancelled(&self) -> Option<RecordBody> {
        None
    }
}

/// The input of the branches of one run.
struct Work {
    parallel: ParallelLoop,
    prompts: Vec<AgentMessage>,
    origin: Origin,
    history: History,
    context: Context,
    /// The lease of each branch: its part of the limits of the parallel loop; `None` if the loop has no
    /// limits.
    lease: Option<Lease>,
    /// True if the parallel loop has ended before and is resumed: its branches without an answer then
    /// continue.
    again: bool,
    /// The reserved cost of earlier model calls that should choose a branch and whose answers were lost.
    lost: u64,
}

impl Work {
    async fn drive(self, machine: Choosing, log: RunLog) -> Result<ParallelOutcome, LoopError> {
        let (work, before) = (Arc::new(self), machine.choice.clone());
        let mut branches = Branches { work: work.clone(), is_at_work: false, chosen: None };
        let outcome = RunDriver::new(machine, log).drive(&mut branches).await?;
        let session = work.context.session.clone();
        let (branches, choice) = match (branches.chosen, before) {
            (Some(chosen), _) => chosen,
            // The process died between the choice and the last record of the loop.
            (None, Some(choice)) => (work.branches().await, *choice),
            (None, None) => (Vec::new(), ParallelChoice::none(work.parallel.strategy.name(), outcome)),
        };
        Ok(ParallelOutcome { session, branches, choice })
    }

    async fn branches(&self) -> Vec<Outcome> {
        join_all((0..self.parallel.branches.len()).map(|index| self.branch(index))).await
    }

    /// Runs the branches to their outcomes, and chooses one. If the choice may cost something, its reserved
    /// cost is recorded before the choice is made.
    async fn chosen(&self, reporter: &Reporter) -> Result<Chosen, JournalError> {
        let branches = self.branches().await;
        let candidates = self.candidates(&branches).await?;
        if let Some(reserved_cost_micros) = self.may_cost(&candidates) {
            let purpose = AuxiliaryCall::BranchChoice;
            reporter.report(RecordBody::AuxiliaryCallStarted { purpose, reserved_cost_micros }).await;
        }
        let choice = self.choose(&branches, candidates).await;
        Ok((branches, choice))
    }

    /// Runs a branch to its outcome. A branch that cannot be started counts as failed.
    async fn branch(&self, index: usize) -> Outcome {
        let context = branch_context(&self.context, index);
        let run = context.run.clone();
        let outcome = self.attach(&self.parallel.branches[index], &context).await;
        outcome.unwrap_or_else(|error| Outcome::failed(run, error.kind(), error.to_string()))
    }

    async fn attach(&self, agent: &ReactAgent, context: &Context) -> Result<Outcome, LoopError> {
        let opening = Opening::new(self.prompts.clone());
        let log = match self.parallel.journal.read(&context.run).await {
            Ok(log) => log,
            Err(JournalError::UnknownRun { .. }) => {
                let parallel = Some(&self.context.run);
                let agent = self.lease.as_ref().map_or_else(|| agent.clone(), |lease| agent.leased(lease));
                return agent.begin_branch(opening, self.origin.clone(), parallel, context).await;
            }
            Err(error) => return Err(error.into()),
        };
        match log.last().map(|record| &record.body) {
            Some(RecordBody::RunFinished(outcome)) if !(self.again && may_go_on(outcome.status)) => {
                Ok((**outcome).clone())
            }
            // The branch may have been cut off before its prompts were recorded.
            _ => agent.resume_run(Some(opening), &MoreLimits::default(), context).await,
        }
    }
}

fn branch_context(context: &Context, index: usize) -> Context {
    let mut own = context.clone();
    own.run = branch_run(&context.run, index);
    own
}
