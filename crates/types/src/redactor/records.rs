//! Redacts messages, results and records, in every field that may hold foreign text.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    AgentMessage, Answer, ApprovalRequest, AssistantMessage, Content, Encoded, Json, Message, ParallelChoice,
    RecordBody, RunConfig, ToolCall, ToolResult,
};

use super::forms::Forms;

impl Forms {
    pub(super) fn clean_text(&self, text: &mut String) {
        if let Some(clean) = self.cleaned(text) {
            *text = clean;
        }
    }

    pub(super) fn clean_json(&self, value: &mut Json) {
        if self.is_empty() {
            return;
        }
        match value {
            Json::String(text) => self.clean_text(text),
            Json::Array(items) => items.iter_mut().for_each(|item| self.clean_json(item)),
            Json::Object(entries) => self.clean_object(entries),
            Json::Number(number) => {
                if let Some(clean) = self.cleaned(&number.to_string()) {
                    *value = Json::String(clean);
                }
            }
            Json::Null | Json::Bool(_) => {}
        }
    }

    fn clean_object(&self, entries: &mut serde_json::Map<String, Json>) {
        entries.values_mut().for_each(|value| self.clean_json(value));
        if entries.keys().all(|key| self.cleaned(key).is_none()) {
            return;
        }
        for (key, value) in std::mem::take(entries) {
            let mut key = self.cleaned(&key).unwrap_or(key);
            // Keys that became equal are made distinct, so that no entry is lost.
            while entries.contains_key(&key) {
                key.push('*');
            }
            entries.insert(key, value);
        }
    }

    pub(super) fn clean_answer(&self, answer: &mut AssistantMessage) {
        self.clean_content(&mut answer.content);
        self.clean_optional(&mut answer.error_message);
    }

    pub(super) fn clean_result(&self, result: &mut ToolResult) {
        if self.is_empty() {
            return;
        }
        self.clean_content(&mut result.content);
        self.clean_optional(&mut result.error_message);
        self.clean_object(&mut result.metadata);
        if let Some(file) = &mut result.data_file {
            self.clean_text(&mut file.summary);
        }
    }

    /// Redacts an input record. Derived records follow from the others, and must not differ from them.
    pub(super) fn clean_record(&self, body: &mut RecordBody) {
        use RecordBody as B;
        if !body.is_input() {
            return;
        }
        match body {
            B::RunStarted(started) => self.clean_config(&mut started.config),
            B::Prompted { message, .. } => self.clean_agent_message(message),
            B::Restored { messages } => messages.iter_mut().for_each(|message| self.clean_message(message)),
            B::InputRejected { reason } | B::NotKept { reason } | B::CancelRequested { reason } => {
                self.clean_text(reason);
            }
            B::ModelAnswered { message, .. } => self.clean_answer(message),
            B::ModelFailed { failure, .. } => self.clean_text(&mut failure.message),
            B::ToolRefused { result, .. } | B::ToolFailed { result, .. } | B::ToolFinished { result, .. } => {
                self.clean_result(Arc::make_mut(result));
            }
            B::ToolAsked { request, .. } => self.clean_question(request),
            B::ToolAnswered { answer, .. } => self.clean_reply(answer),
            B::Summarized(summary) => self.clean_optional(&mut summary.text),
            B::InstructionsRead { text } => self.clean_text(text),
            B::GoalChecked(verdict) => self.clean_text(&mut verdict.reason),
            B::FormChecked { problems } => {
                problems.iter_mut().for_each(|problem| self.clean_text(&mut problem.problem));
            }
            B::ParallelStarted { prompts, .. } => {
                prompts.iter_mut().for_each(|prompt| self.clean_agent_message(prompt));
            }
            B::ParallelEnded(choice) => self.clean_choice(choice),
            B::Plan(plan) => self.clean_as_json(&mut **plan),
            B::Team(team) => self.clean_as_json(&mut **team),
            // These hold only ids, counts and times.
            B::Received { .. }
            | B::Vetoed { .. }
            | B::CallLost { .. }
            | B::Settled { .. }
            | B::ToolStarted { .. }
            | B::ToolSpawned { .. }
            | B::ChildBegun { .. }
            | B::LimitsRaised(_)
            | B::Resumed
            | B::ClockRead => {}
            // These are derived.
            B::Carried(_)
            | B::ModelAsked { .. }
            | B::SteppedDown { .. }
            | B::Granted { .. }
            | B::AskedBeside { .. }
            | B::Noted { .. }
            | B::Compacted(_)
            | B::ContextStatus { .. }
            | B::LimitReached(_)
            | B::Suspended { .. }
            | B::RunFinished(_) => {}
        }
    }

    fn clean_agent_message(&self, message: &mut AgentMessage) {
        match message {
            AgentMessage::Llm(message) => self.clean_message(&mut message.message),
            AgentMessage::Extension(extension) => self.clean_json(&mut extension.data),
        }
    }

    fn clean_message(&self, message: &mut Message) {
        match message {
            Message::User(user) => self.clean_content(&mut user.content),
            Message::Assistant(answer) => self.clean_answer(answer),
            Message::ToolResult(result) => self.clean_content(&mut result.content),
        }
    }

    fn clean_content(&self, content: &mut [Content]) {
        if self.is_empty() {
            return;
        }
        for block in content {
            match block {
                Content::Text { text } => self.clean_text(text),
                Content::Thinking { thinking, signature } => {
                    self.clean_text(thinking);
                    self.clean_optional(signature);
                }
                Content::ToolCall(call) => self.clean_call(Arc::make_mut(call)),
                Content::Image { .. } => {}
            }
        }
    }

    fn clean_call(&self, call: &mut ToolCall) {
        if let Some(clean) = self.cleaned(call.id.as_str()) {
            call.id = clean.into();
        }
        self.clean_text(&mut call.name);
        self.clean_json(&mut call.arguments);
        if let Some(malformed) = &mut call.malformed {
            self.clean_text(&mut malformed.text);
            self.clean_text(&mut malformed.error);
        }
    }

    fn clean_question(&self, request: &mut ApprovalRequest) {
        self.clean_text(&mut request.action_summary);
        self.clean_json(&mut request.details);
    }

    fn clean_reply(&self, answer: &mut Answer) {
        match answer {
            Answer::Edit { arguments } => self.clean_json(arguments),
            Answer::Cancel { reason } | Answer::Withdrawn { reason } => self.clean_text(reason),
            Answer::Reply { text } => self.clean_text(text),
            // A rule with `*` in it would match more calls.
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

    fn clean_optional(&self, text: &mut Option<String>) {
        text.iter_mut().for_each(|text| self.clean_text(text));
    }

    /// Redacts a record through its JSON form, since any of its texts may be foreign. If that breaks the
    /// format, because a word of the format is a secret, the record stays unchanged.
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
