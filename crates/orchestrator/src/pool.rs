//! The pool of agents that wait for people, by tenant.
//!
//! It keeps no state of its own: what waits, for what, until when, and whether it is set aside, stands in the logs of
//! the runs. The index says where to look, and can be made again from the logs ([`AgentPool::restore`]).

mod memory_index;

use std::{collections::HashMap, sync::Arc};

use archon_types::{
    Answer, ApprovalRequest, CallId, Clock, Context, Ids, InboxEntry, InboxRequest, Journal, JournalError,
    OpenMode, PendingApproval, PoolFilter, PoolIndex, Record, RecordBody, RunFilter, RunId, RunStatus,
    SessionId, TenantId, pending_approvals,
};

use crate::AgentTool;

pub use memory_index::MemoryIndex;

/// Agents that wait: who they are, and what can be done with them. Clones share everything.
#[derive(Clone)]
pub struct AgentPool {
    index: Arc<dyn PoolIndex>,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    options: PoolOptions,
    /// The fields of the agents that are there now, by the names of their tools.
    versions: Arc<HashMap<String, String>>,
}

/// How far a pool goes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolOptions {
    /// Most agents of one tenant that wait at once. Default 10.
    pub max_per_tenant: usize,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self { max_per_tenant: 10 }
    }
}

/// What came of looking at runs.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Noted {
    /// What waits for a person.
    pub waiting: Vec<PendingApproval>,
    /// What was taken back: the agent's fields are others by now, or too many agents of the tenant wait. Its run has
    /// to be resumed, so that it learns of it.
    pub withdrawn: Vec<PendingApproval>,
    /// Runs that are suspended although all that they asked is answered or was taken back: they are to be resumed.
    pub ready: Vec<(RunId, TenantId)>,
}

impl AgentPool {
    /// A pool over the runs of a journal.
    pub fn new(
        index: Arc<dyn PoolIndex>,
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        Self { index, journal, clock, ids, options: PoolOptions::default(), versions: Arc::default() }
    }

    /// The same pool with other limits.
    pub fn with_options(mut self, options: PoolOptions) -> Self {
        self.options = options;
        self
    }

    /// The same pool, which knows these agents: what waits for one of them and was begun with other fields is discarded.
    pub fn with_agents<'a>(mut self, agents: impl IntoIterator<Item = &'a AgentTool>) -> Self {
        let versions = Arc::make_mut(&mut self.versions);
        for agent in agents {
            versions.insert(agent.name().to_owned(), agent.schema_version().to_owned());
        }
        self
    }

    /// Looks at a run that came to rest: if it is suspended, what it asks is in the pool, and nothing else of it.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn note(&self, run: &RunId) -> Result<Noted, JournalError> {
        let mut noted = Noted::default();
        let asked = self.questions(run).await?;
        // Also what is answered stays until the run was resumed: whoever looks then finds the run again.
        self.index.put(run, asked.clone()).await?;
        let Some(tenant) = asked.first().map(|entry| entry.tenant.clone()) else { return Ok(noted) };
        let others = self.others(run, &tenant, asked.len()).await?;
        for entry in asked {
            if self.is_answered(&entry).await? {
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
                    self.post(&entry, Answer::Withdrawn { reason }).await?;
                    noted.withdrawn.push(entry);
                }
                None => noted.waiting.push(entry),
            }
        }
        if noted.waiting.is_empty() {
            noted.ready.push((run.clone(), tenant));
        }
        Ok(noted)
    }

    /// How many other agents of a tenant wait; what was answered is looked up only where it matters.
    async fn others(&self, run: &RunId, tenant: &TenantId, own: usize) -> Result<usize, JournalError> {
        let now = self.clock.now();
        let mut others = self.index.find(&PoolFilter::tenant(tenant)).await?;
        others.retain(|entry| entry.run != *run && !entry.request.is_expired(now));
        if others.len() + own <= self.options.max_per_tenant {
            return Ok(others.len());
        }
        let mut waiting = 0;
        for entry in &others {
            waiting += usize::from(!self.is_answered(entry).await?);
        }
        Ok(waiting)
    }

    /// The agents of a tenant that wait, oldest first, those that are set aside too. What is answered or has expired is
    /// left out; what has other fields by now is discarded.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn waiting(&self, tenant: &TenantId) -> Result<Vec<PendingApproval>, JournalError> {
        Ok(self.look(tenant).await?.waiting)
    }

    /// As [`waiting`](Self::waiting), with the runs of the tenant that nobody has to wait for any more: they were
    /// answered, or their agents were discarded, and then they were not resumed.
    ///
    /// # Errors
    /// As [`waiting`](Self::waiting).
    pub async fn look(&self, tenant: &TenantId) -> Result<Noted, JournalError> {
        let now = self.clock.now();
        let mut noted = Noted::default();
        let mut answered: Vec<RunId> = Vec::new();
        let mut open: Vec<RunId> = Vec::new();
        for entry in self.index.find(&PoolFilter::tenant(tenant)).await? {
            if self.is_answered(&entry).await? {
                answered.push(entry.run);
            } else if self.is_stale(&entry) {
                let reason = self.stale(&entry);
                self.post(&entry, Answer::Withdrawn { reason }).await?;
                answered.push(entry.run.clone());
                noted.withdrawn.push(entry);
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
                // Who works on a run that is not at rest looks at it afterwards.
                _ => {}
            }
        }
        Ok(noted)
    }

    /// What nobody answered in time, of all tenants. Its runs are to be resumed, so that they learn of it, and are looked
    /// at afterwards ([`note`](Self::note)): until then they are found here.
    ///
    /// # Errors
    /// The index failed.
    pub async fn expired(&self) -> Result<Vec<PendingApproval>, JournalError> {
        self.index.find(&PoolFilter::due(self.clock.now())).await
    }

    /// Whether nobody answered something in time that a run asked.
    ///
    /// # Errors
    /// The index failed.
    pub(crate) async fn has_expired(&self, run: &RunId) -> Result<bool, JournalError> {
        let now = self.clock.now();
        let entries = self.index.find(&PoolFilter::run(run)).await?;
        Ok(entries.iter().any(|entry| entry.request.is_expired(now)))
    }

    /// Takes out what nobody answered in time of a run that was resumed and still waits for it.
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

    /// Leaves the answer with the run that asks. The run goes on when it is resumed; until then [`look`](Self::look) and
    /// [`restore`](Self::restore) find it again.
    ///
    /// False if it was answered before, or has expired: then nothing changes.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn answer(&self, entry: &PendingApproval, answer: Answer) -> Result<bool, JournalError> {
        let is_open = !entry.request.is_expired(self.clock.now()) && !self.is_answered(entry).await?;
        if is_open {
            self.post(entry, answer).await?;
        }
        Ok(is_open)
    }

    /// Cancels what an agent waits for, as the person would.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn cancel(&self, entry: &PendingApproval, reason: &str) -> Result<bool, JournalError> {
        self.answer(entry, Answer::Cancel { reason: reason.to_owned() }).await
    }

    /// Sets an agent aside: nobody is to be asked about it, and it does not expire. This stands in the logs of its runs.
    ///
    /// # Errors
    /// The journal or the index failed, or one of the runs is at work.
    pub async fn pause(&self, entry: &PendingApproval) -> Result<PendingApproval, JournalError> {
        let request = entry.request.clone().pause(self.clock.now());
        self.ask_again(entry, request).await
    }

    /// Asks again about what was set aside, with the time that it had left.
    ///
    /// # Errors
    /// As [`pause`](Self::pause).
    pub async fn resume(&self, entry: &PendingApproval) -> Result<PendingApproval, JournalError> {
        let request = entry.request.clone().unpause(self.clock.now());
        self.ask_again(entry, request).await
    }

    /// Makes the index from the logs, for instance after a restart without it. What is ready then was answered before
    /// the process ended, and is to be resumed.
    ///
    /// # Errors
    /// The journal or the index failed.
    pub async fn restore(&self) -> Result<Noted, JournalError> {
        for entry in self.index.find(&PoolFilter::default()).await? {
            self.index.put(&entry.run, Vec::new()).await?;
        }
        let mut all = Noted::default();
        // Who waited first has the first right to a place.
        let waiting = RunFilter::all().status([RunStatus::Suspended]).top_level();
        for head in self.journal.list(&waiting).await?.into_iter().rev() {
            let noted = self.note(&head.run_id).await?;
            all.waiting.extend(noted.waiting);
            all.withdrawn.extend(noted.withdrawn);
            all.ready.extend(noted.ready);
        }
        Ok(all)
    }

    /// What a run that is suspended asks, by its log; also what is answered and did not arrive.
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

    /// Whether an answer is on its way, or has arrived in the run that asked.
    async fn is_answered(&self, entry: &PendingApproval) -> Result<bool, JournalError> {
        let (asker, question) = (entry.asker(), &entry.request);
        match self.journal.read(asker).await {
            // An agent that keeps no log here asks in the log of its caller alone.
            Err(JournalError::UnknownRun { .. }) => {}
            records => {
                let open = pending_approvals(&records?);
                if !open.iter().any(|open| open.request.request_id == question.request_id) {
                    return Ok(true);
                }
            }
        }
        let Some(inbox) = self.journal.inbox() else { return Ok(false) };
        let answers = |request: &InboxRequest| matches!(request, InboxRequest::Answer { request_id, binding, .. } if question.is_meant(request_id, binding));
        Ok(inbox.waiting(asker).await?.iter().any(|entry| answers(&entry.request)))
    }

    async fn post(&self, entry: &PendingApproval, answer: Answer) -> Result<(), JournalError> {
        let inbox = self.journal.inbox();
        let inbox = inbox.ok_or(JournalError::Unsupported { action: "take messages to runs" })?;
        let request = entry.request.answered(answer);
        inbox.post(entry.asker(), InboxEntry::new(self.ids.fresh("in"), self.clock.now(), request)).await
    }

    /// Writes the question as it is now into the logs of all runs that wait for it, from below: a run that is taken up
    /// asks as the run below it does.
    async fn ask_again(
        &self,
        entry: &PendingApproval,
        request: ApprovalRequest,
    ) -> Result<PendingApproval, JournalError> {
        let path = &request.path;
        for level in (0..=path.len()).rev() {
            let (run, call) = match level.checked_sub(1).and_then(|above| path.get(above)) {
                Some(asker) => (&asker.run, asker.call),
                None => (&entry.run, entry.call),
            };
            let mut own = request.clone();
            own.path.drain(..level);
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
            RecordBody::ToolAsked { call, request: Box::new(request) },
            RecordBody::Suspended { waiting },
        ];
        let context = Context::new(run.clone(), SessionId::new(""), self.clock.clone(), self.ids.clone());
        open.log(context).append(bodies).await?;
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

/// The calls that a run waits with, if it does.
fn suspension(records: &[Arc<Record>]) -> Option<Vec<CallId>> {
    match records.last().map(|last| &last.body) {
        Some(RecordBody::Suspended { waiting }) => Some(waiting.clone()),
        _ => None,
    }
}

impl std::fmt::Debug for AgentPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentPool").field("options", &self.options).finish_non_exhaustive()
    }
}
