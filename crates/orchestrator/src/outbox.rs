//! The queue of a team's messages to its bus, so that no member waits for the bus. A full queue drops
//! messages, because the log is the only truth.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use archon_types::{BoxFuture, Bus, BusError, BusMessage};

/// Maximum number of messages that wait for a slow bus; further messages are dropped.
const MOST: usize = 1_024;

/// Messages on their way to a bus, oldest first.
pub(crate) struct Outbox {
    bus: Option<Arc<dyn Bus>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<BusMessage>,
    sending: Option<BoxFuture<'static, Result<(), BusError>>>,
}

impl Outbox {
    pub(crate) fn new(bus: Option<Arc<dyn Bus>>) -> Self {
        Self { bus, state: Mutex::default() }
    }

    /// Appends a message to the queue, and sends as many messages as the bus takes without a wait.
    pub(crate) fn send(&self, message: BusMessage) {
        if self.bus.is_none() {
            return;
        }
        let mut state = self.state();
        if state.waiting.len() >= MOST {
            tracing::warn!(to = %message.receiver_id, "the bus is slower than the team; this message is not sent");
            return;
        }
        state.waiting.push_back(message);
        drop(state);
        let _ = self.poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Continues to send the queued messages. Returns `Ready` when the queue is empty.
    pub(crate) fn poll(&self, task: &mut Context<'_>) -> Poll<()> {
        let Some(bus) = &self.bus else { return Poll::Ready(()) };
        let mut state = self.state();
        loop {
            if state.sending.is_none() {
                let Some(message) = state.waiting.pop_front() else { return Poll::Ready(()) };
                let bus = bus.clone();
                state.sending = Some(Box::pin(async move { bus.publish(message).await }));
            }
            let sent = state.sending.as_mut().map(|sending| sending.as_mut().poll(task));
            match sent {
                Some(Poll::Pending) => return Poll::Pending,
                Some(Poll::Ready(Err(error))) => {
                    tracing::debug!(%error, "the bus did not deliver a message of the team")
                }
                _ => {}
            }
            state.sending = None;
        }
    }

    /// Returns the number of messages that are not sent yet.
    pub(crate) fn len(&self) -> usize {
        let state = self.state();
        state.waiting.len() + usize::from(state.sending.is_some())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
