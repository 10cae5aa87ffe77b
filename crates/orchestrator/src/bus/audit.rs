//! The central list of all messages: every message that a bus takes or refuses, and what became of it.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use archon_types::{BusMessage, DeathCause};

/// Writes down what is said on a bus.
///
/// It is called in the order of the messages, while the bus stands still: whoever writes to a slow place hands the
/// message over and returns.
pub trait BusAudit: Send + Sync {
    /// A message was accepted, or could not be delivered.
    fn said(&self, message: &BusMessage, fate: Fate);
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fate {
    /// It waits for so many subscriptions.
    Accepted(usize),
    /// Who asked for it has it.
    Answered,
    /// It is a dead letter.
    Dead(DeathCause),
}

/// The last messages, in memory.
#[derive(Debug)]
pub struct MemoryAudit {
    most: usize,
    said: Mutex<VecDeque<(BusMessage, Fate)>>,
}

impl MemoryAudit {
    /// Keeps so many; the oldest go first.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), said: Mutex::default() }
    }

    /// What was said, the oldest first.
    pub fn messages(&self) -> Vec<(BusMessage, Fate)> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl BusAudit for MemoryAudit {
    fn said(&self, message: &BusMessage, fate: Fate) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() == self.most {
            said.pop_front();
        }
        said.push_back((message.clone(), fate));
    }
}
