//! Whole jobs from the first message to the last answer, looked at turn by turn: what the person sees at each step,
//! and what the model gets.

use archon_testkit::{Gate, MockResponse, MockServer};
use serde_json::{Value, json};

use super::{
    basics::{halves, messages, texts},
    consent::answers,
    window::Window,
};
use crate::setup::{Place, answer, asks_for, chunk, says_and_asks_for, text};

/// An answer with several calls.
pub(super) fn asks_for_all(words: &str, calls: &[(&str, Value)]) -> MockResponse {
    let call = |(index, (name, arguments)): (usize, &(&str, Value))| {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": function})
    };
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    let end =
        [chunk(&json!({"tool_calls": calls}), None), chunk(&json!({}), Some("tool_calls")), "[DONE]".into()];
    MockResponse::events([text(words)].into_iter().chain(end))
}

fn edit(path: &str, old: &str, new: &str) -> (&'static str, Value) {
    ("edit_file", json!({"path": path, "old_text": old, "new_text": new, "replace_all": true}))
}

fn write(place: &Place, name: &str, content: &str) {
    std::fs::write(place.path(name), content).expect("a file");
}

fn read(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).expect("a file")
}

/// The last result that a request has.
fn last_result(server: &MockServer, request: usize) -> String {
    let (role, text) = messages(server, request).pop().expect("a message");
    assert_eq!(role, "tool", "{text}");
    text
}

/// Checks that each text is once in the window, in this order.
fn check_once_in_order(window: &mut Window, texts: &[&str]) {
    window.has_once(texts);
    let all = window.all();
    let mut rest = all.as_str();
    for text in texts {
        let (_, after) = rest.split_once(text).unwrap_or_else(|| panic!("{text} is not in its place: {all}"));
        rest = after;
    }
}

// spec: AP-05, CL-09, CL-12
#[tokio::test]
async fn failing_test_is_found_mended_and_run_again() {
    let run = json!({"command": "sh test.sh"}).to_string();
    let (_, mend) = edit("sum.sh", "$1 - $2", "$1 + $2");
    let server = MockServer::start([
        says_and_asks_for("I run the test first.", "bash", &run),
        asks_for("read_file", r#"{"path": "sum.sh"}"#),
        says_and_asks_for("It subtracts.", "edit_file", &mend.to_string()),
        asks_for("bash", &run),
        answer("The test passes: the script adds now."),
    ])
    .await;
    let place = Place::with_server(&server);
    write(&place, "sum.sh", "echo $(($1 - $2))\n");
    let test = "got=$(sh sum.sh 2 3)\n[ $got = 5 ] || { echo \"2 + 3 is $got\"; exit 1; }\necho \"one test passed\"\n";
    write(&place, "test.sh", test);
    let mut window = Window::open(&place, "chat");
    window.says("The test fails. Mend it.").await;

    // The command is asked about, whole, and fails.
    window.shows("[y]es, once").await;
    assert!(window.screen().contains("? Run `sh test.sh`"), "{}", window.screen());
    assert!(window.all().contains("I run the test first."), "{}", window.all());
    answers(&mut window, "y", "2 + 3 is -1").await;
    window.shows("✗ bash sh test.sh").await;
    window.shows("✓ read_file sum.sh").await;
    let output = last_result(&server, 1);
    assert!(output.contains("2 + 3 is -1") && output.contains("exit code 1"), "{output}");

    // The edit is asked about with its difference.
    window.shows("| 1 +echo $(($1 + $2))").await;
    window.shows("[y]es, once").await;
    assert!(window.all().contains("| 1 -echo $(($1 - $2))"), "{}", window.all());
    assert!(window.screen().contains("? Edit 'sum.sh'"), "{}", window.screen());
    assert_eq!(read(&place, "sum.sh"), "echo $(($1 - $2))\n", "nothing is written before the answer");
    assert!(last_result(&server, 2).contains("echo $(($1 - $2))"));
    answers(&mut window, "y", "✓ edit_file sum.sh").await;
    assert_eq!(read(&place, "sum.sh"), "echo $(($1 + $2))\n");

    // A yes was for one call: the same command is asked about again.
    window.shows("[y]es, once").await;
    answers(&mut window, "y", "The test passes").await;
    assert!(last_result(&server, 3).contains("Edited 'sum.sh'"));
    let output = last_result(&server, 4);
    assert!(output.contains("one test passed"), "{output}");
    check_once_in_order(
        &mut window,
        &[
            "› The test fails. Mend it.",
            "I run the test first.",
            "2 + 3 is -1",
            "It subtracts.",
            "| 1 -echo $(($1 - $2))",
            "| 1 +echo $(($1 + $2))",
            "  one test passed",
            "The test passes: the script adds now.",
        ],
    );
    server.assert_paired();
}

// spec: AP-05, AP-11, CL-10
#[tokio::test]
async fn name_is_changed_across_files_in_one_turn() {
    let files = [("a.rs", "fn total() {}\n"), ("b.rs", "let b = total();\n"), ("c.rs", "let c = total();\n")];
    let reads = files.map(|(name, _)| ("read_file", json!({"path": name})));
    let edits = files.map(|(name, _)| edit(name, "total", "sum"));
    let (_, again) = edit("b.rs", "let b", "let renamed");
    let server = MockServer::start([
        asks_for_all("I read them.", &reads),
        asks_for_all("I change them.", &edits),
        asks_for("edit_file", &again.to_string()),
        answer("It has its new name in three files."),
    ])
    .await;
    let place = Place::with_server(&server);
    files.iter().for_each(|(name, content)| write(&place, name, content));
    let mut window = Window::open(&place, "chat");
    window.says("Call it sum, not total.").await;

    window.shows("3 questions wait").await;
    let all = window.all();
    assert_eq!(all.matches("Multiple Operations").count(), 2, "for the reads and for the edits: {all}");
    for name in ["a.rs", "b.rs", "c.rs"] {
        assert_eq!(all.matches(&format!("✓ read_file {name}")).count(), 1, "{all}");
    }
    window.shows("| 1 +fn sum() {}").await;
    window.shows("[y]es, once").await;
    answers(&mut window, "y", "| 1 +let b = sum();").await;
    assert_eq!(read(&place, "b.rs"), files[1].1, "each question is about one file");
    window.shows("for this [s]ession").await;
    answers(&mut window, "s", "| 1 +let c = sum();").await;
    window.shows("[y]es, once").await;
    answers(&mut window, "y", "Previewed 3 file modification(s) above").await;

    // The file that was approved for the session is changed again without a question.
    window.shows("It has its new name in three files.").await;
    assert_eq!(read(&place, "a.rs"), "fn sum() {}\n");
    assert_eq!(read(&place, "b.rs"), "let renamed = sum();\n");
    assert_eq!(read(&place, "c.rs"), "let c = sum();\n");
    check_once_in_order(
        &mut window,
        &[
            "I change them.",
            "| 1 +fn sum() {}",
            "| 1 +let b = sum();",
            "yes, from now on: edit_file(b.rs)",
            "| 1 +let c = sum();",
            "Previewed 3 file modification(s) above",
            "1 +let renamed = sum();",
            "It has its new name in three files.",
        ],
    );
    let results = |request: usize| {
        let all = messages(&server, request).into_iter().rev();
        all.take_while(|(role, _)| role == "tool").map(|(_, text)| text).collect::<Vec<_>>()
    };
    assert_eq!(results(1).len(), 3);
    assert!(results(2).iter().all(|text| text.contains("Edited '")), "{:?}", results(2));
    server.assert_paired();
}

#[tokio::test]
async fn steps_of_a_job_are_live_until_its_run_ends_or_all_are_completed() {
    let list = |first: &str, second: &str| {
        let step = |step: &str, status: &str| json!({"step": step, "status": status});
        let steps = json!({"steps": [step("Read the log", first), step("Name the order", second)]});
        asks_for("update_plan", &steps.to_string())
    };
    let gates = [Gate::new(), Gate::new()];
    let server = MockServer::start([
        list("in_progress", "pending"),
        halves("I have ", &gates[0], "read it."),
        list("completed", "completed"),
        halves("It was ", &gates[1], "4711."),
    ])
    .await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("Read the log.").await;
    window.shows("I have").await;
    // In the conversation, and above the draft.
    let is_live = |window: &mut Window| window.all().matches("  ☐ Name the order").count() == 2;
    window.until("the live list", is_live).await;
    gates[0].open();
    window.answers("I have read it.").await;
    window.has_once(&["  ◐ Read the log", "  ☐ Name the order"]);

    window.says("Which order?").await;
    window.shows("It was").await;
    window.has_once(&["  ☑ Read the log", "  ☑ Name the order"]);
    gates[1].open();
    window.answers("It was 4711.").await;
    window.has_once(&["  ☑ Read the log", "  ☑ Name the order"]);
    server.assert_paired();
}

/// A log of 20,000 lines with one error in it.
fn log() -> String {
    let line = |n| match n {
        13_057 => "line 13057 ERROR the disk sdb is full, the order 4711 is lost".to_owned(),
        n => format!("line {n:05} INFO the request was answered in 12 ms, nothing to do"),
    };
    (1..=20_000).map(|n| line(n) + "\n").collect()
}

// spec: CL-12
#[tokio::test]
async fn question_about_a_long_log_is_answered_from_its_parts() {
    let part =
        |from: u32, to: u32| json!({"path": "app.log", "start_line": from, "end_line": to}).to_string();
    let server = MockServer::start([
        asks_for("read_file", r#"{"path": "app.log"}"#),
        asks_for("read_file", &part(1, 100)),
        asks_for("search", r#"{"pattern": "ERROR", "path": "app.log"}"#),
        asks_for("read_file", &part(13_001, 13_100)),
        answer("The order 4711 was lost, because the disk was full."),
    ])
    .await;
    let place = Place::with_server(&server);
    write(&place, "app.log", &log());
    let mut window = Window::open(&place, "chat");
    window.says("Which order was lost?").await;
    window.shows("The order 4711 was lost").await;

    // The file is too long for one call, and says so to both.
    let refused = last_result(&server, 1);
    assert!(refused.contains("start_line"), "{refused}");
    let all = window.all();
    assert!(all.contains("✗ read_file app.log"), "{all}");
    // Of each part the person sees the beginning, and the model all.
    assert_eq!(all.matches("… 95 more lines").count(), 2, "{all}");
    for (from, request) in [(1, 2), (13_001, 4)] {
        let line = |n: u32| format!("line {n:05} ");
        let result = last_result(&server, request);
        assert!(result.contains(&line(from)) && result.contains(&line(from + 99)), "{result}");
        assert!(all.contains(&line(from + 4)) && !all.contains(&line(from + 5)), "{all}");
    }
    assert!(last_result(&server, 3).contains("line 13057 ERROR"));
    assert_eq!(all.matches("line 13057 ERROR").count(), 1, "what was searched for: {all}");
    // Two parts and the file are asked for in three lines.
    assert_eq!(all.matches("read_file app.log").count(), 3, "{all}");
    server.assert_paired();
}

// spec: AP-04, R-09
#[tokio::test]
async fn refusal_with_a_reason_and_messages_steer_the_run() {
    let create = |name: &str, content: &str| json!({"path": name, "content": content}).to_string();
    let gate = Gate::new();
    let function = json!({"name": "write_file", "arguments": create("shopping.txt", "milk\n")});
    let call =
        json!({"tool_calls": [{"index": 0, "id": "call_2", "type": "function", "function": function}]});
    let second = MockResponse::events([text("Under another name, then. ")])
        .wait(&gate)
        .event(&chunk(&call, None))
        .event(&chunk(&json!({}), Some("tool_calls")))
        .event("[DONE]");
    let server = MockServer::start([
        asks_for("write_file", &create("notes.txt", "milk\n")),
        second,
        asks_for("write_file", &create("shopping.txt", "milk\neggs\n")),
        answer("The list is written."),
        answer("Milk and eggs."),
    ])
    .await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("Write a shopping list.").await;

    // No, and why: the model reads the reason, and the run goes on.
    window.shows("no, and [t]ell why").await;
    answers(&mut window, "t", "Why not? The model reads this.").await;
    window.types("The file is shopping.txt.\r");
    window.shows("Under another name, then.").await;
    assert!(window.all().contains("no: The file is shopping.txt."), "{}", window.all());
    let refusal = last_result(&server, 1);
    assert!(refusal.contains("User cancelled this action") && refusal.contains("The file is shopping.txt."));
    assert!(!place.path("notes.txt").exists());

    // One message for the next request (Ctrl+S), and one for the time after the run. Both wait visibly.
    window.types("Eggs, too.\x13");
    window.shows("… Eggs, too. · with the next request").await;
    window.says("And read it out.").await;
    window.shows("… And read it out. · after this run").await;
    gate.open();
    // The call that was on its way is not asked about: the model thinks again, with the message.
    window.shows("| 2 +eggs").await;
    window.shows("[y]es, once").await;
    assert_eq!(messages(&server, 2).pop(), Some(("user".to_owned(), "Eggs, too.".to_owned())));
    assert!(!place.path("shopping.txt").exists(), "{}", window.all());
    answers(&mut window, "y", "Milk and eggs.").await;
    window.hides("after this run").await;
    assert_eq!(read(&place, "shopping.txt"), "milk\neggs\n");
    assert_eq!(messages(&server, 4).pop(), Some(("user".to_owned(), "And read it out.".to_owned())));
    check_once_in_order(
        &mut window,
        &[
            "› Write a shopping list.",
            "? Create 'notes.txt'",
            "Under another name, then.",
            "› Eggs, too.",
            "| 2 +eggs",
            "? Create 'shopping.txt'",
            "✓ write_file shopping.txt",
            "The list is written.",
            "Milk and eggs.",
        ],
    );
    check_once_in_order(&mut window, &["› And read it out."]);
    server.assert_paired();
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}

// spec: CL-04
#[tokio::test]
async fn conversation_goes_back_two_messages_and_takes_another_way() {
    let create = r#"{"path": "colour.txt", "content": "blue\n"}"#;
    let server = MockServer::start([
        answer("Take blue."),
        asks_for("write_file", create),
        answer("It is in the file."),
        answer("You are welcome."),
        answer("Then green."),
        answer("Green is in the middle of the rainbow."),
    ])
    .await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --session colours");
    window.says("Which colour?").await;
    window.shows("Take blue.").await;
    window.says("Write it down.").await;
    window.shows("[y]es, once").await;
    answers(&mut window, "y", "It is in the file.").await;
    window.says("Thanks.").await;
    window.shows("You are welcome.").await;
    window.hides("Esc stops").await;

    window.says("/back").await;
    window.shows("  2  Write it down.").await;
    window.says("/back 2").await;
    window.shows("messages, answers and results are left behind").await;
    window.until("the draft", |window| window.screen().contains("› Write it down.")).await;
    assert_eq!(server.requests().len(), 4, "the message is not sent before it is changed");
    window.types("\x15No, not blue.\r");
    window.shows("Then green.").await;
    let texts = |request| texts(&server, request);
    assert_eq!(texts(4), ["Which colour?", "Take blue.", "No, not blue."]);
    assert_eq!(read(&place, "colour.txt"), "blue\n", "files stay as they are");

    // The other way goes on, also in the next process.
    window.hides("Esc stops").await;
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    let mut window = Window::open(&place, "chat --continue");
    window.shows("Then green.").await;
    assert!(
        !window.all().contains("Write it down.") && !window.all().contains("Thanks."),
        "{}",
        window.all()
    );
    window.says("Why?").await;
    window.shows("Green is in the middle").await;
    assert_eq!(texts(5), ["Which colour?", "Take blue.", "No, not blue.", "Then green.", "Why?"]);
    server.assert_paired();
}
