//! Questions about calls on the screen: the whole call first, then an answer by a key that was meant for it.

use archon_testkit::{Gate, MockResponse, MockServer};
use serde_json::json;

use super::{basics::messages, window::Window};
use crate::setup::{Place, Ran, answer, asks_for, chunk};

const WRITE: &str = r#"{"path": "notes.txt", "content": "hello\n"}"#;

/// A conversation that asks about the first call.
async fn asked(place: &Place) -> Window {
    let mut window = Window::open(place, "chat");
    window.says("Write notes.").await;
    window.shows("[y]es, once").await;
    window
}

/// Presses a key until the question has gone. A question takes no key in the first moment, so that nobody answers it
/// unseen; a key that comes too early is in the draft.
pub(super) async fn answers(window: &mut Window, key: &str) {
    // The draft is emptied, as a person would do it who sees the key there.
    while window.screen().contains("[y]es, once") {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        window.types(key);
        let gone_or_typed = format!("› {key}");
        window
            .until("the key", |window| {
                let screen = window.screen();
                !screen.contains("[y]es, once") || screen.contains(&gone_or_typed)
            })
            .await;
        if window.screen().contains(&gone_or_typed) {
            window.types("\x15");
            window.hides(&gone_or_typed).await;
        }
    }
}

// spec: AP-05, AP-13, CL-09
#[tokio::test]
async fn question_shows_the_whole_call_and_a_yes_lets_it_run() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = asked(&place).await;
    let all = window.all();
    assert!(all.contains("? Create 'notes.txt'") && all.contains("| +hello"), "{all}");
    assert!(window.screen().contains("1 question waits"), "{}", window.screen());
    assert!(!place.path("notes.txt").exists());
    answers(&mut window, "y").await;
    window.shows("It is written.").await;
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).expect("a file"), "hello\n");
    assert_eq!(window.all().matches("| +hello").count(), 1, "{}", window.all());
    server.assert_paired();
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}

/// A model's request for two calls at once.
fn two_writes() -> MockResponse {
    let call = |index: u32, name: &str| {
        let arguments = json!({"path": name, "content": format!("in {name}\n")}).to_string();
        let function = json!({"name": "write_file", "arguments": arguments});
        json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": function})
    };
    let calls = json!({"tool_calls": [call(0, "one.txt"), call(1, "two.txt")]});
    MockResponse::events([chunk(&calls, None), chunk(&json!({}), Some("tool_calls")), "[DONE]".into()])
}

// spec: AP-05
#[tokio::test]
async fn questions_of_one_turn_are_shown_once_and_answered_one_by_one() {
    let server = MockServer::start([two_writes(), answer("Both are written.")]).await;
    let place = Place::with_server(&server);
    let mut window = asked(&place).await;
    window.shows("2 questions wait").await;
    answers(&mut window, "y").await;
    window.shows("| +in two.txt").await;
    window.shows("[y]es, once").await;
    answers(&mut window, "y").await;
    window.shows("Both are written.").await;
    for name in ["one.txt", "two.txt"] {
        let line = format!("in {name}");
        assert_eq!(std::fs::read_to_string(place.path(name)).expect("a file"), format!("{line}\n"));
        assert_eq!(window.all().matches(&format!("| +{line}")).count(), 1, "{}", window.all());
    }
    server.assert_paired();
}

// spec: AP-05
#[tokio::test]
async fn keys_that_were_typed_before_the_question_go_to_the_draft() {
    let gate = Gate::new();
    let function = json!({"name": "write_file", "arguments": WRITE});
    let call =
        json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]});
    let asks = MockResponse::events::<&str>([])
        .wait(&gate)
        .event(&chunk(&call, None))
        .event(&chunk(&json!({}), Some("tool_calls")))
        .event("[DONE]");
    let server = MockServer::start([asks]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("Write notes.").await;
    window.shows("the model works").await;
    window.types("y");
    window.shows("› y").await;
    gate.open();
    window.shows("[y]es, once").await;
    // This one comes in the first moment of the question.
    window.types("y");
    window.shows("› yy").await;
    assert!(!place.path("notes.txt").exists());
    assert!(window.screen().contains("[y]es, once"), "{}", window.screen());
}

// spec: AP-11
#[tokio::test]
async fn answer_with_always_stores_a_rule_and_asks_no_more() {
    let again = r#"{"path": "notes.txt", "content": "again\n"}"#;
    let read = r#"{"path": "notes.txt"}"#;
    let server = MockServer::start([
        asks_for("write_file", WRITE),
        answer("Written."),
        asks_for("read_file", read),
        asks_for("write_file", again),
        answer("Written again."),
    ])
    .await;
    let place = Place::with_server(&server);
    let mut window = asked(&place).await;
    window.shows("[a]lways: write_file(notes.txt)").await;
    answers(&mut window, "a").await;
    window.shows("Written.").await;
    window.types("\x04");
    window.ends().await;
    let mut window = Window::open(&place, "chat");
    window.says("Again.").await;
    window.shows("Written again.").await;
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).expect("a file"), "again\n");
    assert!(!window.all().contains("[y]es, once"), "{}", window.all());
}

// spec: AP-04
#[tokio::test]
async fn answer_no_reaches_the_model_and_the_run_goes_on() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("I leave it.")]).await;
    let place = Place::with_server(&server);
    let mut window = asked(&place).await;
    answers(&mut window, "n").await;
    window.shows("I leave it.").await;
    assert!(!place.path("notes.txt").exists());
    let refused = messages(&server, 1).pop().expect("a result");
    assert!(refused.0 == "tool" && refused.1.contains("User cancelled this action"), "{refused:?}");
}

// spec: AP-12, CL-06, CL-08
#[tokio::test]
async fn escape_at_a_question_stops_the_run_and_the_model_reads_why() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("Then something else.")]).await;
    let place = Place::with_server(&server);
    let mut window = asked(&place).await;
    window.types("\x1b");
    window.shows("stopped").await;
    window.hides("[y]es, once").await;
    assert_eq!(server.requests().len(), 1, "the model is not asked in between");
    window.says("What now?").await;
    window.shows("Then something else.").await;
    let texts = messages(&server, 1);
    let is_marker = |(_, text): &(String, String)| {
        text.contains("[Request interrupted by user due to permission denial]")
    };
    assert!(texts.iter().any(is_marker), "{texts:?}");
    server.assert_paired();
}

// spec: AP-06
#[tokio::test]
async fn question_that_is_answered_from_another_terminal_goes_away_and_the_run_goes_on() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = asked(&place).await;
    let listed = place.archon("approvals list --json", &[]).await.json();
    let question = listed[0]["request_id"].as_str().expect("an id").to_owned();
    let ran: Ran = place.archon("approvals approve", &[&question]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    window.shows("It is written.").await;
    window.hides("[y]es, once").await;
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}
