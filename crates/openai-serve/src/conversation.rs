//! The messages of a request: the last messages of the person start a run, and the messages before them are the
//! restored conversation of the run.

use std::sync::Arc;

use archon_types::{
    AgentMessage, AssistantMessage, Content, Json, Message, Record, RecordBody, RunKind, Speaker, Timestamp,
    UserMessage,
};

use crate::{
    body::{Fields, missing, wrong_type},
    content::{read_content, refuse_others},
    error::ApiError,
};

/// The role of a message in a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    /// The client that gives instructions: `system` or `developer`.
    Client,
    Person,
    Agent,
}

struct Said {
    role: Role,
    content: Vec<Content>,
}

/// The messages of a request, in the form in which a run takes them.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The conversation before the prompts.
    pub(crate) restored: Vec<Message>,
    pub(crate) prompts: Vec<AgentMessage>,
}

impl Conversation {
    /// Reads the `messages` of a chat completion.
    pub(crate) fn of_messages(fields: &Fields, now: Timestamp) -> Result<Self, ApiError> {
        let messages = fields.get("messages").ok_or_else(|| missing("messages"))?;
        let messages = messages.as_array().ok_or_else(|| wrong_type("messages", "a list of messages"))?;
        Self::of(read_all(messages, "messages")?, "messages", now)
    }

    /// Reads the `input` and the `instructions` of a response.
    pub(crate) fn of_input(fields: &Fields, now: Timestamp) -> Result<Self, ApiError> {
        let instructions = crate::body::text(fields, "instructions")?;
        let said = |role, text: &str| Said { role, content: vec![Content::text(text)] };
        let mut all: Vec<Said> = instructions.map(|text| said(Role::Client, text)).into_iter().collect();
        match fields.get("input") {
            Some(Json::String(text)) => all.push(said(Role::Person, text)),
            Some(Json::Array(items)) => all.extend(read_all(items, "input")?),
            None | Some(Json::Null) => return Err(missing("input")),
            Some(_) => return Err(wrong_type("input", "a string or a list of items")),
        }
        Self::of(all, "input", now)
    }

    /// Returns an error for a plan or a team if the prompts contain messages of the client. These kinds of run take
    /// one text, so the messages would count as the person's text.
    pub(crate) fn for_kind(self, kind: RunKind, param: &str) -> Result<Self, ApiError> {
        let takes_one_text = matches!(kind, RunKind::Plan | RunKind::Team);
        if !(takes_one_text && self.prompts.iter().any(|prompt| prompt.speaker().is_some())) {
            return Ok(self);
        }
        let message = format!(
            "Unsupported value: '{param}' has a message of the role 'system' or 'developer' behind one of \
             the role 'user'; a plan and a team take the text of the user alone, so leave it out."
        );
        Err(ApiError::field("unsupported_value", param, message))
    }

    /// Returns true if a run began with the text of these prompts. A filter may have added lines before or after it.
    /// Images and PDF files are not compared.
    pub(crate) fn began(&self, records: &[Arc<Record>]) -> bool {
        let mut said = Vec::new();
        for record in records {
            match &record.body {
                RecordBody::MessageAdded { message, .. } => said.push(message),
                RecordBody::ParallelStarted { prompts, .. } => said.extend(prompts),
                RecordBody::ModelCallStarted { .. } => break,
                _ => {}
            }
        }
        let text = |prompt: &AgentMessage| prompt.as_llm().map(Message::text).unwrap_or_default();
        let said = said.into_iter().map(text).collect::<Vec<_>>().join("\n\n");
        let wanted = self.prompts.iter().map(text).collect::<Vec<_>>().join("\n\n");
        format!("\n{said}\n").contains(&format!("\n{wanted}\n"))
    }

    fn of(mut all: Vec<Said>, param: &str, now: Timestamp) -> Result<Self, ApiError> {
        let after_agent = all.iter().rposition(|said| said.role == Role::Agent).map_or(0, |at| at + 1);
        let first = all.iter().skip(after_agent).position(|said| said.role == Role::Person);
        let Some(first) = first else {
            let message = format!("Invalid value: '{param}' must end with a message of the role 'user'.");
            return Err(ApiError::field("invalid_value", param, message));
        };
        let prompts = all.split_off(after_agent + first);
        let restored = all.into_iter().filter(|said| !said.content.is_empty());
        Ok(Self {
            restored: restored.map(|said| said.into_restored(now)).collect(),
            prompts: prompts.into_iter().map(Said::into_prompt).collect(),
        })
    }
}

impl Said {
    /// Returns the message for a restored conversation, with `now` as its time.
    fn into_restored(self, now: Timestamp) -> Message {
        match self.role {
            Role::Agent => Message::Assistant(AssistantMessage {
                content: self.content,
                timestamp: now,
                ..AssistantMessage::default()
            }),
            Role::Client | Role::Person => Message::User(UserMessage::of_blocks(self.content, now)),
        }
    }

    /// Returns the message as a prompt. Its time is set when the run starts.
    fn into_prompt(self) -> AgentMessage {
        let message = UserMessage::of_blocks(self.content, Timestamp::default());
        let message = AgentMessage::from(Message::User(message));
        match self.role {
            Role::Client => message.with_speaker(Speaker::Program),
            Role::Person | Role::Agent => message,
        }
    }
}

fn read_all(list: &[Json], param: &str) -> Result<Vec<Said>, ApiError> {
    list.iter().enumerate().map(|(index, message)| read(message, &format!("{param}[{index}]"))).collect()
}

fn read(message: &Json, param: &str) -> Result<Said, ApiError> {
    let Json::Object(message) = message else { return Err(wrong_type(param, "an object")) };
    let kind = message.get("type").filter(|kind| !kind.is_null());
    if let Some(kind) = kind.filter(|kind| **kind != "message") {
        let message = format!("Unsupported value: '{param}.type' is {kind}; send messages only.");
        return Err(ApiError::field("unsupported_value", format!("{param}.type"), message));
    }
    let role = read_role(message, param)?;
    let content = message.get("content").unwrap_or(&Json::Null);
    let mut content = read_content(content, &format!("{param}.content"), role == Role::Person)?;
    match role {
        // As in answers, which clients send back whole.
        Role::Agent => {
            refuse_others(message, &["type", "role", "content", "refusal", "id", "status", "phase"], param)?;
            content.extend(message.get("refusal").and_then(Json::as_str).map(Content::text));
        }
        Role::Client | Role::Person => {
            refuse_others(message, &["type", "role", "content", "id", "status"], param)?;
            if content.is_empty() {
                return Err(missing(&format!("{param}.content")));
            }
        }
    }
    Ok(Said { role, content })
}

fn read_role(message: &Fields, param: &str) -> Result<Role, ApiError> {
    let param = format!("{param}.role");
    match message.get("role").and_then(Json::as_str) {
        Some("user") => Ok(Role::Person),
        Some("assistant") => Ok(Role::Agent),
        Some("system" | "developer") => Ok(Role::Client),
        Some(role) => {
            let message = format!(
                "Unsupported value: '{param}' is {role:?}; send 'user', 'assistant', 'system' or 'developer'."
            );
            Err(ApiError::field("unsupported_value", param, message))
        }
        None => Err(missing(&param)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(7);

    fn of_messages(messages: Json) -> Result<Conversation, ApiError> {
        let mut fields = Fields::new();
        fields.insert("messages".to_owned(), messages);
        Conversation::of_messages(&fields, NOW)
    }

    fn of_input(body: Json) -> Result<Conversation, ApiError> {
        let Json::Object(fields) = body else { panic!("no object") };
        Conversation::of_input(&fields, NOW)
    }

    /// Restored messages with their roles, and prompts with their speakers.
    type Texts = (Vec<(&'static str, String)>, Vec<(Option<Speaker>, String)>);

    fn texts(conversation: &Conversation) -> Texts {
        let role = |message: &Message| match message {
            Message::User(_) => "user",
            _ => "assistant",
        };
        let restored = conversation.restored.iter().map(|message| (role(message), message.text())).collect();
        let text = |prompt: &AgentMessage| prompt.as_llm().unwrap().text();
        let prompts = conversation.prompts.iter().map(|prompt| (prompt.speaker(), text(prompt))).collect();
        (restored, prompts)
    }

    #[test]
    fn conversation_splits_before_the_last_messages_of_the_person() {
        let messages = json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "a" },
            { "role": "assistant", "content": "b", "refusal": null, "tool_calls": [], "annotations": [] },
            { "role": "user", "content": "c" },
            { "role": "developer", "content": "In French." },
            { "role": "user", "content": [{ "type": "text", "text": "d" }] },
        ]);
        let conversation = of_messages(messages).unwrap();
        let (restored, prompts) = texts(&conversation);
        let restored: Vec<_> = restored.iter().map(|(role, text)| (*role, text.as_str())).collect();
        assert_eq!(restored, [("user", "Be brief."), ("user", "a"), ("assistant", "b")]);
        let prompts: Vec<_> = prompts.iter().map(|(by, text)| (*by, text.as_str())).collect();
        assert_eq!(prompts, [(None, "c"), (Some(Speaker::Program), "In French."), (None, "d")]);
    }

    #[test]
    fn conversation_of_input_puts_the_instructions_first_and_reads_answers_back() {
        let body = json!({ "instructions": "Be brief.", "input": [
            { "role": "user", "content": "a" },
            { "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
              "phase": "final_answer",
              "content": [{ "type": "output_text", "text": "b", "annotations": [], "logprobs": [] }] },
            { "role": "user", "content": "c" },
        ] });
        let conversation = of_input(body).unwrap();
        let (restored, prompts) = texts(&conversation);
        let restored: Vec<_> = restored.iter().map(|(role, text)| (*role, text.as_str())).collect();
        assert_eq!(restored, [("user", "Be brief."), ("user", "a"), ("assistant", "b")]);
        assert_eq!(prompts, [(None, "c".to_owned())]);
        let alone = of_input(json!({ "input": "x" })).unwrap();
        assert_eq!(texts(&alone), (vec![], vec![(None, "x".to_owned())]));
    }

    #[test]
    fn conversation_for_a_plan_or_a_team_refuses_prompts_of_the_client() {
        let user = json!({ "role": "user", "content": "a" });
        let all = json!([user, { "role": "developer", "content": "b" }]);
        for kind in [RunKind::Plan, RunKind::Team] {
            let error = of_messages(all.clone()).unwrap().for_kind(kind, "messages").unwrap_err();
            assert_eq!((error.code, error.param.as_deref()), ("unsupported_value", Some("messages")));
            assert!(of_messages(json!([user])).unwrap().for_kind(kind, "messages").is_ok());
        }
        assert!(of_messages(all).unwrap().for_kind(RunKind::Loop, "messages").is_ok());
    }

    #[test]
    fn conversation_names_the_message_that_it_refuses() {
        let user = json!({ "role": "user", "content": "a" });
        let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } });
        for (messages, code, param) in [
            (json!([]), "invalid_value", "messages"),
            (json!([user, { "role": "assistant", "content": "b" }]), "invalid_value", "messages"),
            (json!([{ "role": "system", "content": "s" }]), "invalid_value", "messages"),
            (
                json!([user, { "role": "tool", "tool_call_id": "c", "content": "1" }]),
                "unsupported_value",
                "messages[1].role",
            ),
            (
                json!([user, { "role": "assistant", "tool_calls": [call] }, user]),
                "unsupported_parameter",
                "messages[1].tool_calls",
            ),
            (
                json!([{ "role": "user", "name": "ann", "content": "a" }]),
                "unsupported_parameter",
                "messages[0].name",
            ),
            (json!([{ "role": "user" }]), "missing_required_parameter", "messages[0].content"),
            (json!([7]), "invalid_type", "messages[0]"),
            (json!("a"), "invalid_type", "messages"),
        ] {
            let error = of_messages(messages).unwrap_err();
            assert_eq!((error.code, error.param.as_deref()), (code, Some(param)));
        }
        let output = json!({ "type": "function_call_output", "output": "1" });
        let item = of_input(json!({ "input": [output] })).unwrap_err();
        assert_eq!((item.code, item.param.as_deref()), ("unsupported_value", Some("input[0].type")));
    }
}
