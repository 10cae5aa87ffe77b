//! What people say to a run: when it begins, while it works, and when it would end.

use archon_types::{AgentMessage, Message, OutcomeStatus, PromptSource, ToolMode};

use super::{Phase, ReactMachine};
use crate::{text_mode, window::is_paired};

impl ReactMachine {
    pub(super) fn prompted(&mut self, message: &AgentMessage, source: PromptSource) {
        // Anything but a person's words could break a pair of a call and its result.
        let Some(message @ Message::User(_)) = message.as_llm() else { return };
        match (&self.phase, source) {
            (Phase::Fresh, _) => {
                let message = match self.config.tool_mode {
                    ToolMode::Text => text_mode::first_prompt(message, &self.config),
                    _ => message.clone(),
                };
                self.window.push_prompt(message);
                self.begun = true;
                self.ready();
            }
            (Phase::Ready, PromptSource::Prompt) => self.window.push_prompt(message.clone()),
            (_, PromptSource::FollowUp) => self.queues.follow_up(message.clone()),
            _ => self.queues.steer(message.clone()),
        }
        match self.phase {
            Phase::Ready => self.ready(),
            Phase::Finishing(_) => self.go_on_if_asked(),
            _ => {}
        }
    }

    /// The run begins with a conversation that was kept elsewhere.
    pub(super) fn restored(&mut self, messages: &[Message]) {
        if !matches!(self.phase, Phase::Fresh) || !is_paired(messages) {
            return;
        }
        for message in messages {
            match message {
                Message::User(_) => self.window.push_prompt(message.clone()),
                _ => self.window.push(message.clone()),
            }
        }
        self.answer_what_is_there();
    }

    /// A run without a prompt of its own answers what its conversation ends with.
    pub(super) fn answer_what_is_there(&mut self) {
        let last = self.window.messages().iter().last();
        if self.answers_history && last.is_some_and(|last| !matches!(**last, Message::Assistant(_))) {
            self.begun = true;
            self.phase = Phase::Ready;
        }
    }

    /// It is the model's turn, and it reads the steers that wait.
    pub(super) fn ready(&mut self) {
        self.phase = match self.begun {
            true => Phase::Ready,
            false => Phase::Fresh,
        };
        for message in self.queues.take_steers(self.config.steers) {
            self.window.push_prompt(message);
        }
    }

    /// A run that has its answer goes on if somebody still wants something.
    pub(super) fn go_on_if_asked(&mut self) {
        if !matches!(&self.phase, Phase::Finishing(outcome) if outcome.is_finished()) {
            return;
        }
        let mut wanted = self.queues.take_steers(self.config.steers);
        if wanted.is_empty() {
            wanted = self.queues.take_follow_ups(self.config.follow_ups);
        }
        if !wanted.is_empty() {
            self.phase = Phase::Ready;
        }
        for message in wanted {
            self.window.push_prompt(message);
        }
    }

    /// Somebody refused to let the run go on.
    pub(super) fn stopped(&mut self, status: OutcomeStatus, why: String) {
        if !matches!(self.phase, Phase::Ended(_)) {
            let mut outcome = self.outcome(status);
            outcome.error = Some(why);
            self.phase = Phase::Finishing(Box::new(outcome));
        }
    }
}
