//! The event queue between a run and its watcher.
//!
//! A run never waits for a watcher. If the watcher is slow, deltas of the same kind are joined once
//! [`COALESCE_FROM`] events wait: text is appended, and of the progress of a call only the newest message
//! stays. Records are never joined or lost. So beyond the first events the queue holds the records of the run
//! and, between two records, one delta of each kind for each answer and each call.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use archon_types::{Delta, DeltaKind, Event, Sink};
use futures_core::Stream;

/// The number of waiting events from which on deltas are joined.
const COALESCE_FROM: usize = 64;

/// Creates a queue and its two ends: the sink that a run writes to, and the stream that a watcher reads.
pub(crate) fn channel() -> (EventSink, EventStream) {
    let queue = Arc::new(Mutex::new(Queue::default()));
    (EventSink(queue.clone()), EventStream(queue))
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Event>,
    watcher: Option<Waker>,
    closed: bool,
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    // A panic cannot leave the queue half-changed: every change is one call.
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sending end of the queue. Dropping it ends the stream after the queued events.
#[derive(Debug)]
pub(crate) struct EventSink(Arc<Mutex<Queue>>);

impl EventSink {
    /// Returns true if the stream still exists.
    pub(crate) fn is_watched(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl EventStream {
    /// Returns the number of events in the queue.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).events.len()
    }
}

impl Drop for EventSink {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.closed = true;
        if let Some(waker) = queue.watcher.take() {
            waker.wake();
        }
    }
}

impl Sink for EventSink {
    fn emit(&self, event: Event) {
        let mut queue = lock(&self.0);
        let event = match event {
            Event::Delta(delta) if queue.events.len() >= COALESCE_FROM => {
                match join(&mut queue.events, delta) {
                    Some(delta) => Event::Delta(delta),
                    None => return,
                }
            }
            other => other,
        };
        queue.events.push_back(event);
        let watcher = queue.watcher.take();
        drop(queue);
        if let Some(waker) = watcher {
            waker.wake();
        }
    }
}

/// Joins a delta to a waiting delta of the same kind that came after the last record. If there is none,
/// returns the delta.
fn join(events: &mut VecDeque<Event>, delta: Delta) -> Option<Delta> {
    let since = events.iter_mut().rev().map_while(|event| match event {
        Event::Delta(before) => Some(before),
        _ => None,
    });
    for before in since {
        if (&before.run, before.command, before.attempt) != (&delta.run, delta.command, delta.attempt) {
            continue;
        }
        match (&mut before.kind, &delta.kind) {
            (DeltaKind::Text { text }, DeltaKind::Text { text: more })
            | (DeltaKind::Thinking { text }, DeltaKind::Thinking { text: more }) => text.push_str(more),
            (
                DeltaKind::ToolCallArguments { index, text, .. },
                DeltaKind::ToolCallArguments { index: i, text: more, .. },
            ) if index == i => {
                text.push_str(more);
            }
            (DeltaKind::ToolProgress { call, .. }, DeltaKind::ToolProgress { call: c, .. })
            | (DeltaKind::ToolPartialResult { call, .. }, DeltaKind::ToolPartialResult { call: c, .. })
                if call == c =>
            {
                *before = delta;
            }
            _ => continue,
        }
        return None;
    }
    Some(delta)
}

/// The receiving end of the queue: the events of the run in order, until the run has ended.
#[derive(Debug)]
pub(crate) struct EventStream(Arc<Mutex<Queue>>);

impl Stream for EventStream {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut queue = lock(&self.0);
        if let Some(event) = queue.events.pop_front() {
            return Poll::Ready(Some(event));
        }
        if queue.closed {
            return Poll::Ready(None);
        }
        queue.watcher = Some(task.waker().clone());
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use archon_types::{CallId, CommandId, Record, RecordBody, RunId, Timestamp, ToolResult};
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn text(text: &str, offset: u64) -> Event {
        let (run, command) = (RunId::new("r"), CommandId(0));
        let kind = DeltaKind::Text { text: text.into() };
        Event::Delta(Delta { run, command, attempt: 0, offset, kind })
    }

    fn record(seq: u64) -> Event {
        let record = Arc::new(Record { seq, at: Timestamp::default(), body: RecordBody::Resumed });
        Event::Record { run: RunId::new("r"), record }
    }

    #[test]
    fn a_slow_watcher_gets_every_record_and_all_of_the_text() {
        let (sink, mut stream) = channel();
        for i in 0..1000u64 {
            sink.emit(text("ab", 2 * i));
            if i % 100 == 99 {
                sink.emit(record(i / 100));
            }
        }
        drop(sink);
        let (mut all, mut records, mut events) = (String::new(), Vec::new(), 0);
        while let Some(Some(event)) = stream.next().now_or_never() {
            events += 1;
            match event {
                Event::Delta(Delta { kind: DeltaKind::Text { text }, offset, .. }) => {
                    assert_eq!(offset, all.len() as u64, "a joined delta keeps the place where it began");
                    all.push_str(&text);
                }
                Event::Record { record, .. } => records.push(record.seq),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(all, "ab".repeat(1000));
        assert_eq!(records, (0..10).collect::<Vec<_>>());
        assert!(events < 100, "{events} events");
    }

    #[test]
    fn many_that_speak_at_once_do_not_fill_the_queue_of_a_slow_watcher() {
        let (sink, mut stream) = channel();
        let delta = |kind| {
            Event::Delta(Delta { run: RunId::new("r"), command: CommandId(0), attempt: 0, offset: 0, kind })
        };
        for n in 0..1000u64 {
            for index in 0..2 {
                let text = format!("{n},");
                let call = CallId::new(CommandId(0), index);
                sink.emit(delta(DeltaKind::ToolCallArguments { index, id: "c".into(), text: text.clone() }));
                sink.emit(delta(DeltaKind::ToolProgress { call, text: text.clone() }));
                sink.emit(delta(DeltaKind::ToolPartialResult {
                    call,
                    result: Box::new(ToolResult::success(text)),
                }));
            }
        }
        drop(sink);
        let mut events = Vec::new();
        while let Some(Some(Event::Delta(delta))) = stream.next().now_or_never() {
            events.push(delta.kind);
        }
        assert!(events.len() <= COALESCE_FROM + 6, "{} events", events.len());
        let whole: String = (0..1000).map(|n| format!("{n},")).collect();
        for index in 0..2 {
            let call = CallId::new(CommandId(0), index);
            let text: String = events
                .iter()
                .filter_map(|kind| match kind {
                    DeltaKind::ToolCallArguments { index: i, text, .. } if *i == index => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(text, whole);
            let newest =
                |kind: &&DeltaKind| matches!(kind, DeltaKind::ToolProgress { call: c, .. } if *c == call);
            let progress = events.iter().rfind(newest);
            assert_eq!(progress, Some(&DeltaKind::ToolProgress { call, text: "999,".into() }));
        }
    }

    #[test]
    fn the_stream_waits_while_the_run_is_alive_and_ends_with_it() {
        let (sink, mut stream) = channel();
        assert_eq!(stream.next().now_or_never(), None);
        sink.emit(record(0));
        assert_eq!(stream.next().now_or_never(), Some(Some(record(0))));
        drop(sink);
        assert_eq!(stream.next().now_or_never(), Some(None));
    }
}
