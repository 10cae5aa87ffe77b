//! The composer in a real terminal: history, pastes, lists, files, the editor, and keys of the settings.

use archon_testkit::MockServer;

use super::{basics::messages, window::Window};
use crate::setup::{Place, answer};

/// The text of the last message of a request, or its blocks as JSON.
fn last_message(server: &MockServer, request: usize) -> String {
    messages(server, request).pop().expect("a message").1
}

async fn chat(place: &Place) -> Window {
    let mut window = Window::open(place, "chat");
    window.shows("· mock ·").await;
    window
}

async fn leave(mut window: Window) {
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}

#[tokio::test]
async fn draft_of_an_earlier_conversation_is_found_by_a_search_and_sent() {
    let server = MockServer::start([answer("One."), answer("Two."), answer("Three.")]).await;
    let place = Place::with_server(&server);
    let mut window = chat(&place).await;
    window.says("count the apples").await;
    window.shows("One.").await;
    window.says("and the pears").await;
    window.shows("Two.").await;
    leave(window).await;
    let mut window = chat(&place).await;
    window.types("my draft\x12");
    window.shows("search:").await;
    window.types("appl");
    window.shows("▸ count the apples").await;
    window.types("\x1b");
    window.shows("› my draft").await;
    window.types("\x12pear\x12");
    window.shows("▸ and the pears").await;
    window.types("\r");
    window.shows("› and the pears").await;
    assert_eq!(server.requests().len(), 2, "the draft is not sent before it is seen");
    window.types("\r");
    window.shows("Three.").await;
    assert_eq!(last_message(&server, 2), "and the pears");
}

// spec: CL-02
#[tokio::test]
async fn long_paste_in_pieces_is_shown_by_its_size_and_sent_whole_with_enter() {
    let server = MockServer::start([answer("Long.")]).await;
    let place = Place::with_server(&server);
    let mut window = chat(&place).await;
    let lines: String = (1..=30).map(|n| format!("line {n}\r")).collect();
    window.types("read: \x1b[200~");
    window.types(&lines);
    window.types("\x1b[20");
    window.shows("› read:").await;
    window.types("1~");
    window.shows("› read: [pasted 30 lines]").await;
    assert!(server.requests().is_empty(), "{}", window.all());
    window.types("\r");
    window.shows("Long.").await;
    assert_eq!(last_message(&server, 0), format!("read: {}", lines.replace('\r', "\n")));
}

// spec: CL-02
#[tokio::test]
async fn slash_lists_commands_and_enter_takes_the_selected_one() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let mut window = chat(&place).await;
    window.types("/xit");
    window.shows("▸ /exit").await;
    window.types("\x1b");
    window.hides("▸ /exit").await;
    window.types("\t");
    window.shows("▸ /exit").await;
    window.types("\r");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    assert!(server.requests().is_empty());
}

// spec: CL-02
#[tokio::test]
async fn file_behind_the_sign_is_completed_and_attached() {
    let server = MockServer::start([answer("It has milk."), answer("No.")]).await;
    let place = Place::with_server(&server);
    for (name, text) in
        [("notes.txt", "milk and honey\n"), ("no.log", "ignored\n"), (".gitignore", "*.log\n")]
    {
        std::fs::write(place.path(name), text).expect("a file");
    }
    let mut window = chat(&place).await;
    window.types("read @no");
    window.shows("▸ notes.txt").await;
    assert!(!window.screen().contains("no.log"), "{}", window.screen());
    window.types("\t");
    window.shows("› read @notes.txt").await;
    window.types("\r");
    window.shows("It has milk.").await;
    window.shows("[file notes.txt]").await;
    let sent = last_message(&server, 0);
    assert!(sent.contains("read @notes.txt") && sent.contains("milk and honey"), "{sent}");
    assert!(!window.all().contains("milk and honey"), "{}", window.all());
    window.says("and @../none.txt").await;
    window.shows("../none.txt is not attached: it is outside of the workspace").await;
    window.shows("No.").await;
    assert_eq!(last_message(&server, 1), "and @../none.txt");
}

#[tokio::test]
async fn image_that_is_named_by_its_path_is_a_part_of_the_message() {
    let server = MockServer::start([answer("A cat.")]).await;
    let place = Place::with_server(&server);
    std::fs::write(place.path("a cat.png"), b"\x89PNG\r\n\x1a\n").expect("a file");
    let mut window = chat(&place).await;
    // A file that is dropped on a terminal is a paste.
    window.pastes(&format!("{} ", place.path("a cat.png").display().to_string().replace(' ', "\\ ")));
    window.shows("cat.png").await;
    window.types("who is it?\r");
    window.shows("A cat.").await;
    window.shows("[file a cat.png]").await;
    let sent = last_message(&server, 0);
    assert!(sent.contains("data:image/png;base64,iVBORw0KGgo="), "{sent}");
}

// spec: EX-16
#[tokio::test]
async fn pdf_behind_the_sign_is_sent_and_one_that_cannot_be_keeps_the_draft() {
    let server = MockServer::start([answer("It has one page.")]).await;
    let place = Place::new();
    std::fs::write(place.path("report.pdf"), b"%PDF-1.7\n").expect("a file");
    std::fs::write(place.path("fake.pdf"), b"text").expect("a file");
    let line = format!("chat --base-url {}/v1 --model openai:gpt-5-mini", server.url());
    let mut window = Window::open(&place, &line);
    window.shows("gpt-5-mini · ").await;
    window.says("sum up @fake.pdf").await;
    window.shows("fake.pdf is not attached: it is neither PNG").await;
    window.shows("› sum up @fake.pdf").await;
    assert_eq!(server.requests().len(), 0, "nothing is sent");
    // Removes the draft.
    window.types("\u{15}");
    window.says("sum up @report.pdf").await;
    window.shows("It has one page.").await;
    window.shows("[file report.pdf]").await;
    let sent = last_message(&server, 0);
    assert!(sent.contains("data:application/pdf;base64,JVBERi0xLjcK"), "{sent}");
}

#[tokio::test]
async fn files_are_attached_for_arguments_of_a_command_and_not_for_its_file_or_a_paste() {
    let server = MockServer::start([answer("One."), answer("Two.")]).await;
    let place = Place::with_server(&server);
    for (name, text) in [("notes.txt", "milk"), ("other.txt", "honey")] {
        std::fs::write(place.path(name), text).expect("a file");
    }
    std::fs::create_dir_all(place.path(".archon/commands")).expect("a folder");
    std::fs::write(place.path(".archon/commands/look.md"), "Read @other.txt and $1.").expect("a file");
    let mut window = chat(&place).await;
    window.says("/look @notes.txt").await;
    window.shows("have not typed their names: other.txt").await;
    window.shows("One.").await;
    window.hides("Esc stops").await;
    let sent = last_message(&server, 0);
    assert!(sent.contains("milk") && !sent.contains("honey"), "{sent}");
    window.pastes("see @other.txt");
    window.shows("› see @other.txt").await;
    window.types("\r");
    window.shows("Two.").await;
    assert_eq!(last_message(&server, 1), "see @other.txt");
}

#[tokio::test]
async fn editor_changes_the_draft_and_one_that_fails_leaves_it() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let script =
        "grep -q '^good' \"$1\" && printf 'two\\nlines\\n' > \"$1\" && [ \"$(stat -c %a \"$1\")\" = 600 ]\n";
    std::fs::write(place.path("edit.sh"), script).expect("a file");
    let mut window = Window::with(&place, "chat", 80, 24, &[("EDITOR", "sh edit.sh")]);
    window.shows("· mock ·").await;
    window.types("bad\x07");
    window.shows("the editor `sh edit.sh` failed: exit status: 1").await;
    window.shows("› bad").await;
    window.types("\x15good\x07");
    window.shows("› two").await;
    assert!(window.screen().contains("  lines"), "{}", window.screen());
    assert!(window.is_raw(), "the conversation has the terminal again");
    // Ctrl+_ takes back what the editor did.
    window.types("\x1f");
    window.shows("› good").await;
}

#[tokio::test]
async fn keys_of_the_settings_replace_the_default_ones() {
    let server = MockServer::start([answer("Two lines.")]).await;
    let place = Place::with_server(&server);
    std::fs::create_dir_all(place.path(".config/archon")).expect("a folder");
    let settings = "[keys]\nsend = \"ctrl+s\"\nnewline = [\"enter\", \"ctrl+j\"]\n";
    std::fs::write(place.path(".config/archon/archon.toml"), settings).expect("a file");
    let mut window = chat(&place).await;
    window.types("one\rtwo");
    window.shows("two").await;
    window.types("\x13");
    window.shows("Two lines.").await;
    assert_eq!(last_message(&server, 0), "one\ntwo");
}

#[tokio::test]
async fn vi_keys_of_the_settings_edit_the_draft_and_the_status_names_their_mode() {
    let server = MockServer::start([answer("Seven.")]).await;
    let place = Place::with_server(&server);
    std::fs::create_dir_all(place.path(".config/archon")).expect("a folder");
    std::fs::write(place.path(".config/archon/archon.toml"), "[chat]\nediting = \"vi\"\n").expect("a file");
    let mut window = chat(&place).await;
    window.shows("vi: insert").await;
    window.types("count teh apples");
    window.shows("› count teh apples").await;
    // Characters right behind Esc would be keys with Alt.
    window.types("\x1b");
    window.shows("vi: normal").await;
    window.types("bbcwthe");
    window.shows("› count the apples").await;
    window.shows("vi: insert").await;
    window.types("\x1b");
    window.shows("vi: normal").await;
    window.types("\r");
    window.shows("Seven.").await;
    assert_eq!(last_message(&server, 0), "count the apples");
    window.shows("vi: insert").await;
}

#[tokio::test]
async fn wrong_keys_in_the_settings_are_refused_with_their_names() {
    let place = Place::new();
    std::fs::create_dir_all(place.path(".config/archon")).expect("a folder");
    for (settings, parts) in [
        ("[keys]\nsend = \"ctr+s\"\n", &["archon.toml:2: ", "`ctr+s` cannot be bound"][..]),
        ("[keys]\nsned = \"ctrl+s\"\n", &["archon.toml:", "no action `sned`", "did you mean `send`?"]),
        ("[chat]\nediting = \"vim\"\n", &["archon.toml:2: ", "`vim`", "`emacs` or `vi`"]),
        (
            "[keys]\nsend = \"ctrl+s\"\nundo = \"ctrl+s\"\n",
            &["`ctrl+s` is bound to", "`send`", "`undo`", "remove it"],
        ),
    ] {
        std::fs::write(place.path(".config/archon/archon.toml"), settings).expect("a file");
        let ran = place.archon("doctor", &[]).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(parts.iter().all(|part| ran.err.contains(part)), "{settings}: {ran:?}");
    }
}

// spec: CL-02
#[tokio::test]
async fn sign_before_the_draft_tells_a_shell_line_and_a_memory() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let mut window = chat(&place).await;
    window.types("!ls");
    window.shows("! ls").await;
    window.shows("a line for the shell").await;
    window.types("\x15#likes tea");
    window.shows("# likes tea").await;
    window.shows("a text to remember").await;
}
