//! The run service: starts, watches and resumes runs of every kind over one journal, with the agents that are
//! registered for them.
//!
//! Each run works in its own async task and does not depend on watchers. A run can be resumed with only its log and
//! the agent that its first record names.

mod answer;
mod context;
mod delivery;
mod going_back;
mod live;
mod manage;
mod person_requests;
mod retention;
mod start;
mod sweeping;
mod tenant;
mod unread;
mod watching;

use std::{
    collections::{BTreeMap, HashMap, VecDeque, hash_map::Entry},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_providers::ScriptedProvider;
use archon_types::{
    AgentId, BoxFuture, Context, Journal, JournalError, MoreLimits, Outcome, Record, RunAgent, RunError,
    RunFilter, RunHead, RunId, RunKind, RunStarted, Started, StartedRun,
};
use futures_util::future::{Either, select};

pub use self::{sweeping::Sweeping, tenant::TenantRuns};

use self::live::Live;
use crate::{Archon, BuildError};

/// A service for runs of every kind, which implements [`RunService`](archon_types::RunService). Cloning is
/// cheap, and clones share the runs under way.
///
/// The methods come from three traits: [`StartRuns`](archon_types::StartRuns) starts, resumes, lists and
/// watches runs, [`AnswerRuns`](archon_types::AnswerRuns) steers, cancels and answers them, and
/// [`ManageRuns`](archon_types::ManageRuns) forks and deletes them. For requests in which customers name
/// runs, use [`for_tenant`](Self::for_tenant).
///
/// ```no_run
/// use std::time::Duration;
///
/// use archon::{Archon, Runs, types::{StartRun, StartRuns}};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// // The logs contain the id: with another id after a restart, the runs have no agent.
/// let agent = Archon::builder().model("ollama:qwen3").agent_id("desk").data_dir("data").build()?;
/// let runs = Runs::new(agent);
/// // A question without an answer in time counts as refused.
/// let _sweeping = runs.keep_sweeping(Duration::from_secs(60));
/// for (run, error) in runs.resume_unfinished(None).await?.failures() {
///     eprintln!("{run} cannot go on: {error}");
/// }
/// let started = runs.start(StartRun::new("What is 19 + 23?").key("request-7")).await?;
/// println!("{}", runs.reply(&started.run).await?.into_text()?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Runs {
    inner: Arc<Inner>,
}

struct Inner {
    /// The agent whose journal, clock, ids and secrets the service uses.
    archon: Archon,
    agents: BTreeMap<(RunKind, AgentId), Arc<dyn RunAgent>>,
    source: Option<Arc<dyn AgentSource>>,
    /// The runs at work in this process.
    live: Mutex<HashMap<RunId, Arc<Live>>>,
    /// The runs that ended or were suspended last, for a watcher that comes after a short run has ended.
    recent: Mutex<VecDeque<Arc<Live>>>,
    /// One lock for each idempotency key with which a run is being started. The map key is the id of that run.
    keyed: Mutex<HashMap<RunId, Arc<tokio::sync::Mutex<()>>>>,
}

impl Inner {
    fn new(
        archon: Archon,
        agents: BTreeMap<(RunKind, AgentId), Arc<dyn RunAgent>>,
        source: Option<Arc<dyn AgentSource>>,
    ) -> Self {
        Self {
            archon,
            agents,
            source,
            live: Mutex::default(),
            recent: Mutex::default(),
            keyed: Mutex::default(),
        }
    }
}

/// Builds the agent of a run if no registered agent has the kind and the id in the run's log. The first record of
/// the log has the configuration of the agent; for a team,
/// [`TeamRecord::Inputs`](archon_types::TeamRecord::Inputs) has the configuration of each member.
///
/// ```
/// use std::sync::Arc;
///
/// use archon::{AgentSource, Archon, RunError, types::{BoxFuture, Record, RunAgent}};
///
/// /// Builds an agent with the model that the log names.
/// struct SameModel;
///
/// impl AgentSource for SameModel {
///     fn agent_of<'a>(
///         &'a self,
///         records: &'a [Arc<Record>],
///     ) -> BoxFuture<'a, Result<Arc<dyn RunAgent>, RunError>> {
///         Box::pin(async move {
///             let started = archon::types::RunStarted::of(records);
///             let model = started.map_or("qwen3", |started| &started.config.model);
///             Ok(Archon::builder().model(format!("ollama:{model}")).build()?.run_agent())
///         })
///     }
/// }
/// ```
pub trait AgentSource: Send + Sync {
    /// Returns the agent for the run with this log.
    ///
    /// # Errors
    /// There is no such agent.
    fn agent_of<'a>(
        &'a self,
        records: &'a [Arc<Record>],
    ) -> BoxFuture<'a, Result<Arc<dyn RunAgent>, RunError>>;
}

impl Runs {
    /// Creates a service over the journal of `agent`. The agent is registered under its id, for loops (runs of one
    /// agent).
    ///
    /// ```
    /// # fn example(desk: archon::Archon) {
    /// let runs = archon::Runs::new(desk);
    /// # }
    /// ```
    pub fn new(agent: Archon) -> Self {
        let own = agent.run_agent();
        let agents = BTreeMap::from([((own.kind(), own.id()), own)]);
        Self { inner: Arc::new(Inner::new(agent, agents, None)) }
    }

    /// Creates a service over a journal, without a registered agent: for example to manage runs, or to use an
    /// [`AgentSource`].
    ///
    /// ```
    /// use archon::{Runs, store::InMemoryJournal};
    /// let runs = Runs::over(std::sync::Arc::new(InMemoryJournal::new()))?;
    /// # Ok::<(), archon::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of building an agent. An error of the journal is not among them, because the journal is not used
    /// yet.
    pub fn over(journal: Arc<dyn Journal>) -> Result<Self, BuildError> {
        // This agent is not registered, so its model is never asked.
        let nobody = Arc::new(ScriptedProvider::new([]));
        let archon = Archon::builder().provider(nobody, "none").journal(journal).build()?;
        Ok(Self { inner: Arc::new(Inner::new(archon, BTreeMap::new(), None)) })
    }

    /// Registers an agent for the runs whose logs name its kind and its id. An agent that was registered before with
    /// the same kind and id is replaced.
    ///
    /// ```
    /// # use archon::{Archon, Runs};
    /// fn both(desk: Archon, stock: Archon) -> Runs {
    ///     Runs::new(desk).with_agent(stock.run_agent())
    /// }
    /// ```
    pub fn with_agent(self, agent: Arc<dyn RunAgent>) -> Self {
        self.with(|inner| {
            inner.agents.insert((agent.kind(), agent.id()), agent);
        })
    }

    /// Sets the source of agents for runs whose agent is not registered. Default none.
    ///
    /// ```
    /// # use archon::{AgentSource, Archon, Runs};
    /// fn with_others(desk: Archon, others: std::sync::Arc<dyn AgentSource>) -> Runs {
    ///     Runs::new(desk).with_source(others)
    /// }
    /// ```
    pub fn with_source(self, source: Arc<dyn AgentSource>) -> Self {
        self.with(|inner| inner.source = Some(source))
    }

    /// Returns true while this service works on the run. A run with the status
    /// [`Running`](archon_types::RunStatus::Running) for which this is false is at work elsewhere, usually in another
    /// process.
    pub fn works_on(&self, run: &RunId) -> bool {
        self.live().contains_key(run)
    }

    /// Returns a changed service. It has no runs under way, because they belong to the service that started
    /// them.
    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let old = &self.inner;
        let mut inner = Inner::new(old.archon.clone(), old.agents.clone(), old.source.clone());
        change(&mut inner);
        Self { inner: Arc::new(inner) }
    }

    fn archon(&self) -> &Archon {
        &self.inner.archon
    }

    fn live(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Live>>> {
        // A panic cannot leave the map half-changed: every change is one call.
        self.inner.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the idempotency key of this run: waits until no other request with the key is starting a run in this
    /// process.
    async fn alone(&self, run: &RunId) -> tokio::sync::OwnedMutexGuard<()> {
        let held = {
            let mut keyed = self.inner.keyed.lock().unwrap_or_else(PoisonError::into_inner);
            keyed.retain(|_, held| Arc::strong_count(held) > 1);
            keyed.entry(run.clone()).or_default().clone()
        };
        held.lock_owned().await
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<Arc<Live>>> {
        self.inner.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_recent(&self, live: Arc<Live>) {
        let mut recent = self.recent();
        recent.push_back(live);
        if recent.len() > MOST_RECENT {
            recent.pop_front();
        }
    }

    /// Returns the state of a run in this process, if the run is at work or ended recently.
    fn watched(&self, run: &RunId) -> Option<Arc<Live>> {
        let live = self.live().get(run).cloned();
        live.or_else(|| self.recent().iter().find(|recent| recent.run() == run).cloned())
    }

    fn agent(&self, kind: RunKind, id: &AgentId) -> Result<Arc<dyn RunAgent>, RunError> {
        self.inner.agents.get(&(kind, id.clone())).cloned().ok_or_else(|| {
            let known = self.inner.agents.keys().map(|(kind, id)| format!("{kind} {id}")).collect();
            RunError::NoAgent { agent: id.clone(), kind, known }
        })
    }

    /// Returns the agent that started the run with this log.
    async fn agent_of(&self, run: &RunId, records: &[Arc<Record>]) -> Result<Arc<dyn RunAgent>, RunError> {
        let Some(started) = RunStarted::of(records) else { return Err(self.unknown(run).await) };
        match (self.agent(started.kind, &started.agent), &self.inner.source) {
            (Err(RunError::NoAgent { .. }), Some(source)) => source.agent_of(records).await,
            (agent, _) => agent,
        }
    }

    /// Returns the top-level run above a run, by following its callers and parallel loops. Returns the run
    /// itself if it is a top-level run.
    async fn root(&self, run: &RunId) -> Result<RunId, RunError> {
        let mut head = self.head(run).await?;
        while let Some(above) = head.called_by.as_ref().or(head.branch_of.as_ref()) {
            match self.archon().journal.head(above).await {
                // Branches of a deleted parallel loop are ordinary runs.
                Err(JournalError::UnknownRun { .. }) => break,
                above => head = above?,
            }
        }
        Ok(head.run_id)
    }

    /// Returns the head of a run, which is its entry in lists of runs, or an error with the ids most similar
    /// to `run`.
    async fn head(&self, run: &RunId) -> Result<RunHead, RunError> {
        self.with_similar_ids(run, self.archon().journal.head(run).await).await
    }

    /// Adds the most similar ids to the error for an unknown run.
    async fn with_similar_ids<T>(&self, run: &RunId, result: Result<T, JournalError>) -> Result<T, RunError> {
        match result {
            Err(JournalError::UnknownRun { .. }) => Err(self.unknown(run).await),
            result => Ok(result?),
        }
    }

    async fn unknown(&self, run: &RunId) -> RunError {
        let heads = self.archon().journal.list(&RunFilter::all().limit(MOST_COMPARED)).await;
        let ids = heads.unwrap_or_default().into_iter().map(|head| head.run_id);
        RunError::UnknownRun { run: run.clone(), nearest: nearest(run, ids) }
    }

    /// Works on a run in a new async task. Returns once the first new record is in the log, or with the error
    /// of the run if the run failed before that.
    async fn work<F>(
        &self,
        context: Context,
        how: Started,
        work: impl FnOnce(Context) -> F,
    ) -> Result<StartedRun, RunError>
    where
        F: Future<Output = Result<Outcome, RunError>> + Send + 'static,
    {
        let started = StartedRun::new(context.run.clone(), context.session.clone(), how);
        let live = Arc::new(Live::new(started.run.clone()));
        match self.live().entry(started.run.clone()) {
            Entry::Occupied(_) => return Err(JournalError::Locked { run: started.run }.into()),
            Entry::Vacant(place) => drop(place.insert(live.clone())),
        }
        self.recent().retain(|recent| *recent.run() != started.run);
        let (done, ended) = tokio::sync::oneshot::channel();
        let begun = live.begun();
        let (runs, run) = (self.clone(), started.run.clone());
        let (session, tenant) = (context.session.clone(), context.tenant.clone());
        let task = self.archon().launch(context, live.clone(), work);
        tokio::spawn(async move {
            let outcome = task.await.unwrap_or_else(|error| {
                tracing::debug!(%error, "the task of a run ended without an outcome");
                Err(RunError::Lost { run: run.clone() })
            });
            runs.keep_recent(live.clone());
            runs.live().remove(&run);
            match outcome {
                Err(error) if live.has_begun() => live.fail(error),
                // After the first record nothing waits for the result.
                outcome => drop(done.send(outcome.map(|_| ()))),
            }
            live.end();
            // A message may have come after the run's last look into the inbox.
            if let Err(error) = runs.begin_unread(&session, &tenant).await {
                tracing::warn!(%run, %error, "messages that this run did not read wait for the next run");
            }
        });
        match select(pin!(begun), ended).await {
            Either::Right((Ok(Err(error)), _)) => Err(error),
            _ => Ok(started),
        }
    }

    async fn resume_run(&self, run: &RunId, more: &MoreLimits) -> Result<StartedRun, RunError> {
        let root = self.root(run).await?;
        let records = self.archon().journal.read(&root).await?;
        let agent = self.agent_of(&root, &records).await?;
        self.resume_by(agent, root, &records, more).await
    }

    async fn resume_by(
        &self,
        agent: Arc<dyn RunAgent>,
        root: RunId,
        records: &[Arc<Record>],
        more: &MoreLimits,
    ) -> Result<StartedRun, RunError> {
        self.archon().check_is_last(&root, records).await?;
        let context = self.archon().context_after(root, records);
        let more = *more;
        self.work(
            context,
            Started::Resumed,
            move |context| async move { agent.resume(&more, &context).await },
        )
        .await
    }
}

/// The maximum number of ended or suspended runs that are kept for watchers.
const MOST_RECENT: usize = 16;
/// The maximum number of runs whose ids are compared with an unknown id.
const MOST_COMPARED: usize = 100;
/// The maximum number of similar ids that an error names.
const NAMED: usize = 3;

/// Returns the ids with the longest common start or end with `run`. Ids begin with the time, so ends count
/// too.
fn nearest(run: &RunId, ids: impl Iterator<Item = RunId>) -> Vec<RunId> {
    let common = |id: &RunId| {
        let ends = id.as_str().bytes().rev().zip(run.as_str().bytes().rev());
        let starts = id.as_str().bytes().zip(run.as_str().bytes());
        ends.take_while(|(a, b)| a == b).count().max(starts.take_while(|(a, b)| a == b).count())
    };
    let mut ids: Vec<_> = ids.map(|id| (common(&id), id)).collect();
    ids.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.cmp(other)));
    ids.into_iter().take(NAMED).map(|(_, id)| id).collect()
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs").field("agents", &self.inner.agents.keys()).finish_non_exhaustive()
    }
}
