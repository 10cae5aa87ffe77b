//! The engine's guards: what reaches a tool, and what the model reads when nothing does.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use archon_testkit::RealClock;
use archon_tools::{EngineOptions, ToolEngine, builtin::Calculator};
use archon_types::{
    Executed, Json, Prepared, ReadyCall, Tool, ToolAnnotations, ToolCall, ToolInvocationRequest,
    ToolResultStatus, Toolbox,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use crate::fixture::{Recorder, call_id, context, engine, run_call, show, spec, tool};

fn calculator() -> ToolEngine {
    engine([Arc::new(Calculator::new()) as Arc<dyn Tool>])
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

// spec: A-05, TE-10
#[tokio::test]
async fn a_good_call_gives_the_tool_s_result_with_the_engine_s_facts() {
    let result =
        calculator().execute_tool_call("calculator", json!({ "expression": "2+2" }), &context()).await;
    expect![[r#"
        Success
        4
        {"validation_time_ms":0,"execution_time_ms":0,"attempts":1,"tool_version":"1.0.0"}
    "#]]
    .assert_eq(&show(&result));
}

async fn check_refused(name: &str, arguments: Json, expected: Expect) {
    let call = ToolCall::new("c1", name, arguments);
    expected.assert_eq(&show(&run_call(&calculator(), &call, &context()).await));
}

// spec: TE-04, TE-05, TE-07, A-29
#[tokio::test]
async fn a_bad_call_is_answered_in_the_tool_s_place() {
    check_refused(
        "send_email",
        json!({}),
        expect![[r#"
        Error
        Error: Tool 'send_email' not found. Available tools: calculator.
        {"error_type":"not_found","validation_time_ms":0,"execution_time_ms":0,"attempts":0}
    "#]],
    )
    .await;
    check_refused("calculator", json!({}), expect![[r#"
        Error
        Error: Parameter validation error: missing required parameter 'expression' (string) at path '$'
        Example: calculator(expression="12 * (3 + 4)")
        {"error_type":"validation_error","suggestion":"Example: calculator(expression=\"12 * (3 + 4)\")","validation_time_ms":0,"execution_time_ms":0,"attempts":0,"tool_version":"1.0.0"}
    "#]]).await;
    check_refused("calculator", json!({ "expresion": "2+2" }), expect![[r#"
        Error
        Error: Parameter validation error: unknown parameter 'expresion' at path '$'
        Parameter validation error: missing required parameter 'expression' (string) at path '$'
        Did you mean 'expression' instead of 'expresion'?
        Example: calculator(expression="12 * (3 + 4)")
        {"error_type":"validation_error","suggestion":"Did you mean 'expression' instead of 'expresion'?\nExample: calculator(expression=\"12 * (3 + 4)\")","validation_time_ms":0,"execution_time_ms":0,"attempts":0,"tool_version":"1.0.0"}
    "#]]).await;
    check_refused("calculator", json!({ "operation": "plus", "a": 1, "b": "2" }), expect![[r#"
        Error
        Error: Parameter validation error: expected one of "add", "subtract", "multiply", "divide", "power", "percentage"; received "plus" at path '$.operation'
        Parameter validation error: expected number, received string "2" at path '$.b'
        The tool was not run. Call it again with arguments that fit.
        {"error_type":"validation_error","validation_time_ms":0,"execution_time_ms":0,"attempts":0,"tool_version":"1.0.0"}
    "#]]).await;
    check_refused("calculator", json!("2+2"), expect![[r#"
        Error
        Error: Parameter validation error: expected object, received string "2+2" at path '$'
        The tool was not run. Call it again with arguments that fit.
        {"error_type":"validation_error","validation_time_ms":0,"execution_time_ms":0,"attempts":0,"tool_version":"1.0.0"}
    "#]]).await;
    check_refused("calculator", Json::Null, expect![[r#"
        Error
        Error: Parameter validation error: expected object, received null at path '$'
        The tool was not run. Call it again with arguments that fit.
        {"error_type":"validation_error","validation_time_ms":0,"execution_time_ms":0,"attempts":0,"tool_version":"1.0.0"}
    "#]]).await;
}

// spec: TE-04
#[tokio::test]
async fn arguments_must_be_an_object_without_a_type_in_the_schema() {
    let recorder = Recorder::default();
    let engine = engine([recorder.tool("any", json!({}))]);
    for arguments in [json!([]), json!("x"), Json::Null, json!(1)] {
        let result = run_call(&engine, &ToolCall::new("c", "any", arguments), &context()).await;
        assert!(result.text().starts_with("Error: Parameter validation error: expected object, received "));
    }
    assert_eq!(recorder.take(), [Json::Null; 0]);
}

// spec: TE-04, TE-09
#[tokio::test]
async fn arguments_cut_off_at_any_byte_never_run() {
    let recorder = Recorder::default();
    let parameters = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "content": { "type": "string" } },
        "required": ["path", "content"],
    });
    let engine = engine([recorder.tool("write", parameters)]);
    let whole = r#"{"path": "notes.txt", "content": "a \"b\" {c} ä"}"#;
    for cut in (0..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
        let call = ToolCall::from_json_text("c", "write", &whole[..cut]);
        let result = run_call(&engine, &call, &context()).await;
        let expected = if cut == 0 { "validation_error" } else { "malformed_arguments" };
        assert_eq!(result.metadata["error_type"], expected, "cut at {cut}");
    }
    assert_eq!(recorder.take(), [Json::Null; 0]);
    run_call(&engine, &ToolCall::from_json_text("c", "write", whole), &context()).await;
    assert_eq!(recorder.take().len(), 1);
}

// spec: TE-22
#[tokio::test]
async fn arguments_that_are_too_large_or_too_deep_are_refused_at_once() {
    let recorder = Recorder::default();
    let engine = engine([recorder.tool("any", json!({ "type": "object" }))]);
    let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "a": inner }));
    let cases = [
        (json!({ "text": "x".repeat(10_000_001) }), "arguments_too_large"),
        (json!({ "list": vec![1234; 3_000_000] }), "arguments_too_large"),
        (deep(129), "arguments_too_deep"),
        (deep(1_000), "arguments_too_deep"),
    ];
    for (arguments, reason) in cases {
        let call = ToolCall::new("c", "any", arguments);
        let started = Instant::now();
        let result = run_call(&engine, &call, &context()).await;
        assert_eq!(result.metadata["error_type"], reason);
        // Seconds of room: this only fails if the cost is of another order.
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }
    assert_eq!(recorder.take(), [Json::Null; 0]);
    for arguments in [json!({ "text": "x".repeat(9_999_000) }), deep(128)] {
        run_call(&engine, &ToolCall::new("c", "any", arguments.clone()), &context()).await;
        assert_eq!(recorder.take(), [arguments]);
    }
    let mut small = EngineOptions::default();
    small.max_argument_bytes = 20;
    let call = ToolCall::new("c", "any", json!({ "text": "twenty bytes and more" }));
    let result = run_call(&engine.with_options(small), &call, &context()).await;
    expect!["Error: The arguments for 'any' are larger than 20 bytes. The tool was not run. Send less, or put the data into a file and send its path."].assert_eq(&result.text());
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(|f| serde_json::Number::from_f64(f).map_or(Json::Null, Json::Number)),
        (-5_i64..110).prop_map(Json::from),
        ".{0,12}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((prop_oneof![Just("n".to_owned()), ".{0,6}"], inner), 0..4)
                .prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    // Invariant 4. spec: TE-04
    #[test]
    fn a_tool_sees_valid_arguments_only_and_exactly_those_that_were_sent(
        arguments in any_json(),
        n in prop_oneof![any_json(), (-2_i64..103).prop_map(Json::from)],
        wrap in any::<bool>(),
    ) {
        let arguments = if wrap { json!({ "n": n, "more": arguments }) } else { arguments };
        let recorder = Recorder::default();
        let parameters = json!({
            "type": "object",
            "properties": { "n": { "type": "integer", "minimum": 0, "maximum": 100 } },
            "required": ["n"],
        });
        let engine = engine([recorder.tool("count", parameters)]);
        let result = block_on(run_call(&engine, &ToolCall::new("c", "count", arguments.clone()), &context()));

        // What the schema means, without a schema: a whole number is an integer, however written.
        let n = arguments.as_object().and_then(|object| object.get("n")).and_then(Json::as_f64);
        let valid = n.is_some_and(|n| n.fract() == 0.0 && (0.0..=100.0).contains(&n));
        prop_assert_eq!(result.is_error(), !valid, "{}: {}", arguments, result.text());
        let seen: Vec<String> = recorder.take().iter().map(Json::to_string).collect();
        let sent: Vec<String> = valid.then(|| arguments.to_string()).into_iter().collect();
        prop_assert_eq!(seen, sent);
    }

    // Invariant 4. spec: TE-07, TE-09
    #[test]
    fn engine_of_any_name_and_arguments_does_not_panic(name in ".{0,40}", text in ".{0,80}") {
        let call = ToolCall::from_json_text("c", name, &text);
        let result = block_on(run_call(&calculator(), &call, &context()));
        prop_assert!(result.is_error());
    }
}

// spec: TE-02
#[tokio::test]
async fn a_prepared_call_keeps_its_tool() {
    let (engine, run) = (calculator(), context());
    let call = ToolCall::new("c", "calculator", json!({ "expression": "1+1" }));
    let Prepared::Ready(ready) = engine.prepare(call_id(), &call, &run).await else { panic!("not ready") };
    assert!(ready.concurrency_safe && ready.effect.may_repeat());
    engine.registry().unregister("calculator").unwrap();
    let Executed::Done(result) = engine.execute(ready, &run).await else { panic!("suspended") };
    assert_eq!(result.text(), "2");
    let result = run_call(&engine, &call, &run).await;
    assert_eq!(result.text(), "Error: Tool 'calculator' not found. There are no tools: answer without one.");
}

// Invariant 4. spec: TE-04
#[tokio::test]
async fn ready_call_of_another_engine_is_checked_before_it_runs() {
    let recorder = Recorder::default();
    let parameters =
        json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let engine = engine([recorder.tool("count", parameters)]);
    for (name, arguments, status) in [
        ("count", json!({ "n": 1 }), ToolResultStatus::Success),
        ("count", json!({ "n": "1" }), ToolResultStatus::Error),
        ("gone", json!({}), ToolResultStatus::Error),
    ] {
        let ready = ReadyCall::new(call_id(), ToolCall::new("c", name, arguments), Default::default());
        let Executed::Done(result) = engine.execute(ready, &context()).await else { panic!("suspended") };
        assert_eq!(result.status, status, "{}", result.text());
    }
    assert_eq!(recorder.take(), [json!({ "n": 1 })]);
}

// spec: T-19, TE-08
#[tokio::test(start_paused = true)]
async fn a_caller_s_time_limit_goes_before_all_others() {
    let run = crate::fixture::context_at(Arc::new(RealClock::new()));
    let mut annotations = ToolAnnotations::default();
    annotations.timeout_ms = Some(5_000);
    let slow = tool(spec("slow").with_annotations(annotations), |_| std::future::pending());
    let engine = engine([slow]);
    for (limit, seconds) in [(250, "0.25"), (60_000, "60")] {
        let mut request = ToolInvocationRequest::new("r1", "slow", json!({}));
        request.timeout_ms = limit;
        let result = engine.invoke(request, &run).await;
        let text = format!("Tool execution timed out after {seconds} seconds\n");
        assert!(result.text().starts_with(&text), "{}", result.text());
    }
}
