//! Differences between services: their streams, and the form of requests to them.

use archon_providers::{PROFILES, Profile};
use archon_testkit::MockResponse;
use archon_types::{
    Content, Encoded, RequestOptions, ResponseFormat, ThinkingLevel, ToolCall, ToolChoice, ToolResult,
    ToolSpec,
};
use serde_json::{Value, json};

use super::*;

fn schema() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}})
}

/// A request with everything that services spell differently.
fn everything(model: &str) -> Request {
    let at = Timestamp::default();
    let call = ToolCall::new("call_of_another_service", "add", json!({"a": 1}));
    let thinking = Content::Thinking { thinking: "hm".into(), signature: None };
    let assistant = AssistantMessage {
        content: vec![thinking, Content::from(call.clone())],
        ..AssistantMessage::default()
    };
    let result = Message::tool_result(&call, &ToolResult::success("2"), at);
    let mut request =
        Request::new(model, vec![Message::user("hi", at), Message::Assistant(assistant), result]);
    request.tools = Arc::new(Encoded::new(vec![ToolSpec::new("add", "Adds.", schema())]));
    let mut options = RequestOptions::default();
    options.max_tokens = Some(100);
    options.temperature = Some(0.5);
    options.seed = Some(1);
    options.thinking = ThinkingLevel::Medium;
    options.tool_choice = ToolChoice::Tool("add".into());
    options.response_format = Some(ResponseFormat { name: "n".into(), schema: schema() });
    request.options = Arc::new(options);
    request
}

async fn sent(profile: &str, request: Request) -> Value {
    let yes = [r#"{"choices":[{"delta":{"content":"{}"},"finish_reason":"stop"}]}"#, "[DONE]"];
    let server = MockServer::start([MockResponse::events(yes)]).await;
    let options = options().with_compat(Profile::named(profile).unwrap().compat);
    let provider = OpenAiCompatible::new(&server.url(), options).unwrap();
    finish(start(&provider, request)).await.1.unwrap();
    server.assert_paired();
    serde_json::from_str(&server.requests()[0].text).unwrap()
}

// spec: P-16, P-18
#[tokio::test]
async fn request_of_each_service_uses_its_parameter_names() {
    let named = json!({"type": "function", "function": {"name": "add"}});
    let required = json!("required");
    for (profile, expected) in [
        (
            "openai",
            json!({"max_completion_tokens": 100, "reasoning_effort": "medium", "seed": 1, "tool_choice": named}),
        ),
        ("openrouter", json!({"reasoning": {"effort": "medium"}, "max_tokens": 100, "tool_choice": named})),
        (
            "deepseek",
            json!({"thinking": {"type": "enabled"}, "max_tokens": 100, "seed": null, "tool_choice": null}),
        ),
        ("zai", json!({"thinking": {"type": "enabled"}, "tool_choice": null, "seed": null})),
        ("moonshot", json!({"thinking": {"type": "enabled"}, "tool_choice": null})),
        ("vllm", json!({"chat_template_kwargs": {"enable_thinking": true}, "tool_choice": named})),
        ("llamacpp", json!({"chat_template_kwargs": {"enable_thinking": true}, "tool_choice": required})),
        ("lmstudio", json!({"tool_choice": required, "reasoning_effort": null})),
        ("ollama", json!({"tool_choice": null, "reasoning_effort": "medium"})),
        ("groq", json!({"max_completion_tokens": 100, "reasoning_effort": null})),
        ("cerebras", json!({"max_completion_tokens": 100, "reasoning_effort": "medium"})),
        ("xai", json!({"max_tokens": 100, "reasoning_effort": null})),
        ("mistral", json!({"stream_options": null, "seed": null, "max_tokens": 100})),
        ("together", json!({"reasoning_effort": null, "max_tokens": 100})),
        ("fireworks", json!({"reasoning_effort": "medium", "max_tokens": 100})),
    ] {
        let body = sent(profile, everything("m")).await;
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(body.get(field).unwrap_or(&Value::Null), value, "{profile}: {field}");
        }
    }
}

// spec: P-18
#[tokio::test]
async fn reasoning_goes_back_under_the_name_that_a_service_knows() {
    for (profile, field) in [
        ("deepseek", Some("reasoning_content")),
        ("moonshot", Some("reasoning_content")),
        ("zai", Some("reasoning_content")),
        ("openrouter", Some("reasoning")),
        ("groq", Some("reasoning")),
        ("openai", None),
        ("cerebras", None),
        ("xai", None),
    ] {
        let body = sent(profile, everything("m")).await;
        let message = body["messages"].as_array().unwrap().iter().find(|m| m["role"] == "assistant").unwrap();
        for name in ["reasoning", "reasoning_content"] {
            assert_eq!(message.get(name).is_some(), field == Some(name), "{profile}: {name}");
        }
    }
}

// spec: P-18, P-39
#[tokio::test]
async fn missing_reasoning_is_replaced_by_a_placeholder_where_required() {
    let at = Timestamp::default();
    let call = ToolCall::new("c1", "add", json!({"a": 1}));
    let said = |content| Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() });
    let thought = Content::Thinking { thinking: "hm".into(), signature: None };
    let messages = vec![
        Message::user("hi", at),
        said(vec![Content::from(call.clone())]),
        Message::tool_result(&call, &ToolResult::success("2"), at),
        said(vec![thought, Content::text("Two.")]),
        Message::user("and?", at),
    ];
    for (profile, model, thinking, expected) in [
        ("deepseek", "deepseek-v4-pro", ThinkingLevel::Off, Some("")),
        ("deepseek", "deepseek-reasoner", ThinkingLevel::Off, Some("")),
        ("deepseek", "deepseek-chat", ThinkingLevel::Off, None),
        ("deepseek", "deepseek-chat", ThinkingLevel::Low, Some("")),
        ("moonshot", "kimi-k2.6", ThinkingLevel::Off, Some(" ")),
        ("moonshot", "kimi-k3", ThinkingLevel::Low, Some(" ")),
        ("moonshot", "moonshot-v1-8k", ThinkingLevel::Off, None),
        ("zai", "glm-5", ThinkingLevel::Low, None),
        ("openai", "gpt-5", ThinkingLevel::Low, None),
    ] {
        let mut request = Request::new(model, messages.clone());
        Arc::make_mut(&mut request.options).thinking = thinking;
        let body = sent(profile, request).await;
        let reasoning = |place: usize| body["messages"][place].get("reasoning_content").cloned();
        assert_eq!(reasoning(1), expected.map(Value::from), "{model} {thinking}");
        if profile != "openai" {
            assert_eq!(reasoning(3), Some("hm".into()), "{model}: what was thought stays");
        }
    }
}

// spec: P-13, P-18
#[tokio::test]
async fn signed_pieces_of_reasoning_go_back_as_they_came_and_nowhere_else() {
    let details = r#"[{"type":"reasoning.text","text":"hm","signature":"s","index":0}]"#;
    let mut said = AssistantMessage::default();
    let signature = Some(format!("reasoning-details:{details}"));
    said.content = vec![Content::Thinking { thinking: "hm".into(), signature }, Content::text("yes")];
    let request = Request::new("m", vec![Message::Assistant(said)]);
    let details: Value = serde_json::from_str(details).unwrap();
    for (profile, expected) in [
        ("openrouter", json!({"role": "assistant", "content": "yes", "reasoning_details": details})),
        ("groq", json!({"role": "assistant", "content": "yes", "reasoning": "hm"})),
        ("openai", json!({"role": "assistant", "content": "yes"})),
    ] {
        let body = sent(profile, request.clone()).await;
        let message = body["messages"].as_array().unwrap().iter().find(|m| m["role"] == "assistant").unwrap();
        assert_eq!(*message, expected, "{profile}");
    }
}

#[tokio::test]
async fn service_without_schemas_gets_the_schema_in_the_prompt() {
    for profile in PROFILES {
        let body = sent(profile.name, everything("m")).await;
        let told = body["messages"][0]["content"].as_str().unwrap_or_default().contains("JSON Schema");
        match body["response_format"]["type"].as_str() {
            Some("json_schema") => assert!(!told, "{}", profile.name),
            Some("json_object") => assert!(told, "{}", profile.name),
            other => panic!("{}: {other:?}", profile.name),
        }
        assert!(body["tools"].is_array(), "{}: tools stay usable", profile.name);
    }
}

// spec: P-16
#[tokio::test]
async fn thinking_level_is_sent_only_to_models_that_support_it() {
    for (profile, model, field, told) in [
        ("xai", "grok-3-mini", "reasoning_effort", true),
        ("xai", "grok-3", "reasoning_effort", false),
        ("xai", "grok-4.3", "reasoning_effort", true),
        ("xai", "grok-4-0709", "reasoning_effort", false),
        ("groq", "openai/gpt-oss-20b", "reasoning_effort", true),
        ("groq", "qwen/qwen3-32b", "reasoning_effort", false),
        ("moonshot", "kimi-k2.6", "thinking", true),
        ("moonshot", "kimi-k3", "thinking", false),
    ] {
        assert_eq!(sent(profile, everything(model)).await.get(field).is_some(), told, "{model}");
    }
}

// spec: P-16
#[tokio::test]
async fn models_that_take_no_temperature_or_stop_are_sent_none() {
    for (model, temperature, stop) in [
        ("gpt-5-mini", false, false),
        ("gpt-5.1", false, false),
        ("o1", false, true),
        ("o3", false, false),
        ("o4-mini", false, false),
        ("gpt-4.1", true, true),
        ("m", true, true),
    ] {
        let mut request = everything(model);
        Arc::make_mut(&mut request.options).stop = vec!["END".into()];
        let body = sent("openai", request).await;
        assert_eq!(body.get("temperature").is_some(), temperature, "{model}");
        assert_eq!(body.get("stop").is_some(), stop, "{model}");
    }
}

#[tokio::test]
async fn ids_of_calls_are_nine_letters_where_they_must_be() {
    let body = sent("mistral", everything("m")).await;
    let messages = body["messages"].as_array().unwrap();
    let id = messages[1]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()), "{id}");
    assert_eq!(messages[2]["tool_call_id"], id);
    let body = sent("openai", everything("m")).await;
    assert_eq!(body["messages"][1]["tool_calls"][0]["id"], "call_of_another_service");
}
