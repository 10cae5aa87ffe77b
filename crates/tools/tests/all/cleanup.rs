//! `cleanup_tool_call`: the results that it removes, its refusals and its texts.

use archon_tools::builtin::CleanupToolCall;
use archon_types::{
    CleanedUp, Context, Message, SeenResult, Timestamp, Tool, ToolCall, ToolResult, metadata,
};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::fixture::{context, engine, run_call};

/// A window with these results: the id of the call and the text.
fn seeing(results: &[(&str, &str)]) -> Context {
    let mut run = context();
    let seen = results.iter().map(|(id, text)| {
        let call = ToolCall::new(*id, "search", json!({}));
        let message = Message::tool_result(&call, &ToolResult::success(*text), Timestamp::default());
        SeenResult::of(&message, 500).unwrap()
    });
    run.results = Some(seen.collect());
    run
}

async fn clean_up(run: &Context, arguments: archon_types::Json) -> ToolResult {
    let tool: std::sync::Arc<dyn Tool> = std::sync::Arc::new(CleanupToolCall::new());
    run_call(&engine([tool]), &ToolCall::new("c", "cleanup_tool_call", arguments), run).await
}

// spec: TE-49
#[tokio::test]
async fn clean_up_removes_results_with_reason_and_summary() {
    let run = seeing(&[("c1", "one"), ("c2", "two")]);
    let done = clean_up(
        &run,
        json!({ "tool_call_ids": ["c1"], "summary": "Nothing in src.", "reason": "no results" }),
    )
    .await;
    expect![[
        r#"{"success":true,"message":"Cleaned up 1 of 1 results.","original_tool":"search","tokens_saved":489}"#
    ]]
    .assert_eq(&done.text());
    let [mark] = CleanedUp::of(&done).try_into().unwrap();
    assert_eq!(mark.note(), "[Cleaned up - no results]: Nothing in src.");
    expect![[
        r#"[{"tool_call_id":"c1","cleanup_reason":"no results","cleanup_summary":"Nothing in src.","original_tokens":500}]"#
    ]]
    .assert_eq(&done.metadata[metadata::CLEANED_UP].to_string());
    let done = clean_up(&run, json!({ "tool_call_ids": ["c2", "c2", "c1", "c9"] })).await;
    let notes: Vec<_> = CleanedUp::of(&done).iter().map(CleanedUp::note).collect();
    assert_eq!(notes, ["[Cleaned up - not relevant to task]"; 2]);
    let message = "Cleaned up 2 of 3 results. There is no result of a call 'c9' in the context window.";
    assert!(done.text().contains(message), "{}", done.text());
}

// spec: TE-49
#[tokio::test]
async fn clean_up_of_an_unknown_or_removed_result_is_an_error() {
    let check = async |run: &Context, ids: &[&str], expected: Expect| {
        let refused = clean_up(run, json!({ "tool_call_ids": ids })).await;
        assert!(refused.is_error() && CleanedUp::of(&refused).is_empty());
        expected.assert_eq(&refused.text());
    };
    let run = seeing(&[("c1", "[Cleaned up - no results]: Nothing.")]);
    check(&run, &["c1"], expect!["Error: The result of 'c1' was cleaned up before."]).await;
    check(
        &run,
        &["c2"],
        expect![
            "Error: There is no result of a call 'c2' in the context window. The id stands at the beginning of each result."
        ],
    )
    .await;
    check(
        &context(),
        &["c1"],
        expect![
            "Error: results cannot be removed, because this call has no context window. Go on without it."
        ],
    )
    .await;
    // Models repeat ids: the newest that is still there is meant.
    let run = seeing(&[("c1", "old"), ("c1", "[Cleaned up - no results]")]);
    assert!(!clean_up(&run, json!({ "tool_call_ids": ["c1"] })).await.is_error());
}
