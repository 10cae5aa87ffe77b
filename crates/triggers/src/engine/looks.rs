//! Looks at the questions of the runs that wait for people: one look for all of them, from time to time.

use std::{collections::BTreeMap, convert::Infallible, sync::Arc, time::Duration};

use archon_types::{NotificationKind, PendingApproval, RunId, Timestamp};
use tokio::sync::{Notify, watch};

use super::{
    TriggerEngine,
    notices::{Untaken, notification},
};
use crate::task::TriggerTask;

/// The pause between two looks.
pub(super) const LOOK: Duration = Duration::from_secs(10);

/// The shortest pause between two looks, when runs begin to wait.
const SHORTEST: Duration = Duration::from_secs(1);

/// The longest pause before a question is sent again to a channel that failed.
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);

/// The open questions at the last look, and the runs that wait for the next.
#[derive(Default)]
pub(super) struct Looks {
    open: watch::Sender<Arc<BTreeMap<RunId, Vec<PendingApproval>>>>,
    /// Rings when a run begins to wait.
    bell: Notify,
}

/// The questions of one run that waits.
pub(super) struct RunQuestions {
    looks: watch::Receiver<Arc<BTreeMap<RunId, Vec<PendingApproval>>>>,
    /// The questions of the run up to now, by their ids; `None` for those that are over.
    known: BTreeMap<String, Option<Asked>>,
    /// True if the run may have questions that nobody knows.
    is_new: bool,
    /// True once the questions that expired before are known.
    is_checked: bool,
}

/// An open question, and the channels that have not taken it.
struct Asked {
    question: PendingApproval,
    channels: Vec<String>,
    failures: u32,
    /// No further try before this time.
    not_before: Timestamp,
}

impl Asked {
    fn new(question: PendingApproval, channels: Vec<String>) -> Self {
        Self { question, channels, failures: 0, not_before: Timestamp::default() }
    }

    fn note_failure(&mut self, untaken: Vec<String>, now: Timestamp) {
        (self.channels, self.failures) = (untaken, self.failures.saturating_add(1));
        let pause = LOOK.saturating_mul(1 << (self.failures - 1).min(10)).min(LONGEST_PAUSE);
        self.not_before = now + pause;
    }
}

impl Looks {
    pub(super) fn of_run(&self) -> RunQuestions {
        RunQuestions { looks: self.open.subscribe(), known: BTreeMap::new(), is_new: true, is_checked: false }
    }
}

impl TriggerEngine {
    /// Looks at the questions of all runs while one of the engine's runs waits.
    pub(super) async fn keep_looking(&self) -> Infallible {
        let (clock, looks) = (&self.parts.clock, &self.parts.looks);
        let mut last = Timestamp::default();
        loop {
            if looks.open.receiver_count() == 0 {
                looks.bell.notified().await;
            } else {
                tokio::select! {
                    () = clock.sleep_until(last + LOOK) => {}
                    () = looks.bell.notified() => {}
                }
            }
            clock.sleep_until(last + SHORTEST).await;
            last = clock.now();
            self.look_at_questions().await;
        }
    }

    /// Resumes the runs whose questions expired, and reads the open questions.
    async fn look_at_questions(&self) {
        match self.parts.runs.sweep().await {
            Ok(resumed) => {
                for (run, error) in resumed.failures() {
                    tracing::warn!(%run, "a run whose question expired does not go on: {error}");
                }
            }
            Err(error) => tracing::warn!("the questions that expired cannot be found: {error}"),
        }
        match self.parts.runs.questions(None).await {
            Ok(questions) => {
                let mut open: BTreeMap<RunId, Vec<PendingApproval>> = BTreeMap::new();
                for question in questions {
                    open.entry(question.run.clone()).or_default().push(question);
                }
                self.parts.looks.open.send_replace(Arc::new(open));
            }
            Err(error) => tracing::warn!("the questions of runs cannot be read: {error}"),
        }
    }

    /// Notifies people of the questions of a run, until it has no open question.
    pub(super) async fn until_answered(&self, task: &TriggerTask, run: &RunId, questions: &mut RunQuestions) {
        // An earlier look may be older than the questions.
        questions.looks.mark_unchanged();
        if std::mem::take(&mut questions.is_new) {
            self.parts.looks.bell.notify_one();
        }
        // The sender lives as long as the engine.
        while questions.looks.changed().await.is_ok() {
            let open = questions.looks.borrow_and_update().get(run).cloned().unwrap_or_default();
            if open.is_empty() {
                self.notify_over(task, run, questions, &open).await;
                return;
            }
            questions.is_new = true;
            for question in &open {
                let id = question.request.request_id.clone();
                let new = || Some(Asked::new(question.clone(), task.notify.clone()));
                if let Some(asked) = questions.known.entry(id).or_insert_with(new) {
                    self.ask(task, run, asked).await;
                }
            }
            self.notify_over(task, run, questions, &open).await;
        }
    }

    /// Sends a question to the channels that have not taken it, unless they failed a moment ago. The state of the task shows
    /// the problem until each has taken it.
    async fn ask(&self, task: &TriggerTask, run: &RunId, asked: &mut Asked) {
        if asked.channels.is_empty() || self.parts.clock.now() < asked.not_before {
            return;
        }
        let text = asked.question.request.action_summary.clone();
        let about = NotificationKind::Question(Box::new(asked.question.clone()));
        let notification = notification(task, Some(run), about, text);
        let problem = match self.send(task, &asked.channels, &notification).await {
            None if asked.failures == 0 => return asked.channels.clear(),
            None => {
                asked.channels.clear();
                None
            }
            Some(Untaken { channels, problem }) => {
                asked.note_failure(channels, self.parts.clock.now());
                let question = &asked.question.request.request_id;
                Some(format!("question {question} of run {run} is sent again: {problem}"))
            }
        };
        self.update(task, |entry| entry.state.problem = problem).await;
    }

    /// Forgets the questions that are not open any more, and notifies people of those that expired.
    async fn notify_over(
        &self,
        task: &TriggerTask,
        run: &RunId,
        questions: &mut RunQuestions,
        open: &[PendingApproval],
    ) {
        let (now, mut is_over) = (self.parts.clock.now_for_others(), false);
        for (id, known) in &mut questions.known {
            if open.iter().any(|question| question.request.request_id == *id) {
                continue;
            }
            let Some(over) = known.take() else { continue };
            is_over = true;
            let request = &over.question.request;
            // Questions of child runs expire in the logs of the child runs.
            let is_of_child = !request.call_path.is_empty();
            if is_of_child && request.expires_at.is_some_and(|at| at <= now) {
                let text = format!("no answer came in time to: {}", request.action_summary);
                self.notify(task, Some(run), NotificationKind::Expired, text).await;
            }
        }
        if is_over || !std::mem::replace(&mut questions.is_checked, true) {
            self.notify_expired(task, run, open).await;
        }
    }
}
