//! Promises of the command line in a conversation: several calls, delegated work, and the upkeep of the window.

use archon_testkit::{MockResponse, MockServer};
use serde_json::json;

use super::{
    basics::{halves, messages},
    jobs::asks_for_all,
    window::Window,
};
use crate::setup::{Place, answer, asks_for, chunk, text};

/// Writes the settings of a person.
pub(super) fn set(place: &Place, settings: &str) {
    let folder = place.path(".config/archon");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("archon.toml"), settings).expect("settings");
}

// spec: CL-11
#[tokio::test]
async fn work_of_another_agent_is_nested_below_its_call_until_it_is_complete() {
    let gate = archon_testkit::Gate::new();
    let server = MockServer::start([
        asks_for("helper", r#"{"task": "Count the apples."}"#),
        asks_for("read_file", r#"{"path": "apples.txt"}"#),
        halves("I have ", &gate, "counted."),
        answer("There are seven."),
    ])
    .await;
    let place = Place::with_server(&server);
    std::fs::write(place.path("apples.txt"), "seven apples\n").expect("a file");
    set(&place, "[agents.helper]\ndescription = \"Counts.\"\ntools = [\"read_file\"]\n");
    let mut window = Window::open(&place, "chat");
    window.says("How many apples?").await;
    window.shows("→ helper (Count the apples.)").await;
    window.shows("     ✓ read_file apples.txt").await;
    assert!(!window.all().contains("Complete ("), "{}", window.all());
    gate.open();
    window.shows("There are seven.").await;
    window.shows("  Complete (").await;
    window.has_once(&["→ helper (Count the apples.)"]);
    let all = window.all();
    // The calls and the answer of the other agent are for its caller.
    for text in ["read_file", "seven apples", "counted"] {
        assert!(!all.contains(text), "{text}: {all}");
    }
    assert!(messages(&server, 3).pop().expect("a result").1.contains("I have counted."));
    server.assert_paired();
}

/// An answer to a request of so many tokens.
fn answer_with_usage(words: &str, tokens: u32) -> MockResponse {
    let usage = json!({"prompt_tokens": tokens, "completion_tokens": 10, "total_tokens": tokens + 10});
    let count = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock", "choices": [],
                       "usage": usage});
    let end = chunk(&json!({}), Some("stop"));
    MockResponse::events([text(words), end, count.to_string(), "[DONE]".into()])
}

// spec: CL-13
#[tokio::test]
async fn message_in_a_full_window_comes_with_a_warning_and_a_compaction() {
    let part = |n| ("read_file", json!({"path": "long.txt", "start_line": n, "end_line": n + 199}));
    let server = MockServer::start([
        asks_for_all("I read its parts.", &(1..=20).map(part).collect::<Vec<_>>()),
        answer_with_usage("It is long.", 37_000),
        answer("It is shorter now."),
    ])
    .await;
    let place = Place::with_server(&server);
    for (name, lines) in [("long.txt", 300), ("more.txt", 1_400)] {
        let line = |n| format!("line {n} of a file with many lines of text\n");
        std::fs::write(place.path(name), (1..=lines).map(line).collect::<String>()).expect("a file");
    }
    let name = format!("openai-compatible@{}/v1:mock", server.url());
    set(&place, &format!("[models.{name:?}]\ncontext_window = 40000\n"));
    let mut window = Window::open(&place, "chat");
    window.says("Read long.txt.").await;
    window.shows("It is long.").await;
    window.hides("Esc stops").await;
    assert!(window.screen().contains(" · 92 %"), "{}", window.screen());
    window.says("Read @more.txt ").await;
    window.shows("It is shorter now.").await;
    let all = window.all();
    assert!(all.contains("the context window is 92 % full"), "{all}");
    let (_, sizes) = all.split_once("conversation compacted: ").unwrap_or_else(|| panic!("{all}"));
    let words = sizes.lines().next().into_iter().flat_map(|line| line.split(' '));
    let sizes: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    let [before, after] = sizes[..] else { panic!("two sizes: {all}") };
    assert!(after < before, "{all}");
    // The results are shortened, and the message is not.
    let length = |request, role: &str| -> usize {
        let all = messages(&server, request).into_iter().filter(|(other, _)| other == role);
        all.map(|(_, text)| text.len()).sum()
    };
    let (long, short) = (length(1, "tool"), length(2, "tool"));
    assert!(short < long, "{short} of {long}");
    assert!(messages(&server, 2).iter().any(|(_, text)| text.contains("line 1400 of")));
    server.assert_paired();
}

// spec: OB-12
#[tokio::test]
async fn verbose_log_has_each_request_and_the_tokens_of_each_turn() {
    let server =
        MockServer::start([asks_for("read_file", r#"{"path": "notes.txt"}"#), answer("I have read it.")])
            .await;
    let place = Place::with_server(&server);
    std::fs::write(place.path("notes.txt"), "a line of some notes\n".repeat(60)).expect("a file");
    let mut window = Window::open(&place, "chat -vv");
    window.says("Read notes.txt.").await;
    window.shows("I have read it.").await;
    window.types("\x04");
    window.ends().await;
    assert!(!window.all().contains("request: "), "{}", window.all());
    let log = std::fs::read_to_string(place.data().join("logs/chat.log")).expect("a log");
    let tools = server.requests()[0].body["tools"].as_array().expect("tools").len();
    for messages in [1, 3] {
        let line = log.lines().find(|line| line.contains(&format!("request: {messages} messages with ")));
        assert!(line.is_some_and(|line| line.contains(&format!(" tokens, {tools} tools"))), "{log}");
    }
    assert!(log.contains("Token usage: ") && log.contains(" tokens]"), "{log}");
}
