//! Notices to a person who looks elsewhere: the bell, and a text on the desktop.

use archon_testkit::MockServer;

use super::{rows::set, window::Window};
use crate::setup::{Place, asks_for};

fn count(bytes: &[u8], part: &str) -> usize {
    bytes.windows(part.len()).filter(|window| *window == part.as_bytes()).count()
}

/// Has a question that nobody answers, and checks that this notice comes, once and between two frames.
async fn check(settings: &str, notice: &str) {
    let write = r#"{"path": "notes.txt", "content": "hello\n"}"#;
    let server = MockServer::start([asks_for("write_file", write)]).await;
    let place = Place::with_server(&server);
    set(&place, settings);
    let mut window = Window::open(&place, "chat");
    window.says("Write notes.").await;
    window.shows("[y]es, once").await;
    window.until(notice, |window| count(&window.bytes, notice) > 0).await;
    assert_eq!((count(&window.bytes, notice), count(&window.bytes, "\x07")), (1, 1));
    let at = window.bytes.windows(notice.len()).position(|bytes| bytes == notice.as_bytes());
    let before = &window.bytes[..at.expect("its place")];
    assert_eq!(count(before, "\x1b[?2026h"), count(before, "\x1b[?2026l"), "it is within a frame");
    assert!(window.screen().contains("[y]es, once"), "{}", window.screen());
}

#[tokio::test]
async fn question_that_nobody_answers_rings_the_bell() {
    check("", "\x07").await;
}

#[tokio::test]
async fn question_that_nobody_answers_is_a_text_on_the_desktop() {
    check("[chat]\nnotify = \"osc9\"\n", "\x1b]9;archon asks: Create 'notes.txt'\x07").await;
}
