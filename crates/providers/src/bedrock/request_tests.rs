//! Tests of the requests that are sent, byte for byte.

use std::sync::Arc;

use archon_testkit::VirtualClock;
use archon_types::{
    ApiErrorKind, AssistantMessage, CacheConfig, CacheStrategy, CachedParts, Content, Encoded, Message,
    RequestOptions, ResponseFormat, ThinkingLevel, Timestamp, ToolCall, ToolChoice, ToolResult, ToolSpec,
    UserMessage,
};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Fixture, Sent, once, sent};

const SONNET: &str = "us.anthropic.claude-sonnet-4-20250514-v1:0";
const LLAMA: &str = "meta.llama3-3-70b-instruct-v1:0";

fn options() -> BedrockOptions {
    BedrockOptions::default().with_clock(Arc::new(VirtualClock::new()))
}

fn send(options: BedrockOptions, request: &Request) -> Sent {
    let sent = sent(&Bedrock::new(BASE_URL, options).unwrap(), request);
    serde_json::from_str::<Json>(&sent.body).unwrap();
    sent
}

fn check(request: &Request, expected: Expect) {
    expected.assert_eq(&send(options(), request).body);
}

fn ask(model: &str) -> Request {
    Request::new(model, vec![Message::user("hi", Timestamp::default())])
}

fn tools() -> Arc<Encoded<Vec<ToolSpec>>> {
    let schema = json!({"type": "object", "properties": {"z": {}, "a": {}}});
    let tools =
        vec![ToolSpec::new("files.read", "Reads \"a file\".", schema), ToolSpec::new("add", "", json!({}))];
    Arc::new(Encoded::new(tools))
}

fn conversation(model: &str) -> Request {
    let at = Timestamp::default();
    let good = ToolCall::new("c1", "files.read", json!({"z": 1, "a": "ä\n"}));
    let cut = ToolCall::from_json_text("an id/of another service", "add", "{\"a\": 1");
    let thought = |thinking: &str, signature: &str| Content::Thinking {
        thinking: thinking.into(),
        signature: Some(signature.to_owned()),
    };
    let unsigned = Content::Thinking { thinking: "hm".into(), signature: None };
    let mut content = vec![
        thought("Let me look.", "EqQBCk=="),
        thought("", "redacted:cmVk"),
        thought("hm", r#"{"type":"reasoning","id":"rs_1"}"#),
        unsigned,
        Content::text("I look."),
    ];
    content.extend([good.clone(), cut.clone()].map(Content::from));
    let assistant = AssistantMessage { content, ..AssistantMessage::default() };
    let nothing = AssistantMessage {
        content: vec![thought("hm", "EqQB"), Content::text(" ")],
        ..AssistantMessage::default()
    };
    let stopped = AssistantMessage {
        content: vec![Content::text("Yes."), thought("But", "EqQB")],
        ..AssistantMessage::default()
    };
    let image = Content::Image { data: "AAAA".into(), mime_type: "image/png".into() };
    let odd = Content::Image { data: "AAAA".into(), mime_type: "image/tiff".into() };
    let mut shown = ToolResult::success("see");
    shown.content.push(image.clone());
    let user = UserMessage::new(vec![Content::text("look"), image, odd], at);
    let mut request = Request::new(
        model,
        vec![
            Message::User(user),
            Message::Assistant(assistant),
            Message::tool_result(&good, &shown, at),
            Message::tool_result(&cut, &ToolResult::error("not JSON"), at),
            Message::Assistant(nothing),
            Message::user("two\nlines", at),
            Message::user("", at),
            Message::Assistant(stopped),
            Message::user("go on", at),
        ],
    );
    request.system = Some(Arc::new(Encoded::new("Be \"brief\".".to_owned())));
    request.tools = tools();
    request
}

// spec: P-26, P-28
#[test]
fn a_small_request_and_where_it_goes() {
    let headers = options().with_header("x-team", "seven");
    let small = send(headers, &ask(LLAMA));
    expect![[r#"{"messages":[{"content":[{"text":"hi"}],"role":"user"}]}"#]].assert_eq(&small.body);
    assert_eq!(small.method, "POST");
    assert_eq!(small.url, format!("{BASE_URL}/model/meta.llama3-3-70b-instruct-v1%3A0/converse-stream"));
    assert_eq!(small.header("content-type"), Some("application/json"));
    assert_eq!((small.header("authorization"), small.header("x-team")), (None, Some("seven")));

    let arn = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.x y~";
    let bearer = send(options().with_api_key("key"), &ask(arn));
    let path = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.x%20y~";
    assert_eq!(bearer.url, format!("{BASE_URL}/model/{path}/converse-stream"));
    assert_eq!(bearer.header("authorization"), Some("Bearer key"));

    let credentials = AwsCredentials::new("AKID", "secret");
    let signed =
        send(options().with_auth(BedrockAuth::Signed(credentials)).with_region("eu-west-1"), &ask(arn));
    let authorization = signed.header("authorization").unwrap();
    // The virtual clock reads midnight of the first of January.
    let begin = "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/bedrock/aws4_request, ";
    assert!(authorization.starts_with(begin), "{authorization}");
    assert_eq!(signed.header("x-amz-date"), Some("20260101T000000Z"));
}

// spec: P-26
#[test]
fn regions_have_addresses() {
    for (region, host) in [
        ("eu-central-1", "bedrock-runtime.eu-central-1.amazonaws.com"),
        ("cn-north-1", "bedrock-runtime.cn-north-1.amazonaws.com.cn"),
    ] {
        let provider = Bedrock::in_region(region, options()).unwrap();
        assert!(sent(&provider, &ask("m")).url.starts_with(&format!("https://{host}/model/m/")), "{region}");
    }
    let error = Bedrock::in_region("h/x@y", options()).unwrap_err().to_string();
    assert_eq!(error, "region \"h/x@y\": is not the name of a region such as eu-central-1");
}

// spec: P-07, P-13, P-26, T-03
#[test]
fn a_whole_conversation_with_claude() {
    check(
        &conversation(SONNET),
        expect![[r#"
            {"messages":[{"content":[{"text":"look"},{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"text":"[image/tiff: cannot be shown here]"}],"role":"user"},
            {"content":[{"reasoningContent":{"reasoningText":{"text":"Let me look.","signature":"EqQBCk=="}}},{"reasoningContent":{"redactedContent":"cmVk"}},{"text":"I look."},{"toolUse":{"toolUseId":"c1","name":"files__read","input":{"z":1,"a":"ä\n"}}},{"toolUse":{"toolUseId":"an_id_of_another_service_934cae79f80c1725","name":"add","input":{}}}],"role":"assistant"},
            {"content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"see"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}],"status":"success"}},{"toolResult":{"toolUseId":"an_id_of_another_service_934cae79f80c1725","content":[{"text":"Error: not JSON"}],"status":"error"}},{"text":"two\nlines"}],"role":"user"},
            {"content":[{"text":"Yes."},{"cachePoint":{"type":"default"}}],"role":"assistant"},
            {"content":[{"text":"go on"}],"role":"user"}],"system":[{"text":"Be \"brief\"."},{"cachePoint":{"type":"default"}}],"toolConfig":{"tools":[{"toolSpec":{"name":"files__read","description":"Reads \"a file\".","inputSchema":{"json":{"type":"object","properties":{"z":{},"a":{}}}}}},{"toolSpec":{"name":"add","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default"}}]}}"#]],
    );
}

// spec: P-26
#[test]
fn bedrock_request_of_a_model_with_fewer_features() {
    check(
        &conversation(LLAMA),
        expect![[r#"
            {"messages":[{"content":[{"text":"look"},{"image":{"format":"png","source":{"bytes":"AAAA"}}},{"text":"[image/tiff: cannot be shown here]"}],"role":"user"},
            {"content":[{"text":"I look."},{"toolUse":{"toolUseId":"c1","name":"files__read","input":{"z":1,"a":"ä\n"}}},{"toolUse":{"toolUseId":"an_id_of_another_service_934cae79f80c1725","name":"add","input":{}}}],"role":"assistant"},
            {"content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"see"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}]}},{"toolResult":{"toolUseId":"an_id_of_another_service_934cae79f80c1725","content":[{"text":"Error: not JSON"}]}},{"text":"two\nlines"}],"role":"user"},
            {"content":[{"text":"Yes."}],"role":"assistant"},
            {"content":[{"text":"go on"}],"role":"user"}],"system":[{"text":"Be \"brief\"."}],"toolConfig":{"tools":[{"toolSpec":{"name":"files__read","description":"Reads \"a file\".","inputSchema":{"json":{"type":"object","properties":{"z":{},"a":{}}}}}},{"toolSpec":{"name":"add","inputSchema":{"json":{"type":"object"}}}}]}}"#]],
    );
}

// spec: P-07
#[test]
fn cache_points_stand_where_they_were_asked_for() {
    let points = |model: &str, cache: CacheConfig, messages: usize| {
        let mut request = conversation(model);
        let mut options = RequestOptions::default();
        options.cache = cache;
        request.options = Arc::new(options);
        let messages = request.messages.iter().take(messages).cloned().collect();
        request.messages = Arc::new(messages);
        let body: Json = serde_json::from_str(&send(self::options(), &request).body).unwrap();
        let has =
            |list: &Json| list.as_array().unwrap().iter().any(|block| block.get("cachePoint").is_some());
        let in_messages =
            body["messages"].as_array().unwrap().iter().map(|m| if has(&m["content"]) { '*' } else { '.' });
        let text: String = in_messages.collect();
        format!("{} {} {text}", has(&body["system"]), has(&body["toolConfig"]["tools"]))
    };
    let manual = |system, tools, messages| {
        CacheConfig::new(CacheStrategy::Manual(CachedParts { system, tools, messages }))
    };
    for (model, cache, messages, expected) in [
        (SONNET, CacheConfig::default(), 7, "true true .*."),
        (SONNET, CacheConfig::default(), 4, "true true .*."),
        (SONNET, CacheConfig::default(), 2, "true true *."),
        (SONNET, CacheConfig::default(), 1, "true true ."),
        (SONNET, CacheConfig::off(), 7, "false false ..."),
        (SONNET, manual(true, false, false), 7, "true false ..."),
        (SONNET, manual(false, true, true), 7, "false true .*."),
        ("amazon.nova-pro-v1:0", CacheConfig::default(), 7, "true false .*."),
        (LLAMA, CacheConfig::default(), 7, "false false ..."),
    ] {
        assert_eq!(points(model, cache, messages), expected, "{model} {messages}");
    }
}

fn everything(model: &str) -> (Request, RequestOptions) {
    let mut request = ask(model);
    request.tools = tools();
    let mut options = RequestOptions::default();
    options.max_tokens = Some(100);
    options.temperature = Some(0.7);
    options.seed = Some(1);
    options.stop = vec!["END".into()];
    options.tool_choice = ToolChoice::Tool("files.read".into());
    options.cache = CacheConfig::off();
    (request, options)
}

// spec: P-12, P-26, T-32
#[test]
fn every_option() {
    let (mut request, mut options) = everything(SONNET);
    request.options = Arc::new(options.clone());
    check(
        &request,
        expect![[
            r#"{"messages":[{"content":[{"text":"hi"}],"role":"user"}],"inferenceConfig":{"maxTokens":100,"temperature":0.7,"stopSequences":["END"]},"toolConfig":{"tools":[{"toolSpec":{"name":"files__read","description":"Reads \"a file\".","inputSchema":{"json":{"type":"object","properties":{"z":{},"a":{}}}}}},{"toolSpec":{"name":"add","inputSchema":{"json":{"type":"object"}}}}],"toolChoice":{"tool":{"name":"files__read"}}}}"#
        ]],
    );

    // Thinking adds its own tokens, drops the temperature, and forbids a forced call.
    options.thinking = ThinkingLevel::Medium;
    request.options = Arc::new(options.clone());
    check(
        &request,
        expect![[
            r#"{"messages":[{"content":[{"text":"hi"}],"role":"user"}],"inferenceConfig":{"maxTokens":2148,"stopSequences":["END"]},"toolConfig":{"tools":[{"toolSpec":{"name":"files__read","description":"Reads \"a file\".","inputSchema":{"json":{"type":"object","properties":{"z":{},"a":{}}}}}},{"toolSpec":{"name":"add","inputSchema":{"json":{"type":"object"}}}}]},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2048}}}"#
        ]],
    );
    options.max_tokens = None;
    options.thinking = ThinkingLevel::Minimal;
    request.options = Arc::new(options.clone());
    let body = send(self::options(), &request).body;
    assert!(body.contains(r#""maxTokens":9216"#) && body.contains(r#""budget_tokens":1024"#), "{body}");

    // Additional fields are sent, for parameters of one vendor's models.
    options.thinking = ThinkingLevel::Low;
    options.tool_choice = ToolChoice::Required;
    (request.model, request.options) = ("openai.gpt-oss-20b-1:0".into(), Arc::new(options));
    let more = self::options().with_additional_fields(json!({"top_k": 7}));
    expect![[r#"{"messages":[{"content":[{"text":"hi"}],"role":"user"}],"inferenceConfig":{"temperature":0.7,"stopSequences":["END"]},"toolConfig":{"tools":[{"toolSpec":{"name":"files__read","description":"Reads \"a file\".","inputSchema":{"json":{"type":"object","properties":{"z":{},"a":{}}}}}},{"toolSpec":{"name":"add","inputSchema":{"json":{"type":"object"}}}}],"toolChoice":{"any":{}}},"additionalModelRequestFields":{"reasoning_effort":"low","top_k":7}}"#]].assert_eq(&send(more, &request).body);
}

// spec: P-12, P-13, P-26
#[test]
fn a_turn_that_another_model_began_goes_on_without_thinking() {
    let thinks = |model: &str, signature: Option<&str>| {
        let at = Timestamp::default();
        let call = ToolCall::new("c1", "add", json!({}));
        let signature = signature.map(str::to_owned);
        let thinking = Content::Thinking { thinking: "hm".into(), signature };
        let content = vec![thinking, Content::from(call.clone())];
        let answer = AssistantMessage { content, ..AssistantMessage::default() };
        let mut request = ask(model);
        let mut messages = (*request.messages).clone();
        messages.push(Message::Assistant(answer));
        messages.push(Message::tool_result(&call, &ToolResult::success("2"), at));
        let mut options = RequestOptions::default();
        options.thinking = ThinkingLevel::Low;
        (request.messages, request.options) = (Arc::new(messages), Arc::new(options));
        send(self::options(), &request).body.contains(r#""thinking":{"type""#)
    };
    assert!(thinks(SONNET, Some("EqQB")));
    assert!(!thinks(SONNET, Some("gemini:CiQB")));
    assert!(!thinks(SONNET, None));
    assert!(thinks("us.anthropic.claude-opus-4-6-v1:0", None), "an adaptive model takes it");
}

// spec: P-26
#[test]
fn tools_are_left_out_where_no_call_may_come_and_named_where_the_service_demands_them() {
    let mut options = RequestOptions::default();
    options.tool_choice = ToolChoice::None;
    options.cache = CacheConfig::off();
    let options = Arc::new(options);
    let mut request = ask(SONNET);
    (request.tools, request.options) = (tools(), options.clone());
    assert!(!send(self::options(), &request).body.contains("toolConfig"));
    // A conversation with tool calls.
    let mut request = conversation(SONNET);
    request.options = options;
    let given = send(self::options(), &request).body;
    assert!(
        given.contains(r#""toolConfig":{"tools":[{"toolSpec":{"name":"files__read","description""#),
        "{given}"
    );
    request.tools = Arc::default();
    let body: Json = serde_json::from_str(&send(self::options(), &request).body).unwrap();
    expect![[r#"{"tools":[{"toolSpec":{"name":"add","inputSchema":{"json":{"type":"object"}}}},{"toolSpec":{"name":"files__read","inputSchema":{"json":{"type":"object"}}}}]}"#]].assert_eq(&body["toolConfig"].to_string());
}

// spec: P-26
#[test]
fn bedrock_request_with_structured_output() {
    let (mut request, mut options) = everything(SONNET);
    let schema = json!({"type": "object"});
    options.response_format = Some(ResponseFormat { name: "the answer".into(), schema });
    options.tool_choice = ToolChoice::Auto;
    request.options = Arc::new(options.clone());
    check(
        &request,
        expect![[
            r#"{"messages":[{"content":[{"text":"hi"}],"role":"user"}],"system":[{"text":"Give your final answer only by calling the tool `the_answer`."}],"inferenceConfig":{"maxTokens":100,"temperature":0.7,"stopSequences":["END"]},"toolConfig":{"tools":[{"toolSpec":{"name":"files__read","description":"Reads \"a file\".","inputSchema":{"json":{"type":"object","properties":{"z":{},"a":{}}}}}},{"toolSpec":{"name":"add","inputSchema":{"json":{"type":"object"}}}},{"toolSpec":{"name":"the_answer","description":"Gives the final answer. Its arguments are the answer.","inputSchema":{"json":{"type":"object"}}}}],"toolChoice":{"any":{}}}}"#
        ]],
    );
    for (choice, forced) in [(ToolChoice::None, "the_answer"), (ToolChoice::Tool("add".into()), "add")] {
        let mut chosen = options.clone();
        chosen.tool_choice = choice;
        request.options = Arc::new(chosen);
        let body: Json = serde_json::from_str(&send(self::options(), &request).body).unwrap();
        assert_eq!(body["toolConfig"]["toolChoice"], json!({"tool": {"name": forced}}));
    }
    request.options = Arc::new(options.clone());
    request.tools = Arc::default();
    let native = self::options().with_structured(StructuredOutput::Native);
    expect![[r#"{"messages":[{"content":[{"text":"hi"}],"role":"user"}],"inferenceConfig":{"maxTokens":100,"temperature":0.7,"stopSequences":["END"]},"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{\"type\":\"object\"}","name":"the_answer"}}}}}"#]].assert_eq(&send(native, &request).body);
    let body: Json = serde_json::from_str(&send(self::options(), &request).body).unwrap();
    assert_eq!(body["toolConfig"]["toolChoice"], json!({"tool": {"name": "the_answer"}}));

    // A list is no object, and the arguments of a tool must be one.
    let schema = json!({"type": "array"});
    options.response_format = Some(ResponseFormat { name: "x".into(), schema });
    request.options = Arc::new(options);
    let provider = Bedrock::new(BASE_URL, self::options()).unwrap();
    let error = once(&provider, &request, &Fixture::json(500, "{}")).end.unwrap_err();
    assert_eq!(error.refusal(), Some(ApiErrorKind::InvalidRequest));
}
