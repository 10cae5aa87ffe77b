//! The pool of agents that wait for a person, by tenant.
//!
//! The pool has no state of its own: the questions, their expiry and their pauses are in the logs of the
//! runs. The index only finds the runs, and [`AgentPool::restore`] rebuilds it from the logs.

mod memory_index;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use archon_run::RunLog;
use archon_types::{
    Answer, ApprovalRequest, CallId, Clock, Context, Ids, Journal, JournalError, OpenMode, PendingApproval,
    PoolFilter, PoolIndex, Record, RecordBody, RunFilter, RunId, RunStatus, SessionId, TenantId,
    pending_approvals,
};

use crate::AgentTool;

pub use memory_index::InMemoryPoolIndex;

/// Finds, answers and pauses the questions of agents that wait for a person. Clones share all state.
///
/// ```
/// use archon_assistant::{AgentPool, AgentTool, PoolOptions};
///
/// fn small(pool: AgentPool, agents: &[AgentTool]) -> AgentPool {
///     let mut options = PoolOptions::default();
///     options.max_per_tenant = 3; // questions
///     pool.with_options(options).with_agents(agents)
/// }
/// ```
#[derive(Clone)]
pub struct AgentPool {
    index: Arc<dyn PoolIndex>,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    options: PoolOptions,
    /// Schema versions of the agents in [`with_agents`](Self::with_agents), by tool name.
    versions: Arc<HashMap<String, String>>,
}

/// Options of a pool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolOptions {
    /// The maximum number of questions of one tenant that are open at once. Default 10.
    pub max_per_tenant: usize,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self { max_per_tenant: 10 }
    }
}

/// Questions and runs that the pool found when it read the logs of runs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Noted {
    /// The open questions.
    pub waiting: Vec<PendingApproval>,
    /// Questions that were withdrawn because the agent's fields have changed, or because too many
    /// questions of the tenant are open. The caller must resume their runs.
    pub withdrawn: Vec<PendingApproval>,
    /// Suspended runs without an open question. The caller must resume them.
    pub ready: Vec<(RunId, TenantId)>,
}

impl AgentPool {
    /// Creates a pool over the runs of a journal.
    pub fn new(
        index: Arc<dyn PoolIndex>,
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        Self { index, journal, clock, ids, options: PoolOptions::default(), versions: Arc::default() }
    }

    /// Replaces all options of the pool. Default: at most 10 open questions of a tenant.
    pub fn with_options(mut self, options: PoolOptions) -> Self {
        self.options = options;
        self
    }

    /// Registers the current agents. If the fields of an agent have changed since it asked a question, the
    /// question is withdrawn.
    pub fn with_agents<'a>(mut self, agents: impl IntoIterator<Item = &'a AgentTool>) -> Self {
        let versions = Arc::make_mut(&mut self.versions);
        for agent in agents {
            versions.insert(agent.name().to_owned(), agent.schema_version().to_owned());
        }
        self
    }

    /// Reads the log of a run, and updates the index, which has an entry for each open question of a
    /// suspended run.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn note(&self, run: &RunId) -> Result<Noted, JournalError> {
        let mut noted = Noted::default();
        let asked = self.questions(run).await?;
        // An answered question stays in the index until the run is resumed, so that the run is found again.
        self.index.put(run, asked.clone()).await?;
        let Some(tenant) = asked.first().map(|entry| entry.tenant.clone()) else { return Ok(noted) };
        let others = self.others(run, &tenant, asked.len()).await?;
        for entry in asked {
            if entry.is_answered(&*self.journal).await? {
                continue;
            }
            let most = self.options.max_per_tenant;
            let full = others + noted.waiting.len() >= most;
            let reason = self.stale(&entry).or_else(|| {
                full.then(|| format!(
                    "{} was not run: {most} agents wait for this person already. One of them has to be answered first.",
                    name(&entry),
                ))
            });
            match reason {
                Some(reason) => noted.withdrawn.extend(self.withdraw(entry, reason).await?),
                None => noted.waiting.push(entry),
            }
        }
        if noted.waiting.is_empty() {
            noted.ready.push((run.clone(), tenant));
        }
        Ok(noted)
    }

    /// Returns the number of questions of the tenant's other runs in the index. Only if there would be more
    /// than `max_per_tenant`, the journal is read, and questions that are already answered do not count.
    async fn others(&self, run: &RunId, tenant: &TenantId, own: usize) -> Result<usize, JournalError> {
        let now = self.clock.now();
        let mut others = self.index.find(&PoolFilter::tenant(tenant)).await?;
        others.retain(|entry| entry.run != *run && !entry.request.is_expired(now));
        if others.len() + own <= self.options.max_per_tenant {
            return Ok(others.len());
        }
        let mut waiting = 0;
        for entry in &others {
            waiting += usize::from(!entry.is_answered(&*self.journal).await?);
        }
        Ok(waiting)
    }

    /// Returns the open questions of a tenant, oldest first, including paused questions, but not expired
    /// ones. Questions of agents whose fields have changed are withdrawn.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn waiting(&self, tenant: &TenantId) -> Result<Vec<PendingApproval>, JournalError> {
        Ok(self.waiting_and_resumable(tenant).await?.waiting)
    }

    /// Returns the same as [`waiting`](Self::waiting), and the tenant's runs that must be resumed because
    /// their questions were answered or withdrawn.
    ///
    /// # Errors
    /// The errors of [`waiting`](Self::waiting).
    pub async fn waiting_and_resumable(&self, tenant: &TenantId) -> Result<Noted, JournalError> {
        let now = self.clock.now();
        let mut noted = Noted::default();
        let (mut answered, mut open) = (BTreeSet::new(), HashSet::new());
        for entry in self.index.find(&PoolFilter::tenant(tenant)).await? {
            if entry.is_answered(&*self.journal).await? {
                answered.insert(entry.run);
            } else if let Some(reason) = self.stale(&entry) {
                answered.insert(entry.run.clone());
                noted.withdrawn.extend(self.withdraw(entry, reason).await?);
            } else if !entry.request.is_expired(now) {
                open.insert(entry.run.clone());
                noted.waiting.push(entry);
            }
        }
        for run in answered.into_iter().filter(|run| !open.contains(run)) {
            match self.read(&run).await?.last().map(|last| &last.body) {
                Some(RecordBody::Suspended { .. }) => noted.ready.push((run, tenant.clone())),
                Some(RecordBody::RunFinished(_)) | None => self.index.put(&run, Vec::new()).await?,
                // A run that is at work is looked at by its driver afterwards.
                _ => {}
            }
        }
        Ok(noted)
    }

    /// Returns the run that began first among the runs of these questions. If two runs began at the same
    /// time, the run whose question comes first in `waiting` is returned.
    pub(crate) async fn oldest_run(
        &self,
        waiting: &[PendingApproval],
    ) -> Result<Option<RunId>, JournalError> {
        let mut runs: Vec<&RunId> = waiting.iter().map(|entry| &entry.run).collect();
        let mut seen = HashSet::new();
        runs.retain(|run| seen.insert(*run));
        if let [only] = runs[..] {
            return Ok(Some(only.clone()));
        }
        let mut began = Vec::new();
        for run in runs {
            // A run whose log is gone comes last.
            let first = self.read(run).await?.first().map_or(u64::MAX, |first| first.at.as_millis());
            began.push((first, run));
        }
        Ok(began.into_iter().min_by_key(|(at, _)| *at).map(|(_, run)| run.clone()))
    }

    /// Returns the expired questions of all tenants. Resume their runs, which record the expiry, and call
    /// [`note`](Self::note) afterwards; until then this method returns the questions again.
    ///
    /// # Errors
    /// The index failed.
    pub async fn expired(&self) -> Result<Vec<PendingApproval>, JournalError> {
        self.index.find(&PoolFilter::due(self.clock.now())).await
    }

    /// Returns whether a question of the run has expired.
    pub(crate) async fn has_expired(&self, run: &RunId) -> Result<bool, JournalError> {
        let now = self.clock.now();
        let entries = self.index.find(&PoolFilter::run(run)).await?;
        Ok(entries.iter().any(|entry| entry.request.is_expired(now)))
    }

    /// Removes the expired questions of a run from the index, after the run was resumed.
    pub(crate) async fn forget_expired(&self, run: &RunId) -> Result<(), JournalError> {
        let now = self.clock.now();
        let mut entries = self.index.find(&PoolFilter::run(run)).await?;
        let all = entries.len();
        entries.retain(|entry| !entry.request.is_expired(now));
        match entries.len() < all {
            true => self.index.put(run, entries).await,
            false => Ok(()),
        }
    }

    /// Puts the answer into the inbox of the run that asked; the run continues when it is resumed. Returns
    /// false and changes nothing if the question was answered before or has expired.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn answer(&self, entry: &PendingApproval, answer: Answer) -> Result<bool, JournalError> {
        if entry.request.is_expired(self.clock.now()) || entry.is_answered(&*self.journal).await? {
            return Ok(false);
        }
        entry.answer(answer, self.clock.now(), &*self.journal).await
    }

    /// Withdraws a question and returns it; `None` if the question was answered in the meantime.
    async fn withdraw(
        &self,
        entry: PendingApproval,
        reason: String,
    ) -> Result<Option<PendingApproval>, JournalError> {
        let answer = Answer::Withdrawn { reason };
        let is_withdrawn = entry.answer(answer, self.clock.now(), &*self.journal).await?;
        Ok(is_withdrawn.then_some(entry))
    }

    /// Answers a question with [`Answer::Cancel`], as a person does: the call does not run.
    ///
    /// # Errors
    /// The errors of [`answer`](Self::answer).
    pub async fn cancel(&self, entry: &PendingApproval, reason: &str) -> Result<bool, JournalError> {
        self.answer(entry, Answer::Cancel { reason: reason.to_owned() }).await
    }

    /// Pauses a question: the person is not asked, and the question does not expire. The logs of all runs
    /// that wait for the answer record the pause.
    ///
    /// # Errors
    /// The journal or the index failed, or one of the runs is not suspended.
    pub async fn pause(&self, entry: &PendingApproval) -> Result<PendingApproval, JournalError> {
        let request = entry.request.clone().pause(self.clock.now());
        self.ask_again(entry, request).await
    }

    /// Asks a paused question again, with the time that was left when it was paused.
    ///
    /// # Errors
    /// The errors of [`pause`](Self::pause).
    pub async fn resume(&self, entry: &PendingApproval) -> Result<PendingApproval, JournalError> {
        let request = entry.request.clone().unpause(self.clock.now());
        self.ask_again(entry, request).await
    }

    /// Rebuilds the index from the logs, for instance after a restart. Resume the runs in `ready`: their
    /// questions were answered before the process ended.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn restore(&self) -> Result<Noted, JournalError> {
        for entry in self.index.find(&PoolFilter::default()).await? {
            self.index.put(&entry.run, Vec::new()).await?;
        }
        let mut all = Noted::default();
        // The oldest runs come first, so that their questions are not the ones beyond the limit.
        let waiting = RunFilter::all().status([RunStatus::Suspended]).top_level();
        for head in self.journal.list(&waiting).await?.into_iter().rev() {
            let noted = self.note(&head.run_id).await?;
            all.waiting.extend(noted.waiting);
            all.withdrawn.extend(noted.withdrawn);
            all.ready.extend(noted.ready);
        }
        Ok(all)
    }

    /// Returns the questions of a suspended run, also those whose answer is still in the inbox.
    async fn questions(&self, run: &RunId) -> Result<Vec<PendingApproval>, JournalError> {
        let records = self.read(run).await?;
        Ok(suspension(&records).map(|_| pending_approvals(&records)).unwrap_or_default())
    }

    async fn read(&self, run: &RunId) -> Result<Vec<Arc<Record>>, JournalError> {
        match self.journal.read(run).await {
            Err(JournalError::UnknownRun { .. }) => Ok(Vec::new()),
            records => records,
        }
    }

    /// Writes the changed question into the logs of all runs that wait for the answer: first into the log of
    /// the run that asked, then into the logs of its callers. The callers need it because a resumed caller
    /// repeats its child run's question.
    async fn ask_again(
        &self,
        entry: &PendingApproval,
        request: ApprovalRequest,
    ) -> Result<PendingApproval, JournalError> {
        let path = &request.call_path;
        for level in (0..=path.len()).rev() {
            let (run, call) = match level.checked_sub(1).and_then(|above| path.get(above)) {
                Some(asker) => (&asker.run, asker.call),
                None => (&entry.run, entry.call),
            };
            let mut own = request.clone();
            own.call_path.drain(..level);
            self.write(run, call, own).await?;
        }
        let mut entry = entry.clone();
        entry.request = request;
        let mut all = self.index.find(&PoolFilter::run(&entry.run)).await?;
        let is_same = |other: &&mut PendingApproval| other.request.request_id == entry.request.request_id;
        all.iter_mut().filter(is_same).for_each(|other| other.clone_from(&entry));
        self.index.put(&entry.run, all).await?;
        Ok(entry)
    }

    async fn write(&self, run: &RunId, call: CallId, request: ApprovalRequest) -> Result<(), JournalError> {
        let open = self.journal.open(run, OpenMode::Existing).await?;
        let waiting = suspension(&open.records).ok_or(JournalError::Unsupported {
            action: "pause or resume a question of a run that is not suspended",
        })?;
        let bodies = vec![
            RecordBody::ApprovalRequested { call, request: Box::new(request) },
            RecordBody::Suspended { waiting },
        ];
        let context = Context::new(run.clone(), SessionId::new(""), self.clock.clone(), self.ids.clone());
        RunLog::resume(&*self.journal, open, context).append(bodies).await?;
        Ok(())
    }

    /// Returns the reason to withdraw a question if the agent's fields have changed.
    fn stale(&self, entry: &PendingApproval) -> Option<String> {
        let (asked, name) = (&entry.request.schema_version, name(entry));
        let current = self.versions.get(&entry.request.agent_name)?;
        if asked.is_empty() || asked == current {
            return None;
        }
        tracing::warn!(run = %entry.run, agent = name, "a question is withdrawn: the agent's fields have changed");
        let why =
            "has changed since it was asked about, so it was not run. Call it again if it is still wanted.";
        Some(format!("{name} {why}"))
    }
}

fn name(entry: &PendingApproval) -> &str {
    match entry.request.agent_name.as_str() {
        "" => "This call",
        name => name,
    }
}

/// Returns the calls for which a run is suspended; `None` if the run is not suspended.
fn suspension(records: &[Arc<Record>]) -> Option<Vec<CallId>> {
    match records.last().map(|last| &last.body) {
        Some(RecordBody::Suspended { waiting }) => Some(waiting.clone()),
        _ => None,
    }
}

archon_types::debug_fields!(AgentPool: options);
