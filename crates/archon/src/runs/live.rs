//! A run at work in this process: its watchers, and notifications of its first record and its end.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use archon_types::{Event, RunError, RunId, Sink};
use tokio::sync::Notify;

use crate::watch::{EventSink, EventStream, channel};

/// The watchers of a run at work. Watchers may come and go; the run never waits for one.
pub(super) struct Live {
    run: RunId,
    state: Mutex<State>,
    has_begun: AtomicBool,
    first: Arc<Notify>,
    end: Notify,
}

struct State {
    /// The sinks of the watchers; `None` once the run has ended or is suspended.
    watchers: Option<Vec<EventSink>>,
    /// All events so far, kept until the first watcher subscribes, so that this watcher misses no event.
    /// Dropped if there are too many events.
    early: Option<EventStream>,
    /// The sequence number of the first emitted record of this run. Records of child runs do not count.
    from: Option<u64>,
    /// The reason why the run stopped without an outcome.
    failure: Option<Arc<RunError>>,
}

/// The maximum number of events that are kept for the first watcher.
const EARLY: usize = 256;

impl Live {
    pub(super) fn new(run: RunId) -> Self {
        let (sink, stream) = channel();
        let state = State { watchers: Some(vec![sink]), early: Some(stream), from: None, failure: None };
        Self {
            run,
            state: Mutex::new(state),
            has_begun: AtomicBool::new(false),
            first: Arc::default(),
            end: Notify::new(),
        }
    }

    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// Returns a future that completes once the run has its first new record.
    pub(super) fn begun(&self) -> impl Future<Output = ()> + use<> {
        let first = self.first.clone();
        async move { first.notified().await }
    }

    /// Returns true if the run has its first new record.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Returns the events from now on. The first watcher gets all events, with the sequence number of the
    /// first record. `None` if the run has ended or is suspended and already had a watcher.
    pub(super) fn subscribe(&self) -> Option<(EventStream, Option<u64>)> {
        let mut state = self.state();
        if let Some(stream) = state.early.take() {
            return Some((stream, state.from));
        }
        let watchers = state.watchers.as_mut()?;
        let (sink, stream) = channel();
        watchers.push(sink);
        Some((stream, None))
    }

    /// Waits until the run has ended or is suspended.
    pub(super) async fn ended(&self) {
        let end = self.end.notified();
        if self.state().watchers.is_some() {
            end.await;
        }
    }

    /// Records the reason why the run stopped without an outcome, for instance a journal that failed.
    pub(super) fn fail(&self, error: RunError) {
        self.state().failure = Some(Arc::new(error));
    }

    /// Returns the reason why the run stopped; each watcher gets a copy.
    pub(super) fn failure(&self) -> Option<RunError> {
        let error = self.state().failure.clone()?;
        Some(match &*error {
            RunError::Lost { run } => RunError::Lost { run: run.clone() },
            _ => RunError::Stopped { run: self.run.clone(), error },
        })
    }

    /// Ends the streams of all watchers after their queued events.
    pub(super) fn end(&self) {
        drop(self.state().watchers.take());
        self.end.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the state half-changed: every change is one call.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Live {
    fn emit(&self, event: Event) {
        let seq = match &event {
            Event::Record { run, record } => Some((*run == self.run).then_some(record.seq)),
            _ => None,
        };
        let mut state = self.state();
        state.from = state.from.or(seq.flatten());
        if state.early.as_ref().is_some_and(|early| early.len() >= EARLY) {
            state.early = None;
        }
        if let Some(watchers) = state.watchers.as_mut() {
            watchers.retain(EventSink::is_watched);
            watchers.iter().for_each(|watcher| watcher.emit(event.clone()));
        }
        drop(state);
        if seq.is_some() && !self.has_begun.swap(true, Ordering::Relaxed) {
            self.first.notify_one();
        }
    }
}
