//! Makes requests for every profile and answers of every fixture without a socket, so that the conformance
//! check can compare them with the services' own clients.

use archon_testkit::VirtualClock;
use archon_types::{
    AssistantMessage, Content, Encoded, Message, RequestOptions, ResponseFormat, ThinkingLevel, Timestamp,
    ToolCall, ToolChoice, ToolResult, ToolSpec, UserMessage,
};
use serde_json::json;

use super::*;
use crate::{
    profile::PROFILES,
    wire_fixture::{BASE_URL, Fixture, once, sent},
};

#[path = "../../tests/openai_compatible/fixtures.rs"]
mod fixtures;
#[path = "../../tests/openai_compatible/service_streams.rs"]
mod service_streams;

fn provider(options: OpenAiOptions) -> OpenAiCompatible {
    OpenAiCompatible::new(BASE_URL, options.with_clock(Arc::new(VirtualClock::new()))).unwrap()
}

fn tools() -> Arc<Encoded<Vec<ToolSpec>>> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tools = ["files.read", "add"].map(|name| ToolSpec::new(name, "A tool.", schema.clone()));
    Arc::new(Encoded::new(tools.to_vec()))
}

/// A conversation with everything in it.
fn conversation() -> Request {
    let at = Timestamp::default();
    let calls = ["call_1", "call_2"].map(|id| ToolCall::new(id, "files.read", json!({"path": "ä"})));
    let image = Content::Image { data: "AAAA".into(), mime_type: "image/png".into() };
    let user = UserMessage::new(vec![Content::text("look"), image], at);
    let thinking = Content::Thinking { thinking: "hm".into(), signature: None };
    let said = [thinking, Content::text("I look.")].into_iter();
    let assistant = AssistantMessage {
        content: said.chain(calls.clone().map(Content::from)).collect(),
        ..AssistantMessage::default()
    };
    let mut messages = vec![Message::User(user), Message::Assistant(assistant)];
    messages.extend(calls.iter().map(|call| Message::tool_result(call, &ToolResult::success("see"), at)));
    messages.push(Message::user("and now?", at));
    let mut request = Request::new("m", messages);
    request.system = Some(Arc::new(Encoded::new("Be brief.".to_owned())));
    request.tools = tools();
    request
}

fn every_choice() -> Vec<RequestOptions> {
    let choices = [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, ToolChoice::Tool("add".into())];
    let mut all: Vec<RequestOptions> = choices
        .into_iter()
        .map(|choice| {
            let mut options = RequestOptions::default();
            options.tool_choice = choice;
            options
        })
        .collect();
    let last = &mut all[3];
    (last.max_tokens, last.temperature, last.seed) = (Some(100), Some(0.5), Some(1));
    last.stop = vec!["END".into()];
    last.thinking = ThinkingLevel::High;
    let schema = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    last.response_format = Some(ResponseFormat { name: "answer".into(), schema });
    all
}

// spec: P-15, P-39
#[test]
fn every_profile_sends_every_choice() {
    for profile in PROFILES {
        let provider = provider(OpenAiOptions::of(profile).with_api_key("sk-canary"));
        for options in every_choice() {
            let mut request = conversation();
            request.options = Arc::new(options);
            let sent = sent(&provider, &request);
            serde_json::from_str::<serde_json::Value>(&sent.body).unwrap();
            assert_eq!(sent.header("authorization"), Some("Bearer sk-canary"));
        }
    }
}

// spec: A-58
#[test]
fn every_fixture_is_understood_without_a_socket() {
    let provider = provider(OpenAiOptions::default());
    let mut request = Request::new("m", vec![Message::user("hi", Timestamp::default())]);
    request.tools = tools();
    for (name, body, _) in fixtures::FIXTURES.iter().chain(service_streams::STREAMS) {
        let heard = once(&provider, &request, &Fixture::sse(*body));
        assert!(heard.end.is_ok(), "{name}: {:?}", heard.end);
        heard.assert_deltas_add_up();
    }
}

// spec: P-31
#[test]
fn a_model_that_the_service_does_not_know_is_answered_with_names_like_it() {
    let provider = provider(OpenAiOptions::default().with_id("openai"));
    let request = Request::new("gtp-5-mini", vec![Message::user("hi", Timestamp::default())]);
    let said = r#"{"error":{"message":"The model does not exist","code":"model_not_found"}}"#;
    let error = once(&provider, &request, &Fixture::json(404, said)).end.unwrap_err().to_string();
    assert!(error.contains("The model does not exist; similar names: gpt-5-mini, "), "{error}");
}
