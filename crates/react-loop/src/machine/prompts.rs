//! Messages of people to a run: at its start, during its work, and when it would end.

use archon_types::{AgentMessage, FailureKind, Message, OutcomeStatus, PromptSource, Speaker, ToolMode};

use super::{Phase, ReactMachine};
use crate::{queues::Prompt, text_mode, window::is_paired};

impl ReactMachine {
    pub(super) fn prompted(&mut self, message: &AgentMessage, source: PromptSource) {
        // Only user messages are accepted. Others could separate a call from its result.
        let Some(said @ Message::User(_)) = message.as_llm() else { return };
        let by = self.speaker(message);
        if source == PromptSource::Prompt {
            self.chain.note_prompt(said.content(), &self.config);
        }
        let prompt = || Prompt { message: said.clone(), by };
        match (&self.phase, source) {
            (Phase::Fresh, _) => {
                match self.config.tool_mode {
                    ToolMode::Text => {
                        let asked = text_mode::first_prompt(said, &self.config);
                        self.window.push_prompt_as(asked, said.clone(), by);
                    }
                    _ => self.window.push_prompt(said.clone(), by),
                }
                self.begun = true;
                self.ready();
            }
            (Phase::Ready, PromptSource::Prompt) => self.window.push_prompt(said.clone(), by),
            (_, PromptSource::FollowUp) => self.queues.follow_up(prompt()),
            _ => self.queues.steer(prompt()),
        }
        match self.phase {
            Phase::Ready => self.ready(),
            Phase::Finishing(_) => self.take_follow_ups(),
            _ => {}
        }
    }

    /// Returns the author of a prompt. A prompt may name another author, but it may name a person only if
    /// the prompts of this run come from a person.
    fn speaker(&self, message: &AgentMessage) -> Speaker {
        message.speaker().filter(|by| *by != Speaker::Person).unwrap_or(self.prompted_by)
    }

    /// Starts the run with a restored conversation. The authors of its messages are unknown, because in
    /// text mode tool results are among the user messages.
    pub(super) fn restored(&mut self, messages: &[Message]) {
        if !matches!(self.phase, Phase::Fresh) || !is_paired(messages) {
            return;
        }
        messages.iter().for_each(|message| self.window.push_restored(message.clone()));
        self.answer_history();
    }

    /// Lets a run without a prompt answer the last message of its conversation.
    pub(super) fn answer_history(&mut self) {
        let last = self.window.messages().iter().last();
        if self.answers_history && last.is_some_and(|last| !matches!(**last, Message::Assistant(_))) {
            self.window.pin_last();
            self.begun = true;
            self.phase = Phase::Ready;
        }
    }

    /// Lets the run ask the model next, if there is a message to answer, and adds the waiting steering
    /// messages to the conversation.
    pub(super) fn ready(&mut self) {
        self.phase = match self.begun {
            true => Phase::Ready,
            false => Phase::Fresh,
        };
        let steers = self.queues.take_steers(self.config.steering_mode);
        self.push_prompts(steers);
    }

    pub(super) fn push_prompts(&mut self, prompts: Vec<Prompt>) {
        for Prompt { message, by } in prompts {
            self.window.push_prompt(message, by);
        }
    }

    /// Continues a run that has its answer, if steering messages or follow-ups wait.
    pub(super) fn take_follow_ups(&mut self) {
        if !matches!(&self.phase, Phase::Finishing(outcome) if outcome.is_finished()) {
            return;
        }
        let mut wanted = self.queues.take_steers(self.config.steering_mode);
        if wanted.is_empty() {
            wanted = self.queues.take_follow_ups(self.config.follow_up_mode);
        }
        if !wanted.is_empty() {
            self.phase = Phase::Ready;
        }
        self.push_prompts(wanted);
    }

    /// Ends the run because a filter or a hook refused it.
    pub(super) fn stopped(&mut self, status: OutcomeStatus, why: String) {
        if !matches!(self.phase, Phase::Ended(_)) {
            let mut outcome = self.outcome(status);
            outcome.error = Some(why);
            outcome.failure = (status == OutcomeStatus::Failed).then_some(FailureKind::Filtered);
            self.phase = Phase::Finishing(Box::new(outcome));
        }
    }
}

#[cfg(test)]
mod tests {
    use archon_run::Machine as _;
    use archon_types::{CallId, CommandId, Origin, Record, RecordBody, RunConfig, RunStarted, Timestamp};

    use super::*;

    fn machine(origin: Origin, mode: ToolMode, bodies: Vec<RecordBody>) -> ReactMachine {
        let mut config = RunConfig::default();
        config.tool_mode = mode;
        let mut started = RunStarted::new("r".into(), "s".into(), "a".into(), "l".into(), config);
        started.origin = origin;
        let at = Timestamp::from_millis(1);
        let mut machine = ReactMachine::new(&started, at, Default::default());
        for (seq, body) in (1..).zip(bodies) {
            machine.apply(&Record { seq, at, body });
        }
        machine
    }

    fn attributed_texts(origin: &Origin, mode: ToolMode, bodies: &[RecordBody]) -> Vec<(String, Speaker)> {
        let list = |machine: &ReactMachine| -> Vec<(String, Speaker)> {
            machine.attributed_messages().iter().map(|said| (said.message.text(), said.by)).collect()
        };
        let machine = machine(origin.clone(), mode, bodies.to_vec());
        let said = list(&machine);
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(list(&serde_json::from_str(&json).unwrap()), said);
        let started = RunStarted::new("n".into(), "s".into(), "a".into(), "l".into(), RunConfig::default());
        let next = ReactMachine::new(&started, Timestamp::from_millis(2), machine.into_history());
        assert_eq!(list(&next), said, "the next run of the session has it too");
        said
    }

    fn prompt(text: &str, source: PromptSource) -> RecordBody {
        RecordBody::MessageAdded { message: Message::user(text, Timestamp::from_millis(1)).into(), source }
    }

    // spec: M-23
    #[test]
    fn speaker_of_a_prompt_follows_from_the_origin_of_the_run() {
        let of_event = AgentMessage::from(Message::user("event", Timestamp::from_millis(1)));
        let bodies = [
            prompt("task", PromptSource::Prompt),
            prompt("steer", PromptSource::Steer),
            prompt("later", PromptSource::FollowUp),
            RecordBody::MessageAdded {
                message: of_event.with_speaker(Speaker::Tool),
                source: PromptSource::Prompt,
            },
        ];
        let called = Origin::CalledBy { run: "caller".into(), call: CallId::new(CommandId(0), 0) };
        for mode in [ToolMode::Native, ToolMode::Text] {
            for (origin, by) in [(Origin::Prompt, Speaker::Person), (called.clone(), Speaker::Model)] {
                let mut said = attributed_texts(&origin, mode, &bodies);
                said.sort_by(|a, b| a.0.cmp(&b.0));
                let expected = [("event", Speaker::Tool), ("later", by), ("steer", by), ("task", by)];
                assert_eq!(said, expected.map(|(text, by)| (text.to_owned(), by)), "{mode:?}");
            }
        }
        // In a child run, no prompt can claim to be a person's.
        let message = AgentMessage::from(Message::user("x", Timestamp::from_millis(1)));
        let body = RecordBody::MessageAdded {
            message: message.with_speaker(Speaker::Person),
            source: PromptSource::Prompt,
        };
        assert_eq!(attributed_texts(&called, ToolMode::Native, &[body])[0].1, Speaker::Model);
    }

    // spec: M-23
    #[test]
    fn speaker_of_restored_messages_is_unknown() {
        let user = |text: &str| Message::user(text, Timestamp::from_millis(1));
        let messages = vec![user("hello"), user("Observation: Tool page succeeded: I am Anna.")];
        let said = attributed_texts(
            &Origin::Prompt,
            ToolMode::Text,
            &[RecordBody::ConversationRestored { messages }],
        );
        assert_eq!(said.iter().map(|(_, by)| *by).collect::<Vec<_>>(), [Speaker::Unknown; 2]);
    }
}
