//! Audit of a bus: every message that it accepts or refuses, and its fate.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use archon_types::{BusMessage, DeathCause};

/// Records the messages of a bus.
///
/// The bus calls it in the order of the messages while it holds its lock. An implementation that writes to
/// something slow should hand the message over and return.
pub trait BusAudit: Send + Sync {
    /// A message was accepted, or could not be delivered.
    fn note(&self, message: &BusMessage, fate: Fate);
}

/// Fate of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// Accepted; it waits for this many subscriptions.
    Accepted(usize),
    /// It was an answer, and the requester got it.
    Answered,
    /// It became a dead letter.
    Dead(DeathCause),
}

/// Keeps the last messages in memory.
#[derive(Debug)]
pub struct InMemoryAudit {
    most: usize,
    said: Mutex<VecDeque<(BusMessage, Fate)>>,
}

impl InMemoryAudit {
    /// Creates one that keeps `most` messages; the oldest go first.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), said: Mutex::default() }
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> Vec<(BusMessage, Fate)> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl BusAudit for InMemoryAudit {
    fn note(&self, message: &BusMessage, fate: Fate) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() == self.most {
            said.pop_front();
        }
        said.push_back((message.clone(), fate));
    }
}
