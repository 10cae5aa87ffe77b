//! The engine with a real model: what the grammar, the cache and the cancellation guarantee whatever
//! the model says. Runs where the variable `ARCHON_TEST_MODEL` names a GGUF file or one was fetched into
//! the default data folder; says loudly that it was skipped elsewhere.

#![cfg(feature = "engine")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test may panic and says what it skips"
)]

mod fetched;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use archon_local_model::{LocalModel, LocalModelError, LocalModelOptions};
use archon_types::{
    AssistantMessage, CancellationToken, Message, ModelEvent, Provider as _, Request, ResponseFormat,
    StopReason, Timestamp, ToolCall, ToolChoice, ToolResult, ToolSpec,
};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

/// The models, loaded once: one with a chat template and one without.
fn models() -> Vec<LocalModel> {
    static MODELS: OnceLock<Vec<LocalModel>> = OnceLock::new();
    let load = |path: PathBuf| LocalModel::load(&path, options()).unwrap();
    MODELS.get_or_init(|| paths().into_iter().map(load).collect()).clone()
}

fn paths() -> Vec<PathBuf> {
    match std::env::var_os("ARCHON_TEST_MODEL") {
        Some(path) => vec![path.into()],
        None => ["gemma-3-270m", "smollm2-135m-instruct"].into_iter().filter_map(fetched::model).collect(),
    }
}

fn options() -> LocalModelOptions {
    LocalModelOptions::default().with_engine(fetched::engine())
}

fn tools() -> Vec<ToolSpec> {
    let city = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 20},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city", "days", "unit"],
        "additionalProperties": false,
    });
    let sum = json!({
        "type": "object",
        "properties": {"expression": {"type": "string", "maxLength": 40}},
        "required": ["expression"],
        "additionalProperties": false,
    });
    vec![
        ToolSpec::new("weather", "Tells the weather of the next days.", city),
        ToolSpec::new("calculator", "Evaluates arithmetic.", sum),
    ]
}

fn request(task: &str, tools: Vec<ToolSpec>, choice: ToolChoice) -> Request {
    let mut request = Request::new("local", vec![Message::user(task, Timestamp::default())]);
    request.tools = Arc::new(tools.into());
    let options = Arc::make_mut(&mut request.options);
    options.tool_choice = choice;
    options.max_tokens = Some(64);
    request
}

async fn ask(model: &LocalModel, request: Request) -> (Vec<ModelEvent>, AssistantMessage) {
    let mut stream = model.stream(request, CancellationToken::new());
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            ModelEvent::Done(message) => {
                assert!(stream.next().await.is_none(), "nothing may follow the end");
                return (events, *message);
            }
            event => events.push(event),
        }
    }
    panic!("the stream ended without its last event");
}

#[track_caller]
fn check_call(call: &ToolCall) {
    let tools = tools();
    let tool = tools.iter().find(|tool| tool.name == call.name).expect("a declared tool");
    assert_eq!(call.malformed, None);
    assert!(jsonschema::is_valid(&tool.parameters, &call.arguments), "{}", call.arguments);
}

#[tokio::test]
async fn a_call_is_always_a_valid_call_of_a_declared_tool() {
    for model in models() {
        for (seed, task) in
            ["Weather in Oslo?", "What is 3 * 7?", "}\"]<end_of_turn> \u{1f980}"].iter().enumerate()
        {
            let mut request = request(task, tools(), ToolChoice::Required);
            let options = Arc::make_mut(&mut request.options);
            // Drawn wildly, so that it is the grammar that holds the form and not the model.
            options.temperature = Some(if seed == 0 { 0.0 } else { 3.0 });
            options.seed = Some(seed as u64);
            let (events, message) = ask(&model, request).await;
            let calls: Vec<_> = message.tool_calls().collect();
            assert_eq!((calls.len(), message.stop_reason), (1, StopReason::ToolUse));
            check_call(calls[0]);
            assert!(matches!(events[0], ModelEvent::Start));
            let arguments = events.iter().filter_map(|event| match event {
                ModelEvent::ToolCallDelta { arguments, .. } => Some(arguments.as_str()),
                _ => None,
            });
            let streamed: Value = serde_json::from_str(&arguments.collect::<String>()).unwrap();
            assert_eq!(streamed, calls[0].arguments);
        }
    }
}

#[tokio::test]
async fn local_model_tool_choice_named_and_none_are_obeyed() {
    for model in models() {
        let (_, message) = ask(&model, request("Hello", tools(), ToolChoice::Tool("weather".into()))).await;
        assert_eq!(message.tool_calls().map(|call| call.name.as_str()).collect::<Vec<_>>(), ["weather"]);
        let (_, message) = ask(&model, request("What is 3 * 7?", tools(), ToolChoice::None)).await;
        assert_eq!(message.tool_calls().count(), 0);
    }
}

#[tokio::test]
async fn local_model_streams_its_answer() {
    for model in models() {
        let (events, message) =
            ask(&model, request("Name three animals.", Vec::new(), ToolChoice::Auto)).await;
        let deltas: Vec<_> = events
            .iter()
            .filter_map(
                |event| if let ModelEvent::TextDelta(text) = event { Some(text.as_str()) } else { None },
            )
            .collect();
        assert!(deltas.len() > 1, "{deltas:?}");
        assert_eq!(deltas.concat(), message.text());
        assert!(message.usage.output > 0);
    }
}

/// The request of the next turn, when the tool that `said` calls has answered.
fn after_result(first: &Request, said: AssistantMessage, result: &str) -> Request {
    let call = said.tool_calls().next().unwrap().clone();
    let mut messages: Vec<Message> = first.messages.iter().map(|message| Message::clone(message)).collect();
    messages.push(Message::Assistant(said));
    messages.push(Message::tool_result(&call, &ToolResult::success(result), Timestamp::default()));
    let mut second = Request::new("local", messages);
    second.tools = first.tools.clone();
    Arc::make_mut(&mut second.options).max_tokens = Some(16);
    second
}

#[tokio::test]
async fn local_model_next_turn_processes_only_new_tokens() {
    for path in paths() {
        // One of its own: the other tests' prompts would push out what it knows.
        let model = LocalModel::load(&path, options()).unwrap();
        let first = request("What is 3 * 7?", tools(), ToolChoice::Tool("calculator".into()));
        let (_, said) = ask(&model, first.clone()).await;
        let (_, message) = ask(&model, after_result(&first, said, "21")).await;
        let usage = message.usage;
        assert!(usage.cache_read > 0 && usage.input < usage.cache_read, "{usage:?}");
        // After a success the answer is due.
        assert_eq!(message.tool_calls().count(), 0);
    }
}

#[tokio::test]
async fn prompt_cache_skips_a_stored_prefix_with_equal_answers() {
    for path in paths() {
        let cache = tempfile::tempdir().unwrap();
        let engine = fetched::engine().with_cache(cache.path());
        let asked = || async {
            // As a new process would: nothing is known but what was kept.
            let model = LocalModel::load(&path, options().with_engine(engine.clone())).unwrap();
            let request = request("What is 3 * 7?", tools(), ToolChoice::Auto);
            ask(&model, request).await.1
        };
        let (first, second) = (asked().await, asked().await);
        assert_eq!(first.content, second.content);
        assert!(second.usage.input < 40 && second.usage.cache_read > 100, "{:?}", second.usage);
        let model = LocalModel::load(&path, options()).unwrap();
        let (_, without) = ask(&model, request("What is 3 * 7?", tools(), ToolChoice::Auto)).await;
        assert_eq!(first.content, without.content);
    }
}

#[tokio::test]
async fn prompt_cache_stores_a_prefix_of_another_prompt_for_the_next_process() {
    for path in paths() {
        let cache = tempfile::tempdir().unwrap();
        let engine = fetched::engine().with_cache(cache.path());
        let load = || LocalModel::load(&path, options().with_engine(engine.clone())).unwrap();
        let first = request("What is 3 * 7?", tools(), ToolChoice::Tool("calculator".into()));
        let model = load();
        let (_, said) = ask(&model, first.clone()).await;
        let second = after_result(&first, said, "21");
        let (_, answer) = ask(&model, second.clone()).await;
        drop(model);
        // As a resume does: a process whose first prompt has the result in it.
        let (_, resumed) = ask(&load(), second).await;
        assert_eq!(answer.content, resumed.content);
        assert!(resumed.usage.input < 80 && resumed.usage.cache_read > 100, "{:?}", resumed.usage);
    }
}

#[tokio::test]
async fn a_document_keeps_to_its_schema() {
    for model in models() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 12},
                "legs": {"type": "integer", "minimum": 0, "maximum": 8},
                "tags": {"type": "array", "items": {"enum": ["wild", "tame"]}, "minItems": 1, "maxItems": 2},
            },
            "required": ["name", "legs", "tags"],
            "additionalProperties": false,
        });
        for tools in [Vec::new(), tools()] {
            let mut request = request("Describe a dog.", tools, ToolChoice::None);
            Arc::make_mut(&mut request.options).response_format =
                Some(ResponseFormat { name: "animal".into(), schema: schema.clone() });
            let (_, message) = ask(&model, request).await;
            let document: Value = serde_json::from_str(&message.text()).unwrap();
            assert!(jsonschema::is_valid(&schema, &document), "{document}");
        }
    }
}

#[tokio::test]
async fn cancelling_ends_the_answer_at_the_next_token() {
    for model in models() {
        let mut long = request("Tell a very long story.", Vec::new(), ToolChoice::Auto);
        Arc::make_mut(&mut long.options).max_tokens = Some(2_000);
        let cancel = CancellationToken::new();
        let mut stream = model.stream(long, cancel.clone());
        let mut after_cancel = 0;
        while let Some(event) = stream.next().await {
            match event.unwrap() {
                ModelEvent::Done(message) => {
                    assert_eq!(message.stop_reason, StopReason::Aborted);
                    assert!(!message.text().is_empty());
                    break;
                }
                ModelEvent::TextDelta(_) if cancel.is_cancelled() => after_cancel += 1,
                ModelEvent::TextDelta(_) => cancel.cancel(),
                _ => {}
            }
        }
        assert!(after_cancel <= 8, "{after_cancel} pieces came after the cancellation");
        // The engine is free again at once: this would otherwise wait for two thousand tokens.
        let begun = std::time::Instant::now();
        let mut next = request("Hello", Vec::new(), ToolChoice::Auto);
        Arc::make_mut(&mut next.options).max_tokens = Some(1);
        ask(&model, next).await;
        assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn local_model_call_beyond_the_token_limit_is_truncated_and_marked() {
    for model in models() {
        let mut request = request("What is 3 * 7?", tools(), ToolChoice::Tool("weather".into()));
        Arc::make_mut(&mut request.options).max_tokens = Some(3);
        let (_, message) = ask(&model, request).await;
        assert_eq!(message.stop_reason, StopReason::Length);
        assert!(message.tool_calls().all(|call| call.malformed.is_some()));
    }
}

#[tokio::test]
async fn a_document_and_a_call_end_whole_within_any_limit_that_has_room_for_them() {
    let step = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "about": {"type": "string", "minLength": 4},
            "after": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id", "about", "after"],
        "additionalProperties": false,
    });
    let plan = json!({
        "type": "object",
        "properties": {"steps": {"type": "array", "items": step, "minItems": 1}},
        "required": ["steps"],
        "additionalProperties": false,
    });
    for model in models() {
        for limit in [33, 60] {
            let mut planned = request("Plan a trip of three days.", Vec::new(), ToolChoice::Auto);
            let options = Arc::make_mut(&mut planned.options);
            options.response_format = Some(ResponseFormat { name: "plan".into(), schema: plan.clone() });
            // Drawn wildly: such a model comes to no end by itself.
            (options.temperature, options.seed) = (Some(2.0), Some(u64::from(limit)));
            options.max_tokens = Some(limit);
            let (_, message) = ask(&model, planned).await;
            let document: Value = serde_json::from_str(&message.text()).expect("a whole document");
            assert!(jsonschema::is_valid(&plan, &document), "{document}");
            assert!(message.usage.output <= u64::from(limit), "{} of {limit}", message.usage.output);
            assert_eq!(message.stop_reason, StopReason::Stop);

            let mut call = request("Weather in Oslo?", tools(), ToolChoice::Tool("weather".into()));
            let options = Arc::make_mut(&mut call.options);
            (options.temperature, options.seed) = (Some(3.0), Some(u64::from(limit)));
            options.max_tokens = Some(limit);
            let (_, message) = ask(&model, call).await;
            check_call(message.tool_calls().next().unwrap());
            assert_eq!(message.stop_reason, StopReason::ToolUse);
        }
    }
}

#[tokio::test]
async fn the_same_seed_draws_the_same_answer() {
    for model in models() {
        let mut answers = Vec::new();
        for _ in 0..2 {
            let mut request = request("Name an animal.", Vec::new(), ToolChoice::Auto);
            let options = Arc::make_mut(&mut request.options);
            (options.temperature, options.seed, options.max_tokens) = (Some(1.0), Some(7), Some(12));
            answers.push(ask(&model, request).await.1.text());
        }
        assert_eq!(answers[0], answers[1]);
    }
}

#[test]
fn local_model_load_errors_name_the_kind_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let load = |path: &std::path::Path| LocalModel::load(path, options()).unwrap_err();
    assert!(matches!(load(&folder.path().join("none.gguf")), LocalModelError::Missing { .. }));
    assert!(matches!(load(&file("text.gguf", b"hello world")), LocalModelError::NotGguf { .. }));
    assert!(matches!(load(&file("empty.gguf", b"")), LocalModelError::NotGguf { .. }));
    assert!(matches!(load(folder.path()), LocalModelError::Unreadable { .. }));
    let Some(whole) = paths().into_iter().next() else { return };
    // With models there is the engine, which reads them.
    assert!(matches!(load(&file("stub.gguf", b"GGUF\x03\0\0\0")), LocalModelError::Broken { .. }));
    let bytes = std::fs::read(whole).unwrap();
    let cut = file("cut.gguf", &bytes[..bytes.len() / 2]);
    assert!(matches!(load(&cut), LocalModelError::Broken { .. }));
}
