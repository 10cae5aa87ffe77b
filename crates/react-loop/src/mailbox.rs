//! Moves the messages of a run's inbox into its log, as input records of the machine.
//!
//! The pump runs next to the driver on the same task. It reads messages as they arrive, and fires the run's
//! cancellation token at once for a cancel. The driver appends the other messages between two steps.

use std::{
    collections::{HashSet, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    CallId, CancellationToken, Inbox, InboxEntry, InboxRequest, PromptSource, Record, RecordBody, RunId,
    received_messages,
};

/// The messages that arrived for one run.
pub(crate) struct Mailbox {
    inbox: Arc<dyn Inbox>,
    run: RunId,
    cancel: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Ids of the messages that were read.
    seen: HashSet<String>,
    arrived: VecDeque<InboxEntry>,
    /// Ids of messages that are in the log and may be removed from the inbox.
    settled: Vec<String>,
}

impl Mailbox {
    /// Makes the mailbox of a run whose log has `records`. Messages that the log has already are not received
    /// again.
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

    /// Reads messages as they arrive; never returns.
    pub(crate) async fn pump(&self) -> Infallible {
        loop {
            let changed = self.inbox.changed(&self.run);
            self.look().await;
            changed.await;
        }
    }

    /// Reads the messages that are in the inbox now.
    pub(crate) async fn look(&self) {
        match self.inbox.waiting(&self.run).await {
            Ok(entries) => self.arrived(entries),
            Err(error) => tracing::warn!(run = %self.run, %error, "the run's inbox cannot be read"),
        }
    }

    /// Takes the oldest message that arrived and returns it as the records to append. `question` finds the
    /// call of a question by its id and binding; an answer to a question that is not open changes nothing.
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

    /// Removes the messages that are in the log from the inbox. If that fails, a message stays and its record
    /// prevents that it is received twice.
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
