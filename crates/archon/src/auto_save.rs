//! Saves sessions into a store while their runs work.
//!
//! The logs of the runs are the source of truth; a saved session is a copy for other programs. A failed save
//! therefore loses only the copy: the failure is logged, and the next change saves again.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use archon_types::{CancellationToken, Clock, Event, Journal, RecordBody, SessionId, Sink};
use archon_views::{Session, SessionState, SessionStore};
use tokio::sync::Notify;

/// Saves the session of a run while the run works, and when the run ends. After a new message or summary, the
/// saver waits for a [pause](Self::with_pause) and then saves all changes together. A session without
/// messages is not saved. Clones share one saver.
///
/// ```
/// # #[cfg(feature = "jsonl")] {
/// use std::{sync::Arc, time::Duration};
///
/// use archon::{AutoSave, store::FileSystemSessionStore};
///
/// let store = Arc::new(FileSystemSessionStore::new("data/sessions"));
/// let saver = AutoSave::new(store).with_pause(Duration::from_millis(200));
/// # }
/// ```
#[derive(Clone)]
pub struct AutoSave {
    store: Arc<dyn SessionStore>,
    pause: Duration,
    states: Arc<Mutex<HashMap<SessionId, SessionState>>>,
}

impl AutoSave {
    /// Creates a saver that saves sessions into `store`, with a pause of 1 s.
    pub fn new(store: Arc<dyn SessionStore>) -> Self {
        Self { store, pause: Duration::from_secs(1), states: Arc::default() }
    }

    /// Sets the time between a change and its save, in which further changes are collected. Default 1 s.
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Returns the state of a session: with unsaved changes, being saved, or saved. `NoSession` for a session that
    /// this saver has not seen.
    pub fn state(&self, session: &SessionId) -> SessionState {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).get(session).copied().unwrap_or_default()
    }

    fn enter(&self, session: &SessionId, next: SessionState) {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let state = states.entry(session.clone()).or_default();
        if state.may_become(next) {
            *state = next;
        }
    }

    pub(crate) fn of(
        &self,
        session: SessionId,
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Saving> {
        Arc::new(Saving {
            saver: self.clone(),
            session,
            journal,
            clock,
            changed: Notify::new(),
            is_changed: AtomicBool::new(false),
        })
    }
}

archon_types::debug_fields!(AutoSave: pause);

/// Saves the session of one run while the run works.
pub(crate) struct Saving {
    saver: AutoSave,
    session: SessionId,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    changed: Notify,
    is_changed: AtomicBool,
}

impl Saving {
    /// Saves changes while `work` is running, and once more at its end.
    pub(crate) async fn save_while<T>(self: Arc<Self>, work: impl Future<Output = T>) -> T {
        let over = CancellationToken::new();
        // Ends the task below, also when this future is dropped.
        let end = over.clone().drop_guard();
        let saving = self.clone();
        let task = tokio::spawn(async move {
            while over.run_until_cancelled(saving.due()).await.is_some() {
                saving.save().await;
            }
        });
        let done = work.await;
        drop(end);
        // Waits for a save under way. If it panicked, the next save shows the reason.
        let _ = task.await;
        self.save().await;
        done
    }

    /// Waits for a change of the session, and then for the pause.
    async fn due(&self) {
        self.changed.notified().await;
        self.clock.sleep_until(self.clock.now() + self.saver.pause).await;
    }

    async fn save(&self) {
        if !self.is_changed.swap(false, Ordering::AcqRel) {
            return;
        }
        self.saver.enter(&self.session, SessionState::Saving);
        let next = match self.try_save().await {
            Ok(true) => SessionState::Saved,
            Ok(false) => SessionState::SessionActive,
            Err(error) => {
                tracing::warn!(session = %self.session, %error, "the session is not saved");
                SessionState::SessionActive
            }
        };
        self.saver.enter(&self.session, next);
    }

    /// Saves the session. Returns false if there is nothing to save.
    async fn try_save(&self) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
        let session = Session::read(&*self.journal, &self.session).await?;
        match session.filter(|session| session.loops.iter().any(|of| !of.messages.is_empty())) {
            Some(session) => self.saver.store.save(&session).await.map(|()| true).map_err(Into::into),
            None => Ok(false),
        }
    }
}

impl Sink for Saving {
    fn emit(&self, event: Event) {
        let Event::Record { record, .. } = event else { return };
        let is_news = matches!(
            record.body,
            RecordBody::MessageAdded { .. }
                | RecordBody::ConversationRestored { .. }
                | RecordBody::ModelCallFinished { .. }
                | RecordBody::ToolCallFinished { .. }
                | RecordBody::ToolCallRefused { .. }
                | RecordBody::HintAdded { .. }
                | RecordBody::Summarized(_)
                | RecordBody::RunFinished(_)
        );
        if is_news {
            self.saver.enter(&self.session, SessionState::SessionActive);
            self.is_changed.store(true, Ordering::Release);
            self.changed.notify_one();
        }
    }
}
