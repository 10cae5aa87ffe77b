//! Composites: their problems, their parameters, the order of their calls, and their failures.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use archon_testkit::{RealClock, RecordingSink, VirtualClock};
use archon_tools::{
    Composite, CompositeProblem, EngineOptions, FnTool, OnNodeFailure, ToolEngine, ToolNode, ToolRegistry,
};
use archon_types::{
    DeltaKind, Effect, Event, Json, Prepared, Tool, ToolAnnotations, ToolCall, ToolError, ToolResult,
    ToolResultStatus, ToolSpec, Toolbox,
};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::fixture::{call_id, context, context_at, engine, run_call};

fn schema(required: &[&str], optional: &[&str]) -> Json {
    let properties: serde_json::Map<_, _> =
        required.iter().chain(optional).map(|name| ((*name).to_owned(), json!({}))).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// A tool that only reads.
fn reads(
    name: &str,
    parameters: Json,
    answer: impl Fn(Json) -> Result<Json, ToolError> + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    let spec = ToolSpec::new(name, format!("Does {name} for a test."), parameters)
        .with_annotations(ToolAnnotations::read_only());
    let answer = Arc::new(answer);
    Arc::new(FnTool::new(spec, move |arguments, _| {
        let answer = answer.clone();
        async move {
            answer(arguments).map(|value| match value {
                Json::String(text) => text.into(),
                other => other.to_string().into(),
            })
        }
    }))
}

fn echo(name: &str, required: &[&str], optional: &[&str]) -> Arc<dyn Tool> {
    reads(name, schema(required, optional), Ok)
}

/// Searches, reads pages, and joins their texts; a page called `broken` cannot be read.
fn tools() -> Vec<Arc<dyn Tool>> {
    let search = reads("search", schema(&["query"], &["limit"]), |arguments| {
        let hit = |n| json!({ "url": format!("{}/{n}", arguments["query"].as_str().unwrap_or_default()) });
        Ok(json!({ "hits": (0..arguments["limit"].as_u64().unwrap_or(2)).map(hit).collect::<Vec<_>>() }))
    });
    let read = reads(
        "read",
        json!({"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}),
        |page| match page["url"].as_str().unwrap_or_default() {
            url if url.contains("broken") => Err(ToolError::Failed("no such page".to_owned())),
            url => Ok(json!(format!("page {url}"))),
        },
    );
    let join = reads("join", schema(&["parts"], &["title"]), |arguments| {
        let parts: Vec<_> =
            arguments["parts"].as_array().unwrap().iter().map(|p| p.as_str().unwrap().to_owned()).collect();
        Ok(json!(format!("{}: {}", arguments["title"].as_str().unwrap_or("-"), parts.join(", "))))
    });
    vec![search, read, join]
}

/// EX-05: searches for a topic, reads as many pages as `depth`, and joins their texts.
fn research(on_page: OnNodeFailure) -> Composite {
    let mut composite =
        Composite::new("research_and_summarize", "Finds pages about a topic and sums them up.");
    composite
        .add_node(
            ToolNode::new("find", "search")
                .parameter("query", "topic")
                .parameter("limit", "depth")
                .gives("/hits", "each", "url"),
        )
        .unwrap()
        .add_node(
            ToolNode::new("each", "read")
                .for_each("url", "/url")
                .on_failure(on_page)
                .gives("", "sum", "parts"),
        )
        .unwrap()
        .add_node(ToolNode::new("sum", "join").constant("title", "In short"))
        .unwrap();
    composite
}

fn tool_of(composite: Composite, tools: Vec<Arc<dyn Tool>>) -> Arc<dyn Tool> {
    Arc::new(composite.into_tool(engine(tools)).unwrap())
}

async fn call(tool: Arc<dyn Tool>, arguments: Json) -> ToolResult {
    let call = ToolCall::new("c", tool.spec().name.clone(), arguments);
    run_call(&engine([tool]), &call, &context()).await
}

fn check_problems(composite: &Composite, tools: Vec<Arc<dyn Tool>>, expected: Expect) {
    let problems = composite.validate(engine(tools).registry());
    let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
    expected.assert_eq(&text.join("\n"));
}

fn trace(result: &ToolResult) -> Vec<String> {
    let text = |entry: &Json, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let entries = result.metadata["trace"].as_array().unwrap();
    entries.iter().map(|e| format!("{} {} {}", text(e, "node"), text(e, "status"), e["calls"])).collect()
}

// spec: EX-05, EX-03, A-55
#[tokio::test]
async fn research_and_summarize_reads_every_page_that_it_finds() {
    let tool = tool_of(research(OnNodeFailure::Abort), tools());
    let spec = tool.spec();
    assert_eq!(spec.parameters["properties"], json!({ "topic": {}, "depth": {} }));
    assert_eq!(spec.parameters["required"], json!(["topic"]));
    assert_eq!((spec.annotations.effect, spec.annotations.concurrency_safe), (Effect::ReadOnly, true));
    let result = call(tool, json!({ "topic": "rust", "depth": 3 })).await;
    assert_eq!(result.text(), "In short: page rust/0, page rust/1, page rust/2");
    assert_eq!(trace(&result), ["find done 1", "each done 3", "sum done 1"]);
}

// spec: EX-02
#[tokio::test]
async fn composite_on_failure_aborts_skips_or_retries() {
    let broken = || json!({ "topic": "broken", "depth": 2 });
    let aborted = call(tool_of(research(OnNodeFailure::Abort), tools()), broken()).await;
    assert_eq!(aborted.status, ToolResultStatus::Error);
    assert_eq!(
        aborted.text(),
        "Error: The step 'each' (tool 'read') failed: item 0: no such page. Done before: find."
    );
    assert_eq!(
        aborted.metadata["partial_results"],
        json!({ "find": { "hits": [{ "url": "broken/0" }, { "url": "broken/1" }] } })
    );
    assert_eq!(aborted.metadata["error_type"], "execution_error");

    let continued = call(tool_of(research(OnNodeFailure::Continue), tools()), broken()).await;
    assert_eq!(continued.text(), "In short: ");

    let left = Arc::new(Mutex::new(2));
    let flaky = reads("flaky", schema(&[], &[]), move |_| {
        let mut left = left.lock().unwrap();
        *left -= 1;
        if *left < 0 { Ok(json!("worked")) } else { Err(ToolError::Failed("not now".to_owned())) }
    });
    let mut again = Composite::new("again", "Tries until it works, for a test.");
    again.add_node(ToolNode::new("try", "flaky").on_failure(OnNodeFailure::Retry(2))).unwrap();
    let run = context_at(Arc::new(VirtualClock::jumping()));
    let tool = tool_of(again, vec![flaky]);
    let result = run_call(&engine([tool]), &ToolCall::new("c", "again", json!({})), &run).await;
    assert_eq!((result.text().as_str(), trace(&result)), ("worked", vec!["try done 3".to_owned()]));
}

/// `send`, which never ends, or panics; what it does twice may do harm unless said otherwise.
fn send(effect: Effect, panics: bool, called: &Arc<Mutex<u32>>) -> Arc<dyn Tool> {
    let mut annotations = ToolAnnotations::default();
    (annotations.effect, annotations.timeout_ms) = (effect, Some(500));
    let called = called.clone();
    let spec = ToolSpec::new("send", "Sends something, for a test.", schema(&[], &[]));
    Arc::new(FnTool::new(spec.with_annotations(annotations), move |_, _| {
        *called.lock().unwrap() += 1;
        assert!(!panics, "out of paper");
        std::future::pending()
    }))
}

// spec: EX-02, TE-19
#[tokio::test(start_paused = true)]
async fn composite_does_not_repeat_a_call_with_unknown_effect() {
    for (effect, panics, policy, calls, kind) in [
        (Effect::SideEffect, false, OnNodeFailure::Retry(2), 1, "in_doubt"),
        (Effect::SideEffect, true, OnNodeFailure::Retry(2), 1, "in_doubt"),
        (Effect::SideEffect, false, OnNodeFailure::Abort, 1, "in_doubt"),
        (Effect::Idempotent, false, OnNodeFailure::Retry(2), 3, "timeout"),
        (Effect::Idempotent, true, OnNodeFailure::Retry(2), 3, "panic"),
    ] {
        let called = Arc::new(Mutex::new(0));
        let mut options = archon_tools::EngineOptions::default();
        options.retry.max_retries = 0;
        let below = engine([send(Effect::Idempotent, panics, &called)]).with_options(options);
        let mut once = Composite::new("once", "Sends it once, for a test.");
        once.add_node(ToolNode::new("sends", "send").on_failure(policy)).unwrap();
        let tool = once.into_tool(below.clone()).unwrap();
        // The tool is another one by the time of the call.
        below.registry().unregister("send");
        below.registry().register_all([send(effect, panics, &called)]).unwrap();
        let run = context_at(Arc::new(RealClock::new()));
        let tool: Arc<dyn Tool> = Arc::new(tool);
        let result = run_call(&engine([tool]), &ToolCall::new("c", "once", json!({})), &run).await;
        let said = format!("{effect:?} {panics} {policy:?}: {}", result.text());
        assert_eq!(
            (*called.lock().unwrap(), &result.metadata["error_type"]),
            (calls, &json!(kind)),
            "{said}"
        );
        let advises =
            said.contains("Its effect is unknown and it was not run again: check what it did before");
        assert_eq!(advises, kind == "in_doubt", "{said}");
    }
}

// spec: EX-02
#[tokio::test]
async fn composite_skips_calls_whose_input_is_missing() {
    let broken = reads("broken", schema(&[], &[]), |_| Err(ToolError::Failed("out of order".to_owned())));
    let mut composite = Composite::new("some", "Does what can be done, for a test.");
    composite
        .add_node(
            ToolNode::new("first", "broken")
                .on_failure(OnNodeFailure::Continue)
                .gives("", "needs", "a")
                .gives("", "likes", "b"),
        )
        .unwrap()
        .add_node(ToolNode::new("needs", "one"))
        .unwrap()
        .add_node(ToolNode::new("likes", "two"))
        .unwrap();
    let all = vec![broken, echo("one", &["a"], &[]), echo("two", &[], &["b"])];
    let result = call(tool_of(composite.clone(), all.clone()), json!({})).await;
    assert_eq!(result.text(), r#"{"likes":{}}"#);
    assert_eq!(trace(&result), ["first failed 1", "needs left_out null", "likes done 1"]);

    let only = tool_of(composite.with_outputs(["needs"]), all);
    let result = call(only, json!({})).await;
    assert_eq!(result.text(), "Error: There is no result. \"first\": \"out of order\". Done before: likes.");
}

// spec: EX-01
#[test]
fn composite_validate_reports_all_problems() {
    check_problems(
        &Composite::new("empty", "Nothing."),
        tools(),
        expect!["the composite has no calls; add one with `add_node`"],
    );
    check_problems(&research(OnNodeFailure::Abort), tools(), expect![""]);
    let mut composite = Composite::new("wrong", "Wrong in every way.");
    composite
        .add_node(ToolNode::new("a", "serach").gives("hits", "b", "url").gives("", "nowhere", "x"))
        .unwrap()
        .add_node(ToolNode::new("b", "join").constant("colour", 1).constant("title", "t"))
        .unwrap()
        .add_node(ToolNode::new("c", "write").on_failure(OnNodeFailure::Retry(1)).gives("", "b", "title"))
        .unwrap();
    let write = FnTool::new(ToolSpec::new("write", "Writes for a test.", schema(&[], &[])), |_, _| async {
        Ok("".into())
    });
    let mut all = tools();
    all.push(Arc::new(write));
    check_problems(
        &composite.with_outputs(["z"]),
        all,
        expect![[r#"
            a mapping refers to the call 'nowhere', which does not exist; add the call or correct the id
            the list of outputs refers to the call 'z', which does not exist; add the call or correct the id
            'hits' of the call 'a' is not a JSON pointer: begin it with '/', or leave it empty for the whole value
            the call 'a' needs the tool 'serach', which is not registered. Did you mean 'search'?
            the argument 'title' of the call 'b' has more than one source; keep one of them
            the call 'b' has the argument 'colour', but the tool 'join' has no such parameter; correct or remove the argument
            the call 'b' has the argument 'url', but the tool 'join' has no such parameter; correct or remove the argument
            the call 'b' has no value for the argument 'parts': set a constant, map a result to it, or make the call an input of the composite
            the call 'c' cannot be retried, because the tool 'write' may not run twice; set it to abort or continue"#]],
    );
}

// spec: EX-01, A-55
#[test]
fn calls_that_wait_for_each_other_are_refused() {
    let mut composite = Composite::new("round", "Goes round.");
    for id in ["a", "b", "c"] {
        composite.add_node(ToolNode::new(id, "one")).unwrap();
    }
    assert_eq!(
        composite.add_node(ToolNode::new("a", "one")).unwrap_err().to_string(),
        "two calls have the id 'a'; give one of them another id"
    );
    composite.add_edge("a", "b").unwrap().add_edge("b", "c").unwrap();
    let error = composite.add_edge("c", "a").unwrap_err().to_string();
    assert_eq!(error, "these calls wait for each other: c → a → b → c; remove one of these dependencies");
    assert!(matches!(composite.add_edge("a", "a"), Err(CompositeProblem::Cycle { .. })));
    assert!(matches!(composite.add_edge("a", "d"), Err(CompositeProblem::UnknownNode { .. })));
    let mut mapped = Composite::new("round", "Goes round by what flows.");
    mapped
        .add_node(ToolNode::new("a", "one").gives("", "b", "x"))
        .unwrap()
        .add_node(ToolNode::new("b", "one").gives("", "a", "x"))
        .unwrap();
    check_problems(
        &mapped,
        vec![echo("one", &[], &["x"])],
        expect!["these calls wait for each other: a → b → a; remove one of these dependencies"],
    );
}

// spec: EX-03
#[test]
fn composite_parameters_with_equal_names_are_prefixed_unless_shared() {
    let text =
        |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let referring = json!({
        "type": "object",
        "properties": {"name": {"$ref": "#/$defs/Name"}},
        "$defs": {"Name": {"type": "string", "minLength": 1}},
    });
    let all =
        vec![reads("one", text("name"), Ok), reads("two", referring, Ok), reads("three", text("other"), Ok)];
    let mut composite = Composite::new("merge", "Begins with several calls.");
    for (id, tool) in [("a", "one"), ("b", "two"), ("c", "three"), ("d", "one")] {
        composite.add_node(ToolNode::new(id, tool)).unwrap();
    }
    let parameters = |composite: Composite| tool_of(composite, all.clone()).spec().parameters.clone();
    let merged = parameters(composite);
    assert_eq!(
        merged["properties"],
        json!({
            "a_name": {"type": "string"}, "b_name": {"$ref": "#/$defs/b_Name"}, "d_name": {"type": "string"},
            "other": {"type": "string"},
        })
    );
    assert_eq!(merged["required"], json!(["a_name", "d_name", "other"]));
    assert_eq!(merged["$defs"], json!({"b_Name": {"type": "string", "minLength": 1}}));

    let mut shared = Composite::new("share", "Begins with calls that are told the same.");
    for (id, tool, argument) in [("a", "one", "name"), ("c", "three", "other")] {
        shared.add_node(ToolNode::new(id, tool).parameter(argument, "who")).unwrap();
    }
    assert_eq!(parameters(shared.clone())["properties"], json!({"who": {"type": "string"}}));
    shared.add_node(ToolNode::new("b", "two").parameter("name", "who")).unwrap();
    check_problems(
        &shared,
        all.clone(),
        expect!["two different parameters are named 'who'; rename one of them with `ToolNode::parameter`"],
    );
}

/// Takes so many milliseconds of tokio's time.
fn slow(name: &str, ms: u64, safe: bool) -> Arc<dyn Tool> {
    let mut annotations = ToolAnnotations::read_only();
    annotations.concurrency_safe = safe;
    let spec = ToolSpec::new(name, "Takes its time, for a test.", schema(&[], &["x"]));
    Arc::new(FnTool::new(spec.with_annotations(annotations), move |_, _| async move {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok("done".into())
    }))
}

async fn takes(composite: Composite, tools: Vec<Arc<dyn Tool>>) -> u128 {
    let began = tokio::time::Instant::now();
    let run = context_at(Arc::new(RealClock::new()));
    let name = composite.name().to_owned();
    let result =
        run_call(&engine([tool_of(composite, tools)]), &ToolCall::new("c", name, json!({})), &run).await;
    assert!(!result.is_error(), "{}", result.text());
    began.elapsed().as_millis()
}

// spec: EX-02
#[tokio::test(start_paused = true)]
async fn calls_that_do_not_wait_for_each_other_are_made_side_by_side_where_they_may() {
    let diamond = || {
        let mut composite = Composite::new("diamond", "One, two beside each other, one.");
        for (id, tool) in [("a", "short"), ("b", "long"), ("c", "short"), ("d", "short")] {
            composite.add_node(ToolNode::new(id, tool)).unwrap();
        }
        for (from, to) in [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")] {
            composite.add_edge(from, to).unwrap();
        }
        composite
    };
    assert_eq!(takes(diamond(), vec![slow("short", 10, true), slow("long", 100, true)]).await, 120);
    assert_eq!(takes(diamond(), vec![slow("short", 10, true), slow("long", 100, false)]).await, 130);
    assert_eq!(takes(diamond(), vec![slow("short", 10, false), slow("long", 100, true)]).await, 130);
}

// spec: EX-02
#[tokio::test(start_paused = true)]
async fn items_are_worked_on_beside_each_other_in_their_order() {
    let each = |name: &str| {
        let mut composite = Composite::new("each", "Once for every item.");
        let items: Vec<u64> = (0..4).collect();
        composite.add_node(ToolNode::new("a", name).constant("x", items).for_each("x", "")).unwrap();
        composite
    };
    assert_eq!(takes(each("safe"), vec![slow("safe", 10, true)]).await, 10);
    assert_eq!(takes(each("unsafe"), vec![slow("unsafe", 10, false)]).await, 40);
    let result = call(tool_of(each("one"), vec![echo("one", &["x"], &[])]), json!({})).await;
    assert_eq!(result.text(), r#"[{"x":0},{"x":1},{"x":2},{"x":3}]"#);
}

// spec: EX-02
#[tokio::test(start_paused = true)]
async fn composite_abort_cancels_running_calls() {
    let drops = crate::fixture::DropCounter::default();
    let counted = drops.clone();
    let annotated = |name: &str| {
        ToolSpec::new(name, "For a test.", schema(&[], &[])).with_annotations(ToolAnnotations::read_only())
    };
    let forever = FnTool::new(annotated("forever"), move |_, _| {
        let guard = counted.guard();
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let fails = FnTool::new(annotated("fails"), |_, _| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Err(ToolError::NotFound("nothing there".to_owned()))
    });
    let mut composite = Composite::new("stops", "One waits for ever, one fails.");
    composite.add_node(ToolNode::new("a", "forever")).unwrap().add_node(ToolNode::new("b", "fails")).unwrap();
    let began = tokio::time::Instant::now();
    let run = context_at(Arc::new(RealClock::new()));
    let tool = tool_of(composite, vec![Arc::new(forever), Arc::new(fails)]);
    let result = run_call(&engine([tool]), &ToolCall::new("c", "stops", json!({})), &run).await;
    assert_eq!(result.text(), "Error: The step 'b' (tool 'fails') failed: nothing there.");
    assert_eq!((result.metadata["error_type"].as_str(), drops.count()), (Some("not_found"), 1));
    assert_eq!(began.elapsed(), Duration::from_millis(5));
}

/// A composite of one call.
fn around(name: &str, tool: &str) -> Composite {
    let mut composite = Composite::new(name, "One call of another, for a test.");
    composite.add_node(ToolNode::new("only", tool)).unwrap();
    composite
}

// spec: EX-04
#[tokio::test]
async fn composites_may_be_inside_of_each_other_ten_deep() {
    let registry = ToolRegistry::new();
    registry.register(echo("c0", &["x"], &[])).unwrap();
    let engine = ToolEngine::new(registry.clone());
    for n in 1..=10 {
        let composite = around(&format!("c{n}"), &format!("c{}", n - 1));
        registry.register(composite.into_tool(engine.clone()).unwrap()).unwrap();
    }
    let result = run_call(&engine, &ToolCall::new("c", "c10", json!({ "x": "deep" })), &context()).await;
    assert_eq!(result.text(), r#"{"x":"deep"}"#);
    let problems = around("c11", "c10").into_tool(engine).unwrap_err();
    assert!(matches!(problems.as_slice(), [CompositeProblem::TooDeep { depth: 11, .. }]), "{problems:?}");
}

// spec: EX-04
#[tokio::test]
async fn tools_that_call_each_other_in_a_circle_are_found_before_and_stopped_while_they_run() {
    let registry = ToolRegistry::new();
    registry.register(echo("b", &[], &["x"])).unwrap();
    let engine = ToolEngine::new(registry.clone());
    registry.register(around("a", "b").into_tool(engine.clone()).unwrap()).unwrap();
    let problems = around("b", "a").into_tool(engine.clone()).unwrap_err();
    assert_eq!(problems[0].to_string(), "these tools call each other: b → a → b; remove one of these calls");
    let itself = around("d", "d").into_tool(engine.clone()).unwrap_err();
    assert!(matches!(itself[..], [CompositeProblem::UnknownTool { .. }, CompositeProblem::Recursion { .. }]));
    // `b` is replaced by a composite that was put together while `a` was another tool.
    let other = ToolRegistry::new();
    other.register(echo("a", &[], &[])).unwrap();
    let closing = around("b", "a").into_tool(ToolEngine::new(other.clone())).unwrap();
    other.unregister("a");
    registry.unregister("b");
    registry.register(closing).unwrap();
    other.register(registry.get("a").unwrap()).unwrap();
    let result = run_call(&engine, &ToolCall::new("c", "a", json!({})), &context()).await;
    let text = result.text();
    assert!(text.contains("tools call each other in a circle: a → b → a. Nothing was done."), "{text}");
}

// spec: EX-04
#[tokio::test]
async fn composite_step_needs_the_callers_permissions() {
    let mut annotations = ToolAnnotations::read_only();
    annotations.permissions = vec!["net".to_owned()];
    let fetch = ToolSpec::new("fetch", "Needs the network, for a test.", schema(&[], &[]));
    let fetch: Arc<dyn Tool> =
        Arc::new(FnTool::new(fetch.with_annotations(annotations), |_, _| async { Ok("fetched".into()) }));
    let open = EngineOptions::default().granting(["net"]);
    let inner = || engine([fetch.clone()]).with_options(open.clone());
    let text = |outer: EngineOptions| {
        let tool: Arc<dyn Tool> = Arc::new(around("get", "fetch").into_tool(inner()).unwrap());
        async move {
            let call = ToolCall::new("c", "get", json!({}));
            run_call(&engine([tool]).with_options(outer), &call, &context()).await.text()
        }
    };
    assert_eq!(text(open.clone()).await, "fetched");
    assert!(text(EngineOptions::default()).await.contains("needs the permission net"));
    let mut denying = open.clone();
    let none: [&str; 0] = [];
    denying.permissions =
        archon_tools::Permissions::parse(["fetch"].iter(), none.iter(), none.iter()).unwrap();
    assert!(text(denying).await.contains("the rule fetch denies it"));
}

/// A tool that needs approval, and counts its calls.
fn careful(name: &str, called: &Arc<Mutex<u32>>) -> Arc<dyn Tool> {
    let mut annotations = ToolAnnotations::read_only();
    annotations.effect = Effect::SideEffect;
    annotations.requires_confirmation = true;
    let called = called.clone();
    let spec = ToolSpec::new(name, "Has consequences, for a test.", schema(&[], &["item"]));
    Arc::new(FnTool::new(spec.with_annotations(annotations), move |_, _| {
        *called.lock().unwrap() += 1;
        async { Ok("sent".into()) }
    }))
}

// spec: EX-02
#[tokio::test]
async fn composite_with_a_careful_step_asks_once_before_it_begins_and_a_yes_covers_the_step() {
    let called = Arc::default();
    let mut mail = Composite::new("mail_all", "Sends to each address of a list, for a test.");
    mail.add_node(ToolNode::new("send", "send").for_each("item", "").parameter("item", "list")).unwrap();
    let mail: Arc<dyn Tool> = Arc::new(mail.into_tool(engine([careful("send", &called)])).unwrap());
    let outer = engine([mail]);
    let mut run = context();
    run.can_ask = true;
    let call = ToolCall::new("c", "mail_all", json!({ "list": ["ann", "bob"] }));
    let Prepared::Ask(question) = outer.prepare(call_id(), &call, &run).await else { panic!("no question") };
    let shown = r#"Run mail_all with {"list":["ann","bob"]}. Its steps: send, for each item of 'item'"#;
    assert_eq!(question.action_summary, shown);
    assert_eq!(*called.lock().unwrap(), 0);
    run.agreed = Some(question.binding.as_str().into());
    assert_eq!(run_call(&outer, &call, &run).await.text(), r#"["sent","sent"]"#);
    assert_eq!(*called.lock().unwrap(), 2);
    // Nobody agreed to anything else.
    let other = ToolCall::new("c", "mail_all", json!({ "list": ["eve"] }));
    assert!(matches!(outer.prepare(call_id(), &other, &run).await, Prepared::Ask(_)));
}

// spec: EX-02
#[tokio::test]
async fn consent_to_a_composite_covers_no_step_that_a_rule_asks_about_or_that_became_more_harmful() {
    let called = Arc::default();
    let registry = ToolRegistry::new();
    registry.register(careful("send", &called)).unwrap();
    let none: [&str; 0] = [];
    let mut asking = EngineOptions::default();
    asking.permissions = archon_tools::Permissions::parse(none.iter(), ["send"].iter(), none.iter()).unwrap();
    let by_rule =
        around("by_rule", "send").into_tool(ToolEngine::new(registry).with_options(asking)).unwrap();
    let registry = ToolRegistry::new();
    registry.register(echo("later", &[], &["item"])).unwrap();
    let replaced = around("replaced", "later").into_tool(ToolEngine::new(registry.clone())).unwrap();
    registry.unregister("later");
    registry.register(careful("later", &called)).unwrap();
    // Both steps are careful, and one of them is another tool by now.
    let registry = ToolRegistry::new();
    registry.register_all([careful("first", &called), careful("second", &Arc::default())]).unwrap();
    let mut two = Composite::new("two", "Two careful calls, for a test.");
    two.add_node(ToolNode::new("a", "second")).unwrap().add_node(ToolNode::new("b", "first")).unwrap();
    let two = two.into_tool(ToolEngine::new(registry.clone())).unwrap();
    registry.unregister("first");
    registry.register(described(careful("first", &called), "Another thing, for a test.")).unwrap();
    for (tool, name) in [(by_rule, "by_rule"), (replaced, "replaced"), (two, "two")] {
        let outer = engine([Arc::new(tool) as Arc<dyn Tool>]);
        let (mut run, call) = (context(), ToolCall::new("c", name, json!({})));
        run.can_ask = true;
        if let Prepared::Ask(question) = outer.prepare(call_id(), &call, &run).await {
            run.agreed = Some(question.binding.as_str().into());
        }
        let text = run_call(&outer, &call, &run).await.text();
        assert!(text.contains("needs a person's consent and there is nobody to ask"), "{name}: {text}");
    }
    assert_eq!(*called.lock().unwrap(), 0);
}

/// The same tool with another description.
fn described(tool: Arc<dyn Tool>, description: &str) -> Arc<dyn Tool> {
    let mut spec = tool.spec().clone();
    spec.description = description.to_owned();
    Arc::new(FnTool::new(spec, move |arguments, context| {
        let (tool, context) = (tool.clone(), context.clone());
        async move { tool.call(arguments, &context).await }
    }))
}

// spec: EX-02, AP-05
#[test]
fn binding_of_a_composite_is_another_for_another_graph_constant_or_part() {
    let version = |composite: Composite, part: Arc<dyn Tool>| {
        Tool::spec(&composite.into_tool(engine([part])).unwrap()).version.clone()
    };
    let part = || careful("send", &Arc::default());
    let one = version(around("mail", "send"), part());
    assert_eq!(one, version(around("mail", "send"), part()));
    let mut constant = Composite::new("mail", "One call of another, for a test.");
    constant.add_node(ToolNode::new("only", "send").constant("item", "eve")).unwrap();
    assert_ne!(one, version(constant, part()));
    assert_ne!(one, version(around("mail", "send"), described(part(), "Another thing.")));
}

// spec: EX-02
#[tokio::test]
async fn rule_that_allows_a_composite_agrees_to_no_step_that_destroys() {
    let mut annotations = ToolAnnotations::read_only();
    (annotations.effect, annotations.destructive) = (Effect::SideEffect, true);
    let called = Arc::new(Mutex::new(0));
    let count = called.clone();
    let spec = ToolSpec::new("wipe", "Destroys, for a test.", schema(&[], &[])).with_annotations(annotations);
    let wipe: Arc<dyn Tool> = Arc::new(FnTool::new(spec, move |_, _| {
        *count.lock().unwrap() += 1;
        async { Ok("gone".into()) }
    }));
    let mut own = EngineOptions::default();
    own.ask = archon_tools::Ask::WhereRequired;
    let tidy = around("tidy", "wipe").into_tool(engine([wipe]).with_options(own)).unwrap();
    let tidy: Arc<dyn Tool> = Arc::new(tidy);
    let mut options = EngineOptions::default();
    options.ask = archon_tools::Ask::BeforeDestruction;
    let none: [&str; 0] = [];
    options.permissions =
        archon_tools::Permissions::parse(none.iter(), none.iter(), ["tidy"].iter()).unwrap();
    let outer = engine([tidy]).with_options(options);
    let text = run_call(&outer, &ToolCall::new("c", "tidy", json!({})), &context()).await.text();
    assert!(text.contains("needs a person's consent"), "{text}");
    assert_eq!(*called.lock().unwrap(), 0);
}

// spec: EX-02
#[tokio::test]
async fn composite_reports_the_progress_of_its_steps() {
    let spec = ToolSpec::new("talks", "Says what it does, for a test.", schema(&[], &[]));
    let talks = FnTool::new(spec, |_, context| async move {
        context.on_progress("half way\n");
        Ok("done".into())
    });
    let sink = RecordingSink::new();
    let mut run = context();
    run.sink = Arc::new(sink.clone());
    let tool = tool_of(around("watched", "talks"), vec![Arc::new(talks)]);
    run_call(&engine([tool]), &ToolCall::new("c", "watched", json!({})), &run).await;
    let said = |event: Event| match event {
        Event::Delta(delta) => match delta.kind {
            DeltaKind::ToolProgress { call, text } => Some((call, text)),
            _ => None,
        },
        _ => None,
    };
    let said: Vec<_> = sink.events().into_iter().filter_map(said).collect();
    let call = crate::fixture::call_id();
    assert_eq!(said, [(call, "only: talks\n".to_owned()), (call, "half way\n".to_owned())]);
}
