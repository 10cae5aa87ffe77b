//! What was said to a run that was busy: it waits here until the model may read it.

use std::collections::VecDeque;

use archon_types::{Message, QueueMode};
use serde::{Deserialize, Serialize};

/// Two queues: steers, which the model reads in its next request, and follow-ups, which it reads when
/// the run would end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Queues {
    steers: VecDeque<Message>,
    follow_ups: VecDeque<Message>,
    /// The next request holds a steer already.
    steered: bool,
}

impl Queues {
    pub(crate) fn steer(&mut self, message: Message) {
        self.steers.push_back(message);
    }

    pub(crate) fn follow_up(&mut self, message: Message) {
        self.follow_ups.push_back(message);
    }

    /// Whether somebody wants to be heard before more is done.
    pub(crate) fn is_steered(&self) -> bool {
        !self.steers.is_empty()
    }

    /// The next request is on its way.
    pub(crate) fn asked(&mut self) {
        self.steered = false;
    }

    /// The steers that the next request carries beside those that it has.
    pub(crate) fn take_steers(&mut self, mode: QueueMode) -> Vec<Message> {
        if mode == QueueMode::OneAtATime && self.steered {
            return Vec::new();
        }
        let taken = take(&mut self.steers, mode);
        self.steered |= !taken.is_empty();
        taken
    }

    /// The follow-ups that make another turn.
    pub(crate) fn take_follow_ups(&mut self, mode: QueueMode) -> Vec<Message> {
        take(&mut self.follow_ups, mode)
    }

    /// Everything that the model never read.
    pub(crate) fn take_all(&mut self) -> Vec<Message> {
        let mut all = take(&mut self.steers, QueueMode::All);
        all.extend(self.follow_ups.drain(..));
        all
    }
}

fn take(queue: &mut VecDeque<Message>, mode: QueueMode) -> Vec<Message> {
    match mode {
        QueueMode::All => queue.drain(..).collect(),
        _ => queue.pop_front().into_iter().collect(),
    }
}
