//! A subscription whose reader confirms each message.

use std::{collections::VecDeque, future::poll_fn, task::Poll};

use archon_types::{BusMessage, DeathCause};

use super::{
    LocalBus,
    state::{Found, Item},
};

/// Reads messages one after the other, each until it is confirmed.
pub struct Receiver {
    bus: LocalBus,
    id: u64,
}

impl Receiver {
    pub(super) fn new(bus: LocalBus, id: u64) -> Self {
        Self { bus, id }
    }

    /// The next message; none when the bus was closed and everything is read.
    pub async fn next(&mut self) -> Option<Delivery<'_>> {
        loop {
            let found = poll_fn(|task| match self.bus.state().take(self.id, 1, task.waker()) {
                Found::Items(mut items) => Poll::Ready(items.pop_front()),
                Found::Nothing => Poll::Pending,
                Found::Closed => Poll::Ready(None),
            });
            let item = found.await?;
            if item.expires > self.bus.now() {
                return Some(Delivery { receiver: self, item: Some(item) });
            }
            self.bus.bury(item.message, DeathCause::Expired);
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.bus.state().unsubscribe(self.id, VecDeque::new(), &self.bus.0.options);
    }
}

/// A message that is to be confirmed. Dropping it unconfirmed is a failure, as [`retry`](Self::retry) is.
pub struct Delivery<'a> {
    receiver: &'a mut Receiver,
    item: Option<Item>,
}

impl Delivery<'_> {
    /// The message.
    pub fn message(&self) -> &BusMessage {
        // It is there until the delivery is over, and then nobody can ask.
        match &self.item {
            Some(item) => &item.message,
            None => unreachable!("a delivery that is over cannot be looked at"),
        }
    }

    /// How often it was delivered before.
    pub fn failures(&self) -> u32 {
        self.item.as_ref().map_or(0, |item| item.failures)
    }

    /// It was read and dealt with.
    pub fn ack(mut self) {
        self.item = None;
    }

    /// It could not be dealt with, and is wanted again.
    pub fn retry(self) {}
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            let bus = &self.receiver.bus;
            bus.state().put_back(self.receiver.id, item, &bus.0.options);
        }
    }
}
