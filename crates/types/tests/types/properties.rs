//! Whatever text and numbers messages hold, writing and reading them changes nothing.

use archon_types::{
    AgentMessage, AssistantMessage, Content, Event, ExtensionMessage, Json, Media, Message, PromptSource,
    Record, RecordBody, StopReason, ToolCall, ToolResultMessage, Usage, UserMessage,
};
use proptest::{collection::vec, option, prelude::*};

use crate::support::at;

/// Any text: control characters, quotes, other scripts, characters outside the basic plane.
fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..12).prop_map(String::from_iter)
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-1e15..1e15_f64).prop_map(Json::from),
        text().prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Json::from),
            vec((text(), inner), 0..4).prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        text().prop_map(|text| Content::Text { text }),
        (text(), text()).prop_map(|(data, mime_type)| Content::Image { data, mime_type }),
        (vec(any::<u8>(), 1..40), text(), any::<bool>()).prop_map(|(bytes, name, has_data)| {
            let media = Media::of_type(&bytes, "audio/wav", Some(&name)).unwrap();
            if has_data { media.into() } else { media.without_data().into() }
        }),
        (text(), option::of(text()))
            .prop_map(|(thinking, signature)| Content::Thinking { thinking, signature }),
        (text(), text(), json()).prop_map(|(id, name, arguments)| ToolCall::new(id, name, arguments).into()),
        (text(), text(), text())
            .prop_map(|(id, name, text)| ToolCall::from_json_text(id, name, &text).into()),
    ]
}

fn usage() -> impl Strategy<Value = Usage> {
    any::<[u64; 5]>().prop_map(|[input, output, cache_read, cache_write, total_tokens]| Usage {
        input,
        output,
        cache_read,
        cache_write,
        total_tokens,
    })
}

fn assistant() -> impl Strategy<Value = Message> {
    use StopReason::{Aborted, Error, Length, Pause, Refusal, Stop, StopSequence, ToolUse};
    let reasons =
        proptest::sample::select(vec![Stop, StopSequence, Length, ToolUse, Pause, Refusal, Error, Aborted]);
    let parts = (vec(content(), 0..4), reasons, text(), text(), usage(), any::<u64>(), option::of(text()));
    parts.prop_map(|(content, stop_reason, model, provider, usage, ms, error_message)| {
        let timestamp = at(ms);
        Message::Assistant(AssistantMessage {
            content,
            stop_reason,
            model,
            provider,
            usage,
            timestamp,
            stop_sequence: error_message.clone(),
            error_message,
            engine: None,
        })
    })
}

fn message() -> impl Strategy<Value = Message> {
    let user = (vec(content(), 0..4), any::<u64>())
        .prop_map(|(content, ms)| Message::User(UserMessage::new(content, at(ms))));
    let result = (text(), text(), vec(content(), 0..3), any::<bool>(), any::<u64>()).prop_map(
        |(id, tool_name, content, is_error, ms)| {
            let tool_call_id = id.into();
            Message::ToolResult(ToolResultMessage {
                tool_call_id,
                tool_name,
                content,
                is_error,
                timestamp: at(ms),
            })
        },
    );
    prop_oneof![user, assistant(), result]
}

fn transcript_entry() -> impl Strategy<Value = AgentMessage> {
    let extension = (text(), json()).prop_map(|(kind, data)| ExtensionMessage::new(kind, data).into());
    prop_oneof![message().prop_map(AgentMessage::from), extension]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    // spec: T-01, T-02, T-33
    #[test]
    fn a_message_is_read_back_as_it_was(message in message()) {
        let json = serde_json::to_string(&message).unwrap();
        prop_assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
    }

    // spec: T-05, T-33
    #[test]
    fn a_transcript_entry_is_read_back_as_it_was(entry in transcript_entry()) {
        let json = serde_json::to_string(&entry).unwrap();
        let read = serde_json::from_str::<AgentMessage>(&json).unwrap();
        prop_assert_eq!(read.as_llm().is_some(), entry.as_llm().is_some());
        prop_assert_eq!(read, entry);
    }

    // Three layers of flattened and untagged types lie over the message here.
    #[test]
    fn an_event_is_read_back_as_it_was(message in transcript_entry(), seq: u64) {
        let body = RecordBody::MessageAdded { message, source: PromptSource::Prompt };
        let event = Event::Record { run: "run_1".into(), record: Record { seq, at: at(seq), body }.into() };
        let json = serde_json::to_string(&event).unwrap();
        prop_assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    }

    #[test]
    fn tool_call_arguments_of_any_text_are_parsed_or_stored_verbatim(text in text()) {
        let call = ToolCall::from_json_text("c", "t", &text);
        match call.malformed {
            Some(malformed) => prop_assert_eq!(malformed.text, text),
            None if text.trim().is_empty() => prop_assert_eq!(call.arguments, Json::Object(Default::default())),
            None => prop_assert_eq!(call.arguments, serde_json::from_str::<Json>(&text).unwrap()),
        }
    }

    // spec: T-07
    #[test]
    fn the_cache_hit_rate_is_a_share(usage in usage()) {
        prop_assert!((0.0..=1.0).contains(&usage.cache_hit_rate()));
    }
}
