//! Two terminals with one conversation: each sees what the other does, and either can go on.

use archon_testkit::{Gate, MockServer};
use rustix::process::Signal;

use super::{
    basics::{check_once, halves, texts},
    consent,
    window::Window,
};
use crate::setup::{Place, answer, asks_for};

const CHAT: &str = "chat --session shared";
const WATCHES: &str = "watching a run of another process";

/// Waits until an answer is on the screen and no run works any more, here or elsewhere.
async fn answers(window: &mut Window, text: &str) {
    window.answers(text).await;
    window.hides(WATCHES).await;
}

// spec: R-09
#[tokio::test]
async fn second_terminal_shows_whole_records_and_its_message_is_read_by_the_run_of_the_first() {
    let gate = Gate::new();
    let server = MockServer::start([halves("The first ", &gate, "answer."), answer("Both are read.")]).await;
    let place = Place::with_server(&server);
    let mut first = Window::ready(&place, CHAT).await;
    first.says("Begin.").await;
    first.shows("The first").await;
    let mut second = Window::ready(&place, "chat --continue").await;
    second.shows(WATCHES).await;
    second.shows("› Begin.").await;
    second.says("And then?").await;
    second.shows("… And then? · after this run").await;
    second.says("!echo two").await;
    second.shows("a run of another process works in this conversation").await;
    assert!(!second.all().contains("The first"), "a piece of an answer is no record: {}", second.all());
    gate.open();
    for window in [&mut first, &mut second] {
        answers(window, "Both are read.").await;
        window.hides("after this run").await;
        window.has_once(&["› Begin.", "The first answer.", "› And then?", "Both are read."]);
    }
    assert_eq!(texts(&server, 1), ["Begin.", "The first answer.", "And then?"]);
}

#[tokio::test]
async fn new_run_of_either_terminal_appears_in_the_other_and_one_goes_on_when_the_other_ends() {
    let server = MockServer::start([answer("One."), answer("Two."), answer("Three."), answer("Four.")]).await;
    let place = Place::with_server(&server);
    let mut first = Window::ready(&place, CHAT).await;
    let mut second = Window::ready(&place, CHAT).await;
    first.says("to one").await;
    answers(&mut first, "One.").await;
    answers(&mut second, "One.").await;
    first.says("to two").await;
    answers(&mut second, "Two.").await;
    second.says("to three").await;
    answers(&mut second, "Three.").await;
    answers(&mut first, "Three.").await;
    for window in [&mut first, &mut second] {
        window.has_once(&["› to one", "One.", "› to two", "Two.", "› to three", "Three."]);
    }
    first.types("\x04");
    assert_eq!(first.ends().await.code(), Some(0), "{}", first.all());
    second.says("to four").await;
    second.shows("Four.").await;
    assert_eq!(texts(&server, 3), ["to one", "One.", "to two", "Two.", "to three", "Three.", "to four"]);
}

// spec: AP-06
#[tokio::test]
async fn questions_of_one_run_are_answered_from_either_terminal() {
    let write =
        |path: &str| asks_for("write_file", &format!(r#"{{"path": "{path}", "content": "hello\n"}}"#));
    let server = MockServer::start([write("one.txt"), write("two.txt"), answer("Both are written.")]).await;
    let place = Place::with_server(&server);
    let mut first = Window::ready(&place, CHAT).await;
    first.says("Write both.").await;
    first.shows("? Create 'one.txt'").await;
    let mut second = Window::ready(&place, CHAT).await;
    second.shows("? Create 'one.txt'").await;
    consent::answers(&mut second, "y", "? Create 'two.txt'").await;
    first.shows("? Create 'two.txt'").await;
    first.shows("[y]es, once").await;
    consent::answers(&mut first, "y", "Both are written.").await;
    answers(&mut second, "Both are written.").await;
    for window in [&mut first, &mut second] {
        window.hides("[y]es, once").await;
        window.has_once(&["? Create 'one.txt'  yes"]);
    }
    assert!(place.path("one.txt").exists() && place.path("two.txt").exists());
    server.assert_paired();
}

#[tokio::test]
async fn second_terminal_goes_on_after_the_first_is_killed_at_work() {
    let server = MockServer::start([halves("Because ", &Gate::new(), "never")]).await;
    let place = Place::with_server(&server);
    let mut first = Window::ready(&place, CHAT).await;
    first.says("Why?").await;
    first.shows("Because").await;
    let mut second = Window::ready(&place, CHAT).await;
    second.shows(WATCHES).await;
    first.signal(Signal::KILL);
    second.shows("the last run was cut off").await;
    second.hides(WATCHES).await;
    server.push(answer("Of the air."));
    second.says("Go on.").await;
    second.shows("Of the air.").await;
    check_once(&server, 1, &["Why?", "Go on."]);
}

#[tokio::test]
async fn end_of_the_second_terminal_does_not_stop_the_run_of_the_first() {
    let gate = Gate::new();
    let server = MockServer::start([halves("Half ", &gate, "and whole.")]).await;
    let place = Place::with_server(&server);
    let mut first = Window::ready(&place, CHAT).await;
    first.says("Speak.").await;
    first.shows("Half").await;
    let mut second = Window::ready(&place, CHAT).await;
    second.shows(WATCHES).await;
    second.types("\x03");
    assert_eq!(second.ends().await.code(), Some(0), "{}", second.all());
    gate.open();
    answers(&mut first, "Half and whole.").await;
}
