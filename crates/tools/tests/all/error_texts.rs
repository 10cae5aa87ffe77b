//! Every text that a call can fail with before or around its tool, in one table: `error_texts.md`.

use std::{fs, sync::Arc, time::Duration};

use archon_testkit::RealClock;
use archon_tools::{EngineOptions, ToolEngine, Workspace, builtin::file_tools};
use archon_types::{
    Answer, ApprovalRequest, Approver, Decision, Json, Tool, ToolAnnotations, ToolCall, ToolError,
    ToolResult, ToolSpec,
};
use expect_test::expect_file;
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{context_at, engine, run_call, spec, tool};

fn with(name: &str, change: impl FnOnce(&mut ToolAnnotations)) -> ToolSpec {
    let mut annotations = ToolAnnotations::default();
    change(&mut annotations);
    spec(name).with_annotations(annotations)
}

struct Declines(&'static str);

impl Approver for Declines {
    async fn decide(&self, _: &ApprovalRequest) -> Decision {
        Decision::Now(Answer::Cancel { reason: self.0.to_owned() })
    }
}

fn tools(workspace: &Workspace) -> Vec<Arc<dyn Tool>> {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "count": { "type": "integer", "minimum": 1 },
            "mode": { "enum": ["fast", "slow"] },
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    let mut all = vec![
        Arc::new(archon_tools::FnTool::new(
            ToolSpec::new("take", "Takes arguments and does nothing.", parameters),
            |_, _| std::future::ready(Ok("done".into())),
        )) as Arc<dyn Tool>,
        tool(with("deploy", |a| a.permissions = vec!["shell_exec".to_owned()]), |_| {
            std::future::ready(Ok("done".into()))
        }),
        tool(with("confirmed", |a| a.requires_confirmation = true), |_| {
            std::future::ready(Ok("done".into()))
        }),
        tool(with("slow", |a| a.timeout_ms = Some(500)), |_| std::future::pending()),
        tool(with("shows", |a| a.timeout_ms = Some(500)), |context| {
            context.on_update("half of it".into());
            std::future::pending()
        }),
        tool(spec("panics"), |_| async { panic!("index out of bounds") }),
        tool(spec("stops"), |context| {
            context.run.cancel.cancel();
            std::future::pending()
        }),
        tool(spec("fails"), |_| std::future::ready(Err(ToolError::Failed("the disk is on fire".to_owned())))),
        tool(spec("has_no_room"), |_| {
            std::future::ready(Err(ToolError::Resource("the disk is full".to_owned())))
        }),
    ];
    all.extend(file_tools(workspace));
    all
}

/// The kinds of advice in an error text.
const ADVICE: [&str; 14] = [
    "Available tools: ",
    "Call it again ",
    "Send ",
    "Example: ",
    "Go on ",
    "Try ",
    "check what it did",
    "Use ",
    "Did you mean ",
    "Ask for ",
    "Take ",
    "Read it again ",
    "Read the file again ",
    "or set ",
];

/// A row of the table: what was called, the kind of failure, what the model reads, and what people read beyond.
async fn row(engine: &ToolEngine, call: ToolCall) -> String {
    let run = context_at(Arc::new(RealClock::new()));
    let shown: String = call.arguments.to_string().chars().take(70).collect();
    let name = call.name.clone();
    let result: ToolResult = run_call(engine, &call, &run).await;
    assert!(result.is_error(), "{name} {shown}: {}", result.text());
    let kind = result.metadata.get("error_type").and_then(Json::as_str).unwrap_or("-");
    // A tool's own words go on as they are.
    let is_own = ["fails", "has_no_room"].contains(&&*name);
    assert!(
        is_own || ADVICE.iter().any(|advice| result.text().contains(advice)),
        "{name}: {}",
        result.text()
    );
    assert!(
        result.error_message.as_deref().is_some_and(|what| !what.is_empty()),
        "{name}: a person reads nothing"
    );
    let cell = |text: &str| text.replace('\n', "<br>").replace('|', "\\|");
    let text = cell(&result.text());
    let detail = result.error_message.filter(|detail| {
        !result.content.iter().any(|c| c.as_text().is_some_and(|text| text.ends_with(detail.as_str())))
    });
    format!("| `{name}` `{}` | {kind} | {text} | {} |\n", cell(&shown), cell(&detail.unwrap_or_default()))
}

// spec: TE-04, TE-05, TE-07, TE-09, TE-32
#[tokio::test(start_paused = true)]
async fn error_text_of_every_failure_has_cause_and_advice() {
    let folder = TempDir::new().unwrap();
    for (name, content) in [("a.txt", &b"one\none\n"[..]), ("b.txt", b"two"), ("blob", b"\0\x01")] {
        fs::write(folder.path().join(name), content).unwrap();
    }
    fs::create_dir(folder.path().join("dir")).unwrap();
    let workspace = Workspace::new(folder.path()).unwrap();
    let mut options = EngineOptions::default().granting(["fs_write"]);
    options.max_argument_bytes = 200;
    options.max_argument_depth = 5;
    options.timeout = Duration::from_secs(30);
    let engine = engine(tools(&workspace)).with_options(options);
    run_call(
        &engine,
        &ToolCall::new("c", "read_file", json!({ "path": "a.txt" })),
        &crate::fixture::context(),
    )
    .await;
    let mut table = String::from(
        "Written by the test beside it; `UPDATE_EXPECT=1` writes it again.\n\n| call | kind | the model reads | people read \
         as well |\n|---|---|---|---|\n",
    );
    let call = |name: &str, arguments: Json| ToolCall::new("c", name, arguments);
    let calls = [
        call("tkae", json!({})),
        ToolCall::from_json_text("c", "take", r#"{"path": "a"#),
        call("take", json!({ "path": "x".repeat(200) })),
        call("take", json!({ "path": [[[[[[1]]]]]] })),
        call("take", json!("a.txt")),
        call("take", json!({})),
        call("take", json!({ "path": 1, "count": 0, "mode": "quick", "pth": "" })),
        call("deploy", json!({})),
        call("confirmed", json!({})),
        call("slow", json!({})),
        call("shows", json!({})),
        call("stops", json!({})),
        call("panics", json!({})),
        call("fails", json!({})),
        call("has_no_room", json!({})),
        call("read_file", json!({ "path": "../secret" })),
        call("read_file", json!({ "path": "c.txt" })),
        call("read_file", json!({ "path": "dir" })),
        call("read_file", json!({ "path": "blob" })),
        call("read_file", json!({ "path": "a.txt", "start_line": 9 })),
        call("list_files", json!({ "path": "a.txt" })),
        call("glob", json!({ "pattern": "[" })),
        call("write_file", json!({ "path": "../x", "content": "" })),
        call("write_file", json!({ "path": "dir", "content": "" })),
        call("write_file", json!({ "path": "a.txt/x", "content": "" })),
        call("write_file", json!({ "path": "b.txt", "content": "" })),
        call("edit_file", json!({ "path": "b.txt", "old_text": "two", "new_text": "2" })),
        call("edit_file", json!({ "path": "a.txt", "old_text": "one", "new_text": "1" })),
        call("edit_file", json!({ "path": "a.txt", "old_text": "two", "new_text": "1" })),
        call("edit_file", json!({ "path": "c.txt", "old_text": "two", "new_text": "1" })),
    ];
    for call in calls {
        table.push_str(&row(&engine, call).await);
    }
    fs::write(folder.path().join("a.txt"), "by another").unwrap();
    table.push_str(&row(&engine, call("write_file", json!({ "path": "a.txt", "content": "" }))).await);
    for reason in ["", "use the test server"] {
        let engine = engine.clone().with_approver(Arc::new(Declines(reason)));
        table.push_str(&row(&engine, call("confirmed", json!({}))).await);
    }
    expect_file!["error_texts.md"].assert_eq(&table);
}
