//! The examples that a newcomer starts with, run as programs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::env;
use std::process::Command;

use archon_testkit::{MockResponse, MockServer};

/// Runs the example as Cargo built it beside this test, and returns what it printed.
fn printed_by(example: &str, args: &[&str]) -> String {
    let test = env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap().join("examples");
    let program = folder.join(format!("{example}{}", env::consts::EXE_SUFFIX));
    let ran = Command::new(&program).args(args).output();
    let ran = ran.unwrap_or_else(|error| {
        panic!(
            "cannot run {}: {error}; `cargo build -p archon-agents --examples` builds it",
            program.display()
        )
    });
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{example}: {out}{err}");
    out.into_owned()
}

// spec: Q-08
#[tokio::test(flavor = "multi_thread")]
async fn hello_with_a_model_that_calls_its_tool_prints_the_answer() {
    let call = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"add","arguments":"{\"a\":19,\"b\":23}"}}]},"finish_reason":"tool_calls"}]}"#;
    let text = r#"{"choices":[{"index":0,"delta":{"content":"It is 42."},"finish_reason":"stop"}]}"#;
    let server = MockServer::start([call, text].map(|answer| MockResponse::events([answer, "[DONE]"]))).await;
    let model = format!("openai-compatible@{}/v1:m", server.url());
    let printed = tokio::task::spawn_blocking(move || printed_by("hello", &[&model])).await.unwrap();
    assert_eq!(printed, "It is 42.\n");
    let results = server.requests()[1].text.clone();
    assert!(results.contains(r#""content":"42""#), "{results}");
}

// spec: Q-08
#[cfg(feature = "orchestrator")]
#[test]
fn team_of_two_gives_each_member_its_task_and_prints_one_answer() {
    let printed = printed_by("team", &[]);
    assert_eq!(
        printed,
        "ada does: find: Find the figures\nben does: write: Write one sentence\nlead does: the answer, round 0\nThe sea rises \
         by 3.7 mm a year.\n"
    );
}

// spec: Q-08
#[test]
fn custom_tools_are_called_and_the_careful_one_asks_first() {
    let printed = printed_by("custom_tool", &[]);
    assert_eq!(
        printed,
        "support desk asks: Refund 42 cents of order A-1021\n\
         It is 42, which I paid back, and I counted once.\n\
         paid back: {\"A-1021\": 42}\n"
    );
}

// spec: Q-08
#[test]
fn approval_example_asks_for_each_message_and_prints_sent_ones() {
    let printed = printed_by("approval", &[]);
    assert_eq!(printed.lines().filter(|line| line.starts_with("asked: ")).count(), 2, "{printed}");
    assert!(printed.ends_with("Anna was greeted, Ben was not.\n"), "{printed}");
}
