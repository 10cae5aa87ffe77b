//! A conversation without incidents: first frame, messages, answers, calls, and how it is continued.

use archon_testkit::{Gate, MockResponse, MockServer};
use serde_json::{Value, json};

use super::window::Window;
use crate::setup::{Place, answer, asks_for, chunk, text};

/// The texts of the messages of a request, system text aside, each behind its role.
pub(super) fn messages(server: &MockServer, request: usize) -> Vec<(String, String)> {
    let body = &server.requests()[request].body;
    let all = body["messages"].as_array().expect("messages").iter();
    let own = |message: &Value| {
        let text = match &message["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        (message["role"].as_str().unwrap_or_default().to_owned(), text)
    };
    all.map(own).filter(|(role, _)| role != "system").collect()
}

/// The texts of the messages of a request, system text aside.
pub(super) fn texts(server: &MockServer, request: usize) -> Vec<String> {
    messages(server, request).into_iter().map(|(_, text)| text).collect()
}

/// Checks that each of these texts is exactly one message of a request.
pub(super) fn check_once(server: &MockServer, request: usize, once: &[&str]) {
    let texts = texts(server, request);
    for text in once {
        assert_eq!(texts.iter().filter(|other| *other == text).count(), 1, "{text}: {texts:?}");
    }
}

fn message(role: &str, text: &str) -> (String, String) {
    (role.to_owned(), text.to_owned())
}

/// An answer whose second half waits at a gate.
pub(super) fn halves(first: &str, gate: &Gate, second: &str) -> MockResponse {
    MockResponse::events([text(first)])
        .wait(gate)
        .event(&text(second))
        .event(&chunk(&json!({}), Some("stop")))
        .event("[DONE]")
}

#[tokio::test]
async fn status_line_has_the_branch_of_now_after_each_run() {
    let server = MockServer::start([answer("It is switched.")]).await;
    let place = Place::with_server(&server);
    std::fs::create_dir(place.path(".git")).expect("a folder");
    let switch = |branch: &str| {
        std::fs::write(place.path(".git/HEAD"), format!("ref: refs/heads/{branch}\n")).expect("a file");
    };
    switch("main");
    let mut window = Window::open(&place, "chat");
    window.shows("· main").await;
    switch("other");
    window.says("Switch.").await;
    window.shows("· other").await;
}

// spec: CL-01
#[tokio::test]
async fn chat_begins_with_the_models_name_and_answers() {
    let server = MockServer::start([answer("Paris, of course.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.shows("· mock ·").await;
    window.says("Capital of France?").await;
    window.shows("Paris, of course.").await;
    window.types("\x04");
    let status = window.ends().await;
    let all = window.all();
    assert_eq!(status.code(), Some(0), "{all}");
    window.has_once(&["› Capital of France?", "Paris, of course."]);
    let (_, after) = all.split_once("the conversation is kept: ").expect("a way to continue");
    assert!(
        after.starts_with("archon chat --session session_") && after.trim_end().lines().count() <= 2,
        "{all}"
    );
    assert!(window.is_for_lines() && window.has_visible_cursor() && !window.marks_pastes());
}

// spec: CL-01
#[tokio::test]
async fn archon_alone_at_a_terminal_opens_a_conversation() {
    let server = MockServer::start([answer("Hello.")]).await;
    let place = Place::with_server(&server);
    let base = format!("{}/v1", server.url());
    let variables = [("ARCHON_BASE_URL", base.as_str()), ("ARCHON_MODEL", "mock")];
    let mut window = Window::with(&place, "", 80, 24, &variables);
    window.shows("· mock ·").await;
    window.says("hi").await;
    window.shows("Hello.").await;
    // An empty draft and no run: the conversation ends.
    window.hides("the model works").await;
    window.types("\x03");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}

// spec: CL-01
#[tokio::test]
async fn archon_alone_without_a_terminal_is_a_usage_error_with_the_help() {
    let ran = Place::new().archon("", &[]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.err.contains("Usage: archon") && ran.err.contains("chat"), "{ran:?}");
}

// spec: CL-12, S-14
#[tokio::test]
async fn chat_continue_shows_the_conversation_once_and_goes_on_with_it() {
    let server = MockServer::start([answer("Blue."), answer("Because of the air.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --session sky");
    window.shows("mock").await;
    window.says("What colour is the sky?").await;
    window.shows("Blue.").await;
    window.types("\x04");
    window.ends().await;
    let mut window = Window::open(&place, "chat --continue");
    window.shows("· mock ·").await;
    window.has_once(&["What colour is the sky?", "Blue."]);
    window.says("Why?").await;
    window.shows("Because of the air.").await;
    window.types("\x04");
    window.ends().await;
    assert!(window.all().contains("archon chat --session sky"), "{}", window.all());
    let expected =
        [message("user", "What colour is the sky?"), message("assistant", "Blue."), message("user", "Why?")];
    assert_eq!(messages(&server, 1), expected);
}

#[tokio::test]
async fn chat_continue_without_a_run_is_a_usage_error_and_leaves_the_terminal() {
    let place = Place::with_server(&MockServer::start([]).await);
    let mut window = Window::open(&place, "chat --continue");
    let status = window.ends().await;
    let all = window.all();
    assert_eq!(status.code(), Some(2), "{all}");
    assert!(all.contains("error: ") && all.contains("archon runs list"), "{all}");
    assert!(window.is_for_lines() && window.has_visible_cursor());
}

// spec: CL-05, CL-12
#[tokio::test]
async fn answer_that_streams_is_on_the_screen_before_it_ends() {
    let gate = Gate::new();
    let server = MockServer::start([halves("The first half ", &gate, "and the second.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("speak").await;
    window.shows("The first half").await;
    window.shows("the model works, Esc stops it").await;
    assert!(!window.all().contains("and the second"), "{}", window.all());
    gate.open();
    window.shows("The first half and the second.").await;
    window.hides("the model works").await;
    window.has_once(&["The first half"]);
}

// spec: R-09
#[tokio::test]
async fn message_during_an_answer_waits_visibly_and_begins_the_next_turn() {
    let gate = Gate::new();
    let server = MockServer::start([halves("One ", &gate, "moment."), answer("Done, too.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("first").await;
    window.shows("One").await;
    window.says("second").await;
    window.shows("… second").await;
    gate.open();
    window.shows("Done, too.").await;
    window.hides("… second").await;
    window.has_once(&["› second"]);
    let last = messages(&server, 1).pop();
    assert_eq!(last, Some(message("user", "second")));
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0));
}

#[tokio::test]
async fn message_before_a_model_is_found_waits_visibly_and_is_sent() {
    let gate = Gate::new();
    let list = json!({"object": "list", "data": [{"id": "qwen3"}]}).to_string();
    let late = MockResponse::new(200).header("content-type", "application/json").wait(&gate).chunk(list);
    let server = MockServer::start([late, answer("Early bird.")]).await;
    let base = format!("{}/v1", server.url());
    // The program waits longer for the list of a server that is named than for one that it looks for.
    let variables = [("ARCHON_BASE_URL", base.as_str())];
    let place = Place::new();
    let mut window = Window::with(&place, "chat", 80, 24, &variables);
    window.says("hello").await;
    window.shows("… hello").await;
    assert!(!window.all().contains("qwen3"), "{}", window.all());
    gate.open();
    window.shows("Early bird.").await;
    window.hides("… hello").await;
    assert!(window.all().contains("· qwen3 ·"), "{}", window.all());
}

#[tokio::test]
async fn first_frame_comes_before_the_search_for_a_model_ends() {
    let place = Place::new();
    let mut window = Window::open(&place, "chat");
    let status = window.ends().await;
    assert_eq!(status.code(), Some(2), "{}", window.all());
    let bytes = String::from_utf8_lossy(&window.bytes);
    let place_of = |text: &str| bytes.find(text).unwrap_or_else(|| panic!("no {text:?}: {bytes}"));
    assert!(place_of("›") < place_of("error: "), "{bytes}");
}

#[tokio::test]
async fn message_that_was_typed_before_the_program_began_is_sent() {
    let server = MockServer::start([answer("Early bird.")]).await;
    let place = Place::with_server(&server);
    let script = "mkfifo gate && cat gate; exec \"$0\" \"$@\"";
    let mut window = Window::shell(&place, &["sh", "-c", script], "chat");
    window.types("hello\r");
    // The terminal echoes it while no program reads it.
    window.shows("hello").await;
    std::fs::write(place.path("gate"), "").expect("the gate opens");
    window.shows("Early bird.").await;
    assert_eq!(messages(&server, 0), [message("user", "hello")]);
}

#[tokio::test]
async fn pasted_lines_are_not_sent_before_enter_and_arrive_unchanged() {
    let server = MockServer::start([answer("Two lines.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.shows("mock").await;
    window.pastes("one\rtwo");
    window.shows("two").await;
    assert!(server.requests().is_empty());
    window.types("\r");
    window.shows("Two lines.").await;
    assert_eq!(messages(&server, 0), [message("user", "one\ntwo")]);
}

// spec: CL-12
#[tokio::test]
async fn call_of_a_tool_is_one_line_with_its_result() {
    let server =
        MockServer::start([asks_for("read_file", r#"{"path": "notes.txt"}"#), answer("It has one line.")])
            .await;
    let place = Place::with_server(&server);
    std::fs::write(place.path("notes.txt"), "milk and honey\n").expect("a file");
    let mut window = Window::open(&place, "chat");
    window.says("Read notes.txt").await;
    window.shows("It has one line.").await;
    window.has_once(&["✓ read_file notes.txt"]);
    assert!(window.all().contains("milk and honey"), "{}", window.all());
    server.assert_paired();
}

#[tokio::test]
async fn failed_model_call_is_shown_and_the_conversation_goes_on() {
    let refused = MockResponse::json(401, &json!({"error": {"message": "bad key"}}));
    let server = MockServer::start([refused, answer("Better.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("hello").await;
    window.shows("bad key").await;
    window.says("again").await;
    window.shows("Better.").await;
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}

#[tokio::test]
async fn log_of_a_conversation_goes_to_a_file() {
    let server = MockServer::start([answer("Quiet.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat -vvv");
    window.says("hello").await;
    window.shows("Quiet.").await;
    window.types("\x04");
    window.ends().await;
    let all = window.all();
    assert!(!all.contains("TRACE") && !all.contains("DEBUG"), "{all}");
    let log = std::fs::read_to_string(place.data().join("logs/chat.log")).expect("a log");
    assert!(log.contains("DEBUG"), "{log}");
}

// spec: CL-02
#[tokio::test]
async fn slash_exit_ends_and_an_unknown_command_stays_in_the_draft() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.shows("mock").await;
    window.says("/nonsense").await;
    window.shows("there is no such command").await;
    assert!(window.screen().contains("› /nonsense"), "{}", window.screen());
    // Ctrl+U empties the line.
    window.types("\x15/exit\r");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn resize_while_an_answer_streams_loses_and_repeats_no_line() {
    let gate = Gate::new();
    let lines: String = (1..=60).map(|n| format!("line number {n}\n\n")).collect();
    let server = MockServer::start([halves(&lines, &gate, "the end")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("count").await;
    window.shows("line number 58").await;
    window.resize(60, 15);
    window.types("a draft");
    window.shows("› a draft").await;
    gate.open();
    window.shows("the end").await;
    let all = window.all();
    for n in 1..=60 {
        let line = format!("line number {n}");
        assert_eq!(all.lines().filter(|other| other.trim() == line).count(), 1, "{line}: {all}");
    }
}
