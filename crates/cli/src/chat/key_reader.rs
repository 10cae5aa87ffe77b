//! The reader of the terminal's keys. It has a thread of its own, so that each key has the time at which it was read,
//! however busy the screen is.

use std::io;

use archon::{
    SystemClock,
    types::{Clock, Timestamp},
};
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use tokio::{
    runtime::Handle,
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
};

/// An event of the terminal, and the time at which it was read.
type TimedEvent = (io::Result<Event>, Timestamp);

/// The keys of the terminal. They are read until the value is stopped or dropped.
pub(crate) struct KeyReader {
    events: UnboundedReceiver<TimedEvent>,
    /// Completes when the reader has ended; `None` after a wait for it.
    ended: Option<oneshot::Receiver<()>>,
}

impl KeyReader {
    /// Begins to read. Call it in a runtime.
    pub(crate) fn start() -> Self {
        let (sender, events) = unbounded_channel();
        let (reader, ended) = oneshot::channel::<()>();
        let runtime = Handle::current();
        std::thread::spawn(move || {
            runtime.block_on(read(&sender));
            drop(reader);
        });
        Self { events, ended: Some(ended) }
    }

    /// Returns the next event, and the time at which it was read; `None` if the terminal gives no more.
    pub(crate) async fn next(&mut self) -> Option<(Event, Timestamp)> {
        let (event, at) = self.events.recv().await?;
        Some((event.ok()?, at))
    }

    /// Waits until no key is read any more. Keys that were read and not returned are lost.
    pub(crate) async fn stop(&mut self) {
        self.events.close();
        // The closed channel ends at once, and its reader could still take a key that is meant for the next one.
        if let Some(ended) = self.ended.take() {
            let _ = ended.await;
        }
    }
}

async fn read(sender: &UnboundedSender<TimedEvent>) {
    let mut events = EventStream::new();
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = sender.closed() => None,
        };
        let Some(event) = event else { return };
        if sender.send((event, SystemClock.now())).is_err() {
            return;
        }
    }
}
