//! What was said to a run that was busy: it waits here until the model may read it.

use std::collections::VecDeque;

use archon_types::{Message, QueueMode, Speaker};
use serde::{Deserialize, Serialize};

/// Two queues: steers, which the model reads in its next request, and follow-ups, which it reads when
/// the run would end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Queues {
    steers: VecDeque<Prompt>,
    follow_ups: VecDeque<Prompt>,
    /// The next request holds a steer already.
    steered: bool,
}

/// What was said, and by whom.
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

    /// Whether somebody wants to be heard before more is done.
    pub(crate) fn is_steered(&self) -> bool {
        !self.steers.is_empty()
    }

    /// The next request is on its way.
    pub(crate) fn asked(&mut self) {
        self.steered = false;
    }

    /// The steers that the next request carries beside those that it has.
    pub(crate) fn take_steers(&mut self, mode: QueueMode) -> Vec<Prompt> {
        if mode == QueueMode::OneAtATime && self.steered {
            return Vec::new();
        }
        let taken = take(&mut self.steers, mode);
        self.steered |= !taken.is_empty();
        taken
    }

    /// The follow-ups that make another turn.
    pub(crate) fn take_follow_ups(&mut self, mode: QueueMode) -> Vec<Prompt> {
        take(&mut self.follow_ups, mode)
    }

    /// What waits, steers first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Prompt> {
        self.steers.iter().chain(&self.follow_ups)
    }

    /// Everything that the model never read.
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
