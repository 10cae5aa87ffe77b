//! The agenda: the tasks, in the order in which they are due, and the next step of each. It does no I/O.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use archon_types::{ContentHash, RunId, TaskHold, TaskId, TaskStatus, TenantId, Timestamp, format_money};

use super::ListedTask;
use crate::{
    event::{EventFilter, TriggerEvent},
    occurrence::Occurrence,
    task::{LOCAL, MissedRuns, TaskState, Trigger, TriggerTask},
};

/// The time after which an occurrence counts as missed.
const GRACE: Duration = Duration::from_secs(60);

/// The tasks, and the times at which the engine looks at them.
#[derive(Default)]
pub(super) struct Agenda {
    by_id: BTreeMap<TaskId, Entry>,
    due: BTreeSet<(Timestamp, TaskId)>,
    /// The version of the store from which the definitions are; `None` if they must be read.
    version: Option<u64>,
    /// The right to serve the tasks. While the engine has it, its states are newer than those of the store.
    hold: Option<TaskHold>,
    /// The number of requests in the store.
    pub(super) requests: usize,
}

/// A task with its state and its work.
pub(super) struct Entry {
    pub(super) task: TriggerTask,
    pub(super) state: TaskState,
    /// True while a run starts, works or waits, or a probe reads.
    pub(super) is_busy: bool,
    /// The time of the next look at the condition.
    pub(super) next_look: Timestamp,
    due: Option<Timestamp>,
}

/// The run of an occurrence.
pub(super) struct FoundRun {
    pub(super) run: RunId,
    /// True if it was started before, and has ended.
    pub(super) is_over: bool,
}

/// The next step of a task that is due.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Start the run of an occurrence.
    Start(Occurrence),
    /// Look at the condition.
    Look,
    /// Store the state: occurrences were left out, or the task is completed.
    Store,
}

impl Agenda {
    /// Returns true if the definitions are those of this version of the store.
    pub(super) fn has_version(&self, version: u64) -> bool {
        self.version == Some(version)
    }

    /// Takes the right to serve the tasks, whose states are read anew.
    pub(super) fn serve(&mut self, hold: TaskHold) {
        *self = Self { hold: Some(hold), ..Self::default() };
    }

    /// Returns true if the engine has the right to serve the tasks.
    pub(super) fn is_served(&self) -> bool {
        self.hold.is_some()
    }

    /// Puts states in place of those of their tasks.
    pub(super) fn put(&mut self, states: BTreeMap<TaskId, TaskState>) {
        for (id, state) in states {
            self.change(&id, |entry| entry.state = state);
        }
    }

    /// Has the store read again if it has requests to tasks for which too much waited.
    pub(super) fn retry_requests(&mut self) {
        if self.is_served() && self.requests > 0 {
            self.version = None;
        }
    }

    /// Has the store read again.
    pub(super) fn forget_version(&mut self) {
        self.version = None;
    }

    pub(super) fn entry(&self, id: &TaskId) -> Option<&Entry> {
        self.by_id.get(id)
    }

    /// Returns the entry of a task, unless another task has its id by now.
    pub(super) fn entry_of(&self, id: &TaskId, created_at: Timestamp) -> Option<&Entry> {
        self.entry(id).filter(|entry| entry.task.created_at == created_at)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.by_id.values()
    }

    pub(super) fn insert(&mut self, mut entry: Entry, now: Timestamp) {
        let id = entry.task.id.clone();
        entry.next_look = now;
        self.by_id.insert(id.clone(), entry);
        self.plan(&id);
    }

    pub(super) fn remove(&mut self, id: &TaskId) {
        if let Some(due) = self.by_id.remove(id).and_then(|entry| entry.due) {
            self.due.remove(&(due, id.clone()));
        }
    }

    /// Takes the definitions of a version of the store. The states of tasks that are known stay if the engine serves them.
    pub(super) fn load(&mut self, version: u64, tasks: Vec<(TriggerTask, TaskState)>, now: Timestamp) {
        if !self.is_served() {
            *self = Self::default();
        }
        self.version = Some(version);
        let stored: BTreeSet<&TaskId> = tasks.iter().map(|(task, _)| &task.id).collect();
        let gone: Vec<TaskId> = self.by_id.keys().filter(|id| !stored.contains(id)).cloned().collect();
        gone.iter().for_each(|id| self.remove(id));
        for (task, state) in tasks {
            match self.by_id.get(&task.id) {
                Some(entry) if entry.task == task => {}
                Some(entry) if entry.task.created_at == task.created_at => self.redefine(task, now),
                // A new task with the id of one that was deleted: the run of the other is not its own.
                Some(_) => {
                    self.remove(&task.id);
                    self.insert(Entry::new(task, state), now);
                }
                None => self.insert(Entry::new(task, state), now),
            }
        }
    }

    /// Replaces the definition of a task.
    pub(super) fn redefine(&mut self, task: TriggerTask, now: Timestamp) {
        let Some(old) = self.by_id.get(&task.id) else { return };
        let (state, is_busy) = (old.state.clone(), old.is_busy);
        self.remove(&task.id.clone());
        self.insert(Entry { is_busy, ..Entry::new(task, state) }, now);
    }

    /// Changes an entry, and finds the time at which it is due.
    pub(super) fn change<T>(&mut self, id: &TaskId, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let changed = self.by_id.get_mut(id).map(change);
        self.plan(id);
        changed
    }

    /// Changes the entry of a task, unless another task has its id by now. Also returns the state that must be stored.
    pub(super) fn change_own<T>(
        &mut self,
        task: &TriggerTask,
        change: impl FnOnce(&mut Entry) -> T,
    ) -> (Option<T>, Option<(TaskId, TaskState)>) {
        if self.entry_of(&task.id, task.created_at).is_none() {
            return (None, None);
        }
        self.change(&task.id, |entry| (change(entry), (task.id.clone(), entry.state.clone()))).unzip()
    }

    /// Returns the task that is due first with its next step, and marks it as busy; otherwise the time at which a task is
    /// due.
    pub(super) fn next_step(&mut self, now: Timestamp) -> Result<(TriggerTask, Step), Option<Timestamp>> {
        loop {
            let (at, id) = self.due.first().cloned().ok_or(None)?;
            if at > now {
                return Err(Some(at));
            }
            self.due.pop_first();
            let Some(entry) = self.by_id.get_mut(&id) else { continue };
            entry.due = None;
            let Some(step) = entry.step(now) else {
                self.plan(&id);
                continue;
            };
            entry.is_busy = true;
            return Ok((entry.task.clone(), step));
        }
    }

    fn plan(&mut self, id: &TaskId) {
        let Some(entry) = self.by_id.get_mut(id) else { return };
        let due = entry.due_at();
        if let Some(old) = std::mem::replace(&mut entry.due, due) {
            self.due.remove(&(old, id.clone()));
        }
        if let Some(due) = due {
            self.due.insert((due, id.clone()));
        }
    }
}

impl Entry {
    /// Creates the entry of a task. If its definition changed since the state was noted, the task is active again.
    pub(super) fn new(task: TriggerTask, mut state: TaskState) -> Self {
        let unpaused = TriggerTask { paused: false, ..task.clone() };
        let definition = format!("{:016x}", ContentHash::of(&unpaused));
        if state.definition != definition {
            (state.definition, state.status, state.failures) = (definition, TaskStatus::Active, 0);
            (state.not_before, state.problem) = (Timestamp::default(), None);
        }
        Self { task, state, is_busy: false, next_look: Timestamp::default(), due: None }
    }

    pub(super) fn is_active(&self) -> bool {
        self.state.status == TaskStatus::Active && !self.task.paused
    }

    pub(super) fn to_listed(&self) -> ListedTask {
        // A task with something to start has the time 0, so that it comes first.
        let next = self.due.filter(|due| *due > Timestamp::default());
        ListedTask { task: self.task.clone(), state: self.state.clone(), next }
    }

    /// Returns the filter of the task if the task is active, is of the tenant of the event, and has a pattern that matches:
    /// then the condition of the filter decides.
    pub(super) fn filter_for(&self, event: &TriggerEvent) -> Option<&EventFilter> {
        let Trigger::Event(filter) = &self.task.trigger else { return None };
        let is_of_tenant = event.tenant.as_ref().map_or(LOCAL, TenantId::as_str) == self.task.tenant.as_str();
        let is_meant = is_of_tenant && self.is_active() && filter.pattern.matches(&event.source, &event.kind);
        is_meant.then_some(filter)
    }

    /// Returns true if the run of the occurrence works, or waits for its turn.
    pub(super) fn has_in(&self, state: &TaskState, occurrence: &Occurrence) -> bool {
        let key = self.task.run_key(occurrence);
        state.current.iter().chain(&state.waiting).any(|other| self.task.run_key(other) == key)
    }

    /// Returns the time at which the engine must look at the task; `None` while it is not active or is busy.
    fn due_at(&self) -> Option<Timestamp> {
        if !self.is_active() || self.is_busy {
            return None;
        }
        let limits = &self.task.limits;
        let at = match &self.task.trigger {
            _ if self.state.current.is_some() || !self.state.waiting.is_empty() || self.has_all_runs() => {
                Some(Timestamp::default())
            }
            _ if limits.is_spent(&self.state) => Some(Timestamp::default()),
            // Without a further time the task is completed at once.
            Trigger::Schedule(schedule) => Some(schedule.next_after(self.state.handled).unwrap_or_default()),
            Trigger::Event(_) => None,
            Trigger::Condition(_) => Some(self.next_look),
        };
        let at = at.map(|at| at.max(self.state.not_before));
        at.into_iter().chain(limits.until).min()
    }

    fn has_all_runs(&self) -> bool {
        self.task.limits.runs.is_some_and(|most| self.state.runs >= most)
    }

    /// Stops the task if it has reached one of its limits. Returns true if it did.
    fn stop_at_limit(&mut self, now: Timestamp) -> bool {
        if self.state.current.is_some() || !self.is_active() {
            return false;
        }
        let limits = &self.task.limits;
        if self.has_all_runs() || limits.until.is_some_and(|until| until <= now) {
            self.state.status = TaskStatus::Completed;
        } else if limits.is_spent(&self.state) {
            self.state.status = TaskStatus::Disabled;
            let spent = format_money(self.state.spent_micros);
            let limit = format_money(limits.cost_micros.unwrap_or_default());
            self.state.problem =
                Some(format!("its runs have cost {spent}, and its cost limit is {limit}: raise the limit"));
        } else {
            return false;
        }
        true
    }

    /// Returns the next step of the task; `None` if nothing is to be done now.
    fn step(&mut self, now: Timestamp) -> Option<Step> {
        if self.stop_at_limit(now) {
            return Some(Step::Store);
        }
        if let Some(next) = self.state.current.as_ref().or(self.state.waiting.first()) {
            return Some(Step::Start(next.clone()));
        }
        match &self.task.trigger {
            Trigger::Event(_) => None,
            Trigger::Condition(_) => Some(Step::Look),
            Trigger::Schedule(schedule) => {
                let Some(next) = schedule.next_after(self.state.handled) else {
                    self.state.status = TaskStatus::Completed;
                    return Some(Step::Store);
                };
                if next > now {
                    return None;
                }
                let last = || schedule.last_until(self.state.handled, now).unwrap_or(next);
                match self.task.missed {
                    MissedRuns::All => Some(Step::Start(Occurrence::Time(next))),
                    MissedRuns::Once => Some(Step::Start(Occurrence::Time(last()))),
                    MissedRuns::Skip => {
                        let last = last();
                        if now.since(last) <= GRACE {
                            return Some(Step::Start(Occurrence::Time(last)));
                        }
                        self.state.handled = last;
                        Some(Step::Store)
                    }
                }
            }
        }
    }

    /// Notes that the run of an occurrence has started, or that it was found. Returns false if it is over, as for an event that
    /// arrives twice. `is_again` says that the occurrence was the current one before: its process was killed.
    pub(super) fn note_start(&mut self, occurrence: &Occurrence, found: &FoundRun, is_again: bool) -> bool {
        let (task, state) = (&self.task, &mut self.state);
        let key = task.run_key(occurrence);
        match occurrence {
            Occurrence::Time(at) => state.handled = state.handled.max(*at),
            _ => state.waiting.retain(|waiting| task.run_key(waiting) != key),
        }
        // Events and starts by a person arrive again by themselves, also long after their run.
        let is_repeated = matches!(occurrence, Occurrence::Event(_) | Occurrence::Person(_)) && found.is_over;
        if state.last_runs.contains(&found.run) || is_repeated && !is_again {
            return is_again;
        }
        state.runs += 1;
        state.last_runs.push(found.run.clone());
        let surplus = state.last_runs.len().saturating_sub(TaskState::MOST_LISTED);
        state.last_runs.drain(..surplus);
        true
    }

    /// Notes the end of a run with the money that it cost.
    pub(super) fn note_end(&mut self, cost_micros: u64, now: Timestamp) {
        let state = &mut self.state;
        state.spent_micros = state.spent_micros.saturating_add(cost_micros);
        state.current = None;
        state.expired.clear();
        self.stop_at_limit(now);
    }

    /// Notes a run that has its answer; `problem` is that of a notification channel.
    pub(super) fn note_success(&mut self, problem: Option<String>) {
        let state = &mut self.state;
        (state.failures, state.not_before, state.problem) = (0, Timestamp::default(), problem);
    }

    /// Notes the value of the condition, or the reason why it has none: then it stays as it was.
    pub(super) fn note_value(&mut self, value: Result<bool, String>) {
        let state = &mut self.state;
        match value {
            Ok(is_true) => {
                if is_true && !state.condition.is_true {
                    state.waiting.push(Occurrence::Edge(state.condition.edges));
                    state.condition.edges += 1;
                }
                state.condition.is_true = is_true;
                if state.failures == 0 {
                    state.problem = None;
                }
            }
            Err(problem) => state.problem = Some(problem),
        }
    }

    /// Notes a run that failed, or that could not start. The task pauses, and is disabled after too many.
    pub(super) fn note_failure(&mut self, problem: String, now: Timestamp) {
        let (limits, state) = (&self.task.limits, &mut self.state);
        state.failures = state.failures.saturating_add(1);
        state.not_before = now + limits.pause(state.failures);
        if limits.failures > 0 && state.failures >= limits.failures && state.status == TaskStatus::Active {
            state.status = TaskStatus::Disabled;
            let count = state.failures;
            state.problem =
                Some(format!("{count} runs failed one after the other; the last error is: {problem}"));
        } else {
            state.problem = Some(problem);
        }
    }
}
