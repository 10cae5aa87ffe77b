//! Commands in the background: they outlive the run that started them, and the person lists and stops them.

use archon::tools::sandbox;
use archon_testkit::{MockServer, may_skip};

use super::{basics::messages, consent, kill, window::Window};
use crate::setup::{Place, answer, asks_for};

/// Returns true if commands can be started in the background: without mounts none is. Where no test may be skipped, it
/// fails instead.
pub(super) fn can_start() -> bool {
    let Some(missing) = sandbox::missing().or_else(sandbox::gaps) else { return true };
    assert!(may_skip(), "no command can be started in the background: {missing}");
    eprintln!("SKIP: no command can be started in the background: {missing}");
    false
}

#[tokio::test]
async fn command_of_one_message_is_read_in_the_next_and_stopped_by_the_person() {
    if !can_start() {
        return;
    }
    let start = r#"{"command": "echo ready; until [ -e go ]; do sleep 0.1; done; echo went; sleep 600"}"#;
    let server = MockServer::start([
        asks_for("start_command", start),
        answer("It runs."),
        asks_for("read_output", r#"{"id": "cmd_1", "wait_ms": 600000}"#),
        answer("It went on."),
    ])
    .await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("Start it.").await;
    window.shows("[y]es, once").await;
    consent::answers(&mut window, "y", "It runs.").await;
    window.hides("Esc stops").await;
    std::fs::write(place.path("go"), "").expect("a file");
    window.says("What does it print?").await;
    window.shows("It went on.").await;
    window.hides("Esc stops").await;
    let read = messages(&server, 3).pop().expect("a result");
    assert!(read.0 == "tool" && read.1.contains("went"), "{read:?}");
    window.says("/ps").await;
    window.shows("cmd_1: running, 0 bytes to read").await;
    window.says("/stop 1").await;
    window.shows("[cmd_1: ended").await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn command_ends_with_a_conversation_that_is_killed() {
    if !can_start() {
        return;
    }
    let start =
        r#"{"command": "trap '' TERM HUP; echo $$ > command; echo ready; while :; do sleep 0.1; done"}"#;
    let server = MockServer::start([asks_for("start_command", start), answer("It runs.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::shell(&place, &["sh", "-c", kill::SCRIPT], "chat");
    window.says("Start it.").await;
    window.shows("[y]es, once").await;
    consent::answers(&mut window, "y", "It runs.").await;
    let id = std::fs::read_to_string(place.path("command")).expect("an id");
    let state = std::path::Path::new("/proc").join(id.trim()).join("stat");
    // A process that nobody waits for is kept as a zombie.
    let is_alive = || std::fs::read_to_string(&state).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(is_alive());
    kill::kill(&place);
    kill::check_restored(&mut window).await;
    window.until("the end of the command", |_| !is_alive()).await;
}
