//! Tests of the requests that are sent.

use std::sync::Arc;

use archon_types::{
    ApiErrorKind, AssistantMessage, CacheConfig, CacheStrategy, CachedParts, Content, Encoded, Json, Message,
    RequestOptions, ResponseFormat, ThinkingLevel, Timestamp, ToolCall, ToolChoice, ToolResult, ToolSpec,
    UserMessage,
};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Sent, sent};

fn send(options: AnthropicOptions, request: &Request) -> Sent {
    let sent = sent(&Anthropic::new(BASE_URL, options).unwrap(), request);
    let body: Json = serde_json::from_str(&sent.body).unwrap_or_else(|e| panic!("{e}: {}", sent.body));
    assert_paired(&body);
    let marks = sent.body.matches("\"cache_control\"").count();
    assert!(marks <= 4, "the service takes four marks of the cache: {}", sent.body);
    sent
}

fn check(request: &Request, expected: Expect) {
    expected.assert_eq(&send(AnthropicOptions::default(), request).body);
}

/// Asserts that every call is answered in the very next message, that results come first, and that roles
/// alternate.
fn assert_paired(body: &Json) {
    let mut open: Vec<&Json> = Vec::new();
    let mut role = "assistant";
    for message in body["messages"].as_array().unwrap() {
        assert_ne!(message["role"], role, "roles alternate: {body}");
        role = message["role"].as_str().unwrap();
        let blocks = message["content"].as_array().unwrap();
        assert!(!blocks.is_empty());
        let of = |kind: &str, key: &str| -> Vec<&Json> {
            blocks.iter().filter(|b| b["type"] == kind).map(|b| &b[key]).collect()
        };
        assert_eq!(of("tool_result", "tool_use_id"), open, "{body}");
        let results = blocks.iter().take_while(|b| b["type"] == "tool_result").count();
        assert_eq!(results, open.len(), "results come first: {body}");
        open = of("tool_use", "id");
    }
    assert!(open.is_empty());
}

fn tools() -> Arc<Encoded<Vec<ToolSpec>>> {
    let schema = json!({"type": "object", "properties": {"z": {}, "a": {}}});
    let tools = vec![
        ToolSpec::new("files.read", "Reads \"a file\".", schema),
        ToolSpec::new("now", "The time.", json!({})),
    ];
    Arc::new(Encoded::new(tools))
}

fn assistant(content: Vec<Content>) -> Message {
    Message::Assistant(AssistantMessage {
        content,
        provider: "anthropic".into(),
        ..AssistantMessage::default()
    })
}

fn thought(thinking: &str, signature: Option<&str>) -> Content {
    Content::Thinking { thinking: thinking.into(), signature: signature.map(str::to_owned) }
}

fn conversation() -> Request {
    let png = || Content::Image { data: "iVBORw0K".into(), mime_type: "image/png".into() };
    let call = |id: &str, name: &str, arguments: Json| ToolCall::new(id, name, arguments);
    let (a, b) = (call("toolu_a", "files.read", json!({"z": 1, "a": [2]})), call("call|b", "now", json!([])));
    let mut failed = ToolResult::error("no such file");
    failed.content.push(png());
    let now = Timestamp::default();
    let user = UserMessage::new(vec![Content::text("look:"), png(), Content::text(" ")], now);
    let messages = vec![
        Message::User(user),
        assistant(vec![
            thought("hm", Some("EqQB")),
            thought("", Some("redacted:EmwK")),
            thought("broke off", None),
            thought("another's", Some("gemini:CiQB")),
            Content::text("I look."),
            a.clone().into(),
            b.clone().into(),
        ]),
        Message::tool_result(&a, &failed, now),
        Message::tool_result(&b, &ToolResult::default(), now),
        Message::user("go on", now),
        assistant(vec![]),
        Message::user("and?", now),
    ];
    let mut request = Request::new("claude-opus-4-6", messages);
    request.system = Some(Arc::new(Encoded::new("Be brief.".to_owned())));
    request.tools = tools();
    request
}

fn with(model: &str, change: impl FnOnce(&mut RequestOptions)) -> Request {
    let mut request = Request::new(model, vec![Message::user("hi", Timestamp::default())]);
    let mut options = RequestOptions::default();
    options.cache = CacheConfig::off();
    change(&mut options);
    request.options = Arc::new(options);
    request
}

// spec: P-07, P-08, P-13, P-14
#[test]
fn a_conversation_with_everything_in_it() {
    check(
        &conversation(),
        expect![[r#"
        {"model":"claude-opus-4-6","max_tokens":8192,"stream":true,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"files__read","description":"Reads \"a file\".","input_schema":{"type":"object","properties":{"z":{},"a":{}}}},{"name":"now","description":"The time.","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"messages":[{"content":[{"type":"text","text":"look:"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0K"}}],"role":"user"},
        {"content":[{"thinking":"hm","signature":"EqQB","type":"thinking"},{"data":"EmwK","type":"redacted_thinking"},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_a","name":"files__read","input":{"z":1,"a":[2]}},{"type":"tool_use","id":"call_b","name":"now","input":{},"cache_control":{"type":"ephemeral"}}],"role":"assistant"},
        {"content":[{"type":"tool_result","tool_use_id":"toolu_a","content":[{"type":"text","text":"Error: no such file"},{"type":"text","text":"[image/png: cannot be shown here]"}],"is_error":true},{"type":"tool_result","tool_use_id":"call_b"},{"type":"text","text":"go on"},{"type":"text","text":"and?"}],"role":"user"}]}"#]],
    );
}

// spec: P-08
#[test]
fn address_and_headers_are_those_of_the_protocol() {
    let request = with("claude-haiku-4-5", |_| {});
    let sent = send(AnthropicOptions::default().with_api_key("sk-ant"), &request);
    assert_eq!(
        (sent.method.as_str(), sent.url.as_str()),
        ("POST", format!("{BASE_URL}/v1/messages").as_str())
    );
    assert_eq!(sent.header("x-api-key"), Some("sk-ant"));
    assert_eq!(sent.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!((sent.header("authorization"), sent.header("anthropic-beta")), (None, None));
    check(
        &request,
        expect![[
            r#"{"model":"claude-haiku-4-5","max_tokens":8192,"stream":true,"messages":[{"content":[{"type":"text","text":"hi"}],"role":"user"}]}"#
        ]],
    );
    let provider = Anthropic::new("https://gateway/anthropic/v1/", AnthropicOptions::default()).unwrap();
    assert!(format!("{provider:?}").contains("https://gateway/anthropic/v1/messages"));
}

/// One model of each kind.
const MODELS: [&str; 9] = [
    "claude-3-5-haiku-latest",
    "claude-sonnet-4-5",
    "claude-opus-4-5",
    "claude-sonnet-4-6",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "kimi-k2",
];

// spec: P-12
#[test]
fn thinking_is_asked_for_as_each_model_takes_it() {
    let mut table = String::new();
    for model in MODELS {
        for thinking in [ThinkingLevel::Off, ThinkingLevel::Minimal, ThinkingLevel::High] {
            let mut request = with(model, |options| {
                options.thinking = thinking;
                options.temperature = Some(0.5);
                options.tool_choice = ToolChoice::Required;
            });
            request.tools = tools();
            let sent = send(AnthropicOptions::default(), &request);
            let mut body: Json = serde_json::from_str(&sent.body).unwrap();
            let body = body.as_object_mut().unwrap();
            for key in ["model", "stream", "messages", "tools"] {
                body.remove(key);
            }
            let beta = sent.header("anthropic-beta").unwrap_or_default();
            table += &format!("{model} {thinking}: {} {beta}\n", serde_json::to_string(body).unwrap());
        }
    }
    expect![[r#"
        claude-3-5-haiku-latest off: {"tool_choice":{"type":"any"},"max_tokens":8192,"temperature":0.5} 
        claude-3-5-haiku-latest minimal: {"tool_choice":{"type":"any"},"max_tokens":8192,"temperature":0.5} 
        claude-3-5-haiku-latest high: {"tool_choice":{"type":"any"},"max_tokens":8192,"temperature":0.5} 
        claude-sonnet-4-5 off: {"tool_choice":{"type":"any"},"max_tokens":8192,"temperature":0.5} 
        claude-sonnet-4-5 minimal: {"thinking":{"type":"enabled","budget_tokens":1024},"max_tokens":8192} 
        claude-sonnet-4-5 high: {"thinking":{"type":"enabled","budget_tokens":8192},"max_tokens":16384} 
        claude-opus-4-5 off: {"tool_choice":{"type":"any"},"max_tokens":8192,"temperature":0.5} 
        claude-opus-4-5 minimal: {"thinking":{"type":"enabled","budget_tokens":1024},"max_tokens":8192} 
        claude-opus-4-5 high: {"thinking":{"type":"enabled","budget_tokens":8192},"max_tokens":16384} 
        claude-sonnet-4-6 off: {"tool_choice":{"type":"any"},"max_tokens":8192,"temperature":0.5} 
        claude-sonnet-4-6 minimal: {"tool_choice":{"type":"any"},"max_tokens":8192,"output_config":{"effort":"low"},"thinking":{"type":"adaptive","display":"summarized"}} 
        claude-sonnet-4-6 high: {"tool_choice":{"type":"any"},"max_tokens":8192,"output_config":{"effort":"high"},"thinking":{"type":"adaptive","display":"summarized"}} 
        claude-opus-4-8 off: {"tool_choice":{"type":"any"},"max_tokens":8192} 
        claude-opus-4-8 minimal: {"tool_choice":{"type":"any"},"max_tokens":8192,"output_config":{"effort":"low"},"thinking":{"type":"adaptive","display":"summarized"}} 
        claude-opus-4-8 high: {"tool_choice":{"type":"any"},"max_tokens":8192,"output_config":{"effort":"high"},"thinking":{"type":"adaptive","display":"summarized"}} 
        claude-opus-5 off: {"tool_choice":{"type":"any"},"max_tokens":8192,"thinking":{"type":"disabled"}} 
        claude-opus-5 minimal: {"tool_choice":{"type":"any"},"max_tokens":8192,"output_config":{"effort":"low"},"thinking":{"type":"adaptive","display":"summarized"}} 
        claude-opus-5 high: {"tool_choice":{"type":"any"},"max_tokens":8192,"output_config":{"effort":"high"},"thinking":{"type":"adaptive","display":"summarized"}} 
        claude-opus-5-5 off: {"output_config":{"effort":"low"},"max_tokens":8192,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}}} thinking-binding-controls-2026-08-01
        claude-opus-5-5 minimal: {"output_config":{"effort":"low"},"max_tokens":8192,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}}} thinking-binding-controls-2026-08-01
        claude-opus-5-5 high: {"output_config":{"effort":"high"},"max_tokens":8192,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}}} thinking-binding-controls-2026-08-01
        claude-sonnet-5-5 off: {"thinking":{"type":"between_tools"},"max_tokens":8192} 
        claude-sonnet-5-5 minimal: {"output_config":{"effort":"low"},"max_tokens":8192,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}}} thinking-binding-controls-2026-08-01
        claude-sonnet-5-5 high: {"output_config":{"effort":"high"},"max_tokens":8192,"thinking":{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}}} thinking-binding-controls-2026-08-01
        kimi-k2 off: {"tool_choice":{"type":"any"},"max_tokens":8192,"temperature":0.5} 
        kimi-k2 minimal: {"thinking":{"type":"enabled","budget_tokens":1024},"max_tokens":8192} 
        kimi-k2 high: {"thinking":{"type":"enabled","budget_tokens":8192},"max_tokens":16384} 
    "#]].assert_eq(&table);
}

// spec: P-12
#[test]
fn budgets_and_limits_can_be_set() {
    let mut options = AnthropicOptions::default();
    options.thinking_budgets.low = 3_000;
    options.max_tokens = 4_000;
    let body = |max_tokens| {
        let request =
            with("claude-sonnet-4-5", |o| (o.thinking, o.max_tokens) = (ThinkingLevel::Low, max_tokens));
        let body: Json = serde_json::from_str(&send(options.clone(), &request).body).unwrap();
        (body["max_tokens"].as_u64().unwrap(), body["thinking"]["budget_tokens"].as_u64().unwrap())
    };
    assert_eq!(body(None), (4_000, 3_000));
    assert_eq!(body(Some(100)), (3_100, 3_000), "the answer keeps its room");
    assert_eq!(body(Some(3_000)), (6_000, 3_000));
}

// spec: P-08
#[test]
fn anthropic_structured_output_is_sent_natively_or_as_a_tool() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    let format = || Some(ResponseFormat { name: "an answer".into(), schema: schema.clone() });
    check(
        &with("claude-opus-5", |o| (o.response_format, o.stop) = (format(), vec!["END".into()])),
        expect![[
            r#"{"model":"claude-opus-5","max_tokens":8192,"stream":true,"stop_sequences":["END"],"thinking":{"type":"disabled"},"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"type":"integer","description":"Must also hold: minimum 1."}},"additionalProperties":false}}},"messages":[{"content":[{"type":"text","text":"hi"}],"role":"user"}]}"#
        ]],
    );
    let mut old = with("claude-sonnet-4-0", |o| o.response_format = format());
    check(
        &old,
        expect![[
            r#"{"model":"claude-sonnet-4-0","max_tokens":8192,"stream":true,"tool_choice":{"type":"tool","name":"an_answer"},"system":[{"type":"text","text":"Give your final answer only by calling the tool `an_answer`."}],"tools":[{"name":"an_answer","description":"Gives the final answer. Its arguments are the answer.","input_schema":{"type":"object","properties":{"n":{"type":"integer","minimum":1}}}}],"messages":[{"content":[{"type":"text","text":"hi"}],"role":"user"}]}"#
        ]],
    );
    old.tools = tools();
    let with_tools: Json = serde_json::from_str(&send(AnthropicOptions::default(), &old).body).unwrap();
    assert_eq!(with_tools["tool_choice"], json!({"type": "any"}));
    assert_eq!(with_tools["tools"].as_array().unwrap().len(), 3);
    for (choice, forced) in [(ToolChoice::None, "an_answer"), (ToolChoice::Tool("now".into()), "now")] {
        let mut request =
            with("claude-sonnet-4-0", |o| (o.response_format, o.tool_choice) = (format(), choice));
        request.tools = tools();
        let body: Json = serde_json::from_str(&send(AnthropicOptions::default(), &request).body).unwrap();
        assert_eq!(body["tool_choice"], json!({"type": "tool", "name": forced}));
    }
    let list = with("claude-sonnet-4-0", |o| {
        o.response_format = Some(ResponseFormat { name: "x".into(), schema: json!({"type": "array"}) });
    });
    let provider = Anthropic::new(BASE_URL, AnthropicOptions::default()).unwrap();
    let fixture = crate::wire_fixture::Fixture::json(500, "{}");
    let error = crate::wire_fixture::once(&provider, &list, &fixture).end.unwrap_err();
    assert_eq!(error.refusal(), Some(ApiErrorKind::InvalidRequest));
}

// spec: P-08
#[test]
fn anthropic_structured_output_with_a_map_is_sent_as_a_tool() {
    let facts = json!({"type": "object", "properties": {"facts": {"type": "object"}}, "required": ["facts"]});
    let request = with("claude-opus-5", |o| {
        o.response_format = Some(ResponseFormat { name: "summary".into(), schema: facts.clone() });
    });
    let body: Json = serde_json::from_str(&send(AnthropicOptions::default(), &request).body).unwrap();
    assert_eq!(body["tools"][0]["input_schema"], facts, "{body}");
    assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "summary"}));
    assert_eq!(body.get("output_config"), None);
}

// spec: P-08
#[test]
fn choices_among_tools() {
    let mut table = String::new();
    for (choice, cached) in [
        (ToolChoice::Auto, CacheStrategy::Disabled),
        (ToolChoice::None, CacheStrategy::Disabled),
        (ToolChoice::Required, CacheStrategy::Disabled),
        (ToolChoice::Tool("files.read".into()), CacheStrategy::Disabled),
        (ToolChoice::Tool("unknown".into()), CacheStrategy::Auto),
    ] {
        let mut request = with("claude-opus-4-6", |options| {
            options.tool_choice = choice;
            options.cache = CacheConfig::new(cached);
        });
        request.tools = tools();
        let body: Json = serde_json::from_str(&send(AnthropicOptions::default(), &request).body).unwrap();
        table += &format!("{} {}\n", body["tool_choice"], body["tools"]);
    }
    expect![[r#"
        null [{"name":"files__read","description":"Reads \"a file\".","input_schema":{"type":"object","properties":{"z":{},"a":{}}}},{"name":"now","description":"The time.","input_schema":{"type":"object"}}]
        {"type":"none"} [{"name":"files__read","description":"Reads \"a file\".","input_schema":{"type":"object","properties":{"z":{},"a":{}}}},{"name":"now","description":"The time.","input_schema":{"type":"object"}}]
        {"type":"any"} [{"name":"files__read","description":"Reads \"a file\".","input_schema":{"type":"object","properties":{"z":{},"a":{}}}},{"name":"now","description":"The time.","input_schema":{"type":"object"}}]
        {"type":"tool","name":"files__read"} [{"name":"files__read","description":"Reads \"a file\".","input_schema":{"type":"object","properties":{"z":{},"a":{}}}},{"name":"now","description":"The time.","input_schema":{"type":"object"}}]
        {"type":"tool","name":"unknown"} [{"name":"files__read","description":"Reads \"a file\".","input_schema":{"type":"object","properties":{"z":{},"a":{}}}},{"name":"now","description":"The time.","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}]
    "#]].assert_eq(&table);
}

// spec: P-04, P-07
#[test]
fn marks_of_the_cache_stand_where_they_were_asked_for() {
    let places = |strategy| {
        let mut request = conversation();
        let mut options = RequestOptions::default();
        options.cache = CacheConfig::new(strategy);
        request.options = Arc::new(options);
        let body: Json = serde_json::from_str(&send(AnthropicOptions::default(), &request).body).unwrap();
        let marked = |part: &Json| -> Vec<bool> {
            part.as_array().unwrap().iter().map(|block| block.get("cache_control").is_some()).collect()
        };
        let messages: Vec<_> =
            body["messages"].as_array().unwrap().iter().map(|m| marked(&m["content"])).collect();
        (marked(&body["system"]), marked(&body["tools"]), messages.concat())
    };
    let none = [false; 11].to_vec();
    // The last block of the second-to-last message, which here is the answer with the calls.
    let mut second_to_last = none.clone();
    second_to_last[6] = true;
    assert_eq!(places(CacheStrategy::Auto), (vec![true], vec![false, true], second_to_last.clone()));
    assert_eq!(places(CacheStrategy::Disabled), (vec![false], vec![false, false], none.clone()));
    let only = |system, tools, messages| CacheStrategy::Manual(CachedParts { system, tools, messages });
    assert_eq!(places(only(true, false, false)), (vec![true], vec![false, false], none.clone()));
    assert_eq!(places(only(false, true, false)), (vec![false], vec![false, true], none));
    assert_eq!(places(only(false, false, true)), (vec![false], vec![false, false], second_to_last));
}

// spec: P-07
#[test]
fn a_growing_conversation_keeps_its_text_and_only_the_mark_moves() {
    let mut request = conversation();
    let mut before: Option<String> = None;
    for turn in 0..4 {
        let mut messages = (*request.messages).clone();
        let call =
            ToolCall::new(format!("t{turn}"), "now", json!({"],\"role\":\"user\"},\n": "type\":\"thinking"}));
        let now = Timestamp::default();
        messages.push(assistant(vec![Content::text("type\":\"thinking"), call.clone().into()]));
        messages.push(Message::tool_result(&call, &ToolResult::success("12:00"), now));
        request.messages = Arc::new(messages);
        let body = send(AnthropicOptions::default(), &request).body;
        assert_eq!(body.matches("cache_control").count(), 3, "{body}");
        let bare = body.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
        if let Some(before) = before {
            assert!(bare.starts_with(before.trim_end_matches("]}")), "{before}\n{bare}");
        }
        before = Some(bare);
    }
}

// spec: P-07, P-13
#[test]
fn anthropic_thinking_without_an_answer_is_left_out() {
    let now = Timestamp::default();
    let body = |content: Vec<Content>| {
        let messages = vec![Message::user("a", now), assistant(content), Message::user("b", now)];
        send(AnthropicOptions::default(), &Request::new("claude-opus-4-6", messages)).body
    };
    let thinking = [thought("hm", Some("EqQB")), thought("", Some("redacted:EmwK"))];
    // Cut off before any text came, or with its calls removed.
    let alone = body([thinking.to_vec(), vec![Content::text(" ")]].concat());
    assert!(!alone.contains("thinking") && !alone.contains("assistant"), "{alone}");
    // The text before the thinking is then the end of the message, and gets the cache mark.
    let behind = body([vec![thinking[0].clone(), Content::text("Well.")], thinking.to_vec()].concat());
    let message = r#"{"content":[{"thinking":"hm","signature":"EqQB","type":"thinking"},{"type":"text","text":"Well.","cache_control":{"type":"ephemeral"}}],"role":"assistant"}"#;
    assert!(behind.contains(message), "{behind}");
}

// spec: P-12, P-13
#[test]
fn a_turn_that_another_model_began_goes_on_without_thinking() {
    let thinks = |first: Vec<Content>, model: &str| {
        let now = Timestamp::default();
        let call = |id: &str| ToolCall::new(id, "now", json!({}));
        let result = |id: &str| Message::tool_result(&call(id), &ToolResult::success("12:00"), now);
        let messages = vec![
            Message::user("hi", now),
            assistant([first, vec![call("a").into()]].concat()),
            result("a"),
            // Within a turn the model need not think again.
            assistant(vec![call("b").into()]),
            result("b"),
        ];
        let mut request = with(model, |o| o.thinking = ThinkingLevel::Low);
        request.messages = Arc::new(messages.into_iter().collect());
        let body: Json = serde_json::from_str(&send(AnthropicOptions::default(), &request).body).unwrap();
        body.get("thinking").is_some()
    };
    assert!(thinks(vec![thought("hm", Some("EqQB"))], "claude-sonnet-4-5"));
    assert!(thinks(vec![thought("", Some("redacted:EmwK"))], "claude-sonnet-4-5"));
    assert!(!thinks(vec![], "claude-sonnet-4-5"));
    assert!(!thinks(vec![thought("hm", Some("gemini:CiQB"))], "claude-sonnet-4-5"));
    assert!(!thinks(vec![thought("broke off", None)], "claude-sonnet-4-5"));
    assert!(thinks(vec![], "claude-opus-4-6"), "an adaptive model takes it");
    // An empty answer is not sent, so the turn begins after it.
    let now = Timestamp::default();
    let call = ToolCall::new("a", "now", json!({}));
    let messages = vec![
        Message::user("hi", now),
        assistant(vec![thought("hm", Some("EqQB"))]),
        assistant(vec![call.clone().into()]),
        Message::tool_result(&call, &ToolResult::success("12:00"), now),
    ];
    let mut request = with("claude-sonnet-4-5", |o| o.thinking = ThinkingLevel::Low);
    request.messages = Arc::new(messages.into_iter().collect());
    assert!(!send(AnthropicOptions::default(), &request).body.contains("\"thinking\""));
}

// spec: P-13
#[test]
fn changed_history_drops_thinking_or_is_refused() {
    let request = with("claude-opus-5-5", |o| o.thinking = ThinkingLevel::High);
    let mut options = AnthropicOptions::default();
    assert!(send(options.clone(), &request).body.contains("drop_block"));
    options.changed_history = ChangedHistory::Refuse;
    let sent = send(options, &request);
    assert!(!sent.body.contains("block_binding"));
    assert_eq!(sent.header("anthropic-beta"), None);
}
