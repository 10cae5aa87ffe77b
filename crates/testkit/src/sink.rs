//! A sink that keeps all events that it was given, for tests of the events that a watcher gets.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archon_types::{Delta, DeltaKind, Event, Record, Sink};

/// A sink that keeps every event in order. Clones share one list.
///
/// ```
/// use archon_testkit::RecordingSink;
///
/// let sink = RecordingSink::new();
/// assert!(sink.events().is_empty());
/// ```
#[derive(Clone, Default)]
pub struct RecordingSink(Arc<Mutex<Vec<Event>>>);

impl RecordingSink {
    /// Creates a sink without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns all events so far.
    pub fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    /// Returns the records so far, without the deltas.
    pub fn records(&self) -> Vec<Arc<Record>> {
        let record = |event: &Event| match event {
            Event::Record { record, .. } => Some(record.clone()),
            _ => None,
        };
        self.lock().iter().filter_map(record).collect()
    }

    /// Returns the text deltas so far, one by one.
    pub fn texts(&self) -> Vec<String> {
        let text = |event: &Event| match event {
            Event::Delta(Delta { kind: DeltaKind::Text { text }, .. }) => Some(text.clone()),
            _ => None,
        };
        self.lock().iter().filter_map(text).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for RecordingSink {
    fn emit(&self, event: Event) {
        self.lock().push(event);
    }
}

#[cfg(test)]
mod tests {
    use archon_types::{CommandId, RunId};

    use super::*;

    #[test]
    fn texts_are_the_text_deltas_in_order() {
        let sink = RecordingSink::new();
        let texts = ["a", "b"];
        let thinking = DeltaKind::Thinking { text: "hm".into() };
        for kind in texts.map(|t| DeltaKind::Text { text: t.into() }).into_iter().chain([thinking]) {
            let run = RunId::from("r");
            sink.emit(Event::Delta(Delta { run, command: CommandId(0), attempt: 0, offset: 0, kind }));
        }
        assert_eq!(sink.texts(), texts);
        assert_eq!(sink.events().len(), 3);
        assert!(sink.records().is_empty());
    }
}
