//! A subscription whose reader must confirm each message.

use std::{
    collections::VecDeque,
    future::poll_fn,
    marker::PhantomData,
    task::{Context, Poll},
};

use archon_types::{BusMessage, DeathCause};

use super::{
    InMemoryBus,
    state::{Found, Item},
};

/// Reads messages one after the other: each delivery must end before the next one begins. A message that is not
/// confirmed is delivered again, at most [`BusOptions::retries`](crate::BusOptions::retries) times.
pub struct Receiver {
    bus: InMemoryBus,
    id: u64,
}

impl Receiver {
    pub(super) fn new(bus: InMemoryBus, id: u64) -> Self {
        Self { bus, id }
    }

    /// Returns the next message; `None` if the bus is closed and all messages were read.
    pub async fn next(&mut self) -> Option<Delivery<'_>> {
        let claim = poll_fn(|task| self.poll_claim(task)).await?;
        Some(Delivery { claim, _reader: PhantomData })
    }

    /// Polls for the next message like [`next`](Self::next), while other messages may still be unconfirmed.
    pub(super) fn poll_claim(&self, task: &mut Context<'_>) -> Poll<Option<Claim>> {
        loop {
            let item = match self.bus.state().claim(self.id, task.waker()) {
                Found::Some(item) => item,
                Found::Nothing => return Poll::Pending,
                Found::Closed => return Poll::Ready(None),
            };
            if item.expires > self.bus.now() {
                return Poll::Ready(Some(Claim { bus: self.bus.clone(), id: self.id, item: Some(item) }));
            }
            self.bus.bury(item.message, DeathCause::Expired);
            self.bus.state().confirm(self.id);
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.bus.state().unsubscribe(self.id, VecDeque::new(), &self.bus.0.options);
    }
}

/// A message that was delivered and is not yet confirmed.
pub(super) struct Claim {
    bus: InMemoryBus,
    id: u64,
    /// `None` once the message is confirmed.
    item: Option<Item>,
}

impl Claim {
    pub(super) fn message(&self) -> &BusMessage {
        match &self.item {
            Some(item) => &item.message,
            None => unreachable!("a message that was confirmed cannot be looked at"),
        }
    }

    pub(super) fn confirm(mut self) {
        self.item = None;
        self.bus.state().confirm(self.id);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.bus.state().put_back(self.id, item, &self.bus.0.options);
        }
    }
}

/// A message that must be confirmed. Dropping it does the same as [`retry`](Self::retry).
pub struct Delivery<'a> {
    claim: Claim,
    /// Borrows the receiver, so that it gives the next message only after this one.
    _reader: PhantomData<&'a mut Receiver>,
}

impl Delivery<'_> {
    /// Returns the message.
    pub fn message(&self) -> &BusMessage {
        self.claim.message()
    }

    /// Returns the number of earlier deliveries that were not confirmed.
    pub fn failures(&self) -> u32 {
        self.claim.item.as_ref().map_or(0, |item| item.failures)
    }

    /// Confirms the message, so that it is not delivered again.
    pub fn ack(self) {
        self.claim.confirm();
    }

    /// Leaves the message unconfirmed. It is delivered again, or becomes a dead letter after too many
    /// failures.
    pub fn retry(self) {}
}
