//! The media in records, which journals keep apart from the log.

use std::{borrow::Cow, sync::Arc};

use crate::messages::{AgentMessage, Content, Media, Message};

use super::{
    event::{Delta, DeltaKind, Event},
    record::{Record, RecordBody},
};

impl RecordBody {
    /// Returns the pictures, PDF files and other media in the messages and tool results of the record, without
    /// blocks [`Content::Image`], whose data is a part of the log.
    pub fn media(&self) -> impl Iterator<Item = &Media> {
        self.content().into_iter().flatten().filter_map(|block| match block {
            Content::Media(media) => Some(media),
            _ => None,
        })
    }

    /// Returns the same media as [`media`](Self::media), so that a journal can add or remove their data.
    pub fn media_mut(&mut self) -> Vec<&mut Media> {
        let mut found = Vec::new();
        for block in self.content_mut().into_iter().flatten() {
            if let Content::Media(media) = block {
                found.push(media);
            }
        }
        found
    }

    fn content(&self) -> Vec<&[Content]> {
        let of_prompt = |prompt| AgentMessage::as_llm(prompt).map(Message::content);
        match self {
            Self::MessageAdded { message, .. } => of_prompt(message).into_iter().collect(),
            Self::ParallelStarted { prompts, .. } => prompts.iter().filter_map(of_prompt).collect(),
            Self::ConversationRestored { messages } => messages.iter().map(Message::content).collect(),
            Self::SessionSnapshot(snapshot) => {
                let all = snapshot.messages.iter().flat_map(|m| [Some(&m.message), m.original.as_ref()]);
                all.flatten().map(|message| message.content()).collect()
            }
            Self::ModelCallFinished { message, .. } => vec![&message.content],
            Self::ToolCallRefused { result, .. }
            | Self::ToolCallFailed { result, .. }
            | Self::ToolCallFinished { result, .. } => vec![&result.content],
            _ => Vec::new(),
        }
    }

    fn content_mut(&mut self) -> Vec<&mut [Content]> {
        fn of_prompt(prompt: &mut AgentMessage) -> Option<&mut [Content]> {
            match prompt {
                AgentMessage::Llm(prompt) => Some(prompt.message.content_mut()),
                AgentMessage::Extension(_) => None,
            }
        }
        match self {
            Self::MessageAdded { message, .. } => of_prompt(message).into_iter().collect(),
            Self::ParallelStarted { prompts, .. } => prompts.iter_mut().filter_map(of_prompt).collect(),
            Self::ConversationRestored { messages } => {
                messages.iter_mut().map(Message::content_mut).collect()
            }
            Self::SessionSnapshot(snapshot) => {
                let all =
                    snapshot.messages.iter_mut().flat_map(|m| [Some(&mut m.message), m.original.as_mut()]);
                let with_media = all.flatten().filter(|message| has_media(message.content()));
                with_media.map(|message| Arc::make_mut(message).content_mut()).collect()
            }
            Self::ModelCallFinished { message, .. } => vec![&mut message.content],
            Self::ToolCallRefused { result, .. }
            | Self::ToolCallFailed { result, .. }
            | Self::ToolCallFinished { result, .. } => match has_media(&result.content) {
                true => vec![&mut Arc::make_mut(result).content],
                false => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

impl Record {
    /// Returns the record without the data of its media, for a reader who gets only the references.
    pub fn without_media_data(&self) -> Cow<'_, Self> {
        if self.body.media().all(|media| media.base64().is_none()) {
            return Cow::Borrowed(self);
        }
        let mut bare = self.clone();
        for media in bare.body.media_mut() {
            *media = media.without_data();
        }
        Cow::Owned(bare)
    }
}

impl Event {
    /// Returns the event without the data of the media in its record or its partial result, as
    /// [`Record::without_media_data`] returns a record.
    pub fn without_media_data(&self) -> Cow<'_, Self> {
        match self {
            Self::Record { run, record } => match record.without_media_data() {
                Cow::Borrowed(_) => Cow::Borrowed(self),
                Cow::Owned(record) => Cow::Owned(Self::Record { run: run.clone(), record: Arc::new(record) }),
            },
            Self::Delta(Delta { kind: DeltaKind::ToolPartialResult { result, .. }, .. })
                if has_media(&result.content) =>
            {
                let mut bare = self.clone();
                if let Self::Delta(Delta { kind: DeltaKind::ToolPartialResult { result, .. }, .. }) =
                    &mut bare
                {
                    remove_data(&mut result.content);
                }
                Cow::Owned(bare)
            }
            Self::Delta(_) => Cow::Borrowed(self),
        }
    }
}

impl Message {
    /// Returns the message without the data of its media, for a reader who gets only the references.
    pub fn without_media_data(&self) -> Cow<'_, Self> {
        let has_data = |block: &Content| matches!(block, Content::Media(media) if media.base64().is_some());
        if !self.content().iter().any(has_data) {
            return Cow::Borrowed(self);
        }
        let mut bare = self.clone();
        remove_data(bare.content_mut());
        Cow::Owned(bare)
    }
}

fn remove_data(content: &mut [Content]) {
    for block in content {
        if let Content::Media(media) = block {
            *media = media.without_data();
        }
    }
}

fn has_media(content: &[Content]) -> bool {
    content.iter().any(|block| matches!(block, Content::Media(_)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        Json,
        messages::{ToolResult, UserMessage},
        values::{CallId, CommandId, Timestamp},
    };

    #[test]
    fn message_loses_only_the_data_of_its_media() {
        let media = Content::from(Media::new(b"%PDF-1.7", Some("a.pdf")).unwrap());
        let user = UserMessage::new(vec![Content::text("x"), media], Timestamp::default());
        let message = Message::User(user);
        let bare = message.without_media_data();
        assert_eq!(*bare, message, "media without data are equal");
        assert!(bare.content()[1].as_media().unwrap().base64.is_none());
        assert!(matches!(bare.without_media_data(), Cow::Borrowed(_)));
    }

    #[test]
    fn partial_result_loses_only_the_data_of_its_media() {
        let media = Content::from(Media::new(b"%PDF-1.7", Some("a.pdf")).unwrap());
        let mut result = ToolResult::success("half");
        result.content.push(media);
        let kind = DeltaKind::ToolPartialResult {
            call: CallId { command: CommandId(1), index: 0 },
            result: Box::new(result),
        };
        let delta = Delta { run: "run_1".into(), command: CommandId(1), attempt: 1, offset: 0, kind };
        let event = Event::Delta(delta);
        let json = |event: &Event| serde_json::to_string(event).unwrap();
        assert!(json(&event).contains("JVBERi0xLjc="));
        let bare = json(&event.without_media_data());
        assert!(bare.contains("a.pdf") && !bare.contains("JVBERi0xLjc="), "{bare}");
    }

    // spec: EX-16
    #[test]
    fn records_with_messages_or_results_give_their_media_and_can_lose_the_data() {
        let media = Media::new(b"%PDF-1.7", Some("a.pdf")).unwrap();
        let content = json!([{ "type": "text", "text": "x" }, Content::from(media.clone())]);
        let user = json!({ "role": "user", "content": content, "timestamp": 0 });
        let answer = json!({ "role": "assistant", "content": content, "stop_reason": "stop", "model": "",
            "provider": "", "usage": {}, "timestamp": 0 });
        let call = json!({ "command": 1, "index": 0 });
        let result = json!({ "content": content });
        let records: [(Json, usize); 8] = [
            (json!({ "type": "message_added", "message": user, "source": "prompt" }), 1),
            (json!({ "type": "parallel_started", "prompts": [user, user], "branches": [] }), 2),
            (json!({ "type": "conversation_restored", "messages": [user, answer] }), 2),
            (json!({ "type": "session_snapshot", "messages": [{ "message": user, "original": user }] }), 2),
            (json!({ "type": "model_call_finished", "command": 1, "attempt": 0, "message": answer }), 1),
            (json!({ "type": "tool_call_finished", "call": call, "result": result }), 1),
            (json!({ "type": "tool_call_refused", "call": call, "result": result }), 1),
            (json!({ "type": "tool_call_failed", "call": call, "attempt": 0, "result": result }), 1),
        ];
        for (body, count) in records {
            let record = json!({ "seq": 1, "at": 0 });
            let mut whole = body;
            whole.as_object_mut().unwrap().extend(record.as_object().unwrap().clone());
            let record: Record = serde_json::from_value(whole).unwrap();
            assert_eq!(record.body.media().count(), count, "{}", record.body.name());
            let bare = record.without_media_data().into_owned();
            assert_eq!(bare, record, "media without data are equal");
            assert!(bare.body.media().all(|media| media.base64().is_none()));
            assert!(record.body.media().all(|media| media.base64().is_some()), "the original keeps them");
            assert!(matches!(bare.without_media_data(), Cow::Borrowed(_)));
            let event = Event::Record { run: "run_1".into(), record: Arc::new(record) };
            let text = serde_json::to_string(&event.without_media_data()).unwrap();
            assert!(!text.contains("JVBERi0xLjc="), "{text}");
        }
    }
}
