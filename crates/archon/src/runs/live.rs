//! A run that this process works on: its watchers, and the moment at which its first record is kept.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use archon_types::{Event, Sink};
use tokio::sync::Notify;

use crate::watch::{EventSink, EventStream, channel};

/// The watchers of a run under way. They come and go; the run never waits for one.
pub(super) struct Live {
    /// None once the run rests.
    watchers: Mutex<Option<Vec<EventSink>>>,
    has_begun: AtomicBool,
    first: Arc<Notify>,
}

impl Live {
    pub(super) fn new() -> Self {
        let watchers = Mutex::new(Some(Vec::new()));
        Self { watchers, has_begun: AtomicBool::new(false), first: Arc::default() }
    }

    /// Ready once the run has its first new record.
    pub(super) fn begun(&self) -> impl Future<Output = ()> + use<> {
        let first = self.first.clone();
        async move { first.notified().await }
    }

    /// What happens from now on; none if the run rests by now.
    pub(super) fn subscribe(&self) -> Option<EventStream> {
        let mut watchers = self.watchers();
        let watchers = watchers.as_mut()?;
        let (sink, stream) = channel();
        watchers.push(sink);
        Some(stream)
    }

    /// Ends the streams of all watchers, after what they have still to read.
    pub(super) fn end(&self) {
        drop(self.watchers().take());
    }

    fn watchers(&self) -> MutexGuard<'_, Option<Vec<EventSink>>> {
        // A panic elsewhere leaves the list whole: every change to it is one call.
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Live {
    fn emit(&self, event: Event) {
        let is_record = matches!(event, Event::Record { .. });
        if let Some(watchers) = self.watchers().as_mut() {
            watchers.retain(EventSink::is_watched);
            watchers.iter().for_each(|watcher| watcher.emit(event.clone()));
        }
        if is_record && !self.has_begun.swap(true, Ordering::Relaxed) {
            self.first.notify_one();
        }
    }
}
