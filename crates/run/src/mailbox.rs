//! Moves the messages of a run's inbox into its log, as input records of the machine.
//!
//! The mailbox reads messages as they arrive, and cancels the run's token at once for a cancel. The driver
//! appends the messages between two steps.

use std::{
    collections::{HashSet, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    BoxFuture, CancellationToken, Context, Inbox, InboxEntry, InboxRequest, Record, RecordBody, RunId,
    SharedMode, received_messages,
};

/// The effect of an inbox message on its run.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it is made and used at once, never kept")]
#[non_exhaustive]
pub enum InboxEffect {
    /// Append this record after the `InboxMessageReceived` record of the message.
    Record(RecordBody),
    /// Append nothing, and remove the message from the inbox.
    Nothing,
    /// The run does not take messages of this kind, so the message stays in the inbox.
    NotMeant,
}

/// The messages that arrived in the inbox of one run.
pub struct Mailbox {
    inbox: Arc<dyn Inbox>,
    run: RunId,
    cancel: CancellationToken,
    /// The mode of the session; `None` in a run that another run called.
    mode: Option<SharedMode>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The ids of the messages that were read.
    seen: HashSet<String>,
    arrived: VecDeque<InboxEntry>,
    /// The ids of the messages that are in the log or have no effect, and may be removed from the inbox.
    settled: Vec<String>,
}

impl Mailbox {
    /// Creates the mailbox of the run that `context` names. `records` is the log of this run; messages in it are
    /// not received again. A cancel cancels the token of `context`, so this token must belong to this run
    /// alone. Returns `None` without an inbox.
    pub fn of(
        inbox: Option<Arc<dyn Inbox>>,
        context: &Context,
        records: &[Arc<Record>],
    ) -> Option<Arc<Self>> {
        let inbox = inbox?;
        let settled: Vec<String> = received_messages(records).into_iter().collect();
        let state = State { seen: settled.iter().cloned().collect(), settled, ..State::default() };
        let (run, cancel) = (context.run.clone(), context.cancel.clone());
        let mode = (context.depth == 0).then(|| context.mode.clone());
        Some(Arc::new(Self { inbox, run, cancel, mode, state: Mutex::new(state) }))
    }

    /// Reads messages as they arrive. A change of the mode reaches the calls under way before it is in the log. This
    /// function never returns.
    pub async fn pump(&self) -> Infallible {
        loop {
            let changed = self.changed();
            self.read_inbox().await;
            self.share_mode();
            changed.await;
        }
    }

    /// Returns a future that completes when a message may have arrived since this call.
    pub fn changed(&self) -> BoxFuture<'_, ()> {
        self.inbox.changed(&self.run)
    }

    /// Reads the messages that are in the inbox now.
    pub async fn read_inbox(&self) {
        match self.inbox.waiting(&self.run).await {
            Ok(entries) => self.arrived(entries),
            Err(error) => tracing::warn!(run = %self.run, %error, "the run's inbox cannot be read"),
        }
    }

    /// Takes messages, oldest first, until `meaning` returns a record for one, and returns the records to append.
    /// `None` if there is no such message.
    pub fn take(&self, mut meaning: impl FnMut(InboxEntry) -> InboxEffect) -> Option<Vec<RecordBody>> {
        loop {
            let entry = self.state().arrived.pop_front()?;
            let id = entry.id.clone();
            let effect = meaning(entry);
            if matches!(effect, InboxEffect::NotMeant) {
                continue;
            }
            self.state().settled.push(id.clone());
            if let InboxEffect::Record(body) = effect {
                return Some(vec![RecordBody::InboxMessageReceived { message_id: id }, body]);
            }
        }
    }

    /// Removes from the inbox the messages that are in the log or have no effect. If this fails, a message
    /// stays in the inbox, and its record in the log prevents that it is received twice.
    pub async fn clear(&self) {
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

    /// Sets the mode of the session to the one in the latest message that changes it.
    fn share_mode(&self) {
        let mode = |entry: &InboxEntry| match entry.request {
            InboxRequest::SetMode { mode } => Some(mode),
            _ => None,
        };
        let last = self.state().arrived.iter().rev().find_map(mode);
        if let (Some(shared), Some(mode)) = (&self.mode, last) {
            shared.set(mode);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a copy of `context` with a child of its cancellation token: a cancel from the inbox ends only this run.
pub fn cancelled_alone(context: &Context) -> Context {
    let mut own = context.clone();
    own.cancel = context.cancel.child_token();
    own
}

archon_types::debug_fields!(Mailbox: run);
