//! The acceptance scenarios of single tools: a search, a shell, one that sleeps, one that fails at random.

use std::{sync::Arc, time::Duration};

use archon::{
    OutcomeStatus, ToolContext, ToolResult,
    tools::{Ask, EngineOptions, FnTool, Workspace, builtin},
    types::{Clock, Json, RecordBody, ToolAnnotations, ToolResultStatus, ToolSpec},
};
use archon_testkit::{FnProvider, VirtualClock};
use expect_test::expect;
use serde_json::json;

use crate::shared::stage::{Stage, call, millis, names, reads};

fn web_search() -> Arc<dyn archon::Tool> {
    reads("web_search", |_, arguments| {
        let query = arguments["query"].as_str().unwrap_or_default().to_lowercase();
        Ok(match query {
            q if q.contains("tokyo") => "Greater Tokyo has about 37 million inhabitants.".into(),
            q if q.contains("360") => "A full turn has 360 degrees.".into(),
            _ => "Nothing found.".into(),
        })
    })
    .0
}

// spec: A-07
#[tokio::test]
async fn the_population_of_tokyo_takes_a_search_and_an_answer() {
    let stage = Stage::new(|n, request| match n {
        0 => call("c0", "web_search", json!({"query": "current population of Tokyo"})),
        _ => FnProvider::text(&format!("I found: {}", request.messages.iter().last().unwrap().text())),
    });
    let (outcome, show) =
        stage.with(|b| b.tool(web_search())).play("Find the current population of Tokyo").await;
    assert!(
        outcome.is_finished() && outcome.last_text().unwrap_or_default().contains("37 million"),
        "{outcome:?}"
    );
    assert_eq!(outcome.turns, 2);
    assert_eq!(show.results(), ["Greater Tokyo has about 37 million inhabitants."]);
}

// spec: A-13
#[tokio::test]
async fn one_agent_calculates_and_then_searches_for_the_result() {
    let stage = Stage::new(|n, request| {
        let last = request.messages.iter().last().unwrap().text();
        match n {
            0 => call("c0", "calculator", json!({"expression": "15 * 24"})),
            1 => call("c1", "web_search", json!({ "query": format!("facts about {last}") })),
            _ => FnProvider::text(&format!("15 * 24 = 360. {last}")),
        }
    });
    let task = "What is 15 * 24? Also search for facts about 360.";
    let (outcome, show) = stage.with(|b| b.tool(web_search())).play(task).await;
    assert_eq!(show.results(), ["360", "A full turn has 360 degrees."]);
    assert_eq!(outcome.last_text(), Some("15 * 24 = 360. A full turn has 360 degrees."));
}

// spec: A-43, R-04
#[tokio::test]
async fn a_command_that_ends_with_3_is_a_result_with_its_code_and_its_events_come_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let bash = builtin::Bash::new(Workspace::new(folder.path()).unwrap(), builtin::BashOptions::default());
    let grants = EngineOptions::default().granting(["shell_exec"]).asking(Ask::WhereRequired);
    let stage = Stage::new(|n, _| match n {
        0 => call("c0", "bash", json!({"command": "echo before; exit 3"})),
        _ => FnProvider::text("It ended with 3."),
    });
    let stage = stage.with(|b| b.tool(bash).engine_options(grants));
    let (outcome, show) = stage.play("Run it.").await;
    assert!(outcome.is_finished());
    let result = show.bodies().into_iter().find_map(|body| match body {
        RecordBody::ToolCallFinished { result, .. } => Some(result),
        _ => None,
    });
    let result = result.unwrap();
    assert_eq!(result.status, ToolResultStatus::Success);
    assert_eq!(result.text(), "before\n[exit code 3]");
    assert_eq!(result.metadata["exit_code"], 3);
    expect![[r#"
        AgentStart
        TurnStart
        MessageStart(user)
        MessageEnd(user)
        MessageStart(assistant)
        MessageUpdate
        MessageEnd(assistant)
        ToolExecutionStart
        ToolExecutionUpdate
        ToolExecutionEnd
        MessageStart(toolResult)
        MessageEnd(toolResult)
        TurnEnd
        TurnStart
        MessageStart(assistant)
        MessageUpdate
        MessageEnd(assistant)
        TurnEnd
        AgentEnd"#]]
    .assert_eq(&names(&show.sink.events()));
}

// spec: A-27, TE-08
#[tokio::test]
async fn a_tool_that_sleeps_is_a_time_out_that_the_model_reads() {
    let mut annotations = ToolAnnotations::default();
    annotations.timeout_ms = Some(500);
    let spec = ToolSpec::new("sleep", "Sleeps.", json!({"type": "object"})).with_annotations(annotations);
    let sleep = FnTool::new(spec, |_: Json, _: ToolContext| async {
        std::future::pending::<()>().await;
        Ok(ToolResult::success("awake"))
    });
    let stage = Stage::new(|n, request| match n {
        0 => call("c0", "sleep", json!({})),
        _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
    });
    let clock = VirtualClock::new();
    let began = clock.now();
    let stage = stage.with(|b| b.tool(sleep).clock(Arc::new(clock.clone())));
    // The run's own deadline sleeps, and the call's.
    let passes = async {
        clock.until_asleep(2).await;
        clock.advance(Duration::from_millis(500));
    };
    let ((outcome, show), ()) = futures_util::future::join(stage.play("Sleep."), passes).await;
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    let text = "Tool execution timed out after 0.5 seconds\nIt may have taken effect: check what it did before you call it \
                again.";
    assert_eq!((show.results(), outcome.last_text().unwrap_or_default()), (vec![text.to_owned()], text));
    assert_eq!(millis(clock.now().since(began)), 500);
}
