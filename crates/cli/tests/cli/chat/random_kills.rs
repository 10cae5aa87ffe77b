//! A conversation that is killed at any byte of its screen: the terminal works after it, nothing that its log has is
//! lost, and the conversation goes on.

use archon_testkit::{Chance, MockResponse, MockServer, RecordedRequest, cases, first_seed};

use super::{
    kill::{SCRIPT, check_restored, kill},
    window::Window,
};
use crate::setup::{Place, answer, asks_for};

/// A text that the person waits for, and the keys that follow.
const STEPS: &[(&str, &str)] = &[
    ("›", "Colour of the sky?\r"),
    ("Blue.", "Write notes.\r"),
    ("[y]es, once", "y"),
    ("It is written.", "Thanks.\r"),
    ("You are welcome.", ""),
];
/// All that is said. No text is a part of another one.
const TEXTS: &[&str] =
    &["Colour of the sky?", "Blue.", "Write notes.", "It is written.", "Thanks.", "You are welcome."];
/// More bytes than the conversation writes.
const MOST_BYTES: u64 = 12_000;

/// Answers each request by its last message, whatever came before.
fn reply(request: &RecordedRequest) -> MockResponse {
    let last = request.body["messages"].as_array().and_then(|messages| messages.last());
    let field = |name: &str| last.map_or(String::new(), |message| message[name].to_string());
    match (field("role").as_str(), field("content")) {
        ("\"tool\"", _) => answer("It is written."),
        (_, text) if text.contains("Colour of the sky?") => answer("Blue."),
        (_, text) if text.contains("Write notes.") => {
            asks_for("write_file", r#"{"path": "notes.txt", "content": "hello\n"}"#)
        }
        (_, text) if text.contains("Go on.") => answer("As you say."),
        _ => answer("You are welcome."),
    }
}

/// Has the conversation until the screen got so many bytes, or until it is over.
async fn converse(window: &mut Window, bytes: usize) {
    for (text, keys) in STEPS {
        let is_time = |window: &mut Window| window.bytes.len() >= bytes || window.all().contains(text);
        window.until(text, is_time).await;
        if window.bytes.len() >= bytes {
            return;
        }
        if *keys == "y" {
            window.pauses().await;
        }
        window.types(keys);
    }
}

/// The messages of the person and the answers that the logs have.
fn texts_of_logs(place: &Place) -> Vec<&'static str> {
    let runs = std::fs::read_dir(place.data().join("runs")).into_iter().flatten().flatten();
    let logs =
        runs.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let mut records = String::new();
    for log in logs {
        let text = std::fs::read_to_string(log).expect("a log");
        // A record that was cut off is not in the log.
        records.extend(text.split_inclusive('\n').filter(|line| line.ends_with('\n')));
    }
    TEXTS.iter().copied().filter(|text| records.contains(text)).collect()
}

/// Kills one conversation, and continues it. Returns the number of texts that its log had.
async fn round(seed: u64) -> usize {
    let bytes = usize::try_from(1 + Chance(seed).below(MOST_BYTES)).expect("a size");
    let server = MockServer::answering(reply).await;
    let place = Place::with_server(&server);
    let mut window = Window::shell(&place, &["sh", "-c", SCRIPT], "chat --session sky");
    converse(&mut window, bytes).await;
    kill(&place);
    check_restored(&mut window).await;

    let texts = texts_of_logs(&place);
    // Without a message there may be no run to continue.
    let line = if texts.is_empty() { "chat --session sky" } else { "chat --continue" };
    let mut window = Window::open(&place, line);
    window.shows("· mock ·").await;
    for text in &texts {
        window.shows(text).await;
    }
    if window.all().contains("[y]es, once") {
        super::consent::answers(&mut window, "y", "It is written.").await;
    }
    window.says("Go on.").await;
    window.shows("As you say.").await;
    let all = window.all();
    for text in &texts {
        let rows = all.lines().filter(|row| row.trim_start_matches("› ").trim() == *text);
        assert_eq!(rows.count(), 1, "seed {seed}, {bytes} bytes: {text}: {all}");
    }
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "seed {seed}: {}", window.all());
    server.assert_paired();
    texts.len()
}

#[tokio::test]
async fn kill_after_any_number_of_bytes_loses_nothing() {
    let (mut kept, seeds) = (0, cases(10, 200));
    for seed in first_seed()..first_seed() + seeds {
        kept += round(seed).await;
    }
    eprintln!("{seeds} conversations were killed: {kept} texts were in their logs, and all are shown once");
}
