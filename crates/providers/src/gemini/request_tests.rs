//! Tests of the requests that are sent.

use std::sync::Arc;

use archon_types::{
    AssistantMessage, Content, Encoded, Json, Message, RequestOptions, ResponseFormat, ThinkingLevel,
    Timestamp, ToolCall, ToolChoice, ToolResult, ToolSpec, UserMessage,
};
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::wire_fixture::{BASE_URL, Sent, sent};

fn send(options: GeminiOptions, request: &Request) -> Sent {
    let sent = sent(&Gemini::new(BASE_URL, options).unwrap(), request);
    let body: Json = serde_json::from_str(&sent.body).unwrap_or_else(|e| panic!("{e}: {}", sent.body));
    assert_paired(&body);
    sent
}

/// Asserts that every call is answered in the very next content, in order, and that roles alternate.
fn assert_paired(body: &Json) {
    let mut open: Vec<&Json> = Vec::new();
    let mut role = "model";
    for content in body["contents"].as_array().unwrap() {
        assert_ne!(content["role"], role, "roles alternate: {body}");
        role = content["role"].as_str().unwrap();
        let parts = content["parts"].as_array().unwrap();
        assert!(!parts.is_empty());
        let of = |kind: &str| -> Vec<&Json> {
            parts.iter().map(|p| &p[kind]["name"]).filter(|n| !n.is_null()).collect()
        };
        assert_eq!(of("functionResponse"), open, "{body}");
        open = of("functionCall");
    }
    assert!(open.is_empty());
}

fn check(request: &Request, expected: Expect) {
    expected.assert_eq(&send(GeminiOptions::default(), request).body);
}

fn tools() -> Arc<Encoded<Vec<ToolSpec>>> {
    let schema = json!({"$schema": "x", "type": "object", "properties": {"z": {}, "a": {"type": "string"}},
        "additionalProperties": false});
    let tools = vec![
        ToolSpec::new("files.read", "Reads \"a file\".", schema),
        ToolSpec::new("now", "The time.", json!({"type": "object", "properties": {}})),
    ];
    Arc::new(Encoded::new(tools))
}

fn conversation(model: &str) -> Request {
    let png = || Content::Image { data: "iVBORw0K".into(), mime_type: "image/png".into() };
    let signed = |text: &str| Content::Thinking { thinking: "hm".into(), signature: Some(text.into()) };
    let a = ToolCall::new("google-fc-r1-0", "files.read", json!({"z": 1, "a": "b"}));
    let b = ToolCall::new("fc-7", "now", json!([]));
    let mut failed = ToolResult::error("no such file");
    failed.content.push(png());
    let now = Timestamp::default();
    let said = |content| Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() });
    let messages = vec![
        Message::User(UserMessage::new(vec![Content::text("look:"), png()], now)),
        said(vec![signed("gemini:CiQB"), a.clone().into(), b.clone().into()]),
        Message::tool_result(&a, &failed, now),
        Message::tool_result(&b, &ToolResult::success("12:00"), now),
        said(vec![Content::text("Twelve."), signed("gemini-text:CiQC"), signed("EqQBanthropic")]),
        Message::user("again", now),
        said(vec![Content::text("I look."), b.clone().into()]),
        Message::tool_result(&b, &ToolResult::success("12:01"), now),
        said(vec![]),
        Message::user("go on", now),
    ];
    let mut request = Request::new(model, messages);
    request.system = Some(Arc::new(Encoded::new("Be brief.".to_owned())));
    request.tools = tools();
    request
}

// spec: P-22, P-23
#[test]
fn a_conversation_with_everything_in_it() {
    check(
        &conversation("gemini-2.5-flash"),
        expect![[r#"
        {"contents":[{"parts":[{"text":"look:"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0K"}}],"role":"user"},
        {"parts":[{"functionCall":{"name":"files__read","args":{"z":1,"a":"b"}},"thoughtSignature":"CiQB"},{"functionCall":{"name":"now","id":"fc-7","args":{}}}],"role":"model"},
        {"parts":[{"functionResponse":{"name":"files__read","response":{"error":"Error: no such file"}}},{"functionResponse":{"name":"now","id":"fc-7","response":{"result":"12:00"}}},{"text":"[From a result of the tool files__read; no person wrote it]"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0K"}}],"role":"user"},
        {"parts":[{"text":"Twelve."},{"text":"","thoughtSignature":"CiQC"}],"role":"model"},
        {"parts":[{"text":"again"}],"role":"user"},
        {"parts":[{"text":"I look."},{"functionCall":{"name":"now","id":"fc-7","args":{}}}],"role":"model"},
        {"parts":[{"functionResponse":{"name":"now","id":"fc-7","response":{"result":"12:01"}}},{"text":"go on"}],"role":"user"}],"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[{"functionDeclarations":[{"name":"files__read","description":"Reads \"a file\".","parametersJsonSchema":{"type":"object","properties":{"z":{},"a":{"type":"string"}},"additionalProperties":false}},{"name":"now","description":"The time."}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}"#]],
    );
    let third = send(GeminiOptions::default(), &conversation("gemini-3-pro-preview")).body;
    let contents = |body: &str| body.split("],\"systemInstruction\"").next().unwrap().to_owned();
    expect![[r#"
        {"contents":[{"parts":[{"text":"look:"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0K"}}],"role":"user"},
        {"parts":[{"functionCall":{"name":"files__read","args":{"z":1,"a":"b"}},"thoughtSignature":"CiQB"},{"functionCall":{"name":"now","id":"fc-7","args":{}}}],"role":"model"},
        {"parts":[{"functionResponse":{"name":"files__read","response":{"error":"Error: no such file"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0K"}}]}},{"functionResponse":{"name":"now","id":"fc-7","response":{"result":"12:00"}}}],"role":"user"},
        {"parts":[{"text":"Twelve."},{"text":"","thoughtSignature":"CiQC"}],"role":"model"},
        {"parts":[{"text":"again"}],"role":"user"},
        {"parts":[{"text":"I look."},{"functionCall":{"name":"now","id":"fc-7","args":{}},"thoughtSignature":"skip_thought_signature_validator"}],"role":"model"},
        {"parts":[{"functionResponse":{"name":"now","id":"fc-7","response":{"result":"12:01"}}},{"text":"go on"}],"role":"user"}"#]].assert_eq(&contents(&third));
}

// spec: P-22
#[test]
fn every_option_is_spelled_out() {
    let mut request = Request::new("gemini-2.5-pro", vec![Message::user("hi", Timestamp::default())]);
    request.tools = tools();
    let mut options = RequestOptions::default();
    options.max_tokens = Some(100);
    options.temperature = Some(0.5);
    options.seed = Some(u64::MAX);
    options.stop = vec!["END".into()];
    options.thinking = ThinkingLevel::Low;
    options.tool_choice = ToolChoice::Tool("files.read".into());
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "$comment": "x"});
    options.response_format = Some(ResponseFormat { name: "answer".into(), schema });
    request.options = Arc::new(options);
    let gemini = GeminiOptions::default().with_safety("HARM_CATEGORY_HARASSMENT", "BLOCK_NONE");
    request.model = "gemini-3.1-pro-preview".into();
    expect![[r#"{"contents":[{"parts":[{"text":"hi"}],"role":"user"}],"tools":[{"functionDeclarations":[{"name":"files__read","description":"Reads \"a file\".","parametersJsonSchema":{"type":"object","properties":{"z":{},"a":{"type":"string"}},"additionalProperties":false}},{"name":"now","description":"The time."}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["files__read"]}},"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],"generationConfig":{"maxOutputTokens":100,"temperature":0.5,"seed":2147483647,"stopSequences":["END"],"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"n":{"type":"integer"}}},"thinkingConfig":{"thinkingLevel":"LOW","includeThoughts":true}}}"#]].assert_eq(&send(gemini, &request).body);
    let mut choices = String::new();
    for choice in [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required] {
        let mut options = RequestOptions::default();
        options.tool_choice = choice;
        request.options = Arc::new(options);
        let body: Json = serde_json::from_str(&send(GeminiOptions::default(), &request).body).unwrap();
        choices += &format!("{}\n", body["toolConfig"]);
    }
    expect![[r#"
        null
        {"functionCallingConfig":{"mode":"NONE"}}
        {"functionCallingConfig":{"mode":"ANY"}}
    "#]]
    .assert_eq(&choices);
}

// spec: P-22
#[test]
fn gemini_before_3_structured_output_with_tools_is_sent_as_a_tool() {
    let body_with = |tools, choice| {
        let mut request = Request::new("gemini-2.5-pro", vec![Message::user("hi", Timestamp::default())]);
        request.tools = tools;
        let mut options = RequestOptions::default();
        options.tool_choice = choice;
        options.response_format =
            Some(ResponseFormat { name: "answer".into(), schema: json!({"type": "object"}) });
        request.options = Arc::new(options);
        send(GeminiOptions::default(), &request).body
    };
    let body = |tools| body_with(tools, ToolChoice::default());
    for (choice, forced) in [(ToolChoice::None, "answer"), (ToolChoice::Tool("now".into()), "now")] {
        let body: Json = serde_json::from_str(&body_with(tools(), choice)).unwrap();
        let config = &body["toolConfig"]["functionCallingConfig"];
        assert_eq!(*config, json!({"mode": "ANY", "allowedFunctionNames": [forced]}));
    }
    expect![[r#"{"contents":[{"parts":[{"text":"hi"}],"role":"user"}],"systemInstruction":{"parts":[{"text":"Give your final answer only by calling the tool `answer`."}]},"tools":[{"functionDeclarations":[{"name":"files__read","description":"Reads \"a file\".","parametersJsonSchema":{"type":"object","properties":{"z":{},"a":{"type":"string"}},"additionalProperties":false}},{"name":"now","description":"The time."},{"name":"answer","description":"Gives the final answer. Its arguments are the answer.","parametersJsonSchema":{"type":"object"}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"generationConfig":{"thinkingConfig":{"thinkingBudget":128}}}"#]].assert_eq(&body(tools()));
    expect![[r#"{"contents":[{"parts":[{"text":"hi"}],"role":"user"}],"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"object"},"thinkingConfig":{"thinkingBudget":128}}}"#]].assert_eq(&body(Arc::default()));
}

// spec: P-22
#[test]
fn address_and_headers_are_those_of_the_protocol() {
    let url = |base: &str, model: &str| {
        let provider = Gemini::new(base, GeminiOptions::default()).unwrap();
        sent(&provider, &Request::new(model, vec![])).url
    };
    assert_eq!(
        url(GEMINI_URL, "gemini-2.5-pro"),
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    );
    assert_eq!(
        url("https://h/x/v1/", "models/a b/ü"),
        "https://h/x/v1/models/a%20b%2F%C3%BC:streamGenerateContent?alt=sse"
    );
    let sent = send(GeminiOptions::default().with_api_key("AIza"), &conversation("gemini-2.5-pro"));
    assert_eq!((sent.method.as_str(), sent.header("x-goog-api-key")), ("POST", Some("AIza")));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("authorization"), None);
}

// spec: P-22
#[test]
fn a_growing_conversation_keeps_its_text() {
    let mut request = conversation("gemini-3-pro-preview");
    let text = |request: &Request| {
        let body = send(GeminiOptions::default(), request).body;
        body.split(",\"systemInstruction\"").next().unwrap().trim_end_matches("]").to_owned()
    };
    let before = text(&request);
    let mut messages = (*request.messages).clone();
    messages.push(Message::Assistant(AssistantMessage {
        content: vec![Content::text("],\"role\":\"user\"},\n")],
        ..AssistantMessage::default()
    }));
    messages.push(Message::user("more", Timestamp::default()));
    request.messages = Arc::new(messages);
    let after = text(&request);
    assert!(after.starts_with(&before), "{before}\n{after}");
}
