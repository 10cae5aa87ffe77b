//! A run that this process works on: its watchers, and the moment at which its first record is kept.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use archon_types::{Event, RunError, RunId, Sink};
use tokio::sync::Notify;

use crate::watch::{EventSink, EventStream, channel};

/// The watchers of a run under way. They come and go; the run never waits for one.
pub(super) struct Live {
    run: RunId,
    state: Mutex<State>,
    has_begun: AtomicBool,
    first: Arc<Notify>,
    rests: Notify,
}

struct State {
    /// None once the run rests.
    watchers: Option<Vec<EventSink>>,
    /// All events so far, for the first watcher: nothing is missed between the start of a run and the look at it.
    /// Given up where nobody comes.
    early: Option<EventStream>,
    /// The sequence number of the first record of the run that is among the events.
    from: Option<u64>,
    /// Why the run stopped without an end.
    failure: Option<Arc<RunError>>,
}

/// Events that are kept for a first watcher.
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
            rests: Notify::new(),
        }
    }

    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// Ready once the run has its first new record.
    pub(super) fn begun(&self) -> impl Future<Output = ()> + use<> {
        let first = self.first.clone();
        async move { first.notified().await }
    }

    /// Whether the run has its first new record.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// What happens from now on, or for the first watcher from the beginning: then the sequence number of the first
    /// record comes with it. None if the run rests by now, and somebody watched it.
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

    /// Ready once the run rests.
    pub(super) async fn ended(&self) {
        let rests = self.rests.notified();
        if self.state().watchers.is_some() {
            rests.await;
        }
    }

    /// Keeps why the run stopped without an end, as when its log cannot be written.
    pub(super) fn fail(&self, error: RunError) {
        self.state().failure = Some(Arc::new(error));
    }

    /// Why the run stopped, for each watcher.
    pub(super) fn failure(&self) -> Option<RunError> {
        let error = self.state().failure.clone()?;
        Some(match &*error {
            RunError::Lost { run } => RunError::Lost { run: run.clone() },
            _ => RunError::Stopped { run: self.run.clone(), error },
        })
    }

    /// Ends the streams of all watchers, after what they have still to read.
    pub(super) fn end(&self) {
        drop(self.state().watchers.take());
        self.rests.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the state whole: every change to it is one call.
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
