//! A conversation that is killed leaves a terminal that works, and nothing of the conversation is lost.

use std::path::Path;

use archon_testkit::{Gate, MockServer};
use rustix::process::{Pid, Signal, kill_process};

use super::{
    basics::{check_once, halves},
    window::Window,
};
use crate::setup::{Place, answer, asks_for};

/// Runs the conversation, and after its end waits until the terminal is one for lines.
pub(super) const SCRIPT: &str = "\
    sh -c 'echo $$ > pid; exec \"$0\" \"$@\"' \"$0\" \"$@\"; echo \"code $?\"; \
    until stty -a | tr ' ;' '\\n\\n' | grep -qx icanon; do sleep 0.02; done; echo restored; cat";

/// Kills the conversation that runs in the place.
pub(super) fn kill(place: &Place) {
    let id = std::fs::read_to_string(place.path("pid")).expect("an id");
    let id = id.trim().parse().ok().and_then(Pid::from_raw).expect("an id");
    kill_process(id, Signal::KILL).expect("it is killed");
}

/// Checks that the terminal of a killed conversation works.
pub(super) async fn check_restored(window: &mut Window) {
    window.shows("code 137").await;
    window.shows("restored").await;
    assert!(window.is_for_lines());
    assert!(window.has_visible_cursor() && !window.marks_pastes(), "{}", window.all());
    window.types("typed after all\n");
    window.until("the echo", |window| window.all().matches("typed after all").count() == 2).await;
}

#[tokio::test]
async fn kill_during_an_answer_leaves_a_terminal_that_works_and_the_conversation() {
    let server = MockServer::start([answer("Blue."), halves("Because ", &Gate::new(), "never")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::shell(&place, &["sh", "-c", SCRIPT], "chat");
    window.says("Colour of the sky?").await;
    window.shows("Blue.").await;
    window.says("Why?").await;
    window.shows("Because").await;
    kill(&place);
    check_restored(&mut window).await;

    server.push(answer("Of the air."));
    let mut window = Window::open(&place, "chat --continue");
    window.shows("· mock ·").await;
    window.has_once(&["› Colour of the sky?", "Blue.", "› Why?"]);
    assert!(window.all().contains("the last run was cut off"), "{}", window.all());
    window.says("Go on.").await;
    window.shows("Of the air.").await;
    check_once(&server, 2, &["Colour of the sky?", "Blue.", "Why?", "Go on."]);
}

// spec: AP-06
#[tokio::test]
async fn kill_at_a_question_keeps_the_question() {
    let write = r#"{"path": "notes.txt", "content": "hello\n"}"#;
    let server = MockServer::start([asks_for("write_file", write), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::shell(&place, &["sh", "-c", SCRIPT], "chat");
    window.says("Write notes.").await;
    window.shows("[y]es, once").await;
    kill(&place);
    check_restored(&mut window).await;

    let mut window = Window::open(&place, "chat --continue");
    window.shows("[y]es, once").await;
    assert!(window.all().contains("| 1 +hello"), "{}", window.all());
    super::consent::answers(&mut window, "y", "It is written.").await;
    assert!(place.path("notes.txt").exists());
    server.assert_paired();
}

/// Returns true if a message waits in the inbox of a run.
fn has_waiting_message(place: &Place) -> bool {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let has_end = |path: &Path, end: &str| path.extension().is_some_and(|other| other == end);
    let mut inboxes =
        entries(&place.data().join("runs")).map(|entry| entry.path()).filter(|path| has_end(path, "inbox"));
    inboxes.any(|inbox| entries(&inbox).any(|entry| has_end(&entry.path(), "json")))
}

// spec: CL-03
#[tokio::test]
async fn kill_during_a_line_keeps_the_message_that_waits() {
    let server = MockServer::start([answer("To the first."), answer("To the second.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::shell(&place, &["sh", "-c", SCRIPT], "chat");
    window.says("!until [ -e go ]; do :; done").await;
    window.shows("Esc stops them").await;
    window.says("What was that?").await;
    window.until("the message in the log", |_| has_waiting_message(&place)).await;
    kill(&place);
    check_restored(&mut window).await;
    // Ends the line, if it has outlived the conversation.
    std::fs::write(place.path("go"), "").expect("a file");

    let mut window = Window::open(&place, "chat --continue");
    window.shows("· mock ·").await;
    window.says("Go on.").await;
    window.shows("To the second.").await;
    check_once(&server, 1, &["What was that?", "Go on."]);
}

#[tokio::test]
async fn kill_with_a_draft_and_an_open_paste_leaves_a_terminal_that_works() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let mut window = Window::shell(&place, &["sh", "-c", SCRIPT], "chat");
    window.shows("· mock ·").await;
    window.types("a draft");
    window.shows("› a draft").await;
    window.types("\x1b[200~half a paste");
    kill(&place);
    check_restored(&mut window).await;
}

#[tokio::test]
async fn kill_under_an_interactive_shell_gives_it_a_terminal_that_works() {
    for shell in [&["bash", "--norc", "-i"][..], &["dash", "-i"]] {
        let server = MockServer::start([]).await;
        let place = Place::with_server(&server);
        let archon = place.command("chat", &[]);
        let words: Vec<_> =
            std::iter::once(archon.as_std().get_program()).chain(archon.as_std().get_args()).collect();
        let line: Vec<String> = words.iter().map(|word| format!("'{}'", word.to_string_lossy())).collect();
        let script = format!("echo $$ > pid; exec {}\n", line.join(" "));
        std::fs::write(place.path("run.sh"), script).expect("a script");
        let mut window = Window::program(&place, shell);
        window.types("sh run.sh\n");
        window.shows("· mock ·").await;
        kill(&place);
        // The shell says what became of it, and reads the next line.
        window.shows("Killed").await;
        window.until("the shell's modes", |window| !window.is_raw()).await;
        window.types("echo $((20 + 22))\r");
        window.shows("42").await;
    }
}
