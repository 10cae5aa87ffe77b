//! Modes of a conversation: seen on the status line, kept by the session, and the plan that a person decides about.

use archon_testkit::MockServer;
use rustix::process::Signal;
use serde_json::json;

use super::{
    basics::{messages, texts},
    consent,
    window::Window,
};
use crate::setup::{Place, answer, asks_for};

const WRITE: &str = r#"{"path": "notes.txt", "content": "hello\n"}"#;
/// Shift+Tab, as terminals send it.
const NEXT_MODE: &str = "\x1b[Z";

#[tokio::test]
async fn key_goes_through_the_modes_and_edits_are_accepted_without_a_question() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.types(NEXT_MODE);
    window.shows("edits accepted · ").await;
    window.types(NEXT_MODE);
    window.shows("plan mode · ").await;
    window.types(NEXT_MODE);
    window.hides("plan mode · ").await;
    window.types(NEXT_MODE);
    window.shows("edits accepted · ").await;
    window.says("Write notes.").await;
    window.shows("It is written.").await;
    assert!(!window.all().contains("[y]es, once"), "{}", window.all());
    assert!(place.path("notes.txt").exists());
}

#[tokio::test]
async fn plan_mode_refuses_a_write_and_is_kept_by_the_session_over_a_line() {
    let server = MockServer::start([
        answer("Hello."),
        asks_for("write_file", WRITE),
        answer("I only read."),
        asks_for("write_file", WRITE),
        answer("I still only read."),
    ])
    .await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat --session plans").await;
    window.says("hi").await;
    window.shows("Hello.").await;
    window.hides("Esc stops").await;
    window.says("/plan Write notes.").await;
    window.shows("I only read.").await;
    window.hides("Esc stops").await;
    assert!(window.screen().contains("plan mode · "), "{}", window.screen());
    let refused = messages(&server, 2).pop().expect("a result");
    assert!(refused.0 == "tool" && refused.1.contains("the session is in plan mode"), "{refused:?}");
    // A line is the person's own, so it may change files.
    window.says("!touch made").await;
    window.shows("The person gave this line.").await;
    window.hides("Esc stops").await;
    assert!(place.path("made").exists(), "{}", window.all());
    window.types("\x04");
    window.ends().await;
    let mut window = Window::open(&place, "chat --session plans");
    window.shows("plan mode · ").await;
    window.says("And now?").await;
    window.shows("I still only read.").await;
    assert!(!place.path("notes.txt").exists());
    server.assert_paired();
}

// spec: CL-03
#[tokio::test]
async fn plan_mode_is_kept_by_a_session_whose_process_is_killed_during_a_line() {
    let server = MockServer::start([answer("Hello."), answer("I read the line.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat --session plans").await;
    window.says("hi").await;
    window.answers("Hello.").await;
    window.types(NEXT_MODE);
    window.shows("edits accepted · ").await;
    window.types(NEXT_MODE);
    window.shows("plan mode · ").await;
    window.says("!touch made; until [ -e go ]; do sleep 0.1; done").await;
    window.until("the effect of the line", |_| place.path("made").exists()).await;
    window.signal(Signal::KILL);
    let mut window = Window::ready(&place, "chat --session plans").await;
    window.shows("plan mode · ").await;
    // A command that outlives the program ends now.
    std::fs::write(place.path("go"), "").expect("a file");
    window.says("And now?").await;
    window.shows("I read the line.").await;
    let texts = texts(&server, 1);
    assert!(texts.iter().any(|text| text.contains("call finish_plan")), "{texts:?}");
    server.assert_paired();
}

#[tokio::test]
async fn plan_is_refused_with_a_reason_and_then_carried_out() {
    let plan = |text: &str| asks_for("finish_plan", &json!({ "plan": text }).to_string());
    let server = MockServer::start([
        plan("1. Write **all** notes."),
        plan("1. Write one note."),
        asks_for("write_file", WRITE),
        answer("It is written."),
    ])
    .await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("/plan Write notes.").await;
    window.shows("[y]es, carry it out").await;
    assert!(window.all().contains("1. Write all notes."), "it is Markdown: {}", window.all());
    consent::answers(&mut window, "t", "Why not?").await;
    window.types("one is enough\r");
    window.shows("1. Write one note.").await;
    let refused = messages(&server, 1).pop().expect("a result");
    assert!(refused.0 == "tool" && refused.1.contains("one is enough"), "{refused:?}");
    window.shows("[y]es, carry it out").await;
    consent::answers(&mut window, "y", "? Create 'notes.txt'").await;
    window.hides("plan mode · ").await;
    window.shows("[y]es, once").await;
    consent::answers(&mut window, "y", "It is written.").await;
    assert!(place.path("notes.txt").exists());
    server.assert_paired();
}
