//! A subscription without confirmations: a message counts as read when the reader asks for the next one.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use archon_types::{BusMessage, DeathCause};
use futures_core::Stream;

use super::{
    InMemoryBus,
    state::{Found, Item},
};

/// The maximum number of messages that are taken each time the bus is locked.
const BATCH: usize = 64;

pub(super) struct Subscription {
    pub(super) bus: InMemoryBus,
    pub(super) id: u64,
    pub(super) taken: VecDeque<Item>,
}

impl Stream for Subscription {
    type Item = BusMessage;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<BusMessage>> {
        loop {
            if let Some(item) = self.taken.pop_front() {
                if item.expires > self.bus.now() {
                    return Poll::Ready(Some(item.message));
                }
                self.bus.bury(item.message, DeathCause::Expired);
                continue;
            }
            let found = self.bus.state().take(self.id, BATCH, task.waker());
            match found {
                Found::Some(items) => self.taken = items,
                Found::Nothing => return Poll::Pending,
                Found::Closed => return Poll::Ready(None),
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let unread = std::mem::take(&mut self.taken);
        self.bus.state().unsubscribe(self.id, unread, &self.bus.0.options);
    }
}
