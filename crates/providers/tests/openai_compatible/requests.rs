//! Requests, compared byte for byte.

use archon_providers::{Compat, PROFILES, Profile};
use archon_testkit::MockResponse;
use archon_types::{
    Content, Encoded, RequestOptions, ResponseFormat, ThinkingLevel, ToolCall, ToolChoice, ToolResult,
    ToolSpec, UserMessage,
};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn yes() -> MockResponse {
    MockResponse::events([r#"{"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}"#, "[DONE]"])
}

async fn sent(compat: Compat, requests: Vec<Request>) -> Vec<String> {
    let server = MockServer::start(requests.iter().map(|_| yes())).await;
    let provider = OpenAiCompatible::new(&server.url(), options().with_compat(compat)).unwrap();
    for request in requests {
        finish(start(&provider, request)).await.1.unwrap();
    }
    server.assert_paired();
    server.requests().into_iter().map(|r| r.text).collect()
}

async fn check(compat: Compat, request: Request, expected: Expect) {
    let texts = sent(compat, vec![request]).await;
    expected.assert_eq(&texts[0]);
    serde_json::from_str::<serde_json::Value>(&texts[0]).unwrap();
}

fn tools() -> Vec<ToolSpec> {
    let schema = json!({"type": "object", "properties": {"z": {}, "a": {}}});
    vec![
        ToolSpec::new("files.read", "Reads \"a file\".", schema.clone()),
        ToolSpec::new("add", "Adds.", schema),
    ]
}

fn conversation() -> Request {
    let at = Timestamp::default();
    let good = ToolCall::new("c1", "files.read", json!({"z": 1, "a": "ä\n"}));
    let cut = ToolCall::from_json_text("c2", "add", "{\"a\": 1");
    let thinking = Content::Thinking { thinking: "hm".into(), signature: None };
    let calls = [good.clone(), cut.clone()].map(Content::from);
    let assistant = AssistantMessage {
        content: [thinking, Content::text("I look.")].into_iter().chain(calls).collect(),
        ..AssistantMessage::default()
    };
    let image = Content::Image { data: "AAAA".into(), mime_type: "image/png".into() };
    let mut shown = ToolResult::success("see");
    shown.content.push(image.clone());
    let user = UserMessage::new(vec![Content::text("look"), image], at);
    let mut request = Request::new(
        "m\"1",
        vec![
            Message::User(user),
            Message::Assistant(assistant),
            Message::tool_result(&good, &shown, at),
            Message::tool_result(&cut, &ToolResult::error("not JSON"), at),
            Message::user("two\nlines", at),
        ],
    );
    request.system = Some(Arc::new(Encoded::new("Be brief.".to_owned())));
    request.tools = Arc::new(Encoded::new(tools()));
    request
}

// spec: P-15
#[tokio::test]
async fn a_small_request() {
    let expected = expect![[
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}"#
    ]];
    check(Compat::default(), ask(), expected).await;
}

// spec: P-15, P-17
#[tokio::test]
async fn a_whole_conversation() {
    let expected = expect![[
        r#"{"model":"m\"1","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"files__read","description":"Reads \"a file\".","parameters":{"type":"object","properties":{"z":{},"a":{}}}}},{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object","properties":{"z":{},"a":{}}}}}],"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"files__read","arguments":"{\"z\":1,\"a\":\"ä\\n\"}"}},{"id":"c2","type":"function","function":{"name":"add","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"see\n[image/png: cannot be shown here]"},{"role":"tool","tool_call_id":"c2","content":"Error: not JSON"},{"role":"user","content":"two\nlines"}]}"#
    ]];
    check(Compat::default(), conversation(), expected).await;
}

fn everything() -> Request {
    let mut request = ask();
    request.system = Some(Arc::new(Encoded::new("Be brief.".to_owned())));
    request.tools = Arc::new(Encoded::new(tools()));
    let mut options = RequestOptions::default();
    options.max_tokens = Some(100);
    options.temperature = Some(0.7);
    options.seed = Some(1);
    options.stop = vec!["END".into()];
    options.thinking = ThinkingLevel::Minimal;
    options.tool_choice = ToolChoice::Tool("files.read".into());
    options.response_format =
        Some(ResponseFormat { name: "an answer".into(), schema: json!({"type": "object"}) });
    request.options = Arc::new(options);
    request
}

// spec: P-04, P-15, P-16, P-18
#[tokio::test]
async fn every_option_as_openai_wants_it() {
    let expected = expect![[
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":100,"temperature":0.7,"seed":1,"stop":["END"],"reasoning_effort":"low","tool_choice":{"type":"function","function":{"name":"files__read"}},"response_format":{"type":"json_schema","json_schema":{"name":"an_answer","strict":false,"schema":{"type":"object"}}},"tools":[{"type":"function","function":{"name":"files__read","description":"Reads \"a file\".","parameters":{"type":"object","properties":{"z":{},"a":{}}}}},{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object","properties":{"z":{},"a":{}}}}}],"messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":"hi"}]}"#
    ]];
    check(Profile::named("openai").unwrap().compat, everything(), expected).await;
}

// spec: P-15, P-16
#[tokio::test]
async fn every_option_as_mistral_wants_it() {
    let expected = expect![[
        r#"{"model":"m","stream":true,"max_tokens":100,"temperature":0.7,"stop":["END"],"tool_choice":{"type":"function","function":{"name":"files__read"}},"response_format":{"type":"json_schema","json_schema":{"name":"an_answer","strict":false,"schema":{"type":"object"}}},"tools":[{"type":"function","function":{"name":"files__read","description":"Reads \"a file\".","parameters":{"type":"object","properties":{"z":{},"a":{}}}}},{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object","properties":{"z":{},"a":{}}}}}],"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}]}"#
    ]];
    check(Profile::named("mistral").unwrap().compat, everything(), expected).await;
}

// spec: P-15
#[tokio::test]
async fn strict_mode_is_sent_only_for_schemas_that_the_service_accepts_strictly() {
    let body = async |schema| {
        let mut request = ask();
        Arc::make_mut(&mut request.options).response_format =
            Some(ResponseFormat { name: "n".into(), schema });
        sent(Profile::named("openai").unwrap().compat, vec![request]).await.remove(0)
    };
    let field = json!({"n": {"type": "integer"}});
    let closed =
        json!({"type": "object", "properties": field, "required": ["n"], "additionalProperties": false});
    assert!(body(closed).await.contains(r#""strict":true"#));
    let optional = json!({"type": "object", "properties": field, "additionalProperties": false});
    assert!(body(optional).await.contains(r#""strict":false"#));
}

// spec: P-18
#[tokio::test]
async fn reasoning_is_sent_back_in_the_format_of_its_service() {
    let request = conversation();
    let deepseek = Profile::named("deepseek").unwrap().compat;
    let plain = sent(Compat::default(), vec![request.clone()]).await;
    let with_reasoning = sent(deepseek, vec![request.clone()]).await;
    let again = sent(Compat::default(), vec![request]).await;
    assert!(!plain[0].contains("reasoning_content"));
    assert!(with_reasoning[0].contains(r#""reasoning_content":"hm""#));
    assert_eq!(plain, again);
}

// spec: P-15, P-18
#[tokio::test]
async fn empty_assistant_message_is_left_out_of_the_request() {
    let at = Timestamp::default();
    let thought = Content::Thinking { thinking: "hm".into(), signature: None };
    let body = async |profile: &str, content: Vec<Content>| {
        let answer = Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() });
        let messages = vec![Message::user("hi", at), answer, Message::user("go on", at)];
        let compat = Profile::named(profile).unwrap().compat;
        sent(compat, vec![Request::new("m", messages)]).await.remove(0)
    };
    let without = r#""messages":[{"role":"user","content":"hi"},{"role":"user","content":"go on"}]"#;
    for profile in ["mistral", "moonshot", "deepseek", "openai"] {
        for content in [vec![], vec![Content::text("")]] {
            let body = body(profile, content).await;
            assert!(body.contains(without), "{profile}: {body}");
        }
    }
    assert!(body("mistral", vec![thought.clone()]).await.contains(without), "no field for what it thought");
    let kept = body("deepseek", vec![thought]).await;
    assert!(kept.contains(r#"{"role":"assistant","content":"","reasoning_content":"hm"}"#), "{kept}");
}

// spec: P-15, P-39
#[tokio::test]
async fn growing_conversations_share_a_prefix_and_every_profile_sends_json() {
    for profile in PROFILES {
        let first = conversation();
        let mut second = first.clone();
        let mut messages = (*second.messages).clone();
        messages.push(Message::Assistant(AssistantMessage::default()));
        second.messages = Arc::new(messages);
        let texts = sent(profile.compat, vec![first, second]).await;
        assert!(texts[1].starts_with(texts[0].trim_end_matches("]}")), "{}", profile.name);
        for text in texts {
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
        }
    }
}

// spec: P-15
#[tokio::test]
async fn choices_among_tools_are_spelled_out() {
    let body = async |tools: Vec<ToolSpec>, choice| {
        let mut request = ask();
        request.tools = Arc::new(Encoded::new(tools));
        let mut options = RequestOptions::default();
        options.tool_choice = choice;
        request.options = Arc::new(options);
        sent(Compat::default(), vec![request]).await.remove(0)
    };
    for (choice, text) in [(ToolChoice::None, "none"), (ToolChoice::Required, "required")] {
        assert!(body(tools(), choice.clone()).await.contains(&format!(r#""tool_choice":"{text}""#)));
        assert!(!body(vec![], choice).await.contains("tool_choice"));
    }
    assert!(!body(tools(), ToolChoice::Auto).await.contains("tool_choice"));
}

// spec: P-15
#[tokio::test]
async fn headers_and_path_are_those_of_the_protocol_and_no_key_is_needed() {
    let server = MockServer::start([yes(), yes()]).await;
    answer(&server, ask()).await.unwrap();
    let without_key =
        OpenAiCompatible::new(&format!("{}/v1/", server.url()), OpenAiOptions::default()).unwrap();
    finish(start(&without_key, ask())).await.1.unwrap();
    let requests = server.requests();
    for request in &requests {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("content-length"), Some(request.text.len().to_string().as_str()));
        assert!(request.header("user-agent").unwrap().starts_with("archon/"));
    }
    assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(requests[1].header("authorization"), None);
}
