//! The work of the engine: it starts runs, follows them to their end, looks at conditions, and notifies people.

use std::{collections::BTreeMap, future::Future, time::Duration};

use archon_types::{
    FinalAnswer, JournalError, MoreLimits, Notification, NotificationKind, PendingApproval, Reply, RunError,
    RunId, RunStatus, Timestamp,
};

use super::{
    Parts, TriggerEngine,
    agenda::{Entry, Step},
};
use crate::{
    condition::TriggerCondition,
    error::TriggerError,
    occurrence::Occurrence,
    task::{TaskStatus, Trigger, TriggerTask},
};

/// The pause between two looks at a run that waits for a person.
const LOOK: Duration = Duration::from_secs(10);

/// The longest time for one look of a probe.
const PROBE_LIMIT: Duration = Duration::from_secs(60);

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
            let now = self.parts.clock.now();
            let (task, step) = match self.agenda().await?.next_step(now) {
                Ok(due) => due,
                Err(next) => return Ok(next),
            };
            match step {
                Step::Start(occurrence) => self.start(task, occurrence).await,
                Step::Store => self.release(&task, |_| ()).await,
                Step::Look => {
                    let engine = self.clone();
                    self.guard(task.clone(), async move { engine.look(&task).await });
                }
            }
        }
    }

    /// Stores the occurrence, and starts its run. A process that is killed in between starts it again: the journal has the
    /// run, if it has started.
    async fn start(&self, task: TriggerTask, occurrence: Occurrence) {
        self.update(&task, |entry| entry.state.current = Some(occurrence.clone())).await;
        let started = match self.parts.runs.start(task.run_request(&occurrence)).await {
            Ok(started) => Ok(started.run),
            // The run of this occurrence has another text, because the task or the event was changed since.
            Err(RunError::KeyUsed { run, .. }) => Ok(run),
            Err(error) => Err(error),
        };
        let engine = self.clone();
        match started {
            Ok(run) => {
                let is_new = self.update(&task, |entry| entry.note_start(&occurrence, run.clone())).await;
                if is_new == Some(false) {
                    self.release(&task, |entry| entry.state.current = None).await;
                    return;
                }
                self.guard(task.clone(), async move { engine.follow(&task, &run).await });
            }
            Err(error) => {
                let end = End::Failure(with_advice(&error));
                self.guard(task.clone(), async move { engine.end(&task, None, end).await });
            }
        }
    }

    /// Does work for a busy task in an async task of its own. If the work panics, the task counts as failed.
    fn guard(&self, task: TriggerTask, work: impl Future<Output = ()> + Send + 'static) {
        let engine = self.clone();
        tokio::spawn(async move {
            if let Err(error) = tokio::spawn(work).await {
                let problem = format!("the code of a probe or a channel panicked: {error}");
                let now = engine.parts.clock.now();
                engine.release(&task, |entry| entry.note_failure(problem, now)).await;
            }
        });
    }

    /// Follows a run until it ends. A run that waits for a person is looked at again from time to time.
    async fn follow(&self, task: &TriggerTask, run: &RunId) {
        let mut open: BTreeMap<String, PendingApproval> = BTreeMap::new();
        let end = loop {
            if let Err(error) = self.parts.resume_interrupted(run).await {
                break End::Failure(with_advice(&error));
            }
            match self.parts.runs.reply(run).await {
                Ok(Reply::Waiting(_)) => self.notify_questions(task, run, &mut open).await,
                Err(error) if self.parts.is_under_way(run).await => {
                    tracing::warn!(task = %task.id, %run, "the run is looked at again: {error}");
                }
                reply => break end_of(reply),
            }
            self.parts.clock.sleep_until(self.parts.clock.now() + LOOK).await;
            self.notify_expired(task, run, &mut open).await;
            match self.parts.runs.sweep().await {
                Ok(resumed) => {
                    for (run, error) in resumed.failures() {
                        tracing::warn!(%run, "a run whose question expired does not go on: {error}");
                    }
                }
                Err(error) => tracing::warn!("the questions that expired cannot be found: {error}"),
            }
        };
        self.end(task, Some(run), end).await;
    }

    /// Notifies the person of the end of a run, and notes it. A process that is killed in between notifies again.
    async fn end(&self, task: &TriggerTask, run: Option<&RunId>, end: End) {
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
        let mut is_disabled = false;
        self.release(task, |entry| {
            let was_active = entry.state.status == TaskStatus::Active;
            match end {
                End::Failure(failure) => entry.note_failure(failure, now),
                End::Answer(_) => entry.note_success(problem),
                End::Cancelled => {}
            }
            is_disabled = was_active && entry.state.status == TaskStatus::Disabled;
            if run.is_some() {
                entry.state.current = None;
            }
        })
        .await;
        if is_disabled {
            let text = format!(
                "task {} failed {} times one after the other and is disabled; correct it, then resume it",
                task.id, task.limits.failures
            );
            self.notify(task, run, NotificationKind::Disabled, text).await;
        }
    }

    /// Changes the entry of a task, unless another task has its id by now, and stores the state. If that fails, the next
    /// change stores it.
    async fn update<T>(&self, task: &TriggerTask, change: impl FnOnce(&mut Entry) -> T + Send) -> Option<T> {
        let mut agenda = match self.agenda().await {
            Ok(agenda) => agenda,
            Err(error) => {
                tracing::error!(task = %task.id, "the tasks cannot be read: {error}");
                return None;
            }
        };
        agenda.entry(&task.id).filter(|entry| entry.task.created_at == task.created_at)?;
        let (value, state) = agenda.change(&task.id, |entry| (change(entry), entry.state.clone()))?;
        if let Err(error) = self.parts.put(&task.id, &state).await {
            tracing::error!(task = %task.id, "the state of the task is not stored: {error}");
        }
        Some(value)
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

    /// Looks at the condition of a task.
    async fn look(&self, task: &TriggerTask) {
        let Trigger::Condition(condition) = &task.trigger else { return self.release(task, |_| ()).await };
        let value = self.parts.value_of(condition).await;
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

    async fn notify_questions(
        &self,
        task: &TriggerTask,
        run: &RunId,
        open: &mut BTreeMap<String, PendingApproval>,
    ) {
        let questions = match self.parts.runs.questions(Some(&task.tenant)).await {
            Ok(questions) => questions,
            Err(error) => {
                tracing::warn!(task = %task.id, "the questions of the run cannot be read: {error}");
                return;
            }
        };
        let of_run = questions.into_iter().filter(|question| question.run == *run);
        let now_open: BTreeMap<String, PendingApproval> =
            of_run.map(|question| (question.request.request_id.clone(), question)).collect();
        for (id, question) in &now_open {
            if !open.contains_key(id) {
                let about = NotificationKind::Question(Box::new(question.clone()));
                self.notify(task, Some(run), about, question.request.action_summary.clone()).await;
            }
        }
        // Questions that were answered are gone.
        *open = now_open;
    }

    async fn notify_expired(
        &self,
        task: &TriggerTask,
        run: &RunId,
        open: &mut BTreeMap<String, PendingApproval>,
    ) {
        let now = self.parts.clock.now_for_others();
        let is_over = |question: &PendingApproval| question.request.expires_at.is_some_and(|at| at <= now);
        let expired: Vec<_> = open.values().filter(|question| is_over(question)).cloned().collect();
        for question in expired {
            open.remove(&question.request.request_id);
            let text = format!("no answer came in time to: {}", question.request.action_summary);
            self.notify(task, Some(run), NotificationKind::Expired, text).await;
        }
    }

    /// Sends a notification to the channels of a task, and returns the problem of a channel that failed.
    async fn notify(
        &self,
        task: &TriggerTask,
        run: Option<&RunId>,
        about: NotificationKind,
        text: String,
    ) -> Option<String> {
        let link = match &about {
            NotificationKind::Question(question) => {
                self.parts.named.answer_link.as_ref().and_then(|link| link(question))
            }
            _ => None,
        };
        let notification = Notification::new(task.tenant.clone(), about, text)
            .task(task.id.clone())
            .run(run.cloned())
            .link(link);
        let mut failed = None;
        for name in &task.notify {
            let problem = match self.parts.named.channels.get(name) {
                Some(channel) => channel.send(&notification).await.err(),
                None => Some("this program does not have it".to_owned()),
            };
            if let Some(problem) = problem {
                tracing::warn!(task = %task.id, "the channel {name} failed: {problem}");
                failed = Some(format!("the channel {name} failed: {problem}"));
            }
        }
        failed
    }
}

impl Parts {
    /// Resumes a run whose process died. Another process may resume it at the same time.
    async fn resume_interrupted(&self, run: &RunId) -> Result<(), RunError> {
        if self.runs.get(run).await?.status != RunStatus::Interrupted {
            return Ok(());
        }
        match self.runs.resume(run, &MoreLimits::default()).await {
            Err(RunError::Journal(JournalError::Locked { .. })) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn is_under_way(&self, run: &RunId) -> bool {
        self.runs.get(run).await.map_or(true, |head| head.status.is_busy())
    }

    async fn value_of(&self, condition: &TriggerCondition) -> Result<bool, String> {
        let name = &condition.probe;
        let probe = self
            .named
            .probes
            .get(name)
            .ok_or_else(|| format!("there is no probe {name:?} in this program"))?;
        let mut reading = probe.read(&condition.arguments);
        let deadline = self.clock.now() + PROBE_LIMIT;
        let data = self.clock.before(deadline, |task| reading.as_mut().poll(task)).await;
        let data =
            data.unwrap_or_else(|| Err(format!("it did not answer within {} s", PROBE_LIMIT.as_secs())));
        let data = data.map_err(|problem| format!("probe {name}: {problem}"))?;
        condition.expression.is_true_of([("data", &data)]).map_err(|error| error.to_string())
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
