//! The acceptance scenarios of what tools return: parts that fail, side by side, levels of detail, other scripts, ids that
//! pair, files that nobody has read, and a tool made of others.

use std::{fs, sync::Arc, time::Duration};

use archon::{
    RunOptions, SessionId, Tool, ToolContext, ToolError, ToolResult,
    providers::{Anthropic, AnthropicOptions},
    tools::{Ask, Composite, EngineOptions, FnTool, ToolEngine, ToolNode, ToolRegistry, Workspace, builtin},
    types::{Clock, Json, OutputLevel, ToolAnnotations, ToolInvocationRequest, ToolSpec},
};
use archon_testkit::{Ended, FnProvider, MockResponse, MockServer, VirtualClock};
use serde_json::json;

use crate::shared::stage::{Stage, call, millis, reads};

fn calls(names: &[&str]) -> crate::shared::stage::Answer {
    let one = |(n, name): (usize, &&str)| archon::types::ToolCall::new(format!("c{n}"), *name, json!({}));
    FnProvider::calls(names.iter().enumerate().map(one).collect())
}

/// A tool that takes so many milliseconds of the run's clock and then says this; with none it never ends.
fn takes(name: &str, ms: Option<u64>, says: &'static str) -> Arc<dyn Tool> {
    let mut annotations = ToolAnnotations::read_only();
    annotations.timeout_ms = Some(10_000);
    let spec = ToolSpec::new(name, format!("Does {name}."), json!({"type": "object"}));
    Arc::new(FnTool::new(
        spec.with_annotations(annotations),
        move |_: Json, context: ToolContext| async move {
            match ms {
                Some(ms) => {
                    context.run.clock.sleep_until(context.run.clock.now() + Duration::from_millis(ms)).await
                }
                None => std::future::pending().await,
            }
            Ok(ToolResult::success(says))
        },
    ))
}

// spec: A-34
#[tokio::test]
async fn finished_results_are_reported_although_one_service_times_out() {
    let stage = Stage::new(|n, request| match n {
        0 => calls(&["weather", "flights", "email"]),
        _ => {
            let said: Vec<_> = request.messages.iter().map(|message| message.text()).collect();
            let failed = said.iter().filter(|text| text.contains("timed out")).count();
            FnProvider::text(&format!(
                "{} The email could not be sent ({failed} failure).",
                said[2..4].join(" ")
            ))
        }
    });
    let mut annotations = ToolAnnotations::default();
    (annotations.timeout_ms, annotations.concurrency_safe) = (Some(10_000), true);
    let spec = ToolSpec::new("email", "Sends it.", json!({"type": "object"})).with_annotations(annotations);
    let email =
        FnTool::new(spec, |_: Json, _: ToolContext| std::future::pending::<Result<ToolResult, ToolError>>());
    let clock = VirtualClock::new();
    let tools = [takes("weather", Some(0), "Sunny."), takes("flights", Some(0), "Two flights.")];
    let stage = stage.with(|b| b.tools(tools).tool(email).clock(Arc::new(clock.clone())));
    let passes = async {
        // The run's deadline, and the call's.
        clock.until_asleep(2).await;
        clock.advance(Duration::from_secs(10));
    };
    let ((outcome, show), ()) = futures_util::future::join(stage.play("All three."), passes).await;
    assert_eq!(outcome.last_text(), Some("Sunny. Two flights. The email could not be sent (1 failure)."));
    let mut results = show.results();
    results.sort();
    let timed_out = "Tool execution timed out after 10 seconds\nIt may have taken effect: check what it did before you call \
                     it again.";
    assert_eq!(results, ["Sunny.", timed_out, "Two flights."]);
}

// spec: A-35
#[tokio::test]
async fn three_calls_take_as_long_as_the_slowest() {
    let stage = Stage::new(|n, _| match n {
        0 => calls(&["weather", "flights", "calendar"]),
        _ => FnProvider::text("All there."),
    });
    let clock = VirtualClock::new();
    let began = clock.now();
    let tools = [("weather", 1_000), ("flights", 3_000), ("calendar", 1_000)]
        .map(|(name, ms)| takes(name, Some(ms), "done"));
    let stage = stage.with(|b| b.tools(tools).clock(Arc::new(clock.clone())));
    let passes = async {
        // The run's deadline, the calls', and the calls themselves: all of them are under way.
        clock.until_asleep(7).await;
        clock.advance(Duration::from_secs(1));
        clock.advance(Duration::from_secs(2));
    };
    let ((outcome, show), ()) = futures_util::future::join(stage.play("Plan my week."), passes).await;
    assert!(outcome.is_finished());
    assert_eq!(show.results(), ["done", "done", "done"]);
    assert_eq!(millis(clock.now().since(began)), 3_000);
}

// spec: A-48
#[tokio::test]
async fn ten_items_at_three_levels() {
    let items: Vec<Json> = (1..=10).map(|n| json!({ "id": n })).collect();
    let (list, whole) = (reads("list", move |_, _| Ok(Json::from(items.clone()).to_string().into())).0, 10);
    let registry = ToolRegistry::new();
    registry.register(list).unwrap();
    let engine = ToolEngine::new(registry);
    let agent = Stage::new(|_, _| FnProvider::text("")).raise().agent;
    let run = agent.context("run".into(), SessionId::new("s"), RunOptions::default());
    let text = |level, folder: Option<&str>| {
        let mut request = ToolInvocationRequest::new("r1", "list", json!({}));
        (request.output_level, request.storage_dir) = (Some(level), folder.map(str::to_owned));
        let (engine, run) = (&engine, &run);
        async move { engine.invoke(request, run).await.text() }
    };
    assert_eq!(text(OutputLevel::Brief, None).await, "Found 10 items");
    assert_eq!(
        text(OutputLevel::Standard, None).await,
        "Found 10 items:\n  - {\"id\":1}\n  - {\"id\":2}\n  - {\"id\":3}\n  ... and 7 more"
    );
    let full: Json = serde_json::from_str(&text(OutputLevel::Full, None).await).unwrap();
    assert_eq!((full.as_array().unwrap().len(), &full[9]["id"]), (whole, &json!(10)));
}

// spec: A-49
#[tokio::test]
async fn chinese_text_is_intact_from_the_model_through_the_tool_to_the_answer() {
    let (search, _) = reads("web_search", |_, arguments| {
        let query = arguments["query"].as_str().unwrap_or_default();
        Ok(match query {
            "扬州 天气" => "扬州：多云，建议再查“扬州 明天 降水概率”。".into(),
            "扬州 明天 降水概率" => "扬州明天降水概率 30%，18–25℃ 🌤️。".into(),
            other => ToolResult::error(format!("unexpected {other}")),
        })
    });
    let stage = Stage::new(|n, request| match n {
        0 => call("c0", "web_search", json!({ "query": "扬州 天气" })),
        1 => call("c1", "web_search", json!({ "query": "扬州 明天 降水概率" })),
        _ => FnProvider::text(&format!("查到了：{}", request.messages.iter().last().unwrap().text())),
    });
    let (outcome, show) = stage.with(|b| b.tool(search)).play("扬州明天会下雨吗？").await;
    assert_eq!(outcome.last_text(), Some("查到了：扬州明天降水概率 30%，18–25℃ 🌤️。"));
    assert_eq!(outcome.turns, 3);
    assert_eq!(show.results()[0], "扬州：多云，建议再查“扬州 明天 降水概率”。");
    let log = show.journal_log(&outcome.run).await;
    let log: Vec<String> = log.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    let kept = |text: &str| log.iter().any(|line| line.contains(text));
    assert!(kept("扬州明天会下雨吗？") && kept("扬州 明天 降水概率") && kept("18–25℃ 🌤️"), "{log:?}");
}

/// An answer of Anthropic's that asks for a tool, and one that is a text.
fn anthropic(block: Json, delta: Json, reason: &str) -> MockResponse {
    let event = |value: Json| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let body: String = [
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant",
               "model": "claude", "content": [], "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]
    .map(event)
    .concat();
    MockResponse::sse(body)
}

// spec: A-50
#[tokio::test]
async fn python_files_are_found_and_the_result_pairs_with_its_call_on_the_users_side() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    for name in ["main.py", "src/tool.py", "notes.md"] {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    let server = MockServer::start([
        anthropic(
            json!({"type": "tool_use", "id": "toolu_1", "name": "glob", "input": {}}),
            json!({"type": "input_json_delta", "partial_json": "{\"pattern\": \"**/*.py\"}"}),
            "tool_use",
        ),
        anthropic(
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": "There are two."}),
            "end_turn",
        ),
    ])
    .await;
    let mut options = AnthropicOptions::default();
    options.connect = options.connect.with_api_key("k");
    let provider = Anthropic::new(&server.url(), options).unwrap();
    let glob = builtin::Glob::new(Workspace::new(folder.path()).unwrap());
    let agent = archon::Archon::builder().provider(Arc::new(provider), "claude").tool(glob).build().unwrap();
    let outcome = agent.run("Find all Python files").await.ended();
    assert_eq!(outcome.last_text(), Some("There are two."));
    let second = server.requests()[1].body.clone();
    let messages = second["messages"].as_array().unwrap();
    let [asked, got] = &messages[messages.len() - 2..] else { panic!("{messages:?}") };
    assert_eq!((&asked["role"], &got["role"]), (&json!("assistant"), &json!("user")));
    let (used, result) = (&asked["content"][0], &got["content"][0]);
    assert_eq!((&used["type"], &result["type"]), (&json!("tool_use"), &json!("tool_result")));
    assert_eq!((&used["id"], &result["tool_use_id"]), (&json!("toolu_1"), &json!("toolu_1")));
    let text = result["content"].to_string();
    assert!(text.contains("main.py") && text.contains("src/tool.py") && !text.contains("notes"), "{text}");
}

// spec: A-51
#[tokio::test]
async fn write_file_refuses_unread_or_changed_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    fs::write(&file, "old").unwrap();
    let changed = file.clone();
    let stage = Stage::new(move |n, _| match n {
        0 => call("c0", "write_file", json!({ "path": "a.txt", "content": "first" })),
        1 => call("c1", "read_file", json!({ "path": "a.txt" })),
        2 => call("c2", "write_file", json!({ "path": "a.txt", "content": "second" })),
        3 => {
            fs::write(&changed, "by somebody else").unwrap();
            call("c3", "write_file", json!({ "path": "a.txt", "content": "third" }))
        }
        _ => FnProvider::text("Done."),
    });
    let workspace = Workspace::new(folder.path()).unwrap();
    let (read, write) = (builtin::ReadFile::new(workspace.clone()), builtin::WriteFile::new(workspace));
    let options = EngineOptions::default().granting(["fs_write"]).asking(Ask::WhereRequired);
    let stage = stage.with(|b| b.tool(read).tool(write).engine_options(options));
    let (outcome, show) = stage.play("Rewrite a.txt.").await;
    assert!(outcome.is_finished());
    let results = show.results();
    assert!(results[0].contains("File exists but has not been read in this session: 'a.txt'"), "{results:?}");
    assert_eq!(results[2], "Replaced 'a.txt' (6 bytes, 1 lines).");
    assert!(results[3].contains("'a.txt' was changed since it was read"), "{results:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "by somebody else");
}

/// Finds pages and sums each of them up; `broken` cannot be summed up.
fn researcher() -> Arc<dyn Tool> {
    let text =
        |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let search = FnTool::new(
        ToolSpec::new("web_search", "Finds pages.", text("query"))
            .with_annotations(ToolAnnotations::read_only()),
        |arguments: Json, _: ToolContext| async move {
            let query = arguments["query"].as_str().unwrap_or_default();
            let urls: Vec<_> =
                (0..2).map(|n| json!({ "url": format!("https://{query}.test/{n}") })).collect();
            Ok(ToolResult::success(json!({ "results": urls }).to_string()))
        },
    );
    let summarize = FnTool::new(
        ToolSpec::new("summarize", "Sums a page up.", text("url"))
            .with_annotations(ToolAnnotations::read_only()),
        |arguments: Json, _: ToolContext| async move {
            match arguments["url"].as_str().unwrap_or_default() {
                url if url.contains("broken") => Err(ToolError::Failed("the page is gone".to_owned())),
                url => Ok(ToolResult::success(format!("what {url} says"))),
            }
        },
    );
    let registry = ToolRegistry::new();
    registry.register(search).unwrap();
    registry.register(summarize).unwrap();
    let mut composite =
        Composite::new("research_and_summarize", "Finds pages about a topic and sums each up.");
    composite
        .add_node(
            ToolNode::new("search", "web_search").parameter("query", "topic").gives("/results", "sum", "url"),
        )
        .unwrap()
        .add_node(ToolNode::new("sum", "summarize").for_each("url", "/url"))
        .unwrap();
    assert!(composite.add_edge("sum", "search").is_err(), "a circle");
    Arc::new(composite.into_tool(ToolEngine::new(registry)).unwrap())
}

// spec: A-55
#[tokio::test]
async fn an_agent_calls_the_composite_researcher_and_learns_when_a_step_of_it_fails() {
    let stage = Stage::new(|n, _| match n {
        0 => call("c0", "research_and_summarize", json!({ "topic": "rust" })),
        1 => call("c1", "research_and_summarize", json!({ "topic": "broken" })),
        _ => FnProvider::text("One of two."),
    });
    let (outcome, show) = stage.with(|b| b.tool(researcher())).play("Research both.").await;
    assert!(outcome.is_finished());
    assert_eq!(
        show.results(),
        [
            r#"["what https://rust.test/0 says","what https://rust.test/1 says"]"#,
            "Error: The step 'sum' (tool 'summarize') failed: item 0: the page is gone. Done before: search.",
        ]
    );
}
