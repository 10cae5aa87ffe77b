//! The audit of a bus: every message that the bus accepts or refuses, and its result.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use archon_types::{BusMessage, DeathCause};

/// Records the messages of a bus.
///
/// The bus calls the audit in the order of the messages, and waits for it. So an audit that writes to a
/// slow disk or service should pass the message on and return.
///
/// ```
/// use archon_bus::{BusAudit, Fate};
/// use archon_types::BusMessage;
///
/// /// Prints messages that could not be delivered.
/// struct Lost;
///
/// impl BusAudit for Lost {
///     fn note(&self, message: &BusMessage, fate: Fate) {
///         if let Fate::Dead(cause) = fate {
///             eprintln!("lost, from {} to {}: {cause:?}", message.sender_id, message.receiver_id);
///         }
///     }
/// }
/// ```
pub trait BusAudit: Send + Sync {
    /// Records a message that was accepted, answered or could not be delivered.
    fn note(&self, message: &BusMessage, fate: Fate);
}

/// The fate of a message: accepted, answered, or not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// The bus accepted the message and queued it for this many subscriptions.
    Accepted(usize),
    /// The message was an answer, and its requester got it.
    Answered,
    /// The message became a dead letter.
    Dead(DeathCause),
}

/// An audit that keeps the last messages in memory.
#[derive(Debug)]
pub struct InMemoryAudit {
    most: usize,
    messages: Mutex<VecDeque<(BusMessage, Fate)>>,
}

impl InMemoryAudit {
    /// Creates an audit that keeps at most `most` messages, the newest ones; 0 counts as 1.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), messages: Mutex::default() }
    }

    /// Returns the messages with their fates, oldest first.
    pub fn messages(&self) -> Vec<(BusMessage, Fate)> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl BusAudit for InMemoryAudit {
    fn note(&self, message: &BusMessage, fate: Fate) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() == self.most {
            messages.pop_front();
        }
        messages.push_back((message.clone(), fate));
    }
}
