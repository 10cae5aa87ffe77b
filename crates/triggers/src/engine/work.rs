//! The work of the engine: it starts runs, follows them to their end, looks at conditions, and notifies people.

use std::{collections::BTreeMap, time::Duration};

use archon_types::{
    FinalAnswer, MoreLimits, Notification, NotificationKind, PendingApproval, Reply, RunError, RunId,
    RunStatus, TaskId, Timestamp,
};

use super::{Parts, TriggerEngine, agenda::Step};
use crate::{
    condition::TriggerCondition,
    error::TriggerError,
    occurrence::Occurrence,
    task::{TaskStatus, Trigger, TriggerTask},
};

/// The pause between two looks at a run that waits for a person.
const LOOK: Duration = Duration::from_secs(10);

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
            let (id, step) = match self.agenda().await?.next_step(now) {
                Ok(due) => due,
                Err(next) => return Ok(next),
            };
            match step {
                Step::Start(occurrence) => self.start(&id, &occurrence).await?,
                Step::Store => self.release(&id, |_| ()).await?,
                Step::Look => {
                    let (engine, id) = (self.clone(), id);
                    tokio::spawn(async move { engine.look(&id).await });
                }
            }
        }
    }

    /// Follows the last runs of the tasks that have not ended, for instance those that wait for a person.
    pub(super) async fn follow_unfinished(&self) -> Result<(), TriggerError> {
        let last: Vec<(TaskId, RunId)> = {
            let agenda = self.agenda().await?;
            let last = agenda.entries().filter(|entry| !entry.is_busy);
            last.filter_map(|entry| Some((entry.task.id.clone(), entry.state.last_runs.last()?.clone())))
                .collect()
        };
        for (id, run) in last {
            let is_under_way = self.parts.runs.get(&run).await.is_ok_and(|head| head.status.is_busy());
            if is_under_way {
                self.agenda().await?.change(&id, |entry| entry.is_busy = true);
                self.spawn_follow(id, run);
            }
        }
        Ok(())
    }

    async fn start(&self, id: &TaskId, occurrence: &Occurrence) -> Result<(), TriggerError> {
        let Some(task) = self.agenda().await?.entry(id).map(|entry| entry.task.clone()) else {
            return Ok(());
        };
        match self.parts.runs.start(task.run_request(occurrence)).await {
            Ok(run) => {
                let mut agenda = self.agenda().await?;
                let noted = agenda.change(id, |entry| {
                    let is_new = entry.note_start(occurrence, run.run.clone());
                    (is_new, entry.state.clone())
                });
                let Some((is_new, state)) = noted else { return Ok(()) };
                // If this fails, the next process starts the occurrence again, and the journal has its run.
                self.parts.put(&task.id, &state).await?;
                drop(agenda);
                if is_new {
                    self.spawn_follow(id.clone(), run.run)
                } else {
                    self.release(id, |_| ()).await?
                }
                Ok(())
            }
            Err(error) => self.end(&task, None, End::Failure(with_advice(&error))).await,
        }
    }

    fn spawn_follow(&self, id: TaskId, run: RunId) {
        let engine = self.clone();
        tokio::spawn(async move {
            if let Err(error) = engine.follow(&id, &run).await {
                tracing::error!(task = %id, run = %run, "the end of the run was not stored: {error}");
            }
        });
    }

    /// Follows a run until it ends. A run that waits for a person is looked at again from time to time.
    async fn follow(&self, id: &TaskId, run: &RunId) -> Result<(), TriggerError> {
        let Some(task) = self.agenda().await?.entry(id).map(|entry| entry.task.clone()) else {
            return Ok(());
        };
        let mut asked: BTreeMap<String, PendingApproval> = BTreeMap::new();
        if let Err(error) = self.parts.resume_interrupted(run).await {
            return self.end(&task, Some(run), End::Failure(with_advice(&error))).await;
        }
        let end = loop {
            match self.parts.runs.reply(run).await {
                Ok(Reply::Waiting(_)) => {
                    self.notify_questions(&task, run, &mut asked).await;
                    self.parts.clock.sleep_until(self.parts.clock.now() + LOOK).await;
                    self.notify_expired(&task, run, &mut asked).await;
                    if let Err(error) = self.parts.runs.sweep().await.map(drop) {
                        tracing::warn!("the questions that expired cannot be found: {error}");
                    }
                }
                reply => break end_of(reply),
            }
        };
        self.end(&task, Some(run), end).await
    }

    /// Notes the end of a run, and notifies the person.
    async fn end(&self, task: &TriggerTask, run: Option<&RunId>, end: End) -> Result<(), TriggerError> {
        let now = self.parts.clock.now();
        let mut is_disabled = false;
        self.release(&task.id, |entry| match &end {
            End::Failure(problem) => {
                let was_active = entry.state.status == TaskStatus::Active;
                entry.note_failure(problem.clone(), now);
                is_disabled = was_active && entry.state.status == TaskStatus::Disabled;
            }
            End::Answer(_) => {
                let state = &mut entry.state;
                (state.failures, state.not_before, state.problem) = (0, Timestamp::default(), None);
            }
            End::Cancelled => {}
        })
        .await?;
        match end {
            End::Answer(text) => self.notify(task, run, NotificationKind::Result, text).await,
            End::Failure(text) => self.notify(task, run, NotificationKind::Failure, text).await,
            End::Cancelled => {}
        }
        if is_disabled {
            let text = format!(
                "task {} failed {} times one after the other and is disabled; correct it, then resume it",
                task.id, task.limits.failures
            );
            self.notify(task, run, NotificationKind::Disabled, text).await;
        }
        Ok(())
    }

    /// Changes a task that was busy, stores its state, and looks at the task again.
    async fn release(
        &self,
        id: &TaskId,
        change: impl FnOnce(&mut super::agenda::Entry) + Send,
    ) -> Result<(), TriggerError> {
        let mut agenda = self.agenda().await?;
        let changed = agenda.change(id, |entry| {
            change(entry);
            entry.is_busy = false;
            (entry.task.clone(), entry.state.clone())
        });
        if let Some((task, state)) = changed {
            self.parts.put(&task.id, &state).await?;
        }
        self.parts.bell.notify_one();
        Ok(())
    }

    /// Looks at the condition of a task.
    async fn look(&self, id: &TaskId) {
        let condition = match self.agenda().await {
            Ok(agenda) => agenda.entry(id).and_then(|entry| match &entry.task.trigger {
                Trigger::Condition(condition) => Some(condition.clone()),
                _ => None,
            }),
            Err(_) => None,
        };
        let Some(condition) = condition else { return };
        let value = self.parts.value_of(&condition).await;
        let next = self.parts.clock.now() + Duration::from_secs(condition.every);
        let stored = self
            .release(id, |entry| {
                entry.next_look = next;
                let state = &mut entry.state;
                match value {
                    Ok(is_true) => {
                        if is_true && !state.condition.is_true {
                            state.waiting.push(Occurrence::Edge(state.condition.edges));
                            state.condition.edges += 1;
                        }
                        (state.condition.is_true, state.problem) = (is_true, None);
                    }
                    // The next look tries again: the value stays as it was.
                    Err(problem) => state.problem = Some(problem),
                }
            })
            .await;
        if let Err(error) = stored {
            tracing::error!(task = %id, "the look at the condition was not stored: {error}");
        }
    }

    async fn notify_questions(
        &self,
        task: &TriggerTask,
        run: &RunId,
        asked: &mut BTreeMap<String, PendingApproval>,
    ) {
        let questions = match self.parts.runs.questions(Some(&task.tenant)).await {
            Ok(questions) => questions,
            Err(error) => {
                tracing::warn!(task = %task.id, "the questions of the run cannot be read: {error}");
                return;
            }
        };
        for question in questions.into_iter().filter(|question| question.run == *run) {
            let id = question.request.request_id.clone();
            if asked.insert(id, question.clone()).is_none() {
                let text = question.request.action_summary.clone();
                self.notify(task, Some(run), NotificationKind::Question(Box::new(question)), text).await;
            }
        }
    }

    async fn notify_expired(
        &self,
        task: &TriggerTask,
        run: &RunId,
        asked: &mut BTreeMap<String, PendingApproval>,
    ) {
        let now = self.parts.clock.now_for_others();
        let is_over = |question: &PendingApproval| question.request.expires_at.is_some_and(|at| at <= now);
        let expired: Vec<_> = asked.values().filter(|question| is_over(question)).cloned().collect();
        for question in expired {
            asked.remove(&question.request.request_id);
            let text = format!("nobody answered in time: {}", question.request.action_summary);
            self.notify(task, Some(run), NotificationKind::Expired, text).await;
        }
    }

    async fn notify(&self, task: &TriggerTask, run: Option<&RunId>, about: NotificationKind, text: String) {
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
        for name in &task.notify {
            let Some(channel) = self.parts.named.channels.get(name) else { continue };
            if let Err(problem) = channel.send(&notification).await {
                tracing::warn!(task = %task.id, "the channel {name} failed: {problem}");
                let problem = format!("the channel {name} failed: {problem}");
                let noted = self.change(&task.id, |state| state.problem = Some(problem)).await;
                if let Err(error) = noted {
                    tracing::error!(task = %task.id, "the failure of the channel was not stored: {error}");
                }
            }
        }
    }
}

impl Parts {
    /// Resumes a run whose process died.
    async fn resume_interrupted(&self, run: &RunId) -> Result<(), RunError> {
        if self.runs.get(run).await?.status == RunStatus::Interrupted {
            self.runs.resume(run, &MoreLimits::default()).await?;
        }
        Ok(())
    }

    async fn value_of(&self, condition: &TriggerCondition) -> Result<bool, String> {
        let name = &condition.probe;
        let probe = self
            .named
            .probes
            .get(name)
            .ok_or_else(|| format!("there is no probe {name:?} in this program"))?;
        let data =
            probe.read(&condition.arguments).await.map_err(|problem| format!("probe {name}: {problem}"))?;
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
