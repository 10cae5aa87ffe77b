//! The work of the engine: it starts runs, follows them to their end, looks at conditions, and notifies people.

use std::{future::Future, time::Duration};

use archon_types::{
    BoxFuture, FinalAnswer, JournalError, MoreLimits, NotificationKind, Reply, RunError, RunId, RunRefused,
    RunStatus, Started, StartedRun, TaskId, TaskStatus, TenantId, Timestamp,
};
use futures_util::{StreamExt as _, stream};

use super::{
    Parts, TriggerEngine,
    agenda::{Entry, FoundRun, Step},
    looks::LOOK,
    notices::caught,
};
use crate::{
    condition::TriggerCondition,
    error::TriggerError,
    occurrence::Occurrence,
    task::{Trigger, TriggerTask},
};

/// The longest time for one look of a probe.
const PROBE_LIMIT: Duration = Duration::from_secs(60);

/// The most tasks that are taken before their runs start.
const BATCH: usize = 64;

/// The most runs that start at once: a start waits for the disk.
const AT_ONCE: usize = 8;

/// An occurrence of a task whose run starts.
struct StartOfRun {
    task: TriggerTask,
    occurrence: Occurrence,
    /// True if the occurrence was the current one of the task before: the process was killed, or the start failed.
    is_again: bool,
}

/// Tasks that are due.
#[derive(Default)]
struct Due {
    starts: Vec<StartOfRun>,
    /// True if more tasks may be due.
    is_full: bool,
    /// The time at which the next task is due.
    next: Option<Timestamp>,
}

/// The end of a run, as the state of its task notes it.
enum End {
    /// The run has its answer.
    Answer(String),
    /// The run failed or reached a limit, with the advice.
    Failure(String),
    /// A person cancelled the run.
    Cancelled,
}

impl TriggerEngine {
    /// Starts the runs of all tasks that are due, in the order in which they are due. Returns the time of the next.
    pub(super) async fn start_due(&self) -> Result<Option<Timestamp>, TriggerError> {
        loop {
            let due = self.take_due().await?;
            if due.starts.is_empty() && !due.is_full {
                return Ok(due.next);
            }
            self.start(due.starts).await;
        }
    }

    /// Takes some of the tasks that are due, and stores the occurrences whose runs start. A process that is killed before
    /// it notes the runs starts them again: the journal has those that have started.
    async fn take_due(&self) -> Result<Due, TriggerError> {
        let now = self.parts.clock.now();
        let (mut due, mut states) = (Due::default(), Vec::new());
        let mut agenda = self.agenda().await?;
        while states.len() < BATCH {
            let (task, step) = match agenda.next_step(now) {
                Ok(step) => step,
                Err(next) => {
                    due.next = next;
                    self.parts.put(&states).await;
                    return Ok(due);
                }
            };
            match step {
                Step::Start(occurrence) => {
                    let current = occurrence.clone();
                    let (before, state) =
                        agenda.change_own(&task, |entry| entry.state.current.replace(current));
                    states.extend(state);
                    due.starts.push(StartOfRun { task, occurrence, is_again: before.flatten().is_some() });
                }
                Step::Store => states.extend(agenda.change_own(&task, |entry| entry.is_busy = false).1),
                Step::Look => {
                    let engine = self.clone();
                    self.guard(task.clone(), async move { engine.look(&task).await });
                }
            }
        }
        due.is_full = true;
        self.parts.put(&states).await;
        Ok(due)
    }

    /// Starts the runs of occurrences, notes them, and follows them.
    async fn start(&self, starts: Vec<StartOfRun>) {
        let starting = starts.into_iter().map(|start| self.parts.start(start));
        let started: Vec<_> = stream::iter(starting).buffered(AT_ONCE).collect().await;
        let (mut follow, mut states) = (Vec::new(), Vec::new());
        let mut agenda = self.parts.agenda.lock().await;
        for (StartOfRun { task, occurrence, is_again }, run) in started {
            if let Ok(run) = &run {
                let (is_new, state) = agenda.change_own(&task, |entry| {
                    let is_new = entry.note_start(&occurrence, run, is_again);
                    if !is_new {
                        (entry.is_busy, entry.state.current) = (false, None);
                    }
                    is_new
                });
                states.extend(state);
                if is_new == Some(false) {
                    continue;
                }
            }
            follow.push((task, run));
        }
        self.parts.put(&states).await;
        drop(agenda);
        for (task, run) in follow {
            let engine = self.clone();
            match run {
                Ok(found) => {
                    self.guard(task.clone(), async move { engine.follow(&task, &found.run).await });
                }
                Err(error) => {
                    let end = End::Failure(with_advice(&error));
                    self.guard(task.clone(), async move { engine.end(&task, None, end, 0).await });
                }
            }
        }
    }

    /// Does work for a busy task in an async task of its own. If the work panics, which the code of probes and channels
    /// cannot cause, the task counts as failed.
    fn guard(&self, task: TriggerTask, work: impl Future<Output = ()> + Send + 'static) {
        let engine = self.clone();
        tokio::spawn(async move {
            if let Err(error) = tokio::spawn(work).await {
                let problem = format!("the work of the engine panicked: {error}; report it");
                let now = engine.parts.clock.now();
                engine.release(&task, |entry| entry.note_failure(problem, now)).await;
            }
        });
    }

    /// Follows a run until it ends.
    async fn follow(&self, task: &TriggerTask, run: &RunId) {
        let mut questions = None;
        let (cost, end) = loop {
            if let Err(error) = self.parts.resume_interrupted(run).await {
                break (0, End::Failure(with_advice(&error)));
            }
            match self.parts.runs.reply(run).await {
                Ok(Reply::Waiting(_)) => {
                    let questions = questions.get_or_insert_with(|| self.parts.looks.of_run());
                    self.until_answered(task, run, questions).await;
                }
                Err(error) if self.parts.is_under_way(run).await => {
                    tracing::warn!(task = %task.id, %run, "the run is looked at again: {error}");
                    self.parts.clock.sleep_until(self.parts.clock.now() + LOOK).await;
                }
                reply => break (cost_of(&reply), end_of(reply)),
            }
        };
        // Another part of the program may have resumed the run with a question that expired.
        self.notify_expired(task, run, &[]).await;
        self.end(task, Some(run), end, cost).await;
    }

    /// Notifies the person of the end of a run, and notes it. A process that is killed in between notifies again.
    async fn end(&self, task: &TriggerTask, run: Option<&RunId>, end: End, cost_micros: u64) {
        let (about, text) = match &end {
            End::Answer(text) => (NotificationKind::Result, text),
            End::Failure(text) => (NotificationKind::Failure, text),
            End::Cancelled => (NotificationKind::Result, &String::new()),
        };
        let problem = match end {
            End::Cancelled => None,
            _ => self.notify(task, run, about, text.clone()).await,
        };
        let now = self.parts.clock.now();
        let mut disabled = None;
        self.release(task, |entry| {
            let was_active = entry.state.status == TaskStatus::Active;
            match end {
                End::Failure(failure) => entry.note_failure(failure, now),
                End::Answer(_) => entry.note_success(problem),
                End::Cancelled => {}
            }
            if run.is_some() {
                entry.note_end(cost_micros, now);
            }
            if was_active && entry.state.status == TaskStatus::Disabled {
                disabled.clone_from(&entry.state.problem);
            }
        })
        .await;
        if let Some(reason) = disabled {
            let text = format!("task {} is disabled: {reason}; correct it, then resume it", task.id);
            self.notify(task, run, NotificationKind::Disabled, text).await;
        }
    }

    /// Changes the entry of a task, unless another task has its id by now, and stores the state.
    pub(super) async fn update(&self, task: &TriggerTask, change: impl FnOnce(&mut Entry) + Send) {
        // Not with the definitions of now: a storage that cannot be read would leave the task busy.
        let mut agenda = self.parts.agenda.lock().await;
        let states: Vec<_> = agenda.change_own(task, change).1.into_iter().collect();
        self.parts.put(&states).await;
    }

    /// Changes a task that was busy, and looks at it again.
    async fn release(&self, task: &TriggerTask, change: impl FnOnce(&mut Entry) + Send) {
        self.update(task, |entry| {
            change(entry);
            entry.is_busy = false;
        })
        .await;
        self.parts.bell.notify_one();
    }

    /// Shows a problem in the state of a task, if this engine serves the tasks: the states are those of that engine.
    pub(super) async fn show_problem(&self, id: &TaskId, created_at: Timestamp, problem: String) {
        let mut agenda = self.parts.agenda.lock().await;
        if !agenda.is_served() || agenda.entry_of(id, created_at).is_none() {
            return;
        }
        let state = agenda.change(id, |entry| {
            entry.state.problem = Some(problem);
            (id.clone(), entry.state.clone())
        });
        self.parts.put(&state.into_iter().collect::<Vec<_>>()).await;
    }

    /// Looks at the condition of a task.
    async fn look(&self, task: &TriggerTask) {
        let Trigger::Condition(condition) = &task.trigger else { return self.release(task, |_| ()).await };
        let value = self.parts.value_of(&task.tenant, condition).await;
        let next = self.parts.clock.now() + Duration::from_secs(condition.every.max(1));
        self.release(task, |entry| {
            entry.next_look = next;
            // The value is that of the old condition if a person changed the task meanwhile.
            if entry.task.trigger == task.trigger {
                entry.note_value(value);
            }
        })
        .await;
    }
}

impl Parts {
    /// Starts the run of an occurrence, or finds it.
    fn start(&self, start: StartOfRun) -> BoxFuture<'_, (StartOfRun, Result<FoundRun, RunError>)> {
        Box::pin(async move {
            let run = match self.runs.start(start.task.run_request(&start.occurrence)).await {
                Ok(StartedRun { run, how: Started::New, .. }) => Ok(FoundRun { run, is_over: false }),
                // The run of this occurrence may have another text, because the task or the event was changed since.
                Ok(StartedRun { run, .. }) | Err(RunError::KeyUsed { run, .. }) => {
                    let head = self.runs.get(&run).await;
                    head.map(|head| FoundRun { run, is_over: head.status.has_ended() })
                }
                Err(error) => Err(error),
            };
            (start, run)
        })
    }

    /// Resumes a run whose process died. Another process may resume it at the same time.
    async fn resume_interrupted(&self, run: &RunId) -> Result<(), RunError> {
        if self.runs.get(run).await?.status != RunStatus::Interrupted {
            return Ok(());
        }
        match self.runs.resume(run, &MoreLimits::default()).await {
            // Another process, or another part of this one, resumed it.
            Err(
                RunError::Journal(JournalError::Locked { .. }) | RunError::Refused(RunRefused::Ended { .. }),
            )
            | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn is_under_way(&self, run: &RunId) -> bool {
        self.runs.get(run).await.map_or(true, |head| head.status.is_busy())
    }

    async fn value_of(&self, tenant: &TenantId, condition: &TriggerCondition) -> Result<bool, String> {
        let name = &condition.probe;
        let probe = self
            .named
            .probe_for(tenant, name)
            .ok_or_else(|| format!("there is no probe {name:?} in this program"))?;
        let mut reading =
            std::pin::pin!(caught("its code", async { probe.read(&condition.arguments).await }));
        let deadline = self.clock.now() + PROBE_LIMIT;
        let data = self.clock.before(deadline, |task| reading.as_mut().poll(task)).await;
        let data = data.map_or_else(
            || Err(format!("it did not answer within {} s", PROBE_LIMIT.as_secs())),
            |data| data.and_then(|data| data),
        );
        let data = data.map_err(|problem| format!("probe {name}: {problem}"))?;
        condition.expression.is_true_of([("data", &data)]).map_err(|error| error.to_string())
    }
}

/// Returns the money that a run has cost, in millionths of a currency unit.
fn cost_of(reply: &Result<Reply, RunError>) -> u64 {
    match reply {
        Ok(reply) => reply.outcome().spending().cost_micros,
        Err(RunError::Failed { outcome }) => outcome.spending().cost_micros,
        Err(_) => 0,
    }
}

fn end_of(reply: Result<Reply, RunError>) -> End {
    match reply {
        Ok(Reply::Finished(answer)) => End::Answer(FinalAnswer::into_text(answer)),
        Ok(Reply::AtLimit(limit, _)) => {
            End::Failure(format!("the run reached its limit: {limit}; resume it with larger limits"))
        }
        Ok(Reply::Cancelled(_)) => End::Cancelled,
        Ok(_) => End::Failure("the run ended in a way that this version does not know".to_owned()),
        Err(error) => End::Failure(with_advice(&error)),
    }
}

fn with_advice(error: &RunError) -> String {
    format!("{error} ({})", error.advice())
}
