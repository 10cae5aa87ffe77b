//! Commands of a conversation, lines for the shell, texts to remember, and a person's own commands.

use archon_testkit::MockServer;

use super::{background, basics::texts, consent, rows, window::Window};
use crate::setup::{Place, answer, asks_for};

/// Waits until a text is at least `count` times in the window.
async fn shows_times(window: &mut Window, text: &str, count: usize) {
    window.until(text, |window| window.all().matches(text).count() >= count).await;
}

// spec: CL-02
#[tokio::test]
async fn help_lists_the_commands_and_sends_nothing() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("/help").await;
    window.shows("your own commands: Markdown files").await;
    let all = window.all();
    for name in ["/model [NAME]", "/resume [N|SESSION|WORDS]", "/exit", "!LINE", "#TEXT"] {
        assert!(all.contains(name), "{name}: {all}");
    }
    assert!(server.requests().is_empty());
}

// spec: CL-02
#[tokio::test]
async fn unknown_command_names_the_nearest_one_and_stays_in_the_draft() {
    let server = MockServer::start([answer("A path.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("/hlep").await;
    window.shows("Did you mean /help?").await;
    assert!(window.screen().contains("› /hlep"), "{}", window.screen());
    // Ctrl+U empties the line; with a space before it, it is a message.
    window.types("\x15 /hlep\r");
    window.shows("A path.").await;
    assert_eq!(texts(&server, 0), [" /hlep"]);
}

#[tokio::test]
async fn cost_and_context_and_status_are_those_of_the_conversation() {
    let server = MockServer::start([answer("Hello.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat --session sky").await;
    window.says("hi").await;
    window.shows("Hello.").await;
    window.says("/cost").await;
    window.shows("archon sessions metrics sky").await;
    assert!(window.all().contains("this conversation"), "{}", window.all());
    window.says("/context").await;
    window.shows("compacted by itself").await;
    window.says("/status").await;
    window.shows("archon doctor checks").await;
    let all = window.all();
    assert!(all.contains("model    mock") && all.contains("session  sky"), "{all}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn clear_begins_a_new_session_and_resume_goes_back_to_the_first() {
    let server = MockServer::start([answer("Blue."), answer("Green."), answer("Because of the air.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat --session sky").await;
    window.says("What colour is the sky?").await;
    window.answers("Blue.").await;
    window.says("/clear").await;
    shows_times(&mut window, "· mock ·", 2).await;
    window.says("And grass?").await;
    window.answers("Green.").await;
    assert_eq!(texts(&server, 1), ["And grass?"], "the new session knows nothing of the first");
    assert!(window.all().contains("Blue."), "the scrollback stays: {}", window.all());
    window.says("/sessions").await;
    window.shows("/resume N continues one").await;
    let all = window.all();
    assert!(all.contains("And grass? (this one)") && all.contains("  2  "), "{all}");
    window.says("/resume COLOUR sky").await;
    shows_times(&mut window, "· mock ·", 3).await;
    window.says("Why?").await;
    window.shows("Because of the air.").await;
    assert_eq!(texts(&server, 2), ["What colour is the sky?", "Blue.", "Why?"]);
    window.types("\x04");
    window.ends().await;
    assert!(window.all().contains("archon chat --session sky"), "{}", window.all());
}

#[cfg(unix)]
#[tokio::test]
async fn clear_ends_the_commands_in_the_background() {
    if !background::can_start() {
        return;
    }
    let start = r#"{"command": "trap 'touch gone; exit' TERM; echo ready; while :; do sleep 0.1; done"}"#;
    let server = MockServer::start([asks_for("start_command", start), answer("It runs.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("Start it.").await;
    window.shows("[y]es, once").await;
    consent::answers(&mut window, "y", "It runs.").await;
    window.hides("Esc stops").await;
    assert!(!place.path("gone").exists());
    window.says("/clear").await;
    window.until("the end of the command", |_| place.path("gone").exists()).await;
}

#[tokio::test]
async fn fork_goes_on_with_the_same_messages_in_another_run() {
    let server = MockServer::start([answer("Blue."), answer("Air.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat --session sky").await;
    window.says("/fork").await;
    window.shows("there is nothing to fork").await;
    window.says("Sky?").await;
    window.answers("Blue.").await;
    window.says("/fork").await;
    window.shows("stays as it is").await;
    window.says("Why?").await;
    window.shows("Air.").await;
    assert_eq!(texts(&server, 1), ["Sky?", "Blue.", "Why?"]);
    let listed = place.archon("runs list --json", &[]).await.json();
    assert_eq!(listed.len(), 3, "the run, its fork, and the run behind the fork");
}

// spec: CL-04
#[tokio::test]
async fn back_takes_an_earlier_message_into_the_draft_and_forks_where_it_is_sent() {
    let server =
        MockServer::start([answer("Blue."), answer("Green."), answer("Grey."), answer("It rains.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat --session colours").await;
    for (message, reply) in [("Sky?", "Blue."), ("Grass?", "Green."), ("Stone?", "Grey.")] {
        window.says(message).await;
        window.answers(reply).await;
    }
    window.says("/back").await;
    window.shows("  2  Grass?").await;
    window.says("/back 2").await;
    window.shows("4 messages, answers and results are left behind").await;
    window.shows("› Grass?").await;
    // Ctrl+U empties the draft: the message is changed.
    window.types("\x15Rain?\r");
    window.shows("It rains.").await;
    assert_eq!(texts(&server, 3), ["Sky?", "Blue.", "Rain?"]);
    window.types("\x04");
    window.ends().await;
    let mut window = Window::open(&place, "chat --session colours");
    window.shows("It rains.").await;
    assert!(!window.all().contains("Green."), "{}", window.all());
}

// spec: CL-04
#[tokio::test]
async fn back_to_the_first_message_begins_anew_and_ctrl_c_stays() {
    let server = MockServer::start([answer("Blue."), answer("Still blue."), answer("Dark.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("Sky?").await;
    window.answers("Blue.").await;
    window.says("/back 7").await;
    window.shows("there is no message 7").await;
    window.says("/back 1").await;
    window.shows("left behind").await;
    window.types("\x03");
    window.shows("continues the conversation where it ends").await;
    window.says("Sure?").await;
    window.answers("Still blue.").await;
    assert_eq!(texts(&server, 1), ["Sky?", "Blue.", "Sure?"]);
    window.says("/back 2").await;
    shows_times(&mut window, "left behind", 2).await;
    window.types("\x15Night?\r");
    window.shows("Dark.").await;
    assert_eq!(texts(&server, 2), ["Night?"]);
}

#[tokio::test]
async fn model_is_another_one_from_the_next_message_on() {
    let server = MockServer::start([answer("One."), answer("Two.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("first").await;
    window.answers("One.").await;
    window.says("/model other").await;
    window.shows("· other ·").await;
    window.says("second").await;
    window.shows("Two.").await;
    let models: Vec<_> = server.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["mock", "other"]);
    assert_eq!(texts(&server, 1), ["first", "One.", "second"]);
}

// spec: CL-03
#[cfg(unix)]
#[tokio::test]
async fn line_with_an_exclamation_mark_runs_without_a_question_and_the_model_reads_it_later() {
    let server = MockServer::start([answer("I have seen it.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat --session line").await;
    window.says("!echo one-$((1 + 1))").await;
    window.shows("one-2").await;
    window.answers("The person gave this line.").await;
    window.says("What did it print?").await;
    window.shows("I have seen it.").await;
    let texts = texts(&server, 0);
    assert_eq!(texts[0], "echo one-$((1 + 1))");
    assert!(texts.iter().any(|text| text.contains("one-2")), "{texts:?}");
    assert!(!window.all().contains("[y]es, once"), "{}", window.all());
    server.assert_paired();
    window.types("\x04");
    window.ends().await;
    let mut window = Window::open(&place, "chat --session line");
    window.shows("one-2").await;
}

// spec: CL-03
#[cfg(unix)]
#[tokio::test]
async fn line_of_an_earlier_conversation_comes_back_once_and_as_a_line() {
    let server = MockServer::start([answer("Hello.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat --session line").await;
    window.says("good morning").await;
    window.answers("Hello.").await;
    window.says("!echo one-$((1 + 1))").await;
    window.answers("The person gave this line.").await;
    window.types("\x04");
    window.ends().await;
    let mut window = Window::ready(&place, "chat --session line").await;
    window.types("\x1b[A");
    window.shows("! echo one-$((1 + 1))").await;
    window.types("\x1b[A");
    // In the conversation, and in the draft.
    let is_in_draft = |window: &mut Window| window.screen().matches("› good morning").count() == 2;
    window.until("the message before the line", is_in_draft).await;
}

// spec: CL-03
#[cfg(unix)]
#[tokio::test]
async fn message_while_a_line_runs_waits_for_the_model_and_is_not_run() {
    let server = MockServer::start([answer("I have read it.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("!until [ -e go ]; do :; done; echo over").await;
    window.shows("Esc stops them").await;
    window.says("touch made").await;
    window.shows("… touch made").await;
    std::fs::write(place.path("go"), "").expect("a file");
    window.shows("I have read it.").await;
    assert_eq!(texts(&server, 0).pop().as_deref(), Some("touch made"));
    assert!(!place.path("made").exists());
}

// spec: CL-03
#[cfg(unix)]
#[tokio::test]
async fn line_with_an_exclamation_mark_is_under_the_deny_rules() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let settings = place.path(".config/archon");
    std::fs::create_dir_all(&settings).expect("a folder");
    std::fs::write(settings.join("archon.toml"), "[permissions]\ndeny = [\"bash(touch:*)\"]\n")
        .expect("a file");
    let mut window = Window::ready(&place, "chat").await;
    window.says("!touch made").await;
    window.shows("The person gave this line.").await;
    assert!(!place.path("made").exists());
    assert!(window.all().contains("bash(touch:*)"), "{}", window.all());
}

// spec: CL-02
#[tokio::test]
async fn text_with_a_hash_is_remembered_where_it_says() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat --memory user:anna").await;
    window.says("#Anna prefers tea").await;
    window.shows("remembered in user:anna").await;
    window.says("/memory").await;
    window.shows("the latest memories of user:anna").await;
    let listed = place.archon("memory list --memory user:anna --json", &[]).await.json();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["content"], "Anna prefers tea");
}

// spec: CL-02
#[tokio::test]
async fn own_command_becomes_a_message_and_a_file_that_is_none_is_named_in_the_help() {
    let server = MockServer::start([answer("Mended.")]).await;
    let place = Place::with_server(&server);
    let folder = place.path(".archon/commands");
    std::fs::create_dir_all(folder.join("issue")).expect("a folder");
    let text = "---\ndescription: Mend an issue\nargument-hint: NUMBER\n---\n!echo Mend issue $1.\n";
    std::fs::write(folder.join("issue/mend.md"), text).expect("a file");
    std::fs::write(folder.join("bad.md"), [0xff, 0xfe]).expect("a file");
    let mut window = Window::ready(&place, "chat").await;
    window.says("/help").await;
    window.shows("/issue:mend NUMBER").await;
    window.shows("not UTF-8").await;
    window.says("/issue:mend 12").await;
    window.shows("Mended.").await;
    assert_eq!(texts(&server, 0), ["!echo Mend issue 12."], "it is only a text");
}

// spec: CL-02
#[tokio::test]
async fn lists_name_what_the_agent_has_and_review_is_a_message() {
    let server = MockServer::start([answer("No faults.")]).await;
    let place = Place::with_server(&server);
    rows::set(&place, "[agents.reader]\ndescription = \"Reads papers.\"\n");
    let mut window = Window::ready(&place, "chat").await;
    window.says("/agents").await;
    window.shows("reader            Reads papers.").await;
    window.says("/tools").await;
    window.shows("reader        Reads papers.").await;
    assert!(window.all().contains("write_file"), "{}", window.all());
    if cfg!(all(unix, feature = "mcp")) {
        window.says("/mcp").await;
        window.shows("there are no MCP servers").await;
    }
    window.says("/review the tests").await;
    window.shows("No faults.").await;
    let sent = texts(&server, 0).concat();
    let is_whole = sent.starts_with("Review the changes") && sent.ends_with("above all: the tests");
    assert!(is_whole, "{sent}");
}

#[tokio::test]
async fn diff_outside_of_a_repository_says_so() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat").await;
    window.says("/diff").await;
    window.shows("is in no git repository").await;
}

#[tokio::test]
async fn export_writes_the_conversation_and_replaces_no_file() {
    let server = MockServer::start([answer("Blue.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::ready(&place, "chat --session sky").await;
    window.says("Sky?").await;
    window.answers("Blue.").await;
    window.says("/export").await;
    window.shows("wrote ").await;
    let text = std::fs::read_to_string(place.path("sky.md")).expect("a file");
    assert_eq!(text, "# Conversation sky\n\n## Message\n\nSky?\n\n## Answer\n\nBlue.\n");
    window.says("/export sky.md").await;
    window.shows("cannot write").await;
}

#[tokio::test]
async fn permissions_lists_the_rules_and_removes_a_stored_one() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let folder = place.path(".config/archon");
    std::fs::create_dir_all(&folder).expect("a folder");
    let workspace = place.dir.path().canonicalize().expect("a folder");
    let stored = format!("[workspaces.\"{}\"]\nallow = [\"write_file(notes.txt)\"]\n", workspace.display());
    std::fs::write(folder.join("permissions.toml"), stored).expect("a file");
    let mut window = Window::ready(&place, "chat").await;
    window.says("/trust").await;
    window.shows("always write_file(notes.txt) (1)").await;
    window.says("/permissions remove 1").await;
    window.shows("is removed").await;
    shows_times(&mut window, "· mock ·", 2).await;
    let left = std::fs::read_to_string(folder.join("permissions.toml")).expect("a file");
    assert!(!left.contains("notes.txt"), "{left}");
}
