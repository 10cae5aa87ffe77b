//! From a run's inbox into its log: what others want of the run reaches the machine as input records.
//!
//! The pump runs beside the driver on the same task. It reads messages as they come, and fires the run's
//! token for a cancel, because that must not wait; the driver moves what arrived into the log between
//! two steps.

use std::{
    collections::{HashSet, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    CallId, CancellationToken, Inbox, InboxEntry, InboxRequest, PromptSource, Record, RecordBody, RunId,
    received_messages,
};

/// What came for one run.
pub(crate) struct Mailbox {
    inbox: Arc<dyn Inbox>,
    run: RunId,
    cancel: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Messages that were read, by their ids.
    seen: HashSet<String>,
    arrived: VecDeque<InboxEntry>,
    /// Stand in the log and may be removed from the inbox.
    settled: Vec<String>,
}

impl Mailbox {
    /// The mailbox of a run whose log has `records`: what they received already is not received again.
    pub(crate) fn new(
        inbox: Arc<dyn Inbox>,
        run: RunId,
        cancel: CancellationToken,
        records: &[Arc<Record>],
    ) -> Self {
        let settled: Vec<String> = received_messages(records).into_iter().collect();
        let state = State { seen: settled.iter().cloned().collect(), settled, ..State::default() };
        Self { inbox, run, cancel, state: Mutex::new(state) }
    }

    /// Reads what comes, for ever.
    pub(crate) async fn pump(&self) -> Infallible {
        loop {
            let changed = self.inbox.changed(&self.run);
            self.look().await;
            changed.await;
        }
    }

    /// Reads what is there now.
    pub(crate) async fn look(&self) {
        match self.inbox.waiting(&self.run).await {
            Ok(entries) => self.arrived(entries),
            Err(error) => tracing::warn!(run = %self.run, %error, "the run's inbox cannot be read"),
        }
    }

    /// The oldest message that arrived, as the records that carry it. `question` finds the call that a question is
    /// about, by its id and binding; an answer to one that is not open changes nothing.
    pub(crate) fn take(&self, question: impl Fn(&str, &str) -> Option<CallId>) -> Option<[RecordBody; 2]> {
        let mut state = self.state();
        let entry = state.arrived.pop_front()?;
        state.settled.push(entry.id.clone());
        let body = match entry.request {
            InboxRequest::Steer { message } => RecordBody::Prompted { message, source: PromptSource::Steer },
            InboxRequest::FollowUp { message } => {
                RecordBody::Prompted { message, source: PromptSource::FollowUp }
            }
            InboxRequest::Cancel { reason } => RecordBody::CancelRequested { reason },
            InboxRequest::Answer { request_id, binding, answer } => match question(&request_id, &binding) {
                Some(call) => RecordBody::ToolAnswered { call, answer },
                None => RecordBody::ClockRead,
            },
            // A request of a newer version is acknowledged and has no effect.
            _ => RecordBody::ClockRead,
        };
        Some([RecordBody::Received { id: entry.id }, body])
    }

    /// Removes what stands in the log. What cannot be removed stays, and is known by its record.
    pub(crate) async fn clear(&self) {
        let settled = std::mem::take(&mut self.state().settled);
        if settled.is_empty() {
            return;
        }
        if let Err(error) = self.inbox.remove(&self.run, &settled).await {
            tracing::warn!(run = %self.run, %error, "messages cannot be removed from the run's inbox");
        }
    }

    fn arrived(&self, entries: Vec<InboxEntry>) {
        let mut cancel = false;
        let mut state = self.state();
        for entry in entries {
            if state.seen.insert(entry.id.clone()) {
                cancel |= matches!(entry.request, InboxRequest::Cancel { .. });
                state.arrived.push_back(entry);
            }
        }
        drop(state);
        if cancel {
            self.cancel.cancel();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
