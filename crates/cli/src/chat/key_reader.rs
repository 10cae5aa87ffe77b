//! The reader of the terminal's keys. It has a thread of its own, so that each key has the time at which it was read,
//! however busy the screen is.

use std::{io, thread::JoinHandle};

use archon::{
    SystemClock,
    types::{Clock, Timestamp},
};
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use tokio::{
    runtime::Handle,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};

/// An event of the terminal, and the time at which it was read.
type TimedEvent = (io::Result<Event>, Timestamp);

/// The keys of the terminal. They are read until the value is dropped.
pub(crate) struct KeyReader {
    events: UnboundedReceiver<TimedEvent>,
    thread: Option<JoinHandle<()>>,
}

impl KeyReader {
    /// Begins to read. Call it in a runtime.
    pub(crate) fn start() -> Self {
        let (sender, events) = unbounded_channel();
        let runtime = Handle::current();
        let thread = std::thread::spawn(move || runtime.block_on(read(&sender)));
        Self { events, thread: Some(thread) }
    }

    /// Ends to read, so that another program may read the keys.
    pub(crate) async fn stop(&mut self) {
        self.events.close();
        if let Some(thread) = self.thread.take() {
            // The thread ends as soon as it sees that nobody receives.
            let _ = tokio::task::spawn_blocking(|| thread.join()).await;
        }
    }

    /// Returns the next event, and the time at which it was read; `None` if the terminal gives no more.
    pub(crate) async fn next(&mut self) -> Option<(Event, Timestamp)> {
        let (event, at) = self.events.recv().await?;
        Some((event.ok()?, at))
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
