//! Queues of messages to a busy run, until the model may read them.

use std::collections::VecDeque;

use archon_types::{Message, QueueMode, Speaker};
use serde::{Deserialize, Serialize};

/// Two queues: steering messages, which the model reads in its next request, and follow-ups, which the
/// model reads when the run would end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Queues {
    steers: VecDeque<Prompt>,
    follow_ups: VecDeque<Prompt>,
    /// True if the next request already contains a steering message.
    steered: bool,
}

/// A message and its author.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Prompt {
    #[serde(flatten)]
    pub(crate) message: Message,
    #[serde(default)]
    pub(crate) by: Speaker,
}

impl Queues {
    pub(crate) fn steer(&mut self, prompt: Prompt) {
        self.steers.push_back(prompt);
    }

    pub(crate) fn follow_up(&mut self, prompt: Prompt) {
        self.follow_ups.push_back(prompt);
    }

    /// Returns true if a steering message waits.
    pub(crate) fn is_steered(&self) -> bool {
        !self.steers.is_empty()
    }

    /// Records that the next request was sent.
    pub(crate) fn note_request(&mut self) {
        self.steered = false;
    }

    /// Removes and returns the steering messages for the next request.
    pub(crate) fn take_steers(&mut self, mode: QueueMode) -> Vec<Prompt> {
        if mode == QueueMode::OneAtATime && self.steered {
            return Vec::new();
        }
        let taken = take(&mut self.steers, mode);
        self.steered |= !taken.is_empty();
        taken
    }

    /// Removes and returns the follow-ups that start another turn.
    pub(crate) fn take_follow_ups(&mut self, mode: QueueMode) -> Vec<Prompt> {
        take(&mut self.follow_ups, mode)
    }

    /// Returns the waiting messages, steering messages first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Prompt> {
        self.steers.iter().chain(&self.follow_ups)
    }

    /// Removes and returns all messages that the model has not read.
    pub(crate) fn take_all(&mut self) -> Vec<Prompt> {
        let mut all = take(&mut self.steers, QueueMode::All);
        all.extend(self.follow_ups.drain(..));
        all
    }
}

fn take(queue: &mut VecDeque<Prompt>, mode: QueueMode) -> Vec<Prompt> {
    match mode {
        QueueMode::All => queue.drain(..).collect(),
        _ => queue.pop_front().into_iter().collect(),
    }
}
