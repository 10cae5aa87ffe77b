//! The conversation in plain lines: pipes, screen readers, and terminals that cannot show more.

use std::process::Stdio;

use archon_testkit::{MockResponse, MockServer};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{basics::messages, window::Window};
use crate::setup::{Place, Ran, answer, asks_for};

/// Has a conversation over pipes.
async fn piped(place: &Place, line: &str, input: impl AsRef<[u8]>) -> Ran {
    let mut child = place.command(line, &[]).stdin(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_ref()).await.expect("it is read");
    drop(stdin);
    child.wait_with_output().await.expect("it ends").into()
}

// spec: CL-14
#[tokio::test]
async fn chat_over_pipes_answers_each_line_and_writes_no_control_sequences() {
    let server = MockServer::start([answer("Blue."), answer("Because of the air.")]).await;
    let place = Place::with_server(&server);
    let ran = piped(&place, "chat", "What colour is the sky?\n\nWhy?\n").await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Blue.\nBecause of the air.\n"), "{ran:?}");
    assert!(!ran.err.contains('\x1b'), "{ran:?}");
    assert!(
        ran.err.trim_end().lines().last().unwrap_or_default().contains("archon chat --session "),
        "{ran:?}"
    );
    assert_eq!(messages(&server, 1).len(), 3, "the second message continues the first");
}

// spec: CL-14
#[tokio::test]
async fn chat_over_pipes_has_the_exit_code_of_a_message_that_did_not_finish() {
    let refused = MockResponse::json(401, &json!({"error": {"message": "bad key"}}));
    let server = MockServer::start([refused, answer("Better.")]).await;
    let place = Place::with_server(&server);
    let ran = piped(&place, "chat --plain", "hello\nagain\n").await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), "Better.\n"), "{ran:?}");
    assert!(ran.err.contains("bad key"), "{ran:?}");
}

#[tokio::test]
async fn full_in_plain_lines_names_what_it_needs_and_sends_nothing() {
    let server = MockServer::start([answer("Blue.")]).await;
    let place = Place::with_server(&server);
    let ran = piped(&place, "chat", "/full\nSky?\n").await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Blue.\n"), "{ran:?}");
    assert!(ran.err.contains("/full needs a terminal"), "{ran:?}");
    assert_eq!(messages(&server, 0).len(), 1, "only the question is sent");
}

// spec: CL-14
#[tokio::test]
async fn line_in_another_encoding_is_a_message_and_loses_none_behind_it() {
    let server = MockServer::start([answer("One."), answer("Two.")]).await;
    let place = Place::with_server(&server);
    // `Gruß` in Latin-1.
    let ran = piped(&place, "chat --plain", b"Gru\xdf\nagain\n").await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "One.\nTwo.\n"), "{ran:?}");
    assert_eq!(messages(&server, 0)[0].1, "Gru\u{fffd}");
}

// spec: CL-14
#[tokio::test]
async fn chat_on_a_poor_terminal_is_plain() {
    for (columns, rows, line, variables) in [
        (80, 24, "chat --plain", &[][..]),
        (80, 24, "chat", &[("TERM", "dumb")][..]),
        (80, 24, "chat", &[("LC_ALL", "C")]),
        (20, 5, "chat", &[]),
    ] {
        let server = MockServer::start([answer("Blue.")]).await;
        let place = Place::with_server(&server);
        let no_color = [variables, &[("NO_COLOR", "1")]].concat();
        let mut window = Window::with(&place, line, columns, rows, &no_color);
        window.shows(">").await;
        window.types("Sky?\n");
        window.shows("Blue.").await;
        window.types("\x04");
        assert_eq!(window.ends().await.code(), Some(0), "{line} {variables:?}: {}", window.all());
        // Only the spinner of a terminal that has one moves the cursor.
        let is_poor = variables.contains(&("TERM", "dumb"));
        assert!(!is_poor || !window.bytes.contains(&0x1b), "{line} {variables:?}");
        assert!(window.is_for_lines() && !window.marks_pastes());
    }
}

#[tokio::test]
async fn plain_chat_asks_about_a_call_in_a_line() {
    let write = r#"{"path": "notes.txt", "content": "hello\n"}"#;
    let server = MockServer::start([asks_for("write_file", write), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --plain");
    window.shows(">").await;
    window.types("Write notes.\n");
    window.shows("[y]es  [n]o").await;
    window.types("y\n");
    window.shows("It is written.").await;
    assert!(place.path("notes.txt").exists());
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}

// spec: AP-05, CL-14
#[tokio::test]
async fn plain_chat_names_the_record_that_a_path_comes_from() {
    let write = r#"{"path": "out/summary.txt", "content": "short\n"}"#;
    let server = MockServer::start([asks_for("write_file", write)]).await;
    let place = Place::with_server(&server);
    std::fs::create_dir(place.path("out")).expect("a folder");
    let mut window = Window::open(&place, "chat --plain");
    window.shows(">").await;
    window.types("Write out/summary.txt.\n");
    window.shows("[y]es  [n]o").await;
    let line = "  out/summary.txt: from your message: \"Write out/summary.txt.\"";
    assert!(window.all().contains(line), "{}", window.all());
}
