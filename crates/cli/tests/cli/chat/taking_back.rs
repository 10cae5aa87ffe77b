//! `/undo`, `/rewind` and `/redo`: shown and agreed to first; what the person changed is left and named.

#![cfg(feature = "undo")]

use archon_testkit::MockServer;
use serde_json::json;

use super::{consent, window::Window};
use crate::setup::{Place, answer, asks_for};

/// A conversation in which the agent has written `ours` and `theirs`.
async fn window(place: &Place) -> Window {
    let mut window = Window::open(place, "chat --allow write_file(**)");
    window.says("Write.").await;
    window.shows("Done.").await;
    window.hides("Esc stops").await;
    window
}

async fn server() -> MockServer {
    let write =
        |path: &str| asks_for("write_file", &json!({ "path": path, "content": "by the tool" }).to_string());
    MockServer::start([write("ours"), write("theirs"), answer("Done.")]).await
}

#[tokio::test]
async fn undo_asks_first_and_leaves_what_the_person_changed() {
    let server = server().await;
    let place = Place::with_server(&server);
    let mut window = window(&place).await;
    std::fs::write(place.path("theirs"), "by the person").expect("a file");
    window.says("/undo").await;
    window.shows("? Really undo?").await;
    window.shows("leave     theirs: it was changed after that").await;
    assert!(place.path("ours").exists());
    consent::answers(&mut window, "n", "nothing was changed").await;
    assert!(place.path("ours").exists());
    window.says("/undo").await;
    window.shows("[y]es, once").await;
    consent::answers(&mut window, "y", "removed   ours").await;
    window.shows("/redo takes it back again").await;
    assert!(!place.path("ours").exists());
    assert_eq!(std::fs::read_to_string(place.path("theirs")).expect("a file"), "by the person");
    window.says("/redo").await;
    window.shows("? Really redo?").await;
    consent::answers(&mut window, "y", "restored  ours").await;
    assert_eq!(std::fs::read_to_string(place.path("ours")).expect("a file"), "by the tool");
}

#[tokio::test]
async fn message_while_undo_asks_closes_the_question_and_nothing_is_undone() {
    let server = server().await;
    server.push(answer("I went on."));
    let place = Place::with_server(&server);
    let mut window = window(&place).await;
    window.says("/undo").await;
    window.shows("[y]es, once").await;
    // A pasted text answers no question.
    window.pastes("Go on.");
    window.shows("› Go on.").await;
    window.types("\r");
    window.shows("nothing was changed").await;
    window.answers("I went on.").await;
    assert!(!window.screen().contains("[y]es, once"), "{}", window.screen());
    assert!(place.path("ours").exists());
}

#[tokio::test]
async fn undo_passes_by_a_run_whose_files_are_all_left() {
    let write =
        |path: &str| asks_for("write_file", &json!({ "path": path, "content": "by the tool" }).to_string());
    let server = MockServer::start([write("first"), answer("One."), write("second"), answer("Two.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --allow write_file(**)");
    for (message, reply) in [("Write.", "One."), ("Another.", "Two.")] {
        window.says(message).await;
        window.shows(reply).await;
        window.hides("Esc stops").await;
    }
    std::fs::write(place.path("second"), "by the person").expect("a file");
    window.says("/undo").await;
    window.shows("leave     second: it was changed after that").await;
    window.shows("[y]es, once").await;
    consent::answers(&mut window, "y", "removed   first").await;
    assert!(!place.path("first").exists());
    assert_eq!(std::fs::read_to_string(place.path("second")).expect("a file"), "by the person");
    window.says("/undo").await;
    window.shows("all files to undo are left; nothing was changed.").await;
}

#[tokio::test]
async fn undo_after_a_line_of_the_shell_takes_back_the_line_and_not_the_run_before() {
    let server = server().await;
    let place = Place::with_server(&server);
    let mut window = window(&place).await;
    window.says("!rm ours").await;
    window.answers("The person gave this line.").await;
    assert!(!place.path("ours").exists());
    window.says("/undo").await;
    window.shows("restore   ours").await;
    window.shows("[y]es, once").await;
    consent::answers(&mut window, "y", "restored  ours").await;
    assert!(place.path("ours").exists() && place.path("theirs").exists());
}

#[tokio::test]
async fn rewind_takes_back_only_the_last_turns() {
    let server = server().await;
    let place = Place::with_server(&server);
    let mut window = window(&place).await;
    window.says("/rewind two").await;
    window.shows("write /rewind N").await;
    window.says("\x15/rewind 1").await;
    window.shows("[y]es, once").await;
    consent::answers(&mut window, "y", "removed   theirs").await;
    assert!(place.path("ours").exists() && !place.path("theirs").exists());
}
