//! Advice on the use of tools, which is added to results.

use std::sync::Arc;

use archon_tools::{CallMade, PatternAnalyzer, SingleCalls, Suggestion, ToolEngine};
use archon_types::{CallId, CommandId, Context, Executed, Prepared, ToolCall, ToolResult, Toolbox, metadata};
use serde_json::json;

use crate::fixture::{context, engine, spec, tool};

fn reader(analyzer: impl PatternAnalyzer + 'static) -> ToolEngine {
    let tools = ["read_file", "other"].map(|name| tool(spec(name), |_| async { Ok("text".into()) }));
    engine(tools).with_pattern_analyzer(Arc::new(analyzer))
}

/// An answer with these calls, which run side by side.
async fn answer(engine: &ToolEngine, run: &Context, command: u64, tools: &[&str]) -> Vec<ToolResult> {
    let mut ready = Vec::new();
    for (index, tool) in (0..).zip(tools) {
        let call = ToolCall::new(format!("c{index}"), *tool, json!({}));
        match engine.prepare(CallId::new(CommandId(command), index), &call, run).await {
            Prepared::Ready(call) => ready.push(call),
            other => panic!("{other:?}"),
        }
    }
    let mut results = Vec::new();
    for call in ready {
        match engine.execute(call, run).await {
            Executed::Done(result) => results.push(*result),
            other => panic!("{other:?}"),
        }
    }
    results
}

fn suggestions(results: &[ToolResult]) -> usize {
    results.iter().filter(|result| result.metadata.contains_key(metadata::SUGGESTION)).count()
}

// spec: TE-54
#[tokio::test]
async fn three_single_reads_are_noticed_once_in_a_run() {
    let engine = reader(SingleCalls::default());
    let run = context();
    let one = ["read_file"];
    for command in 0..2 {
        assert_eq!(suggestions(&answer(&engine, &run, command, &one).await), 0);
    }
    let third = answer(&engine, &run, 2, &one).await.remove(0);
    let text = "The last three answers had one call of 'read_file' each. Calls that do not need each other's results can \
                stand in one answer: they run side by side.";
    assert_eq!(third.metadata[metadata::SUGGESTION], text);
    assert_eq!(third.text(), format!("text\n[Suggestion: {text}]"));
    for command in 3..9 {
        assert_eq!(suggestions(&answer(&engine, &run, command, &one).await), 0, "it was said");
    }
    // Another run knows nothing of it.
    let mut other = context();
    other.run = "another".into();
    for command in 0..3 {
        let said = suggestions(&answer(&engine, &other, command, &one).await);
        assert_eq!(said, usize::from(command == 2));
    }
}

// spec: TE-54
#[tokio::test]
async fn calls_side_by_side_or_of_other_tools_are_no_pattern() {
    let engine = reader(SingleCalls::default());
    for (run, tools) in
        [("a", ["read_file", "read_file"].as_slice()), ("b", &["other"]), ("c", &["read_file", "other"])]
    {
        let mut context = context();
        context.run = run.into();
        for command in 0..5 {
            assert_eq!(suggestions(&answer(&engine, &context, command, tools).await), 0, "{tools:?}");
        }
    }
    let between = context();
    for (command, tool) in (0..).zip(["read_file", "read_file", "other", "read_file", "read_file"]) {
        assert_eq!(suggestions(&answer(&engine, &between, command, &[tool]).await), 0);
    }
}

/// Has something to say until it fails.
struct Fails;

impl PatternAnalyzer for Fails {
    fn analyze(&self, calls: &[CallMade]) -> Vec<Suggestion> {
        assert!(calls.len() < 2, "a failure of its own");
        let say = |pattern: &str| Suggestion { pattern: pattern.into(), message: pattern.to_uppercase() };
        vec![say("a"), say("b"), say("a")]
    }
}

// spec: TE-54
#[tokio::test]
async fn pattern_analyzer_failure_is_ignored() {
    let engine = reader(Fails);
    let run = context();
    let first = answer(&engine, &run, 0, &["other"]).await.remove(0);
    assert_eq!(first.metadata[metadata::SUGGESTION], "A\nB");
    let second = answer(&engine, &run, 1, &["other"]).await.remove(0);
    assert_eq!(second.text(), "text");
}
