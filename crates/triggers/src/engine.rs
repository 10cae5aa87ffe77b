//! The engine: starts the runs of tasks when they are due, one run of a task at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use archon_types::{
    CancellationToken, Clock, Json, NotificationChannel, RunService, StoredTask, TaskChange, TaskId,
    TaskStatus, TaskStore, TaskStoreError, TenantId, Timestamp,
};
use serde::Deserialize;
use tokio::sync::{Mutex, MutexGuard, Notify};

use crate::{
    error::TriggerError,
    probe::Probe,
    schedule::ScheduleError,
    task::{LOCAL, TaskState, Trigger, TriggerAction, TriggerTask},
};

use agenda::{Agenda, Entry};
use looks::Looks;

mod agenda;
mod expiry;
mod looks;
mod notices;
mod problems;
mod requests;
mod service;
mod work;

pub use service::TenantTasks;

/// The pause between two looks at the changes of other processes.
const RELOAD: Duration = Duration::from_secs(2);

/// Starts the runs of tasks. A clone is the same engine.
///
/// Each occurrence (a time or an event for which a task starts a run) starts one run, also after a crash: the
/// idempotency key of the run is made of the task and the occurrence, and the journal accepts each key once. So an
/// engine that was killed continues where it was.
///
/// One process serves the tasks of a store, from its call of [`serve`](Self::serve) until it drops the engine. Other
/// processes may define, pause and delete tasks, publish events and start tasks by hand: the serving process notices
/// this within two seconds.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_triggers::{Schedule, TriggerEngine, TriggerParts, TriggerTask};
/// use archon_types::{CancellationToken, Clock, RunService, TaskStore};
///
/// async fn work(
///     runs: Arc<dyn RunService>,
///     store: Arc<dyn TaskStore>,
///     clock: Arc<dyn Clock>,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let engine = TriggerEngine::new(runs, store, clock, TriggerParts::new());
///     let morning = Schedule::cron("0 8 * * *", "Europe/Berlin")?;
///     engine.create_task(TriggerTask::new("mail", morning, "Summarize unread emails")).await?;
///     Ok(engine.serve(CancellationToken::new()).await?)
/// }
/// ```
#[derive(Clone)]
pub struct TriggerEngine {
    parts: Arc<Parts>,
}

/// The probes, the tools for code and the notification channels that tasks may name.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_triggers::{Probe, TriggerParts};
/// use archon_types::NotificationChannel;
///
/// fn parts(
///     (price, orders): (Arc<dyn Probe>, Arc<dyn Probe>),
///     (own, annas): (Arc<dyn NotificationChannel>, Arc<dyn NotificationChannel>),
/// ) -> TriggerParts {
///     TriggerParts::new()
///         .probe("price", price)
///         .probe_of("anna", "orders", orders)
///         .executor("refresh")
///         .channel(own)
///         .channel_of("anna", annas)
/// }
/// ```
#[derive(Clone, Default)]
pub struct TriggerParts {
    probes: OfTenants<dyn Probe>,
    executors: BTreeSet<String>,
    channels: OfTenants<dyn NotificationChannel>,
}

struct Parts {
    runs: Arc<dyn RunService>,
    store: Arc<dyn TaskStore>,
    clock: Arc<dyn Clock>,
    named: TriggerParts,
    agenda: Mutex<Agenda>,
    /// Rings when a task is due earlier than the engine knew.
    bell: Notify,
    looks: Looks,
}

/// A task as [`TriggerEngine::list_tasks`] returns it.
///
/// ```
/// use archon_triggers::{TaskStatus, TriggerEngine, TriggerError};
///
/// /// Prints the reason of each task that the engine stopped.
/// async fn print_disabled(engine: &TriggerEngine) -> Result<(), TriggerError> {
///     for listed in engine.list_tasks(None).await? {
///         if listed.status() == TaskStatus::Disabled {
///             println!("{}: {}", listed.task.id, listed.state.problem.unwrap_or_default());
///         }
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ListedTask {
    /// The definition of the task.
    pub task: TriggerTask,
    /// The state of the task: its counters, its last runs and its problems.
    pub state: TaskState,
    /// The time at which the engine looks at the task next: the next time of its schedule, the next look at its
    /// condition, the end of its pause after a failure, or `TaskLimits::until`. `None` while a run works or is about to
    /// start, for a task that is not active, and for a task that only waits for events.
    pub next: Option<Timestamp>,
}

impl ListedTask {
    /// Returns the status: that in the state, or `Paused` for an active task that a person paused.
    pub fn status(&self) -> TaskStatus {
        match self.state.status {
            TaskStatus::Active if self.task.paused => TaskStatus::Paused,
            status => status,
        }
    }
}

impl TriggerParts {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a probe, which the conditions of all tenants may name.
    #[must_use]
    pub fn probe(mut self, name: impl Into<String>, probe: Arc<dyn Probe>) -> Self {
        self.probes.insert((None, name.into()), probe);
        self
    }

    /// Adds a probe for the tasks of one tenant, such as one that reads with the account of the tenant. No task of
    /// another tenant can name it. It comes before a probe of all tenants with the same name.
    #[must_use]
    pub fn probe_of(
        mut self,
        tenant: impl Into<TenantId>,
        name: impl Into<String>,
        probe: Arc<dyn Probe>,
    ) -> Self {
        self.probes.insert((Some(tenant.into()), name.into()), probe);
        self
    }

    /// Lets tasks call this tool of the agent [`CODE_AGENT`](crate::CODE_AGENT), as `executor` of
    /// [`TriggerAction::Code`](crate::TriggerAction::Code).
    #[must_use]
    pub fn executor(mut self, name: impl Into<String>) -> Self {
        self.executors.insert(name.into());
        self
    }

    /// Adds a notification channel under its own name, for the tasks of the tenant `local`, which is the default tenant
    /// of a task. No task of another tenant can name it.
    #[must_use]
    pub fn channel(self, channel: Arc<dyn NotificationChannel>) -> Self {
        self.channel_of(LOCAL, channel)
    }

    /// Adds a notification channel for the tasks of one tenant, under its own name. Two tenants may each have a channel
    /// with the same name.
    #[must_use]
    pub fn channel_of(mut self, tenant: impl Into<TenantId>, channel: Arc<dyn NotificationChannel>) -> Self {
        self.channels.insert((Some(tenant.into()), channel.name().to_owned()), channel);
        self
    }

    /// Adds a notification channel that the tasks of all tenants may name, such as the output of a server. A tenant's own
    /// channel of the same name comes first.
    #[must_use]
    pub fn channel_of_all(mut self, channel: Arc<dyn NotificationChannel>) -> Self {
        self.channels.insert((None, channel.name().to_owned()), channel);
        self
    }
}

impl TriggerEngine {
    /// Creates an engine for the tasks of a store. [`serve`](Self::serve) starts their runs.
    pub fn new(
        runs: Arc<dyn RunService>,
        store: Arc<dyn TaskStore>,
        clock: Arc<dyn Clock>,
        named: TriggerParts,
    ) -> Self {
        let (agenda, bell, looks) = (Mutex::default(), Notify::new(), Looks::default());
        Self { parts: Arc::new(Parts { runs, store, clock, named, agenda, bell, looks }) }
    }

    /// Stores a new task, which is active from now on.
    ///
    /// # Errors
    /// The id is wrong or taken, the program does not have what the task names, the schedule has no time in the future, or
    /// the storage failed.
    pub async fn create_task(&self, task: TriggerTask) -> Result<(), TriggerError> {
        self.parts.check(&task)?;
        let now = self.parts.clock.now();
        let task = TriggerTask { created_at: now, ..task };
        let state = TaskState { handled: now, ..TaskState::default() };
        if let Trigger::Schedule(schedule) = &task.trigger
            && schedule.next_after(now).is_none()
        {
            return Err(TriggerError::NeverDue(task.id));
        }
        let mut agenda = self.agenda().await?;
        if agenda.entry(&task.id).is_some() {
            return Err(TriggerError::Exists(task.id));
        }
        let entry = Entry::new(task, state);
        let stored = stored(&entry.task, &entry.state)?;
        self.parts.store.change(vec![TaskChange::Create(stored)]).await?;
        if agenda.has_version(self.parts.store.version().await?) {
            agenda.insert(entry, now);
        } else {
            // Another process changed the tasks meanwhile, and may have created one with this id.
            drop(agenda);
            let agenda = self.agenda().await?;
            if agenda.entry(&entry.task.id).is_none_or(|stored| stored.task != entry.task) {
                return Err(TriggerError::Exists(entry.task.id));
            }
        }
        self.parts.bell.notify_one();
        Ok(())
    }

    /// Returns the tasks of all tenants or of one, in the order of their ids.
    ///
    /// # Errors
    /// The storage failed.
    pub async fn list_tasks(&self, tenant: Option<&TenantId>) -> Result<Vec<ListedTask>, TriggerError> {
        let agenda = self.agenda().await?;
        let of_tenant =
            agenda.entries().filter(|entry| tenant.is_none_or(|tenant| entry.task.tenant == *tenant));
        Ok(of_tenant.map(Entry::to_listed).collect())
    }

    /// Pauses a task: its run goes on, but no further run starts.
    ///
    /// # Errors
    /// There is no such task, or the storage failed.
    pub async fn pause_task(&self, id: &TaskId) -> Result<(), TriggerError> {
        self.redefine(id, |task, _| task.paused = true).await
    }

    /// Resumes a task that is paused or disabled. Times that passed meanwhile count as missed.
    ///
    /// # Errors
    /// There is no such task, or the storage failed.
    pub async fn resume_task(&self, id: &TaskId) -> Result<(), TriggerError> {
        self.redefine(id, |task, now| (task.paused, task.resumed_at) = (false, Some(now))).await
    }

    /// Deletes a task. Its run goes on.
    ///
    /// # Errors
    /// There is no such task, or the storage failed.
    pub async fn delete_task(&self, id: &TaskId) -> Result<(), TriggerError> {
        let mut agenda = self.agenda().await?;
        if agenda.entry(id).is_none() {
            return Err(TriggerError::Unknown(id.clone()));
        }
        self.parts.store.change(vec![TaskChange::Delete(id.clone())]).await?;
        agenda.remove(id);
        Ok(())
    }

    /// Starts runs when they are due, until `stop` is cancelled. Runs that work then go on.
    ///
    /// While another process serves the tasks of the store, this function waits, and takes over when that process has ended.
    /// The last run of each task goes on, also if its process was killed.
    ///
    /// # Errors
    /// The storage failed when the tasks were read.
    pub async fn serve(&self, stop: CancellationToken) -> Result<(), TriggerError> {
        tokio::select! {
            served = self.keep_starting(stop) => served,
            never = self.keep_looking() => match never {},
        }
    }

    /// Starts runs when they are due. It is not cancelled, since then a task whose run starts would stay busy.
    async fn keep_starting(&self, stop: CancellationToken) -> Result<(), TriggerError> {
        if !self.hold(&stop).await? {
            return Ok(());
        }
        drop(self.agenda().await?);
        loop {
            // A storage that fails is tried again: tasks that work go on.
            let next = self.start_due().await.unwrap_or_else(|error| {
                tracing::error!("no task starts: {error}");
                None
            });
            let reload = self.parts.clock.now() + RELOAD;
            let wait_until = next.map_or(reload, |next| next.min(reload));
            tokio::select! {
                () = self.parts.clock.sleep_until(wait_until) => self.parts.agenda.lock().await.retry_requests(),
                () = self.parts.bell.notified() => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
    }

    /// Takes the right to serve the tasks, and keeps it as long as the engine exists. Returns false if `stop` is cancelled
    /// before.
    async fn hold(&self, stop: &CancellationToken) -> Result<bool, TriggerError> {
        if self.parts.agenda.lock().await.is_served() {
            return Ok(true);
        }
        loop {
            if let Some(hold) = self.parts.store.hold().await? {
                self.parts.agenda.lock().await.serve(hold);
                return Ok(true);
            }
            tracing::info!("another process serves the tasks: this one waits until it has ended");
            tokio::select! {
                () = self.parts.clock.sleep_until(self.parts.clock.now() + RELOAD) => {}
                () = stop.cancelled() => return Ok(false),
            }
        }
    }

    /// Returns the agenda, with the definitions and the requests that the store has now.
    async fn agenda(&self) -> Result<MutexGuard<'_, Agenda>, TriggerError> {
        let mut agenda = self.parts.agenda.lock().await;
        let version = self.parts.store.version().await?;
        if agenda.has_version(version) {
            return Ok(agenda);
        }
        let stored = self.parts.store.list().await?;
        agenda.load(version, stored.tasks.iter().filter_map(read).collect(), self.parts.clock.now());
        agenda.requests = stored.requests.len();
        if agenda.is_served()
            && !stored.requests.is_empty()
            && let Err(error) = self.take_requests(&mut agenda, stored.requests).await
        {
            agenda.forget_version();
            return Err(error.into());
        }
        Ok(agenda)
    }

    /// Changes the definition of a task.
    async fn redefine(
        &self,
        id: &TaskId,
        change: impl FnOnce(&mut TriggerTask, Timestamp) + Send,
    ) -> Result<(), TriggerError> {
        let mut agenda = self.agenda().await?;
        let now = self.parts.clock.now();
        let entry = agenda.entry(id).ok_or_else(|| TriggerError::Unknown(id.clone()))?;
        let mut task = entry.task.clone();
        change(&mut task, now);
        self.parts.define(&task, &entry.state).await?;
        agenda.redefine(task, now);
        self.parts.bell.notify_one();
        Ok(())
    }
}

/// Reads a task of the store. A task that cannot be read, for instance of a newer version, is left out with a warning.
fn read(stored: &StoredTask) -> Option<(TriggerTask, TaskState)> {
    let task = TriggerTask::deserialize(&stored.definition);
    match task.and_then(|task| Ok((task, TaskState::deserialize(&stored.state)?))) {
        Ok(read) => Some(read),
        Err(error) => {
            tracing::warn!(task = %stored.id, "the task cannot be read and is left out: {error}");
            None
        }
    }
}

impl Parts {
    async fn define(&self, task: &TriggerTask, state: &TaskState) -> Result<(), TaskStoreError> {
        self.store.change(vec![TaskChange::Define(stored(task, state)?)]).await
    }

    /// Stores states. If that fails, the next change of each task stores its state.
    async fn put(&self, states: &[(TaskId, TaskState)]) {
        if states.is_empty() {
            return;
        }
        let changes = states.iter().map(|(id, state)| set_state(id, state)).collect::<Result<_, _>>();
        let stored = match changes {
            Ok(changes) => self.store.change(changes).await,
            Err(error) => Err(error),
        };
        if let Err(error) = stored {
            tracing::error!(count = states.len(), "the states of tasks are not stored: {error}");
        }
    }

    /// Checks a new task.
    fn check(&self, task: &TriggerTask) -> Result<(), TriggerError> {
        let id = task.id.as_str();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if id.is_empty() || id.len() > 64 || !id.chars().all(is_plain) {
            return Err(TriggerError::WrongId(id.to_owned()));
        }
        if let TriggerAction::Code { executor, .. } = &task.action {
            must_be_known("executor", executor, self.named.executors.iter())?;
        }
        if let Trigger::Condition(condition) = &task.trigger {
            if condition.every == 0 {
                return Err(ScheduleError::Interval(Duration::ZERO).into());
            }
            must_be_known("probe", &condition.probe, names_for(&self.named.probes, &task.tenant))?;
        }
        for channel in &task.notify {
            must_be_known("notification channel", channel, names_for(&self.named.channels, &task.tenant))?;
        }
        Ok(())
    }
}

/// Parts by their tenants, `None` for those of all, and their names.
type OfTenants<T> = BTreeMap<(Option<TenantId>, String), Arc<T>>;

/// Returns the names of the parts that tasks of a tenant may name.
fn names_for<'p, T: ?Sized>(
    parts: &'p OfTenants<T>,
    tenant: &'p TenantId,
) -> impl Iterator<Item = &'p String> + Clone {
    let is_for = move |owner: Option<&TenantId>| owner.is_none_or(|owner| owner == tenant);
    parts.keys().filter(move |(owner, _)| is_for(owner.as_ref())).map(|(_, name)| name)
}

/// Returns the part with a name for the tasks of a tenant.
fn part_for<'p, T: ?Sized>(parts: &'p OfTenants<T>, tenant: &TenantId, name: &str) -> Option<&'p Arc<T>> {
    let of = |owner| parts.get(&(owner, name.to_owned()));
    of(Some(tenant.clone())).or_else(|| of(None))
}

impl TriggerParts {
    /// Returns the channel with a name for the tasks of a tenant.
    fn channel_for(&self, tenant: &TenantId, name: &str) -> Option<&Arc<dyn NotificationChannel>> {
        part_for(&self.channels, tenant, name)
    }

    /// Returns the probe with a name for the tasks of a tenant.
    fn probe_for(&self, tenant: &TenantId, name: &str) -> Option<&Arc<dyn Probe>> {
        part_for(&self.probes, tenant, name)
    }
}

fn stored(task: &TriggerTask, state: &TaskState) -> Result<StoredTask, TaskStoreError> {
    Ok(StoredTask::new(task.id.clone(), to_json(task)?, to_json(state)?))
}

fn set_state(id: &TaskId, state: &TaskState) -> Result<TaskChange, TaskStoreError> {
    Ok(TaskChange::SetState { id: id.clone(), state: to_json(state)? })
}

fn to_json(value: &impl serde::Serialize) -> Result<Json, TaskStoreError> {
    serde_json::to_value(value).map_err(|error| TaskStoreError::new("stored", error.to_string()))
}

fn must_be_known<'a>(
    what: &'static str,
    name: &str,
    known: impl Iterator<Item = &'a String> + Clone,
) -> Result<(), TriggerError> {
    if known.clone().any(|one| one == name) {
        return Ok(());
    }
    let known = known.map(String::as_str).collect::<Vec<_>>().join(", ");
    Err(TriggerError::Missing { what, name: name.to_owned(), known })
}
