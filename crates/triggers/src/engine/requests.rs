//! Requests: events, and starts by a person. Any process makes them; the process that serves the tasks takes them.

use std::collections::BTreeMap;

use archon_types::{Json, TaskChange, TaskId, TaskStoreError, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    TriggerEngine,
    agenda::{Agenda, Entry},
    set_state, to_json,
};
use crate::{
    error::TriggerError,
    event::{EventFilter, TriggerEvent},
    expression::ExpressionError,
    occurrence::Occurrence,
    task::TaskState,
};

/// The most bytes of the data of an event, as JSON.
const MOST_BYTES: usize = 64 * 1024;

/// The most occurrences that wait for one task; a further event is refused.
const MOST_WAITING: usize = 100;

/// The most requests that wait for a process that serves the tasks; a further one is refused.
const MOST_REQUESTS: usize = 1_000;

/// A request in the store of the tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskRequest {
    /// An event, for tasks that take it.
    Event {
        event: TriggerEvent,
        /// The tasks, each with the time at which it was created: another task may have its id by now.
        tasks: Vec<(TaskId, Timestamp)>,
    },
    /// A start of a task by a person.
    Run { task: TaskId, created_at: Timestamp, name: String },
}

/// The states of tasks with the occurrences that they took.
type Taken = BTreeMap<TaskId, TaskState>;

impl TriggerEngine {
    /// Starts a run of a task by hand: at once, or after the run of the task that works now. While the task is paused
    /// or disabled, or pauses after a failure, the start waits. `name` identifies the start: a second start of the task
    /// with the same name starts nothing. The start is stored before this function returns.
    ///
    /// # Errors
    /// There is no such task, too many occurrences or requests wait, or the storage failed.
    pub async fn run_task(&self, id: &TaskId, name: impl Into<String>) -> Result<(), TriggerError> {
        let mut agenda = self.agenda().await?;
        let entry = agenda.entry(id).ok_or_else(|| TriggerError::Unknown(id.clone()))?;
        let created_at = entry.task.created_at;
        let request = TaskRequest::Run { task: id.clone(), created_at, name: name.into() };
        self.request(&mut agenda, request).await.map(drop)
    }

    /// Gives an event to each active task of the event's tenant whose filter the event passes, and returns the ids of
    /// these tasks. The event is stored before this function returns. An event without a tenant is for the tenant
    /// `local`; no event is for several tenants.
    ///
    /// An event that is published again, with the same source and id, starts no second run. So publish it again after
    /// an error: some tasks may have got it, and others not.
    ///
    /// ```
    /// use archon_triggers::{TriggerEngine, TriggerError, TriggerEvent};
    /// use serde_json::json;
    ///
    /// async fn order_came(engine: &TriggerEngine, number: &str) -> Result<(), TriggerError> {
    ///     let order = TriggerEvent::new(number, "shop", "order.created", json!({ "number": number })).tenant("anna");
    ///     println!("{} tasks work on it", engine.publish(&order).await?.len());
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The event is too large, too many events wait for a task, or the storage failed. All other tasks have the event.
    pub async fn publish(&self, event: &TriggerEvent) -> Result<Vec<TaskId>, TriggerError> {
        if event.data.to_string().len() > MOST_BYTES {
            return Err(TriggerError::EventTooLarge { id: event.id.clone(), most: MOST_BYTES });
        }
        let tasks = self.takers(event).await?;
        let mut agenda = self.agenda().await?;
        self.request(&mut agenda, TaskRequest::Event { event: event.clone(), tasks }).await
    }

    /// Returns the tasks whose filter an event passes. The conditions are evaluated without the lock of the agenda, since a
    /// person wrote them.
    async fn takers(&self, event: &TriggerEvent) -> Result<Vec<(TaskId, Timestamp)>, TriggerError> {
        let filters: Vec<(TaskId, Timestamp, EventFilter)> = {
            let agenda = self.agenda().await?;
            let filter = |entry: &Entry| {
                let filter = entry.filter_for(event)?.clone();
                Some((entry.task.id.clone(), entry.task.created_at, filter))
            };
            agenda.entries().filter_map(filter).collect()
        };
        let mut takers = Vec::new();
        for (task, created_at, filter) in filters {
            match filter.is_met_by(event) {
                Ok(true) => takers.push((task, created_at)),
                Err(error @ ExpressionError::TooCostly { .. }) => {
                    tracing::warn!(%task, event = event.id, "the task does not take the event: {error}");
                    self.show_problem(&task, created_at, error.to_string()).await;
                }
                // An event without a value for the condition does not pass.
                Ok(false) | Err(_) => {}
            }
            // One that takes long does not keep the thread for the next ones.
            tokio::task::yield_now().await;
        }
        Ok(takers)
    }

    /// Takes a request if this engine serves the tasks; otherwise stores it for the engine that does.
    async fn request(&self, agenda: &mut Agenda, request: TaskRequest) -> Result<Vec<TaskId>, TriggerError> {
        let ids: Vec<TaskId> = request.occurrences(agenda).into_iter().map(|(id, _)| id).collect();
        if ids.is_empty() {
            return Ok(ids);
        }
        if !agenda.is_served() {
            let count = agenda.requests;
            if count >= MOST_REQUESTS {
                return Err(TriggerError::TooManyRequests { count });
            }
            self.parts.store.change(vec![TaskChange::Request(to_json(&request)?)]).await?;
            agenda.requests += 1;
            return Ok(ids);
        }
        let mut taken = Taken::new();
        let full = request.give(agenda, &mut taken);
        let changes = taken.iter().map(|(id, state)| set_state(id, state)).collect::<Result<_, _>>()?;
        self.parts.store.change(changes).await?;
        agenda.put(taken);
        self.parts.bell.notify_one();
        match full.into_iter().next() {
            Some(task) => Err(TriggerError::TooManyEvents { task, count: MOST_WAITING }),
            None => Ok(ids),
        }
    }

    /// Takes the requests of the store, and forgets them in the same change. A request to a task for which too much waits
    /// stays in the store.
    pub(super) async fn take_requests(
        &self,
        agenda: &mut Agenda,
        requests: Vec<(u64, Json)>,
    ) -> Result<(), TaskStoreError> {
        let (mut taken, mut changes, mut left) = (Taken::new(), Vec::new(), 0);
        for (number, stored) in requests {
            let rest = match TaskRequest::deserialize(&stored) {
                Ok(request) => {
                    let full = request.give(agenda, &mut taken);
                    request.rest(full)
                }
                Err(error) => {
                    tracing::warn!("a request cannot be read and is left out: {error}");
                    None
                }
            };
            left += usize::from(rest.is_some());
            match rest.as_ref().map(to_json).transpose()? {
                Some(rest) if rest == stored => {}
                rest => {
                    changes.push(TaskChange::Forget(number));
                    changes.extend(rest.map(TaskChange::Request));
                }
            }
        }
        for (id, state) in &taken {
            changes.push(set_state(id, state)?);
        }
        self.parts.store.change(changes).await?;
        agenda.put(taken);
        agenda.requests = left;
        Ok(())
    }
}

impl TaskRequest {
    /// Returns the tasks that take the request, with the occurrence of each.
    fn occurrences(&self, agenda: &Agenda) -> Vec<(TaskId, Occurrence)> {
        match self {
            Self::Event { event, tasks } => {
                let of = |(id, created_at): &(TaskId, Timestamp)| {
                    let entry = agenda.entry_of(id, *created_at).filter(|entry| entry.is_active());
                    entry.map(|_| (id.clone(), Occurrence::Event(event.clone())))
                };
                tasks.iter().filter_map(of).collect()
            }
            Self::Run { task, created_at, name } => {
                let entry = agenda.entry_of(task, *created_at);
                entry.map(|_| (task.clone(), Occurrence::Person(name.clone()))).into_iter().collect()
            }
        }
    }

    /// Adds the occurrences to the states of the tasks that take the request, and have it not yet. Returns the tasks for which
    /// too much waits.
    fn give(&self, agenda: &Agenda, taken: &mut Taken) -> Vec<TaskId> {
        let mut full = Vec::new();
        for (id, occurrence) in self.occurrences(agenda) {
            let Some(entry) = agenda.entry(&id) else { continue };
            let state = taken.entry(id.clone()).or_insert_with(|| entry.state.clone());
            match state.waiting.len() {
                _ if entry.has_in(state, &occurrence) => {}
                MOST_WAITING.. => full.push(id),
                _ => state.waiting.push(occurrence),
            }
        }
        full
    }

    /// Returns the request for the tasks that have not got it; `None` if there are none.
    fn rest(self, full: Vec<TaskId>) -> Option<Self> {
        match self {
            _ if full.is_empty() => None,
            Self::Event { event, mut tasks } => {
                tasks.retain(|(id, _)| full.contains(id));
                Some(Self::Event { event, tasks })
            }
            run @ Self::Run { .. } => Some(run),
        }
    }
}
