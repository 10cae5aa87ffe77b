//! Questions about calls on the screen: the whole call first, then an answer by a key that was meant for it.

use archon_testkit::{Gate, MockResponse, MockServer};
use serde_json::json;

use super::{basics::messages, window::Window};
use crate::setup::{Place, Ran, answer, asks_for, chunk};

const WRITE: &str = r#"{"path": "notes.txt", "content": "hello\n"}"#;

/// A conversation that asks about the first call.
async fn window_with_question(place: &Place) -> Window {
    let mut window = Window::open(place, "chat");
    window.says("Write notes.").await;
    window.shows("[y]es, once").await;
    window
}

/// Presses a key of the question on the screen, and waits for what follows. A question takes no key in the first
/// moment, so that nobody answers it unseen; a key that comes too early is in the draft.
pub(super) async fn answers(window: &mut Window, key: &str, then: &str) {
    let draft = format!("› {key}");
    loop {
        window.pauses().await;
        window.types(key);
        let follows = |window: &mut Window| window.all().contains(then) || window.screen().contains(&draft);
        window.until(then, follows).await;
        if !window.screen().contains(&draft) {
            return;
        }
        // The draft is emptied, as a person would do it who sees the key there.
        window.types("\x15");
        window.hides(&draft).await;
    }
}

// spec: AP-05, AP-13, CL-09
#[tokio::test]
async fn question_shows_the_whole_call_and_a_yes_lets_it_run() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = window_with_question(&place).await;
    let all = window.all();
    assert!(all.contains("? Create 'notes.txt'") && all.contains("| 1 +hello"), "{all}");
    assert!(window.screen().contains("1 question waits"), "{}", window.screen());
    assert!(!place.path("notes.txt").exists());
    answers(&mut window, "y", "It is written.").await;
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).expect("a file"), "hello\n");
    window.has_once(&["| 1 +hello"]);
    server.assert_paired();
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}

// spec: CL-09
#[tokio::test]
async fn change_of_a_file_above_102400_bytes_is_asked_about_with_its_arguments() {
    let read = json!({"path": "long.txt", "start_line": 7_770, "end_line": 7_780});
    let edit = json!({"path": "long.txt", "old_text": "line 07777", "new_text": "line seven"});
    let server = MockServer::start([
        asks_for("read_file", &read.to_string()),
        asks_for("edit_file", &edit.to_string()),
        answer("It is changed."),
    ])
    .await;
    let place = Place::with_server(&server);
    let lines: String = (1..=10_000).map(|n| format!("line {n:05}\n")).collect();
    std::fs::write(place.path("long.txt"), &lines).expect("a file");
    let mut window = window_with_question(&place).await;
    let all = window.all();
    assert!(all.contains("new_text: \"line seven\"") && !all.contains("-line 07777"), "{all}");
    answers(&mut window, "y", "It is changed.").await;
    let expected = lines.replace("line 07777", "line seven");
    assert_eq!(std::fs::read_to_string(place.path("long.txt")).expect("a file"), expected);
    assert!(!window.all().contains("+line seven"), "{}", window.all());
}

/// Returns the window with the question about the last of these calls, after this message.
async fn question_after(message: &str, calls: &[(&str, &str)]) -> String {
    let server = MockServer::start(calls.iter().map(|(tool, arguments)| asks_for(tool, arguments))).await;
    let place = Place::with_server(&server);
    std::fs::create_dir(place.path("out")).expect("a folder");
    std::fs::write(place.path("plan.txt"), "The text belongs into out/summary.txt.\n").expect("a file");
    let mut window = Window::open(&place, "chat");
    window.says(message).await;
    window.shows("[y]es, once").await;
    window.all()
}

// spec: AP-05
#[tokio::test]
async fn question_names_the_record_that_a_path_comes_from() {
    let read = ("read_file", r#"{"path": "plan.txt"}"#);
    let write = ("write_file", r#"{"path": "out/summary.txt", "content": "short\n"}"#);
    for (message, calls, source) in [
        ("Follow the plan.", &[read, write][..], "from the result of read_file plan.txt"),
        ("Write out/summary.txt.", &[read, write], "from your message: \"Write out/summary.txt.\""),
        ("Do what @plan.txt says.", &[write], "from the attached file plan.txt"),
    ] {
        let all = question_after(message, calls).await;
        assert!(all.contains(&format!("  out/summary.txt\n    {source}\n")), "{all}");
    }
    let all = question_after("Write a summary.", &[write]).await;
    assert!(all.contains("  out/summary.txt\n") && !all.contains("    from "), "{all}");
}

/// A model's request for two calls at once.
fn two_writes() -> MockResponse {
    let call = |index: u32, name: &str| {
        let arguments = json!({"path": name, "content": format!("in {name}\n")}).to_string();
        let function = json!({"name": "write_file", "arguments": arguments});
        json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": function})
    };
    let calls = json!({"tool_calls": [call(0, "one.txt"), call(1, "two.txt")]});
    MockResponse::events([chunk(&calls, None), chunk(&json!({}), Some("tool_calls")), "[DONE]".into()])
}

// spec: AP-05
#[tokio::test]
async fn questions_of_one_turn_are_shown_once_and_answered_one_by_one() {
    let server = MockServer::start([two_writes(), answer("Both are written.")]).await;
    let place = Place::with_server(&server);
    let mut window = window_with_question(&place).await;
    window.shows("2 questions wait").await;
    answers(&mut window, "y", "| 1 +in two.txt").await;
    window.shows("[y]es, once").await;
    answers(&mut window, "y", "Both are written.").await;
    for name in ["one.txt", "two.txt"] {
        let line = format!("in {name}");
        assert_eq!(std::fs::read_to_string(place.path(name)).expect("a file"), format!("{line}\n"));
        window.has_once(&[&format!("| 1 +{line}")]);
    }
    server.assert_paired();
}

// spec: AP-05
#[tokio::test]
async fn keys_that_were_typed_before_the_question_go_to_the_draft() {
    let gate = Gate::new();
    let function = json!({"name": "write_file", "arguments": WRITE});
    let call =
        json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]});
    let asks = MockResponse::events::<&str>([])
        .wait(&gate)
        .event(&chunk(&call, None))
        .event(&chunk(&json!({}), Some("tool_calls")))
        .event("[DONE]");
    let server = MockServer::start([asks]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("Write notes.").await;
    window.shows("the model works").await;
    window.types("y");
    window.shows("› y").await;
    gate.open();
    window.shows("empty the draft to answer, or press Tab").await;
    window.types("y");
    window.shows("› yy").await;
    assert!(!place.path("notes.txt").exists());
    assert!(window.screen().contains("empty the draft to answer"), "{}", window.screen());
}

// spec: AP-13
#[tokio::test]
async fn letter_beside_a_draft_goes_to_the_draft_and_answers_behind_tab() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = window_with_question(&place).await;
    window.types("x");
    window.shows("› x").await;
    window.pauses().await;
    window.types("y");
    window.shows("› xy").await;
    assert!(window.screen().contains("empty the draft to answer"), "{}", window.screen());
    assert!(!place.path("notes.txt").exists());
    window.pauses().await;
    window.types("\ty");
    window.shows("It is written.").await;
    assert!(window.screen().contains("› xy"), "the draft stays: {}", window.screen());
    assert!(place.path("notes.txt").exists());
}

// spec: AP-13
#[tokio::test]
async fn question_that_a_low_window_does_not_show_takes_no_key() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.shows("· mock ·").await;
    // One row is left for all that changes, and a draft has it.
    window.resize(80, 5);
    window.says("Write notes.").await;
    window.shows("| 1 +hello").await;
    window.types("x");
    window.shows("› x").await;
    window.pauses().await;
    window.types("\ty");
    window.shows("› xy").await;
    assert!(!place.path("notes.txt").exists());
    // Ctrl+U empties the draft, and the question is in its row.
    window.types("\x15");
    window.shows("[y]es, once").await;
    answers(&mut window, "y", "It is written.").await;
    assert!(place.path("notes.txt").exists());
}

// spec: AP-11
#[tokio::test]
async fn always_stores_nothing_before_its_second_press() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("I leave it.")]).await;
    let place = Place::with_server(&server);
    let mut window = window_with_question(&place).await;
    answers(&mut window, "a", "press [a] again to store the rule write_file(notes.txt)").await;
    window.types("\x1b");
    window.shows("[y]es, once").await;
    answers(&mut window, "n", "I leave it.").await;
    assert!(!window.all().contains("is stored for"), "{}", window.all());
    assert!(!place.path("notes.txt").exists());
}

// spec: AP-11
#[tokio::test]
async fn answer_with_always_stores_a_rule_and_asks_no_more() {
    let again = r#"{"path": "notes.txt", "content": "again\n"}"#;
    let read = r#"{"path": "notes.txt"}"#;
    let server = MockServer::start([
        asks_for("write_file", WRITE),
        answer("Written."),
        asks_for("read_file", read),
        asks_for("write_file", again),
        answer("Written again."),
    ])
    .await;
    let place = Place::with_server(&server);
    let mut window = window_with_question(&place).await;
    window.shows("[a]lways: write_file(notes.txt)").await;
    answers(&mut window, "a", "press [a] again to store the rule write_file(notes.txt)").await;
    answers(&mut window, "a", "Written.").await;
    window.types("\x04");
    window.ends().await;
    let mut window = Window::open(&place, "chat");
    window.says("Again.").await;
    window.shows("Written again.").await;
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).expect("a file"), "again\n");
    assert!(!window.all().contains("[y]es, once"), "{}", window.all());
}

// spec: AP-04
#[tokio::test]
async fn answer_no_reaches_the_model_and_the_run_goes_on() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("I leave it.")]).await;
    let place = Place::with_server(&server);
    let mut window = window_with_question(&place).await;
    answers(&mut window, "n", "I leave it.").await;
    assert!(!place.path("notes.txt").exists());
    let refused = messages(&server, 1).pop().expect("a result");
    assert!(refused.0 == "tool" && refused.1.contains("User cancelled this action"), "{refused:?}");
}

// spec: AP-05
#[tokio::test]
async fn edit_of_the_arguments_lets_the_changed_call_run() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = window_with_question(&place).await;
    answers(&mut window, "e", "Change the arguments of the call, in JSON:").await;
    // Ctrl+U empties the field.
    window.types("\x15{\"path\": \"notes.txt\"\r");
    window.shows("This is no JSON object").await;
    window.types("\x15{\"path\": \"notes.txt\", \"content\": \"bye\"}\r");
    window.shows("It is written.").await;
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).expect("a file"), "bye");
    assert!(window.all().contains("yes, with other arguments: {"), "{}", window.all());
    server.assert_paired();
}

// spec: AP-12, CL-06, CL-08
#[tokio::test]
async fn escape_at_a_question_stops_the_run_and_the_model_reads_why() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("Then something else.")]).await;
    let place = Place::with_server(&server);
    let mut window = window_with_question(&place).await;
    window.types("\x1b");
    window.shows("stopped").await;
    window.hides("[y]es, once").await;
    assert_eq!(server.requests().len(), 1, "the model is not asked in between");
    window.says("What now?").await;
    window.shows("Then something else.").await;
    let texts = messages(&server, 1);
    let is_marker = |(_, text): &(String, String)| {
        text.contains("[Request interrupted by user due to permission denial]")
    };
    assert!(texts.iter().any(is_marker), "{texts:?}");
    server.assert_paired();
}

// spec: AP-06
#[tokio::test]
async fn question_that_is_answered_from_another_terminal_goes_away_and_the_run_goes_on() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = window_with_question(&place).await;
    let listed = place.archon("approvals list --json", &[]).await.json();
    let question = listed[0]["request_id"].as_str().expect("an id").to_owned();
    let ran: Ran = place.archon("approvals approve", &[&question]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    window.shows("It is written.").await;
    window.hides("[y]es, once").await;
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}

// spec: AP-05
#[tokio::test]
async fn questions_of_an_agent_are_answered_one_after_the_other_in_words() {
    let ask = |question: &str| asks_for("human_guidance", &json!({ "question": question }).to_string());
    let server = MockServer::start([
        asks_for("helper", r#"{"task": "Find out where and when."}"#),
        ask("Which city?"),
        ask("Which day?"),
        answer("Berlin on Friday."),
        answer("All is noted."),
    ])
    .await;
    let place = Place::with_server(&server);
    let folder = place.path(".config/archon");
    std::fs::create_dir_all(&folder).expect("a folder");
    let helper = "[agents.helper]\ndescription = \"Helps.\"\ntools = [\"human_guidance\"]\n";
    std::fs::write(folder.join("archon.toml"), helper).expect("settings");
    let mut window = Window::open(&place, "chat");
    window.says("Plan the trip.").await;
    for (question, words, then) in
        [("? Which city?", "Berlin\r", "? Which day?"), ("? Which day?", "Friday\r", "All is noted.")]
    {
        window.shows(question).await;
        window.shows("[r]eply").await;
        answers(&mut window, "r", "What is the answer?").await;
        window.types(words);
        window.shows(then).await;
    }
    for (request, words) in [(2, "Berlin"), (3, "Friday")] {
        let result = messages(&server, request).pop().expect("a result");
        assert!(result.0 == "tool" && result.1.contains(words), "{result:?}");
    }
    server.assert_paired();
}
