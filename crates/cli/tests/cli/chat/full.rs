//! The full view: the whole conversation on the alternate screen, and the scrollback after it.

use archon_testkit::{Gate, MockResponse, MockServer};
use serde_json::json;

use super::{
    basics::halves,
    consent,
    kill::{SCRIPT, kill},
    window::Window,
};
use crate::setup::{Place, answer, asks_for, chunk, text};

/// Opens the full view by its command.
async fn open(window: &mut Window) {
    window.says("/full").await;
    window
        .until("the full view", |window| window.is_alternate() && window.screen().contains("q goes back"))
        .await;
}

/// Goes back, and waits for the draft.
async fn leave(window: &mut Window) {
    window.types("q");
    let is_back =
        |window: &mut Window| !window.is_alternate() && window.screen().lines().any(|row| row == "›");
    window.until("the conversation", is_back).await;
}

/// A conversation in which a file of 40 lines was read, of which the screen shows the first five.
async fn window_with_output(place: &Place, shell: Option<&str>) -> Window {
    let lines: String = (1..=40).map(|n| format!("line {n:02}\n")).collect();
    std::fs::write(place.path("notes.txt"), lines).expect("a file");
    let mut window = match shell {
        Some(script) => Window::shell(place, &["bash", "-c", script], "chat"),
        None => Window::open(place, "chat"),
    };
    window.shows("· mock ·").await;
    window.says("Read it.").await;
    window.shows("It is read.").await;
    window.hides("Esc stops").await;
    window
}

fn reads() -> [MockResponse; 2] {
    [asks_for("read_file", r#"{"path": "notes.txt"}"#), answer("It is read.")]
}

/// Checks that each line is in the window once, and that they are in this order.
fn check_lines(window: &mut Window, lines: &[&str]) {
    let all = window.all();
    let found: Vec<&str> = all.lines().map(str::trim).filter(|row| lines.contains(row)).collect();
    assert_eq!(found, lines, "{all}");
}

const LINES: &[&str] = &["› Read it.", "line 01", "line 02", "line 03", "line 04", "line 05", "It is read."];

// spec: CL-02
#[tokio::test]
async fn full_shows_the_whole_output_finds_a_line_and_leaves_the_scrollback_as_it_was() {
    let server = MockServer::start(reads()).await;
    let place = Place::with_server(&server);
    let mut window = window_with_output(&place, None).await;
    check_lines(&mut window, LINES);
    open(&mut window).await;
    window.shows("It is read.").await;
    // The window is at the end, and `y` copies the answer.
    window.types("y");
    window.shows("copied 1 line").await;
    let copied =
        |window: &mut Window| String::from_utf8_lossy(&window.bytes).contains("\x1b]52;c;SXQgaXMgcmVhZC4=");
    window.until("the clipboard", copied).await;
    window.types("/LINE\r");
    window.shows("\"LINE\" is not found").await;
    window.types("/line 23\r");
    window.shows("\"line 23\" 1 of 1").await;
    assert!(window.screen().contains("  line 23"), "{}", window.screen());
    window.types("g");
    window.until("the beginning", |window| window.screen().starts_with("› Read it.")).await;
    window.resize(50, 10);
    window
        .until("the new size", |window| {
            window.screen().lines().nth(9).is_some_and(|row| row.contains("1 hit"))
        })
        .await;
    window.resize(80, 24);
    leave(&mut window).await;
    check_lines(&mut window, LINES);
    assert!(!window.all().contains("line 23"), "the scrollback stays folded: {}", window.all());
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    assert_eq!(server.requests().len(), 2, "nothing of it is sent");
}

#[tokio::test]
async fn full_shows_what_a_run_does_meanwhile_and_it_is_printed_once_afterwards() {
    let gate = Gate::new();
    let server = MockServer::start([halves("The first half ", &gate, "and the second.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("speak").await;
    window.shows("The first half").await;
    open(&mut window).await;
    window.shows("The first half").await;
    gate.open();
    window.shows("The first half and the second.").await;
    assert!(window.is_alternate(), "{}", window.screen());
    leave(&mut window).await;
    window.hides("Esc stops").await;
    check_lines(&mut window, &["› speak", "The first half and the second."]);
}

// spec: AP-05
#[tokio::test]
async fn full_names_a_question_that_waits_and_no_key_in_it_answers() {
    let gate = Gate::new();
    let arguments = json!({"path": "notes.txt", "content": "hello\n"}).to_string();
    let function = json!({"name": "write_file", "arguments": arguments});
    let call =
        json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]});
    let asks = MockResponse::events([text("I write it. ")])
        .wait(&gate)
        .event(&chunk(&call, None))
        .event(&chunk(&json!({}), Some("tool_calls")))
        .event("[DONE]");
    let server = MockServer::start([asks, answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("Write notes.").await;
    window.shows("I write it.").await;
    open(&mut window).await;
    gate.open();
    window.shows("a question waits, q goes to it").await;
    window.pauses().await;
    window.types("y");
    window.shows("copied ").await;
    assert!(!place.path("notes.txt").exists());
    window.types("q");
    window
        .until("the question", |window| !window.is_alternate() && window.screen().contains("[y]es, once"))
        .await;
    window.has_once(&["| 1 +hello"]);
    consent::answers(&mut window, "y", "It is written.").await;
    assert!(place.path("notes.txt").exists());
    server.assert_paired();
}

#[tokio::test]
async fn full_gives_the_terminal_to_the_shell_and_has_it_again() {
    let server = MockServer::start(reads()).await;
    let place = Place::with_server(&server);
    let script = "set -m; \"$0\" \"$@\"; echo in the shell; fg; echo \"code $?\"";
    let mut window = window_with_output(&place, Some(script)).await;
    open(&mut window).await;
    window.types("g\x1a");
    let is_again = |window: &mut Window| {
        let begun = String::from_utf8_lossy(&window.bytes).matches("\x1b[?1049h").count();
        begun == 2 && window.is_alternate() && window.is_raw() && window.screen().starts_with("› Read it.")
    };
    window.until("the full view", is_again).await;
    leave(&mut window).await;
    let lines = [LINES, &["in the shell"]].concat();
    check_lines(&mut window, &lines);
    window.types("\x04");
    window.shows("code 0").await;
    assert!(window.is_for_lines() && !window.marks_pastes(), "{}", window.all());
}

/// The alternate screen takes its text with it, so the program prints nothing until the terminal is restored.
fn script() -> String {
    SCRIPT.replace("echo \"code $?\"; ", "")
}

#[tokio::test]
async fn kill_in_the_full_view_leaves_a_terminal_that_works() {
    let server = MockServer::start(reads()).await;
    let place = Place::with_server(&server);
    let mut window = window_with_output(&place, Some(&script())).await;
    open(&mut window).await;
    kill(&place);
    window.shows("restored").await;
    assert!(!window.is_alternate() && window.is_for_lines(), "{}", window.all());
    assert!(window.has_visible_cursor() && !window.marks_pastes(), "{}", window.all());
    check_lines(&mut window, &[LINES, &["restored"]].concat());
    window.types("typed after all\n");
    window.until("the echo", |window| window.all().matches("typed after all").count() == 2).await;

    let mut window = Window::open(&place, "chat --continue");
    window.shows("It is read.").await;
}
