//! Redacts records, in every field that may have text from outside.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    config::{RunConfig, SchemaProblem},
    messages::{AgentMessage, Forms, Message, Redactor},
    tools::{Answer, ApprovalRequest},
    values::Encoded,
};

use super::{parallel::ParallelChoice, record::RecordBody};

impl Redactor {
    /// Replaces every secret in a message by `****`, in the same way as in the log.
    ///
    /// ```
    /// use archon_types::{Message, Redactor, Timestamp};
    ///
    /// let redactor = Redactor::default();
    /// redactor.add(&"sk-secret-1".into());
    /// let mut message = Message::user("My key is sk-secret-1", Timestamp::default());
    /// redactor.clean_message(&mut message);
    /// assert_eq!(message.text(), "My key is ****");
    /// ```
    pub fn clean_message(&self, message: &mut Message) {
        let forms = self.forms();
        if !forms.is_empty() {
            forms.clean_message(message);
        }
    }

    /// Replaces every secret in the [input](RecordBody::is_input) records among `bodies` by `****`. Derived records
    /// need no redaction, because they are computed from redacted input records. The `RunLog` of `archon-run`
    /// calls this function for the records that it appends.
    pub fn clean_records(&self, bodies: &mut [RecordBody]) {
        let forms = self.forms();
        if !forms.is_empty() {
            bodies.iter_mut().for_each(|body| forms.clean_record(body));
        }
    }
}

impl Forms {
    /// Redacts an input record. Derived records stay unchanged, because they follow from redacted input
    /// records.
    fn clean_record(&self, body: &mut RecordBody) {
        use RecordBody as B;
        if !body.is_input() {
            return;
        }
        match body {
            B::RunStarted(started) => self.clean_config(&mut started.config),
            B::MessageAdded { message, .. } => self.clean_agent_message(message),
            B::ConversationRestored { messages } => {
                messages.iter_mut().for_each(|message| self.clean_message(message))
            }
            B::InputRejected { reason } | B::LogUnavailable { reason } | B::CancelRequested { reason } => {
                self.clean_text(reason);
            }
            B::ModelCallFinished { message, .. } => self.clean_answer(message),
            B::ModelCallFailed { failure, .. } => self.clean_text(&mut failure.message),
            B::ToolCallRefused { result, .. }
            | B::ToolCallFailed { result, .. }
            | B::ToolCallFinished { result, .. } => {
                self.clean_result(Arc::make_mut(result));
            }
            B::ApprovalRequested { request, .. } => self.clean_question(request),
            B::ApprovalAnswered { answer, .. } => self.clean_reply(answer),
            B::CompactionRequested { instructions } => self.clean_optional(instructions),
            B::Summarized(summary) => self.clean_optional(&mut summary.text),
            B::InstructionsRead { text } => self.clean_text(text),
            B::WorkspaceSnapshot(snapshot) => self.clean_optional(&mut snapshot.problem),
            B::GoalChecked(verdict) => self.clean_text(&mut verdict.reason),
            B::OutputChecked { problems } => self.clean_problems(problems),
            B::ParallelStarted { prompts, .. } => self.clean_prompts(prompts),
            B::ParallelFinished(choice) => self.clean_choice(choice),
            B::Plan(plan) => self.clean_as_json(&mut **plan),
            B::Team(team) => self.clean_as_json(&mut **team),
            // These hold only ids, counts and times.
            B::InboxMessageReceived { .. }
            | B::StoppedByHook { .. }
            | B::ModelCallLost { .. }
            | B::LeaseSettled { .. }
            | B::ToolCallStarted { .. }
            | B::ProcessStarted { .. }
            | B::ChildRunCreated { .. }
            | B::ModeChanged { .. }
            | B::LimitsRaised(_)
            | B::Resumed
            | B::ClockRead => {}
            // These are derived.
            B::SessionSnapshot(_)
            | B::ModelCallStarted { .. }
            | B::FallbackSelected { .. }
            | B::LeaseGranted { .. }
            | B::AuxiliaryCallStarted { .. }
            | B::HintAdded { .. }
            | B::Compacted(_)
            | B::ContextStatus { .. }
            | B::LimitReached(_)
            | B::Suspended { .. }
            | B::RunFinished(_) => {}
        }
    }

    fn clean_prompts(&self, prompts: &mut [AgentMessage]) {
        prompts.iter_mut().for_each(|prompt| self.clean_agent_message(prompt));
    }

    fn clean_problems(&self, problems: &mut [SchemaProblem]) {
        problems.iter_mut().for_each(|problem| self.clean_text(&mut problem.problem));
    }

    fn clean_agent_message(&self, message: &mut AgentMessage) {
        match message {
            AgentMessage::Llm(message) => {
                self.clean_message(&mut message.message);
                if let Some(mark) = &mut message.mark {
                    self.clean_json(&mut mark.seen);
                }
            }
            AgentMessage::Extension(extension) => self.clean_json(&mut extension.data),
        }
    }

    fn clean_message(&self, message: &mut Message) {
        match message {
            Message::User(user) => {
                self.clean_content(&mut user.content);
                user.attached.iter_mut().for_each(|name| self.clean_text(name));
            }
            Message::Assistant(answer) => self.clean_answer(answer),
            Message::ToolResult(result) => self.clean_content(&mut result.content),
        }
    }

    fn clean_question(&self, request: &mut ApprovalRequest) {
        self.clean_text(&mut request.action_summary);
        self.clean_json(&mut request.details);
        self.clean_json(&mut request.tool_state);
    }

    fn clean_reply(&self, answer: &mut Answer) {
        match answer {
            Answer::Edit { arguments } => self.clean_json(arguments),
            Answer::Cancel { reason } | Answer::Withdrawn { reason } => self.clean_text(reason),
            Answer::Reply { text } => self.clean_text(text),
            // Rules stay unchanged: a rule redacted to `****` would match more calls.
            Answer::Trust { .. } | Answer::Approve | Answer::Expired => {}
        }
    }

    fn clean_config(&self, config: &mut RunConfig) {
        self.clean_optional(&mut config.expected_output);
        if let Some(clean) = config.system.as_ref().and_then(|system| self.cleaned(system)) {
            config.system = Some(Arc::new(Encoded::new(clean)));
        }
    }

    fn clean_choice(&self, choice: &mut ParallelChoice) {
        self.clean_optional(&mut choice.reason);
        choice.warnings.iter_mut().for_each(|warning| self.clean_text(warning));
        self.clean_text(&mut choice.outcome.answer);
        self.clean_optional(&mut choice.outcome.error);
    }

    /// Redacts a value through its JSON form, because any of its texts may come from outside. If the redacted
    /// JSON cannot be parsed, because a field name or another word of the format equals a secret, the value
    /// stays unchanged.
    fn clean_as_json<T: Serialize + DeserializeOwned>(&self, value: &mut T) {
        let Ok(mut json) = serde_json::to_value(&*value) else { return };
        let before = json.clone();
        self.clean_json(&mut json);
        if json != before
            && let Ok(clean) = serde_json::from_value(json)
        {
            *value = clean;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Json;

    // spec: CR-05
    #[test]
    fn records_are_cleaned_where_they_bring_something_from_outside() {
        let redactor = Redactor::default();
        redactor.add(&"secret-one".into());
        let answer = json!({
            "content": [
                {"type": "text", "text": "It is secret-one."},
                {"type": "thinking", "thinking": "7365637265742d6f6e65", "signature": "secret-one"},
                {"type": "toolCall", "id": "secret-one", "name": "x", "arguments": {"secret-one": ["secret-one"]}},
            ],
            "stop_reason": "toolUse", "model": "secret-one", "provider": "secret-one", "usage": {}, "timestamp": 0,
        });
        let clean = |body: Json| {
            let mut bodies = [serde_json::from_value::<RecordBody>(body).unwrap()];
            redactor.clean_records(&mut bodies);
            serde_json::to_value(&bodies[0]).unwrap()
        };
        let mut answered =
            clean(json!({"type": "model_call_finished", "command": 1, "attempt": 0, "message": answer}));
        let message = answered["message"].take();
        assert_eq!((&message["model"], &message["provider"]), (&json!("secret-one"), &json!("secret-one")));
        assert_eq!(
            message["content"],
            json!([
                {"type": "text", "text": "It is ****."},
                {"type": "thinking", "thinking": "****", "signature": "****"},
                {"type": "toolCall", "id": "****", "name": "x", "arguments": {"****": ["****"]}},
            ])
        );
        let plan = clean(json!({"type": "plan", "event": "inputs", "context": {"key": "secret-one"}}));
        assert_eq!(plan["context"], json!({"key": "****"}));
        let noted = json!({"type": "hint_added", "text": "secret-one"});
        assert_eq!(clean(noted.clone()), noted, "it follows from the records before");
    }
}
