//! An entry of the outbox, and its next step. It does no I/O.

use std::time::Duration;

use archon_types::{ContentHash, Notification, NotificationKind, StoredTask, Timestamp};
use serde::{Deserialize, Serialize};

use crate::delivery::DeliveryRules;

/// The pause after the first failure. It doubles with each further one, up to an hour.
const PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);

/// The time after which a notification that no channel takes is given up.
const MOST_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The time for which a notification that was sent is known, so that it is not sent again.
const MEMORY: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A notification for one channel, with what happened to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) notification: Notification,
    pub(super) progress: Progress,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Progress {
    pub(super) channel: String,
    /// The place in the order of arrivals.
    pub(super) number: u64,
    /// The time of the arrival in the outbox.
    pub(super) at: Timestamp,
    /// The time at which the channel took it.
    pub(super) sent_at: Option<Timestamp>,
    /// The time since which nothing is to be done any more.
    pub(super) closed_at: Option<Timestamp>,
    pub(super) failures: u32,
    /// No try before this time, because of failures.
    pub(super) not_before: Timestamp,
    pub(super) problem: Option<String>,
}

/// The next step of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Look again at this time.
    Wait(Timestamp),
    /// Send it by itself.
    Send,
    /// Send it with the other results that are due.
    Collect,
    /// Pass the question on to the next channel.
    Escalate,
    /// Nothing is to be done any more.
    Close,
    /// Forget it.
    Delete,
}

impl Entry {
    pub(super) fn new(channel: &str, number: u64, notification: Notification, at: Timestamp) -> Self {
        // The same failure before the start of a run may happen again, and is then another notification.
        let repeat = if notification.run.is_none() { at.as_millis() } else { 0 };
        let key = ContentHash::of(&(channel, notification.id(), repeat));
        let progress = Progress { channel: channel.to_owned(), number, at, ..Progress::default() };
        Self { key: format!("{key:016x}"), notification, progress }
    }

    /// Returns the next step. `is_open` says whether a question still waits for an answer.
    pub(super) fn step(&self, rules: &DeliveryRules, now: Timestamp, is_open: bool) -> Step {
        let progress = &self.progress;
        if let Some(closed) = progress.closed_at {
            let end = closed + MEMORY;
            return if end <= now { Step::Delete } else { Step::Wait(end) };
        }
        if self.expires_at().is_some_and(|end| end <= now) || (self.is_question() && !is_open) {
            return Step::Close;
        }
        let (due, passed_on) = (self.due(rules), self.escalation_time(rules));
        if passed_on.is_some_and(|at| at <= now) {
            return Step::Escalate;
        }
        if progress.sent_at.is_some() {
            return passed_on.map_or(Step::Close, Step::Wait);
        }
        let next = due.max(progress.not_before);
        match progress.failures > 0 {
            true if due + MOST_TIME < now => passed_on.map_or(Step::Close, Step::Wait),
            _ if next > now => Step::Wait(passed_on.map_or(next, |at| at.min(next))),
            _ if self.is_collected(rules) => Step::Collect,
            _ => Step::Send,
        }
    }

    pub(super) fn is_question(&self) -> bool {
        matches!(self.notification.about, NotificationKind::Question(_))
    }

    pub(super) fn note_failure(&mut self, problem: String, now: Timestamp) {
        let progress = &mut self.progress;
        progress.failures = progress.failures.saturating_add(1);
        let pause = PAUSE.saturating_mul(1 << (progress.failures - 1).min(10)).min(LONGEST_PAUSE);
        (progress.not_before, progress.problem) = (now + pause, Some(problem));
    }

    pub(super) fn note_sent(&mut self, now: Timestamp) {
        (self.progress.sent_at, self.progress.problem) = (Some(now), None);
    }

    pub(super) fn to_stored(&self) -> Result<StoredTask, serde_json::Error> {
        let (notification, progress) =
            (serde_json::to_value(&self.notification)?, serde_json::to_value(&self.progress)?);
        Ok(StoredTask::new(self.key.as_str(), notification, progress))
    }

    pub(super) fn read(stored: &StoredTask) -> Result<Self, serde_json::Error> {
        let (notification, progress) =
            (Notification::deserialize(&stored.definition)?, Progress::deserialize(&stored.state)?);
        Ok(Self { key: stored.id.as_str().to_owned(), notification, progress })
    }

    fn expires_at(&self) -> Option<Timestamp> {
        match &self.notification.about {
            NotificationKind::Question(question) => question.request.expires_at,
            _ => None,
        }
    }

    fn is_collected(&self, rules: &DeliveryRules) -> bool {
        self.notification.about == NotificationKind::Result && rules.digest.is_some()
    }

    /// Returns the time at which a question goes to the next person: counted from the time at which it was sent, or should have
    /// been sent if the channel fails.
    fn escalation_time(&self, rules: &DeliveryRules) -> Option<Timestamp> {
        let (after, _) = rules.escalation.as_ref().filter(|_| self.is_question())?;
        let failed = || (self.progress.failures > 0).then(|| self.due(rules));
        self.progress.sent_at.or_else(failed).map(|at| at + *after)
    }

    /// Returns the time from which it may be sent.
    fn due(&self, rules: &DeliveryRules) -> Timestamp {
        let at = self.progress.at;
        let digest = rules.digest.as_ref().filter(|_| self.is_collected(rules));
        let at = digest.and_then(|digest| digest.next_after(at)).unwrap_or(at);
        let quiet_until = rules.quiet.as_ref().and_then(|quiet| quiet.end_after(at));
        // A question that nobody could answer any more after the quiet hours does not wait.
        let waits = |until: &Timestamp| self.expires_at().is_none_or(|end| *until < end);
        quiet_until.filter(waits).unwrap_or(at)
    }
}
