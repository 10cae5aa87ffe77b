//! The mode of a session: the calls that plan mode refuses, and the edits that need no question.

use std::sync::Arc;

use archon_tools::{
    EngineOptions, Permissions, Workspace,
    builtin::{FinishPlan, file_tools},
};
use archon_types::{Context, Prepared, SessionMode, SharedMode, Tool, ToolAnnotations, ToolCall, Toolbox};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::fixture::{Recorder, call_id, context, engine, spec};

fn in_mode(mode: SessionMode) -> Context {
    let mut run = context();
    (run.mode, run.can_ask) = (SharedMode::new(mode), true);
    run
}

/// What becomes of a call: `runs`, `asks`, or the refusal.
async fn verdict(toolbox: &dyn Toolbox, call: (&str, archon_types::Json), run: &Context) -> String {
    match toolbox.prepare(call_id(), &ToolCall::new("c", call.0, call.1), run).await {
        Prepared::Ready(_) => "runs".to_owned(),
        Prepared::Ask(_) => "asks".to_owned(),
        Prepared::Refused(result) => result.text(),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn plan_mode_lets_only_tools_run_that_change_nothing() {
    let recorder = Recorder::default();
    let reads = spec("read_all").with_annotations(ToolAnnotations::read_only());
    let plain = [recorder.tool_with(spec("add_row")), recorder.tool_with(reads)];
    let with_plan = plain.iter().cloned().chain([Arc::new(FinishPlan::new()) as Arc<dyn Tool>]);
    let check = async |tools: Vec<Arc<dyn Tool>>, expected: Expect| {
        let (engine, run) = (engine(tools), in_mode(SessionMode::Plan));
        expected.assert_eq(&verdict(&engine, ("add_row", json!({})), &run).await);
        assert_eq!(verdict(&engine, ("read_all", json!({})), &run).await, "runs");
        for mode in [SessionMode::Ask, SessionMode::AcceptEdits] {
            assert_eq!(verdict(&engine, ("add_row", json!({})), &in_mode(mode)).await, "runs");
        }
    };
    check(
        plain.to_vec(),
        expect!["Error: Tool 'add_row' may change something, and the session is in plan mode, in which nothing is changed. It was not run. Go on with tools that only read. When you know what has to be done, write the whole plan as your answer."],
    )
    .await;
    check(
        with_plan.collect(),
        expect!["Error: Tool 'add_row' may change something, and the session is in plan mode, in which nothing is changed. It was not run. Go on with tools that only read. When you know what has to be done, call finish_plan with the whole plan; a person decides about it."],
    )
    .await;
}

#[tokio::test]
async fn engine_without_plan_mode_runs_changes_that_no_rule_denies() {
    let recorder = Recorder::default();
    let mut options = EngineOptions::default().without_plan_mode();
    options.permissions = Permissions::parse(&["drop_table"], &[], &[]).unwrap();
    let tools = ["add_row", "drop_table"].map(|name| recorder.tool_with(spec(name)));
    let (engine, run) = (engine(tools).with_options(options), in_mode(SessionMode::Plan));
    assert_eq!(verdict(&engine, ("add_row", json!({})), &run).await, "runs");
    let denied = verdict(&engine, ("drop_table", json!({})), &run).await;
    assert!(denied.contains("denies it"), "{denied}");
}

#[tokio::test]
async fn finish_plan_is_a_question_in_plan_mode_and_refused_in_other_modes() {
    let engine = engine([Arc::new(FinishPlan::new()) as Arc<dyn Tool>]);
    let plan = || ("finish_plan", json!({ "plan": "Change it." }));
    assert_eq!(verdict(&engine, plan(), &in_mode(SessionMode::Plan)).await, "asks");
    for mode in [SessionMode::Ask, SessionMode::AcceptEdits] {
        let refused = verdict(&engine, plan(), &in_mode(mode)).await;
        assert!(refused.contains("the session is not in plan mode"), "{refused}");
        // The person set another mode before the answer.
        let mut run = in_mode(mode);
        run.agreed = Some("the binding of another call".into());
        assert_eq!(verdict(&engine, plan(), &run).await, "asks");
    }
    let mut called = in_mode(SessionMode::Plan);
    called.depth = 1;
    let refused = verdict(&engine, plan(), &called).await;
    assert!(refused.contains("another agent called you"), "{refused}");
    let empty = verdict(&engine, ("finish_plan", json!({ "plan": "" })), &in_mode(SessionMode::Plan)).await;
    assert!(empty.starts_with("Error"), "{empty}");
}

#[tokio::test]
async fn accepted_edits_are_those_of_file_tools_that_no_rule_asks_about() {
    let folder = tempfile::TempDir::new().unwrap();
    let workspace = Workspace::new(folder.path()).unwrap();
    let recorder = Recorder::default();
    let drops = spec("drop_table").with_annotations(ToolAnnotations::destructive());
    let tools = file_tools(&workspace).into_iter().chain([recorder.tool_with(drops)]);
    let mut options = EngineOptions::default().granting(["fs_write"]);
    options.permissions = Permissions::parse(&["write_file(no/**)"], &["write_file(ask/**)"], &[]).unwrap();
    let engine = engine(tools).with_options(options);
    let write = |path: &str| ("write_file", json!({ "path": path, "content": "x" }));
    for (call, in_ask, in_accept_edits) in [
        (write("a.txt"), "asks", "runs"),
        (write("ask/a.txt"), "asks", "asks"),
        (write(".github/workflows/a.yml"), "asks", "asks"),
        (write(".git/HEAD"), "asks", "asks"),
        (write("sub/.GIT/refs/heads/main"), "asks", "asks"),
        (write("sub/.gitignore"), "asks", "runs"),
        (("drop_table", json!({})), "asks", "asks"),
    ] {
        assert_eq!(verdict(&engine, call.clone(), &in_mode(SessionMode::Ask)).await, in_ask, "{call:?}");
        let accepted = verdict(&engine, call.clone(), &in_mode(SessionMode::AcceptEdits)).await;
        assert_eq!(accepted, in_accept_edits, "{call:?}");
    }
    let denied = verdict(&engine, write("no/a.txt"), &in_mode(SessionMode::AcceptEdits)).await;
    assert!(denied.contains("denies it"), "{denied}");
}
