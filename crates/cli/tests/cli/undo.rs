//! `archon undo` and `archon redo`: what a run changed is taken back, and what the person changed is kept.

use archon_testkit::MockServer;
use serde_json::json;

use crate::setup::{Place, answer, asks_for};

/// A place in which a run has written `ours` and `theirs`.
async fn place() -> Place {
    let write =
        |path: &str| asks_for("write_file", &json!({ "path": path, "content": "by the tool" }).to_string());
    let server = MockServer::start(vec![write("ours"), write("theirs"), answer("Done.")]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("run --tools write_file --allow write_file(**)", &["Write."]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    place
}

fn text(place: &Place, name: &str) -> Option<String> {
    std::fs::read_to_string(place.path(name)).ok()
}

#[tokio::test]
async fn undo_after_an_edit_of_the_person_leaves_the_file() {
    let place = place().await;
    std::fs::write(place.path("theirs"), "by the person").unwrap();
    let shown = place.archon("undo last --dry-run", &[]).await;
    assert!(shown.err.contains("remove    ours") && shown.err.contains("leave     theirs"), "{shown:?}");
    assert!(shown.err.contains("not taken back: changes over the network"), "{shown:?}");
    assert!(text(&place, "ours").is_some(), "nothing was changed");
    let done = place.archon("undo last --yes", &[]).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!((text(&place, "ours"), text(&place, "theirs").as_deref()), (None, Some("by the person")));
    let done = place.archon("redo last --yes --json", &[]).await;
    assert_eq!(done.json()[0]["written"], json!(["ours"]), "{done:?}");
    assert_eq!(text(&place, "ours").as_deref(), Some("by the tool"));
}

#[tokio::test]
async fn undo_of_one_turn_takes_back_the_last_change_only() {
    let place = place().await;
    place.archon("undo last --turns 1 --yes", &[]).await;
    assert_eq!((text(&place, "ours").is_some(), text(&place, "theirs")), (true, None));
}

#[tokio::test]
async fn undo_of_a_last_turn_whose_files_are_left_names_more_turns() {
    let place = place().await;
    std::fs::write(place.path("theirs"), "by the person").unwrap();
    let ran = place.archon("undo last --turns 1 --yes", &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("leave     theirs") && ran.err.contains("RUN --turns 2"), "{ran:?}");
    assert!(text(&place, "ours").is_some(), "nothing was changed");
    place.archon("undo last --turns 2 --yes", &[]).await;
    assert_eq!(text(&place, "ours"), None);
}

#[tokio::test]
async fn undo_without_a_terminal_and_without_yes_changes_nothing() {
    let place = place().await;
    let refused = place.archon("undo last", &[]).await;
    refused.check_refused(2, "no terminal on which to ask", "archon undo RUN --yes");
    assert!(text(&place, "ours").is_some());
}

#[tokio::test]
async fn undo_of_a_run_that_changed_nothing_says_so() {
    let server = MockServer::start(vec![answer("Hello.")]).await;
    let place = Place::with_server(&server);
    place.archon("run", &["Hello."]).await;
    let ran = place.archon("undo last --yes", &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("there is nothing to undo"), "{ran:?}");
}
