//! The conversation in plain lines: pipes, screen readers, and terminals that cannot show more.

use std::process::Stdio;

use archon_testkit::{MockResponse, MockServer};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::{
    basics::{messages, texts},
    window::Window,
};
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

// spec: CL-02, CL-03
#[tokio::test]
async fn line_from_a_pipe_is_a_message_whatever_it_begins_with() {
    let server = MockServer::start([answer("One."), answer("Two."), answer("Three.")]).await;
    let place = Place::with_server(&server);
    let ran = piped(&place, "chat", "/exit\n!touch made\n#tea\n").await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "One.\nTwo.\nThree.\n"), "{ran:?}");
    assert_eq!(texts(&server, 2), ["/exit", "One.", "!touch made", "Two.", "#tea"]);
    assert!(!place.path("made").exists());
}

// spec: CL-02
#[tokio::test]
async fn command_in_plain_lines_does_what_it_does_on_the_screen() {
    let server = MockServer::start([answer("One."), answer("Two."), answer("Three.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --plain --session sky");
    for (typed, shown) in [
        ("/help", "your own commands: Markdown files"),
        ("/modle", "Did you mean /model?"),
        ("/full", "the command needs the screen of a conversation"),
        ("/compact", "there is nothing to compact"),
        (" /exit", "One."),
        ("/model other", "· other"),
        ("Again.", "Two."),
        ("/status", "session  sky"),
        ("/context", "compacted by itself"),
        ("/clear", "/clear"),
        ("Anew.", "Three."),
        ("/cost", "its last run"),
        ("/resume", "Anew. (this one)"),
    ] {
        window.types(&format!("{typed}\n"));
        window.shows(shown).await;
    }
    window.types("/exit\n");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    assert_eq!(texts(&server, 1), [" /exit", "One.", "Again."]);
    assert_eq!(texts(&server, 2), ["Anew."]);
    let models: Vec<_> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["mock", "other", "other"]);
}

// spec: CL-04
#[tokio::test]
async fn back_and_fork_in_plain_lines_continue_where_the_person_says() {
    let replies = ["Blue.", "Green.", "Grey.", "It rains.", "Sure."].map(answer);
    let server = MockServer::start(replies).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --plain");
    for (typed, shown) in [
        ("/fork", "there is nothing to fork"),
        ("Sky?", "Blue."),
        ("Grass?", "Green."),
        ("/back 7", "there is no message 7"),
        ("/back 2", "4 messages, answers and results are left behind"),
        ("", "continues the conversation where it ends"),
        ("Stone?", "Grey."),
        ("/back 2", "Grass?\n4 messages, answers and results are left behind"),
        ("/model mock", "· mock"),
        ("Rain?", "It rains."),
        ("/fork", "goes on in the fork run_"),
        ("Really?", "Sure."),
    ] {
        window.types(&format!("{typed}\n"));
        window.shows(shown).await;
    }
    // At the start, and after the command.
    assert!(window.all().matches("· mock").count() >= 2, "{}", window.all());
    window.types("/exit\n");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    assert_eq!(texts(&server, 2), ["Sky?", "Blue.", "Grass?", "Green.", "Stone?"]);
    assert_eq!(texts(&server, 3), ["Sky?", "Blue.", "Rain?"]);
    assert_eq!(texts(&server, 4), ["Sky?", "Blue.", "Rain?", "It rains.", "Really?"]);
    let listed = place.archon("runs list --json", &[]).await.json();
    assert_eq!(listed.len(), 6, "a run for each message, and the fork");
}

// spec: CL-03
#[tokio::test]
async fn line_of_the_shell_in_plain_lines_is_run_and_the_model_reads_it_later() {
    let server = MockServer::start([answer("I have seen it.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --plain");
    window.shows(">").await;
    window.types("!echo one-$((1 + 1))\n");
    window.shows("one-2").await;
    window.types("What did it print?\n");
    window.shows("I have seen it.").await;
    let texts = texts(&server, 0);
    assert_eq!(texts[0], "echo one-$((1 + 1))");
    assert!(texts.iter().any(|text| text.contains("one-2")), "{texts:?}");
    server.assert_paired();
}

// spec: CL-02
#[tokio::test]
async fn text_with_a_hash_in_plain_lines_is_remembered() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --plain --memory user:anna");
    window.shows(">").await;
    window.types("#Anna prefers tea\n");
    window.shows("remembered in user:anna").await;
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn plan_in_plain_lines_changes_the_mode_before_the_message_is_read() {
    let write = r#"{"path": "notes.txt", "content": "hello\n"}"#;
    let server = MockServer::start([asks_for("write_file", write), answer("I may only read.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --plain");
    window.shows(">").await;
    window.types("/plan Write notes.\n");
    window.shows("the mode is plan").await;
    window.shows("I may only read.").await;
    assert!(!place.path("notes.txt").exists() && !window.all().contains("[y]es"), "{}", window.all());
}

#[cfg(feature = "undo")]
#[tokio::test]
async fn undo_in_plain_lines_asks_first() {
    let write = r#"{"path": "notes.txt", "content": "hello\n"}"#;
    let server = MockServer::start([asks_for("write_file", write), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --plain --allow write_file(**)");
    window.shows(">").await;
    window.types("Write notes.\n");
    window.shows("finished: ").await;
    for (typed, shown) in [("n", "nothing was changed"), ("y", "removed   notes.txt")] {
        assert!(place.path("notes.txt").exists());
        window.types("/undo\n");
        window.until("the question", |window| window.screen().trim_end().ends_with("[?]\n>")).await;
        window.types(&format!("{typed}\n"));
        window.shows(shown).await;
    }
    assert!(!place.path("notes.txt").exists());
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
