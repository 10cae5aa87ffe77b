//! Metrics of a conversation, folded from the logs of its runs.

use std::sync::Arc;

use archon_types::{
    CallId, CommandId, Effect, PromptSource, Record, RecordBody, SessionId, Timestamp, ToolCall, ToolError,
    ToolResult,
};
use archon_views::{ConversationMetrics, GlobalStats};
use expect_test::expect;
use serde_json::json;

use crate::samples::{answered, prompted, started, window_records};

/// Records that are so many milliseconds after the one before.
fn records(bodies: Vec<(u64, RecordBody)>) -> Vec<Arc<Record>> {
    let mut now = 0;
    let start = (0, RecordBody::RunStarted(Box::new(started())));
    let record = |(seq, (later, body))| {
        now += later;
        Arc::new(Record { seq, at: Timestamp::from_millis(now), body })
    };
    (0..).zip(std::iter::once(start).chain(bodies)).map(record).collect()
}

fn tool_call_started(index: u32, attempt: u32) -> RecordBody {
    let call = CallId::new(CommandId(0), index);
    RecordBody::ToolCallStarted { call, attempt, effect: Effect::ReadOnly, child_run: None }
}

fn result(index: u32, result: ToolResult) -> RecordBody {
    RecordBody::ToolCallFinished { call: CallId::new(CommandId(0), index), result: Arc::new(result) }
}

fn one_run() -> Vec<Arc<Record>> {
    let call = |id: &str, name: &str| ToolCall::new(id, name, json!({"q": "x"})).into();
    let calls = vec![call("a", "grep"), call("b", "read_file"), call("c", "read_file")];
    records(vec![
        (0, prompted("Find it", PromptSource::Prompt)),
        (10, answered(0, calls)),
        (0, tool_call_started(0, 0)),
        (100, result(0, ToolResult::success("y".repeat(38)))),
        (0, tool_call_started(1, 0)),
        (20, tool_call_started(1, 1)),
        (10, result(1, ToolResult::success("there"))),
        (0, tool_call_started(2, 0)),
        (21, result(2, ToolError::Failed("gone".to_owned()).into())),
        (9, answered(1, vec!["Here.".into()])),
        // Nobody worked on it in this time.
        (5_000, RecordBody::Resumed),
    ])
}

// spec: OB-04
#[test]
fn conversation_metrics_of_a_run_count_its_calls_tokens_and_time() {
    let mut metrics = ConversationMetrics::new(SessionId::new("s_1"));
    metrics.add_run(&one_run());
    assert_eq!((metrics.successful_calls, metrics.failed_calls, metrics.retried_calls), (2, 1, 1));
    assert_eq!(metrics.total_duration_ms, 170);
    let first = &metrics.tool_calls[0];
    assert_eq!((first.duration_ms, first.input_tokens, first.output_tokens), (100, 2, 10));
    assert_eq!((first.start_time.as_millis(), first.end_time.as_millis()), (10, 110));
    let [_, again, failed] = &metrics.tool_calls[..] else { panic!("three calls") };
    assert_eq!((again.duration_ms, again.retry_count, again.success), (30, 1, true));
    assert_eq!(failed.error_code.as_deref(), Some("execution_error"));
    let stats = metrics.tool_stats()["read_file"];
    assert_eq!(
        (stats.call_count, stats.avg_duration_ms, stats.success_rate, stats.error_rate),
        (2, 25.5, 0.5, 0.5)
    );
}

// spec: OB-05
#[test]
fn report_of_a_conversation_has_every_number_and_the_tool_called_most_first() {
    let mut metrics = ConversationMetrics::new(SessionId::new("s_1"));
    metrics.add_run(&one_run());
    metrics.add_run(&window_records());
    expect![[r#"

        Conversation Metrics Report
        ============================
        Conversation ID: s_1
        Duration: 0.2s

        Token Usage:
          - Input: 120
          - Output: 15
          - Total: 135

        Tool Calls:
          - Total: 3
          - Successful: 2
          - Failed: 1
          - Retried: 1

        Per-Tool Statistics:

          read_file:
            - Calls: 2
            - Avg Duration: 25.5ms
            - Avg Tokens: 4
            - Success Rate: 50.0%

          grep:
            - Calls: 1
            - Avg Duration: 100.0ms
            - Avg Tokens: 12
            - Success Rate: 100.0%

        Skills Activated:
          - Total: 0
          - Unique: 0
          - Skills: None

        Context Management:
          - Messages: 7
          - Compressions: 3
    "#]]
    .assert_eq(&metrics.to_report());
}

// spec: OB-05
#[test]
fn global_stats_are_sums_over_conversations_and_a_mean_of_0_without_calls() {
    let empty = ConversationMetrics::new(SessionId::new("s_2"));
    assert_eq!(GlobalStats::of([&empty]).avg_tokens_per_call, 0.0);
    let mut worked = ConversationMetrics::new(SessionId::new("s_1"));
    worked.add_run(&one_run());
    let all = GlobalStats::of([&empty, &worked]);
    assert_eq!((all.total_conversations, all.total_tool_calls, all.total_tokens), (2, 3, 90));
    assert_eq!((all.total_duration_seconds, all.avg_tokens_per_call), (0.17, 30.0));
}
