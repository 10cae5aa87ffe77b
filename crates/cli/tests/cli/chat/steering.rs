//! Steering a run, compacting the conversation, and going back with Esc.

use std::time::{Duration, Instant};

use archon_testkit::MockServer;

use super::{basics::texts, window::Window};
use crate::setup::{Place, answer, asks_for};

/// Presses Esc twice until this follows. Esc is told from the beginning of another key only by a pause behind it, and
/// the second press counts only for a second.
async fn escapes_twice(window: &mut Window, then: &str) {
    while !window.all().contains(then) {
        for (pause, waits_for) in [(100, None), (5_000, Some(then))] {
            window.types("\x1b");
            let since = Instant::now();
            let is_over = |window: &mut Window| {
                waits_for.is_some_and(|then| window.all().contains(then))
                    || since.elapsed() > Duration::from_millis(pause)
            };
            window.until(then, is_over).await;
        }
    }
}

#[tokio::test]
async fn message_that_steers_skips_the_call_in_question_and_is_read_before_one_that_waits() {
    let write = asks_for("write_file", r#"{"path": "notes.txt", "content": "hello"}"#);
    let server = MockServer::start([write, answer("Steered."), answer("And the other one.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("Begin.").await;
    window.shows("[y]es, once").await;
    window.says("later").await;
    window.shows("… later · after this run").await;
    // Ctrl+S sends it now.
    window.types("go on\x13");
    window.answers("And the other one.").await;
    window.hides("after this run").await;
    let sent = texts(&server, 2);
    assert!(texts(&server, 1).ends_with(&["go on".to_owned()]), "{:?}", texts(&server, 1));
    assert!(sent.ends_with(&["go on", "Steered.", "later"].map(str::to_owned)), "{sent:?}");
    assert!(!place.path("notes.txt").exists());
    server.assert_paired();
}

#[tokio::test]
async fn compact_without_enough_to_sum_up_says_so_and_asks_no_model() {
    let server = MockServer::start([answer("Blue."), answer("Air.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("/compact").await;
    window.shows("there is nothing to compact").await;
    // Ctrl+U empties the draft.
    window.says("\x15Sky?").await;
    window.answers("Blue.").await;
    window.says("/compact Keep the colours.").await;
    window.answers("too short to be compacted").await;
    assert_eq!(server.requests().len(), 1);
    window.says("/context").await;
    window.shows("compacted by itself").await;
    assert!(window.all().contains("results of tools"), "{}", window.all());
    window.says("Why?").await;
    window.shows("Air.").await;
    assert_eq!(texts(&server, 1), ["Sky?", "Blue.", "Why?"]);
}

// spec: CL-03
#[cfg(unix)]
#[tokio::test]
async fn compact_behind_a_line_is_not_refused() {
    let server = MockServer::start([answer("Blue.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("Sky?").await;
    window.answers("Blue.").await;
    window.says("!echo one-$((1 + 1))").await;
    window.answers("The person gave this line.").await;
    window.says("/compact").await;
    window.answers("too short to be compacted").await;
    assert_eq!(server.requests().len(), 1);
}

// spec: CL-04
#[tokio::test]
async fn escape_twice_takes_the_last_message_and_once_more_the_one_before() {
    let server = MockServer::start([answer("Blue."), answer("Green."), answer("Dark.")]).await;
    let place = Place::with_server(&server);
    std::fs::write(place.path("notes.txt"), "at night\n").expect("a file");
    let mut window = Window::ready(&place, "chat").await;
    window.says("Sky? @notes.txt ").await;
    window.answers("Blue.").await;
    window.says("Grass?").await;
    window.answers("Green.").await;
    escapes_twice(&mut window, "2 messages, answers and results are left behind").await;
    window.types("\x1b");
    window.shows("4 messages, answers and results are left behind").await;
    // The message does not say who wrote the name of the file, so it is not attached again.
    window.types(" And then?\r");
    window.shows("Dark.").await;
    let sent = texts(&server, 2);
    assert!(sent.len() == 1 && sent[0].contains("And then?") && !sent[0].contains("at night"), "{sent:?}");
}
