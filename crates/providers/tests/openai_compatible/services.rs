//! What single services do differently: their streams, and how requests are spelled for them.

use archon_providers::{PROFILES, Profile};
use archon_testkit::MockResponse;
use archon_types::{
    Content, Encoded, RequestOptions, ResponseFormat, ThinkingLevel, ToolCall, ToolChoice, ToolResult,
    ToolSpec,
};
use serde_json::{Value, json};

use super::*;

/// Name, body of the response, and the message in a line, as in [`fixtures`].
pub(crate) const STREAMS: &[(&str, &str, &str)] = &[
    (
        "OpenRouter: comments while it waits, reasoning with details, usage with cost",
        ": OPENROUTER PROCESSING\n\n\
         : OPENROUTER PROCESSING\n\n\
         data: {\"id\":\"gen-1\",\"provider\":\"Fireworks\",\"model\":\"z/m\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":\"Hm\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"Hm\",\"format\":\"unknown\",\"index\":0}]},\"finish_reason\":null,\"native_finish_reason\":null,\"logprobs\":null}]}\n\n\
         data: {\"id\":\"gen-1\",\"model\":\"z/m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Yes\",\"reasoning\":null,\"reasoning_details\":[]},\"finish_reason\":\"stop\",\"native_finish_reason\":\"STOP\"}]}\n\n\
         data: {\"id\":\"gen-1\",\"model\":\"z/m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":5,\"total_tokens\":14,\"cost\":0.00014,\"is_byok\":false,\"prompt_tokens_details\":{\"cached_tokens\":4,\"audio_tokens\":0},\"cost_details\":{\"upstream_inference_cost\":null},\"completion_tokens_details\":{\"reasoning_tokens\":3}}}\n\n\
         data: [DONE]\n\n",
        "stop z/m in 5 out 5 cached 4: thinking \"Hm\" text \"Yes\"",
    ),
    (
        "DeepSeek: keep-alive comments, reasoning_content, its own names for cached tokens",
        ": keep-alive\n\n\
         data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"deepseek-reasoner\",\"system_fingerprint\":\"fp\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":null,\"reasoning_content\":\"So\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"4\",\"reasoning_content\":null},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\",\"reasoning_content\":null},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":6,\"total_tokens\":18,\"prompt_tokens_details\":{\"cached_tokens\":8},\"completion_tokens_details\":{\"reasoning_tokens\":4},\"prompt_cache_hit_tokens\":8,\"prompt_cache_miss_tokens\":4}}\n\n\
         data: [DONE]\n\n",
        "stop deepseek-reasoner in 4 out 6 cached 8: thinking \"So\" text \"4\"",
    ),
    (
        "xAI: reasoning tokens beside those of the completion",
        "data: {\"id\":\"1\",\"model\":\"grok-4\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\",\"reasoning_content\":\"Thinking... \",\"role\":\"assistant\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"4\",\"role\":\"assistant\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":32,\"completion_tokens\":9,\"total_tokens\":135,\"prompt_tokens_details\":{\"text_tokens\":32,\"cached_tokens\":6},\"completion_tokens_details\":{\"reasoning_tokens\":94},\"num_sources_used\":0}}\n\n\
         data: [DONE]\n\n",
        "stop grok-4 in 26 out 103 cached 6: thinking \"Thinking... \" text \"4\"",
    ),
    (
        "Moonshot: usage in the choice",
        "data: {\"id\":\"cmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"kimi\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\",\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":13,\"total_tokens\":32,\"cached_tokens\":10}}]}\n\n\
         data: [DONE]\n\n",
        "stop kimi in 9 out 13 cached 10: thinking \"hm\" text \"Hi\"",
    ),
    (
        "Z.ai: calls whole, a finish reason of its own",
        "data: {\"id\":\"1\",\"created\":1,\"model\":\"glm\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"reasoning_content\":\"Look\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"call_1\",\"index\":0,\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":1}\"}}]}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"finish_reason\":\"tool_calls\",\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10,\"prompt_tokens_details\":{\"cached_tokens\":0}}}\n\n\
         data: [DONE]\n\n",
        "tools glm in 7 out 3 cached 0: thinking \"Look\" call call_1 add {\"a\":1}",
    ),
    (
        "Groq: usage in a place of its own",
        "data: {\"id\":\"1\",\"model\":\"oss\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}],\"x_groq\":{\"id\":\"req_1\"}}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"Well\",\"channel\":\"analysis\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"x_groq\":{\"id\":\"req_1\",\"usage\":{\"queue_time\":0.01,\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}}\n\n\
         data: [DONE]\n\n",
        "stop oss in 5 out 2 cached 0: thinking \"Well\" text \"Hi\"",
    ),
    (
        "Cerebras: times in the last chunk",
        "data: {\"id\":\"1\",\"choices\":[{\"delta\":{\"role\":\"assistant\"},\"index\":0}],\"model\":\"oss\",\"object\":\"chat.completion.chunk\"}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"index\":0}]}\n\n\
         data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\",\"index\":0}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7},\"time_info\":{\"queue_time\":0.0001,\"total_time\":0.1}}\n\n\
         data: [DONE]\n\n",
        "stop oss in 5 out 2 cached 0: text \"Hi\"",
    ),
    (
        "Ollama: a call in one piece, `stop` as its reason, no usage unless asked",
        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"qwen3:8b\",\"system_fingerprint\":\"fp_ollama\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"reasoning\":\"ok\"},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call_x\",\"index\":0,\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\\\"a\\\":1}\"}}]},\"finish_reason\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\n\
         data: [DONE]\n\n",
        "tools qwen3:8b in 0 out 0 cached 0: thinking \"ok\" call call_x add {\"a\":1}",
    ),
    (
        "llama.cpp: timings, and arguments token by token",
        "data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}}],\"created\":1,\"id\":\"chatcmpl-1\",\"model\":\"gemma\",\"system_fingerprint\":\"b1\",\"object\":\"chat.completion.chunk\"}\n\n\
         data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"abc\",\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":\"{\"}}]}}]}\n\n\
         data: {\"choices\":[{\"finish_reason\":null,\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"a\\\":1}\"}}]}}]}\n\n\
         data: {\"choices\":[{\"finish_reason\":\"tool_calls\",\"index\":0,\"delta\":{}}],\"timings\":{\"prompt_n\":5,\"predicted_n\":7}}\n\n\
         data: {\"choices\":[],\"created\":1,\"usage\":{\"completion_tokens\":7,\"prompt_tokens\":5,\"total_tokens\":12},\"timings\":{\"prompt_n\":5}}\n\n\
         data: [DONE]\n\n",
        "tools gemma in 5 out 7 cached 0: call abc add {\"a\":1}",
    ),
    (
        "vLLM: reasoning_content beside an empty list of calls",
        "data: {\"id\":\"chatcmpl-1\",\"model\":\"Qwen/Qwen3-8B\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}],\"prompt_token_ids\":null}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\",\"tool_calls\":[]},\"token_ids\":null}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\",\"stop_reason\":null}]}\n\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"total_tokens\":7,\"completion_tokens\":2}}\n\n\
         data: [DONE]\n\n",
        "stop Qwen/Qwen3-8B in 5 out 2 cached 0: thinking \"hm\" text \"Hi\"",
    ),
];

fn schema() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}})
}

/// A request with everything that services spell differently.
fn everything(model: &str) -> Request {
    let at = Timestamp::default();
    let call = ToolCall::new("call_of_another_service", "add", json!({"a": 1}));
    let thinking = Content::Thinking { thinking: "hm".into(), signature: None };
    let assistant = AssistantMessage {
        content: vec![thinking, Content::ToolCall(call.clone())],
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
async fn every_service_is_asked_in_its_own_words() {
    let named = json!({"type": "function", "function": {"name": "add"}});
    let required = json!("required");
    for (profile, expected) in [
        (
            "openai",
            json!({"max_completion_tokens": 100, "reasoning_effort": "medium", "seed": 1, "tool_choice": named}),
        ),
        ("openrouter", json!({"reasoning": {"effort": "medium"}, "max_tokens": 100, "tool_choice": named})),
        ("deepseek", json!({"thinking": {"type": "enabled"}, "max_tokens": 100, "seed": null})),
        ("zai", json!({"thinking": {"type": "enabled"}, "tool_choice": null, "seed": null})),
        ("moonshot", json!({"thinking": {"type": "enabled"}, "tool_choice": null})),
        ("vllm", json!({"chat_template_kwargs": {"enable_thinking": true}, "tool_choice": named})),
        ("llamacpp", json!({"chat_template_kwargs": {"enable_thinking": true}, "tool_choice": required})),
        ("lmstudio", json!({"tool_choice": required, "reasoning_effort": null})),
        ("ollama", json!({"tool_choice": null, "reasoning_effort": "medium"})),
        ("groq", json!({"max_completion_tokens": 100, "reasoning_effort": "medium"})),
        ("cerebras", json!({"max_completion_tokens": 100, "reasoning_effort": "medium"})),
        ("xai", json!({"max_tokens": 100, "reasoning_effort": "medium"})),
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
        ("xai", None),
    ] {
        let body = sent(profile, everything("m")).await;
        let message = body["messages"].as_array().unwrap().iter().find(|m| m["role"] == "assistant").unwrap();
        for name in ["reasoning", "reasoning_content"] {
            assert_eq!(message.get(name).is_some(), field == Some(name), "{profile}: {name}");
        }
    }
}

#[tokio::test]
async fn where_a_service_takes_no_schema_the_model_is_told_it() {
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

#[tokio::test]
async fn models_that_take_no_temperature_are_sent_none() {
    for (model, taken) in [("gpt-5-mini", false), ("o3", false), ("gpt-4.1", true), ("m", true)] {
        let body = sent("openai", everything(model)).await;
        assert_eq!(body.get("temperature").is_some(), taken, "{model}");
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
