//! The pool of agents that wait for a person, by tenant.
//!
//! It has no state of its own: the questions, their expiry, and whether they are set aside are in the logs of
//! the runs. The index only finds the runs, and can be made again from the logs ([`AgentPool::restore`]).

mod memory_index;

use std::{collections::HashMap, sync::Arc};

use archon_run::RunLog;
use archon_types::{
    Answer, ApprovalRequest, CallId, Clock, Context, Ids, Journal, JournalError, OpenMode, PendingApproval,
    PoolFilter, PoolIndex, Record, RecordBody, RunFilter, RunId, RunStatus, SessionId, TenantId, Timestamp,
    pending_approvals,
};

use crate::AgentTool;

pub use memory_index::InMemoryPoolIndex;

/// Finds and changes agents that wait for a person. Clones share everything.
#[derive(Clone)]
pub struct AgentPool {
    index: Arc<dyn PoolIndex>,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    options: PoolOptions,
    /// Schema versions of the known agents, by the names of their tools.
    versions: Arc<HashMap<String, String>>,
}

/// Options of a pool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolOptions {
    /// The most agents of one tenant that wait at once. Default 10.
    pub max_per_tenant: usize,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self { max_per_tenant: 10 }
    }
}

/// Result of looking at runs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Noted {
    /// The questions that wait for a person.
    pub waiting: Vec<PendingApproval>,
    /// Questions that were withdrawn: the agent's fields have changed, or too many agents of the tenant wait.
    /// Their runs must be resumed to learn of it.
    pub withdrawn: Vec<PendingApproval>,
    /// Suspended runs without an open question: they must be resumed.
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

    /// Sets other options.
    pub fn with_options(mut self, options: PoolOptions) -> Self {
        self.options = options;
        self
    }

    /// Tells the pool the current agents. A waiting call of one of them that has other fields is discarded.
    pub fn with_agents<'a>(mut self, agents: impl IntoIterator<Item = &'a AgentTool>) -> Self {
        let versions = Arc::make_mut(&mut self.versions);
        for agent in agents {
            versions.insert(agent.name().to_owned(), agent.schema_version().to_owned());
        }
        self
    }

    /// Updates the index for a run that came to rest: its open questions if it is suspended, otherwise
    /// nothing.
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
            let full = others + noted.waiting.len() >= self.options.max_per_tenant;
            let why = match self.is_stale(&entry) {
                true => Some(self.stale(&entry)),
                false if full => Some(format!(
                    "{} was not run: {} agents wait for this person already. One of them has to be answered first.",
                    name(&entry),
                    self.options.max_per_tenant
                )),
                false => None,
            };
            match why {
                Some(reason) => {
                    if self.withdraw(&entry, reason).await? {
                        noted.withdrawn.push(entry);
                    }
                }
                None => noted.waiting.push(entry),
            }
        }
        if noted.waiting.is_empty() {
            noted.ready.push((run.clone(), tenant));
        }
        Ok(noted)
    }

    /// Number of other agents of a tenant that wait. Answers are looked up only if the limit would be passed
    /// otherwise.
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

    /// Returns the questions of a tenant that wait, oldest first, those set aside included. Answered and
    /// expired ones are left out; those of changed agents are discarded.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn waiting(&self, tenant: &TenantId) -> Result<Vec<PendingApproval>, JournalError> {
        Ok(self.waiting_and_resumable(tenant).await?.waiting)
    }

    /// As [`waiting`](Self::waiting), and also returns the tenant's runs that must be resumed: their
    /// questions were answered, or their agents were discarded.
    ///
    /// # Errors
    /// As [`waiting`](Self::waiting).
    pub async fn waiting_and_resumable(&self, tenant: &TenantId) -> Result<Noted, JournalError> {
        let now = self.clock.now();
        let mut noted = Noted::default();
        let mut answered: Vec<RunId> = Vec::new();
        let mut open: Vec<RunId> = Vec::new();
        for entry in self.index.find(&PoolFilter::tenant(tenant)).await? {
            if entry.is_answered(&*self.journal).await? {
                answered.push(entry.run);
            } else if self.is_stale(&entry) {
                let reason = self.stale(&entry);
                answered.push(entry.run.clone());
                if self.withdraw(&entry, reason).await? {
                    noted.withdrawn.push(entry);
                }
            } else if !entry.request.is_expired(now) {
                open.push(entry.run.clone());
                noted.waiting.push(entry);
            }
        }
        answered.retain(|run| !open.contains(run));
        answered.sort();
        answered.dedup();
        for run in answered {
            match self.read(&run).await?.last().map(|last| &last.body) {
                Some(RecordBody::Suspended { .. }) => noted.ready.push((run, tenant.clone())),
                Some(RecordBody::RunFinished(_)) | None => self.index.put(&run, Vec::new()).await?,
                // A run that is at work is looked at by its driver afterwards.
                _ => {}
            }
        }
        Ok(noted)
    }

    /// Returns the run that began first of those that ask; of two that began at once, the one that asked
    /// first.
    ///
    /// # Errors
    /// The journal failed.
    pub(crate) async fn oldest_run(
        &self,
        waiting: &[PendingApproval],
    ) -> Result<Option<RunId>, JournalError> {
        let mut runs: Vec<&RunId> = Vec::new();
        for entry in waiting {
            if !runs.contains(&&entry.run) {
                runs.push(&entry.run);
            }
        }
        if runs.len() < 2 {
            return Ok(runs.first().map(|run| (*run).clone()));
        }
        let mut oldest: Option<(Timestamp, &RunId)> = None;
        for run in runs {
            // A run whose log is gone comes last.
            let gone = Timestamp::from_millis(u64::MAX);
            let began = self.read(run).await?.first().map_or(gone, |first| first.at);
            if oldest.is_none_or(|(at, _)| began < at) {
                oldest = Some((began, run));
            }
        }
        Ok(oldest.map(|(_, run)| run.clone()))
    }

    /// Returns the expired questions of all tenants. Resume their runs, so that they learn of it, and call
    /// [`note`](Self::note) afterwards; until then they are found here.
    ///
    /// # Errors
    /// The index failed.
    pub async fn expired(&self) -> Result<Vec<PendingApproval>, JournalError> {
        self.index.find(&PoolFilter::due(self.clock.now())).await
    }

    /// Returns whether a question of the run has expired.
    ///
    /// # Errors
    /// The index failed.
    pub(crate) async fn has_expired(&self, run: &RunId) -> Result<bool, JournalError> {
        let now = self.clock.now();
        let entries = self.index.find(&PoolFilter::run(run)).await?;
        Ok(entries.iter().any(|entry| entry.request.is_expired(now)))
    }

    /// Removes expired questions of a run that was resumed and still waits for them.
    ///
    /// # Errors
    /// The index failed.
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

    /// Puts the answer into the inbox of the run that asked. The run goes on when it is resumed; until then
    /// [`look`](Self::look) and [`restore`](Self::restore) find it again.
    ///
    /// Returns false and changes nothing if the question was answered before or has expired.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn answer(&self, entry: &PendingApproval, answer: Answer) -> Result<bool, JournalError> {
        if entry.request.is_expired(self.clock.now()) || entry.is_answered(&*self.journal).await? {
            return Ok(false);
        }
        entry.answer(answer, self.clock.now(), &*self.journal).await
    }

    /// Withdraws a question. Returns false if somebody has answered it in the meantime.
    async fn withdraw(&self, entry: &PendingApproval, reason: String) -> Result<bool, JournalError> {
        entry.answer(Answer::Withdrawn { reason }, self.clock.now(), &*self.journal).await
    }

    /// Answers with a cancel, as a person would.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn cancel(&self, entry: &PendingApproval, reason: &str) -> Result<bool, JournalError> {
        self.answer(entry, Answer::Cancel { reason: reason.to_owned() }).await
    }

    /// Sets a question aside: it is not asked, and does not expire. The logs of its runs record this.
    ///
    /// # Errors
    /// The journal or the index failed, or one of the runs is at work.
    pub async fn pause(&self, entry: &PendingApproval) -> Result<PendingApproval, JournalError> {
        let request = entry.request.clone().pause(self.clock.now());
        self.ask_again(entry, request).await
    }

    /// Asks a question again that was set aside, with the time that it had left.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    pub async fn resume(&self, entry: &PendingApproval) -> Result<PendingApproval, JournalError> {
        let request = entry.request.clone().unpause(self.clock.now());
        self.ask_again(entry, request).await
    }

    /// Makes the index anew from the logs, for instance after a restart. The runs in `ready` were answered
    /// before the process ended, and must be resumed.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn restore(&self) -> Result<Noted, JournalError> {
        for entry in self.index.find(&PoolFilter::default()).await? {
            self.index.put(&entry.run, Vec::new()).await?;
        }
        let mut all = Noted::default();
        // The oldest question has the first right to a place.
        let waiting = RunFilter::all().status([RunStatus::Suspended]).top_level();
        for head in self.journal.list(&waiting).await?.into_iter().rev() {
            let noted = self.note(&head.run_id).await?;
            all.waiting.extend(noted.waiting);
            all.withdrawn.extend(noted.withdrawn);
            all.ready.extend(noted.ready);
        }
        Ok(all)
    }

    /// Returns the questions of a suspended run by its log, those included whose answer has not arrived.
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

    /// Writes the changed question into the logs of all runs that wait for it, the lowest first, since a
    /// resumed run repeats the question of the run below it.
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
        for other in &mut all {
            if other.request.request_id == entry.request.request_id {
                *other = entry.clone();
            }
        }
        self.index.put(&entry.run, all).await?;
        Ok(entry)
    }

    async fn write(&self, run: &RunId, call: CallId, request: ApprovalRequest) -> Result<(), JournalError> {
        let open = self.journal.open(run, OpenMode::Existing).await?;
        let waiting = suspension(&open.records)
            .ok_or(JournalError::Unsupported { action: "set aside a run that does not wait" })?;
        let bodies = vec![
            RecordBody::ApprovalRequested { call, request: Box::new(request) },
            RecordBody::Suspended { waiting },
        ];
        let context = Context::new(run.clone(), SessionId::new(""), self.clock.clone(), self.ids.clone());
        RunLog::resume(&*self.journal, open, context).append(bodies).await?;
        Ok(())
    }

    fn is_stale(&self, entry: &PendingApproval) -> bool {
        let asked = &entry.request.schema_version;
        !asked.is_empty()
            && self.versions.get(&entry.request.agent_name).is_some_and(|version| version != asked)
    }

    fn stale(&self, entry: &PendingApproval) -> String {
        let name = name(entry);
        tracing::warn!(run = %entry.run, agent = name, "an agent that waited is discarded: its fields are others by now");
        format!(
            "{name} has changed since it was asked about, so it was not run. Call it again if it is still wanted."
        )
    }
}

fn name(entry: &PendingApproval) -> &str {
    match entry.request.agent_name.as_str() {
        "" => "This call",
        name => name,
    }
}

/// Returns the calls for which a run is suspended, if it is.
fn suspension(records: &[Arc<Record>]) -> Option<Vec<CallId>> {
    match records.last().map(|last| &last.body) {
        Some(RecordBody::Suspended { waiting }) => Some(waiting.clone()),
        _ => None,
    }
}

archon_types::debug_fields!(AgentPool: options);
