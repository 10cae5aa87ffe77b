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
    ("It is written.", "Count to two.\r"),
    (BEGUN, GO),
    ("It is counted.", "Thanks.\r"),
    ("You are welcome.", ""),
];
/// The output of a command that is at work until the file [`GO`] is there. No text of the command itself has it.
const BEGUN: &str = "begun";
const COMMAND: &str = r#"{"command": "echo be''gun; until [ -e go ]; do sleep 0.05; done"}"#;
/// No keys: the person lets the command end.
const GO: &str = "go";
/// All that is said. No text is a part of another one.
const TEXTS: &[&str] = &[
    "Colour of the sky?",
    "Blue.",
    "Write notes.",
    "It is written.",
    "Count to two.",
    "It is counted.",
    "Thanks.",
    "You are welcome.",
];

/// Answers each request by its last message, whatever came before.
fn reply(request: &RecordedRequest) -> MockResponse {
    let last = request.body["messages"].as_array().and_then(|messages| messages.last());
    let field = |name: &str| last.map_or(String::new(), |message| message[name].to_string());
    match (field("role").as_str(), field("content")) {
        ("\"tool\"", text) if text.contains(BEGUN) => answer("It is counted."),
        ("\"tool\"", _) => answer("It is written."),
        (_, text) if text.contains("Colour of the sky?") => answer("Blue."),
        (_, text) if text.contains("Write notes.") => {
            asks_for("write_file", r#"{"path": "notes.txt", "content": "hello\n"}"#)
        }
        (_, text) if text.contains("Count to two.") => asks_for("bash", COMMAND),
        (_, text) if text.contains("Go on.") => answer("As you say."),
        _ => answer("You are welcome."),
    }
}

fn open(place: &Place) -> Window {
    Window::shell(place, &["sh", "-c", SCRIPT], "chat --session sky --allow bash")
}

fn let_go(place: &Place) {
    std::fs::write(place.path(GO), "").expect("a file");
}

/// Has the conversation until the screen got so many bytes, or until it is over. Returns the step that it was at; `None`
/// if it is over.
async fn converse(place: &Place, window: &mut Window, bytes: usize) -> Option<&'static str> {
    for (text, keys) in STEPS {
        let is_time = |window: &mut Window| window.bytes.len() >= bytes || window.all().contains(text);
        window.until(text, is_time).await;
        if window.bytes.len() >= bytes {
            return Some(*text);
        }
        match *keys {
            GO => let_go(place),
            "y" => {
                window.pauses().await;
                window.types("y");
            }
            keys => window.types(keys),
        }
    }
    None
}

/// The number of bytes that a whole conversation writes: the smaller one of two, because a slow one has more frames.
async fn usual_bytes() -> usize {
    let mut least = usize::MAX;
    for _ in 0..2 {
        let server = MockServer::answering(reply).await;
        let place = Place::with_server(&server);
        let mut window = open(&place);
        converse(&place, &mut window, usize::MAX).await;
        least = least.min(window.bytes.len());
        kill(&place);
        check_restored(&mut window).await;
    }
    least
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

/// Kills one conversation after so many bytes, and continues it. Returns the number of texts that its log had, and the
/// step that it was at.
async fn round(seed: u64, bytes: usize) -> (usize, Option<&'static str>) {
    let server = MockServer::answering(reply).await;
    let place = Place::with_server(&server);
    let mut window = open(&place);
    let step = converse(&place, &mut window, bytes).await;
    kill(&place);
    // Ends the command, if it has outlived the conversation.
    let_go(&place);
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
    (texts.len(), step)
}

#[tokio::test]
async fn kill_after_any_number_of_bytes_loses_nothing() {
    let usual = usual_bytes().await;
    // A few come after the end.
    let most = u64::try_from(usual + usual / 8).expect("a size");
    let (mut kept, mut early, mut at_work, seeds) = (0, 0, 0, cases(10, 200));
    for seed in first_seed()..first_seed() + seeds {
        let bytes = usize::try_from(1 + Chance(seed).below(most)).expect("a size");
        let (texts, step) = round(seed, bytes).await;
        kept += texts;
        early += u64::from(step.is_some());
        at_work += u64::from(step == Some(BEGUN));
    }
    eprintln!(
        "{seeds} conversations of {usual} bytes were killed, {early} before their end, {at_work} before or at a command: \
         {kept} texts were in their logs, and all are shown once"
    );
    assert!(early * 2 >= seeds, "only {early} of {seeds} kills came before the end");
    assert!(seeds < 100 || at_work > 0, "no kill came before or at the command");
}
