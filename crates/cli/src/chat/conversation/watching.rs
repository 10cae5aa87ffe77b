//! The runs of the session as they go on, in this process and in others: the events of the run at work, and a look from
//! time to time for a run that works without this conversation.

use std::time::Duration;

use archon::types::{Event, PromptSource, RecordBody, RunError, RunHead, RunId, RunStatus, StartRuns, Watch};
use futures_util::StreamExt;

use super::{Conversation, answers::is_of_question};
use crate::{
    chat::{events::Update, history_of_session::newest},
    command_line::resume_line,
    failure::Failure,
};

/// The interval between two looks at the session while no run is watched: another process may begin a run, or answer a
/// question. A look opens the index of the session and its newest log, however many runs there are.
const LOOK: Duration = Duration::from_secs(1);
/// The interval after [`USUAL_LOOKS`] looks (a minute) without news and without a request of the person.
const RARE_LOOK: Duration = Duration::from_secs(5);
const USUAL_LOOKS: u32 = 60;
/// The interval of the first [`QUICK_LOOKS`] looks while a message waits, because the message will begin the next run.
const LOOK_FOR_NEXT: Duration = Duration::from_millis(50);
const QUICK_LOOKS: u32 = 200;

/// Returns the next event of the watched run. Waits for ever if no run is watched.
pub(super) async fn next(events: &mut Option<Watch>) -> Option<Result<Event, RunError>> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

impl Conversation {
    /// Watches a run from the first record that is not known yet.
    pub(super) async fn watch(&mut self, run: &RunId) -> Result<(), RunError> {
        if self.run.as_ref() != Some(run) {
            (self.run, self.after, self.status) = (Some(run.clone()), None, RunStatus::Created);
            self.questions.clear();
        }
        let is_elsewhere = !self.runs.works_on(run) && self.runs.get(run).await?.status == RunStatus::Running;
        self.events = Some(self.runs.watch(run, self.after).await?);
        (self.is_here, self.looks) = (!is_elsewhere, 0);
        self.update(Update::Working { run: run.clone(), is_elsewhere });
        Ok(())
    }

    /// Watches the run from the first record that is not known yet.
    pub(super) async fn watch_again(&mut self) -> Result<(), RunError> {
        match self.run.clone() {
            Some(run) => self.watch(&run).await,
            None => Ok(()),
        }
    }

    /// Passes an event of the run to the screen.
    pub(super) fn pass(&mut self, event: Option<Result<Event, RunError>>) {
        match event {
            Some(Ok(event)) => {
                self.note(&event);
                self.update(Update::Event(event));
            }
            Some(Err(error)) => {
                self.events = None;
                let failure = Failure::from(error);
                let failure = match &self.run {
                    Some(run) => failure.then(&resume_line(&self.app, run.as_str())),
                    None => failure,
                };
                self.update(Update::Rest(Some(failure)));
            }
            None => {
                self.events = None;
                let is_cut_off = self.status == RunStatus::Running;
                if is_cut_off {
                    self.status = RunStatus::Interrupted;
                }
                let what = "the last run was cut off: its process has ended";
                let failure = || Failure::failed(what, "it goes on with your next message");
                self.update(Update::Rest(is_cut_off.then(failure)));
            }
        }
    }

    fn note(&mut self, event: &Event) {
        let Event::Record { run, record } = event else { return };
        if self.run.as_ref() != Some(run) {
            return;
        }
        (self.after, self.last_at) = (Some(record.seq), Some(record.at));
        self.status = RunHead::status_after(&record.body);
        if is_of_question(record) {
            self.questions.push(record.clone());
        }
        match &record.body {
            RecordBody::MessageAdded { source: PromptSource::FollowUp | PromptSource::Steer, .. } => {
                self.waiting = self.waiting.saturating_sub(1);
            }
            RecordBody::ModeChanged { mode, .. } => {
                self.mode = *mode;
                self.update(Update::Mode(*mode));
            }
            _ => {}
        }
    }

    /// Returns true if the run waits with a question.
    pub(super) fn is_suspended(&self) -> bool {
        self.status == RunStatus::Suspended
    }

    /// Returns the time until the next look at the session; `None` while a run is watched, and without a session.
    pub(super) fn pause(&self) -> Option<Duration> {
        if self.events.is_some() || self.session.is_none() {
            return None;
        }
        Some(pause_after(self.looks, self.waiting > 0 && !self.is_suspended()))
    }

    /// Looks for a run that goes on without this conversation: its question was answered elsewhere, another process
    /// began it, or it began with a message that waited.
    pub(super) async fn look(&mut self) {
        let Some(session) = self.session.clone() else { return };
        self.looks = self.looks.saturating_add(1);
        let head = match newest(&self.runs, &session).await {
            Ok(Some(head)) if self.is_news(&head) => head,
            Err(error) if self.waiting > 0 => {
                self.waiting = 0;
                return self.update(Update::Failed(error.into()));
            }
            // Without a message that waits, the next request of the person shows the error once.
            _ => return,
        };
        if self.run.as_ref() != Some(&head.run_id) {
            self.waiting = 0;
        }
        // A log that cannot be watched is no news any more.
        self.last_at = Some(head.updated_at);
        if let Err(error) = self.watch(&head.run_id).await {
            self.update(Update::Failed(error.into()));
        }
    }

    /// Returns true if the newest run of the session has records that this conversation does not know. A fork without a
    /// message has no records of its own.
    fn is_news(&self, head: &RunHead) -> bool {
        let is_other = self.run.as_ref() != Some(&head.run_id);
        head.status != RunStatus::Created && (is_other || self.last_at != Some(head.updated_at))
    }
}

/// Returns the time until the next look, after this number of looks without news. `begins_next` is true while a message
/// waits that will begin the next run.
fn pause_after(looks: u32, begins_next: bool) -> Duration {
    match looks {
        ..QUICK_LOOKS if begins_next => LOOK_FOR_NEXT,
        USUAL_LOOKS.. if !begins_next => RARE_LOOK,
        _ => LOOK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_is_longer_after_a_minute_without_news_unless_a_message_waits() {
        for (looks, begins_next, expected) in [
            (0, false, LOOK),
            (59, false, LOOK),
            (60, false, RARE_LOOK),
            (u32::MAX, false, RARE_LOOK),
            (0, true, LOOK_FOR_NEXT),
            (199, true, LOOK_FOR_NEXT),
            (200, true, LOOK),
        ] {
            assert_eq!(pause_after(looks, begins_next), expected, "{looks} {begins_next}");
        }
    }
}
