//! The queue between a run and whoever watches it.
//!
//! A run never waits for a watcher. When the watcher is slow, deltas of the same kind are joined
//! once [`COALESCE_FROM`] events wait; records are kept one by one and never lost. The queue is
//! bounded by the run: it holds at most its records and one delta of each kind between two of them.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use archon_types::{Delta, DeltaKind, Event, Sink};
use futures_core::Stream;

/// From how many waiting events on deltas are joined.
const COALESCE_FROM: usize = 64;

/// A queue and its two ends: the sink that a run writes to, and the stream that a watcher reads.
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
    // A panic elsewhere leaves the queue whole: every change to it is one call.
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The run's end. Closing it ends the stream after what is still queued.
#[derive(Debug)]
pub(crate) struct EventSink(Arc<Mutex<Queue>>);

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
                match join(queue.events.back_mut(), delta) {
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

/// Appends a delta to the one before it where both are the same kind of text.
fn join(last: Option<&mut Event>, delta: Delta) -> Option<Delta> {
    let Some(Event::Delta(before)) = last else { return Some(delta) };
    if (&before.run, before.command, before.attempt) != (&delta.run, delta.command, delta.attempt) {
        return Some(delta);
    }
    match (&mut before.kind, &delta.kind) {
        (DeltaKind::Text { text }, DeltaKind::Text { text: more })
        | (DeltaKind::Thinking { text }, DeltaKind::Thinking { text: more }) => text.push_str(more),
        (DeltaKind::Arguments { index, text, .. }, DeltaKind::Arguments { index: i, text: more, .. })
            if index == i =>
        {
            text.push_str(more);
        }
        _ => return Some(delta),
    }
    None
}

/// The watcher's end: the run's events in order, until the run has ended.
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
    use archon_types::{CommandId, Record, RecordBody, RunId, Timestamp};
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
    fn the_stream_waits_while_the_run_is_alive_and_ends_with_it() {
        let (sink, mut stream) = channel();
        assert_eq!(stream.next().now_or_never(), None);
        sink.emit(record(0));
        assert_eq!(stream.next().now_or_never(), Some(Some(record(0))));
        drop(sink);
        assert_eq!(stream.next().now_or_never(), Some(None));
    }
}
