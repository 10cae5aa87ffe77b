//! Calls that need consent: refused where nobody can be asked, waiting where that is wanted, allowed by rule.

use archon_testkit::MockServer;

use crate::{
    setup::{Place, Ran, answer, asks_for},
    terminal::Terminal,
};

const WRITE: &str = r#"{"path": "notes.txt", "content": "hello\n"}"#;

// spec: AP-15, TE-37
#[tokio::test]
async fn approval_without_a_terminal_is_denied_with_advice() {
    let refused = || [asks_for("write_file", WRITE), answer("It was not allowed.")];
    let server = MockServer::start(refused()).await;
    let place = Place::with_server(&server);
    let ran = place.archon("run --json --tools write_file", &["Write notes."]).await;
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let last = "1 call was not allowed, because no person could be asked; allow it with --allow 'write_file(notes.txt)'\n";
    assert!(ran.err.ends_with(last), "{ran:?}");
    assert!(ran.out.contains("there is nobody to ask"), "{ran:?}");
    assert!(ran.out.contains("allow it beforehand with a rule"), "{ran:?}");
    assert!(!place.path("notes.txt").exists());
    server.assert_paired();
    // The flag that it names does what it says.
    refused().into_iter().for_each(|step| server.push(step));
    let allowed = ["--allow", "write_file(notes.txt)", "Write notes."];
    let ran = place.archon("run --tools write_file", &allowed).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.err.contains("not allowed,") && place.path("notes.txt").exists(), "{ran:?}");
}

#[tokio::test]
async fn run_allow_with_a_broken_rule_is_refused() {
    let ran = Place::new().archon("run --allow write_file(", &["x"]).await;
    ran.check_refused(2, "'--allow <RULE>'", "--help");
}

// spec: AP-06, CL-09
#[tokio::test]
async fn a_run_that_waits_is_listed_approved_and_goes_on() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("run --ask-later --tools write_file", &["Write notes."]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(!place.path("notes.txt").exists());
    let listed = place.archon("approvals list --json", &[]).await;
    let [waits] = &listed.json()[..] else { panic!("{listed:?}") };
    assert_eq!(waits["action_summary"], "Create 'notes.txt'");
    assert!(
        waits["details"]["preview"]["changes"][0]["diff"].as_str().unwrap().contains("+hello"),
        "{waits}"
    );
    let (question, run) = (waits["request_id"].as_str().unwrap(), waits["run"].as_str().unwrap());

    place.archon("approvals approve", &["no-such-question"]).await.check_refused(
        2,
        "no-such",
        "approvals list",
    );
    let ran = place.archon("approvals approve", &[question]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is written.\n"), "{ran:?}");
    assert_eq!(place.archon("approvals list", &[]).await.out, "");
    place.archon("resume", &[run]).await.check_refused(2, "has ended", "archon runs show");
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).unwrap(), "hello\n");
    server.assert_paired();
}

// spec: AP-04, A-51
#[tokio::test]
async fn an_edit_that_is_approved_later_takes_effect_and_so_does_the_next_prompts() {
    let edit = |from: &str, to: &str| {
        let arguments = serde_json::json!({"path": "notes.txt", "old_text": from, "new_text": to});
        asks_for("edit_file", &arguments.to_string())
    };
    let read = asks_for("read_file", r#"{"path": "notes.txt"}"#);
    let script = [read, edit("one", "two"), answer("Edited."), edit("two", "three"), answer("Edited again.")];
    let server = MockServer::start(script).await;
    let place = Place::with_server(&server);
    std::fs::write(place.path("notes.txt"), "one\n").unwrap();
    let tools = "--tools read_file,edit_file";
    let text = || std::fs::read_to_string(place.path("notes.txt")).unwrap();
    for (line, said, now) in [("run", "Edited.", "two\n"), ("run --continue", "Edited again.", "three\n")] {
        let ran = place.archon(&format!("{line} --ask-later {tools}"), &["Change the notes."]).await;
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let waits = &place.archon("approvals list --json", &[]).await.json()[0];
        let question = waits["request_id"].as_str().unwrap();
        let ran = place.archon("approvals approve", &[question]).await;
        assert_eq!((ran.code, ran.out.trim_end(), text().as_str()), (Some(0), said, now), "{ran:?}");
    }
}

// spec: TE-48
#[tokio::test]
async fn answer_from_another_folder_works_in_the_folder_that_the_run_was_begun_in() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    place.archon("run --ask-later --tools write_file", &["Write notes."]).await;
    let listed = place.archon("approvals list --json", &[]).await.json();
    std::fs::create_dir(place.path("other")).unwrap();
    let mut command = place.command("approvals approve", &[listed[0]["request_id"].as_str().unwrap()]);
    let ran: Ran = command.current_dir(place.path("other")).output().await.unwrap().into();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is written.\n"), "{ran:?}");
    let folder = place.dir.path().canonicalize().unwrap();
    assert!(
        ran.err.contains(&format!("its tools work in {}, where it was begun", folder.display())),
        "{ran:?}"
    );
    assert!(place.path("notes.txt").exists() && !place.path("other/notes.txt").exists());
}

// spec: AP-04
#[tokio::test]
async fn suspended_run_gets_a_denial_with_its_reason() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("I left it.")]).await;
    let place = Place::with_server(&server);
    place.archon("run --ask-later --tools write_file", &["Write notes."]).await;
    let listed = place.archon("approvals list --json", &[]).await;
    let waits = &listed.json()[0];
    let question = waits["request_id"].as_str().unwrap();
    let ran = place.archon("approvals deny --json", &[question, "--reason", "Use another name."]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("User cancelled this action. Use another name."), "{ran:?}");
    assert!(!place.path("notes.txt").exists());
}

// spec: AP-11
#[tokio::test]
async fn rules_in_the_users_settings_allow_and_a_project_cannot() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let settings = place.path(".config/archon/archon.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, "[permissions]\nallow = ['write_file(notes.*)']\n").unwrap();
    let ran = place.archon("run --tools write_file", &["Write notes."]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is written.\n"), "{ran:?}");
    assert!(place.path("notes.txt").exists());

    let place = Place::new();
    std::fs::write(place.path("archon.toml"), "[permissions]\nallow = ['bash']\n").unwrap();
    place.archon("run", &["x"]).await.check_refused(2, "may not allow calls", "your own settings");
    std::fs::write(place.path("archon.toml"), "[permissions]\ndeny = ['bash(']\n").unwrap();
    let ran = place.archon("run --base-url http://127.0.0.1:1/v1 --model m", &["x"]).await;
    ran.check_refused(2, "the closing bracket is missing", "bash(git status:*)");
}

/// What a model wants to write: more than a person is shown unasked, and its end is what matters.
fn long() -> String {
    let lines: String = (1..=200).map(|n| format!("line {n}\n")).collect();
    serde_json::json!({"path": "notes.txt", "content": format!("{lines}the end\u{1b}[8m\u{202e}\n")})
        .to_string()
}

// spec: AP-05, AP-06
#[tokio::test]
async fn approvals_show_prints_the_whole_question_escaped() {
    let server = MockServer::start([asks_for("write_file", &long())]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("run --ask-later --tools write_file", &["Write notes."]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let listed = place.archon("approvals list", &[]).await;
    assert!(listed.err.contains("archon approvals show QUESTION"), "{listed:?}");
    let question = listed.out.split_whitespace().next().unwrap();
    let shown = place.archon("approvals show", &[question]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.starts_with(&listed.out.trim_end()[..question.len()]), "{shown:?}");
    for line in [
        "? Create 'notes.txt'",
        "  | +line 1",
        "  | +line 200",
        "  | +the end\\u{1b}[8m\\u{202e}",
        "  content:",
        "  | line 100",
    ] {
        assert!(shown.out.lines().any(|other| other == line), "{line}: {}", shown.out);
    }
    assert!(!shown.out.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    let json = place.archon("approvals show --json", &[question]).await;
    assert!(
        json.json()[0]["details"]["arguments"]["content"].as_str().unwrap().contains("the end"),
        "{json:?}"
    );
    place.archon("approvals show", &["no-such-question"]).await.check_refused(2, "no-such", "approvals list");
}

// spec: AP-05, AP-06
#[tokio::test]
async fn approvals_show_names_the_record_that_an_argument_comes_from() {
    let read = asks_for("read_file", r#"{"path": "plan.txt"}"#);
    let write = asks_for("write_file", r#"{"path": "out/summary.txt", "content": "short\n"}"#);
    let server = MockServer::start([read, write]).await;
    let place = Place::with_server(&server);
    std::fs::create_dir(place.path("out")).unwrap();
    std::fs::write(place.path("plan.txt"), "The text belongs into out/summary.txt.\n").unwrap();
    let ran = place.archon("run --ask-later --tools read_file,write_file", &["Follow the plan."]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let listed = place.archon("approvals list --json", &[]).await.json();
    let shown = place.archon("approvals show", &[listed[0]["request_id"].as_str().unwrap()]).await;
    let lines = "  path: \"out/summary.txt\"\n    from the result of read_file plan.txt\n";
    assert!(shown.out.contains(lines), "{shown:?}");
}

// spec: AP-05, CL-09
#[tokio::test]
async fn terminal_approval_shows_a_long_question_completely_first() {
    let server = MockServer::start([asks_for("write_file", &long()), answer("It is written.")]).await;
    let place = Place::with_server(&server);
    let mut terminal = Terminal::open();
    let mut command = place.command("run --tools write_file", &["Write notes."]);
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end()).stderr(terminal.end());
    let mut child = command.spawn().expect("it starts");
    drop(command);
    terminal.read_until("more characters (").await;
    terminal.read_until("[v]iew").await;
    assert!(!place.path("notes.txt").exists());
    terminal.say("v\n");
    terminal.read_until("+the end\\u{1b}[8m\\u{202e}").await;
    terminal.read_until("[v]iew").await;
    terminal.say("y\n");
    let status = child.wait().await.expect("it ends");
    let shown = terminal.rest().await;
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(std::fs::read_to_string(place.path("notes.txt")).unwrap().contains("the end"));
}

// spec: AP-05
#[tokio::test]
async fn terminal_approval_ignores_input_typed_before_the_question() {
    let server = MockServer::start([asks_for("write_file", &long()), answer("It was not written.")]).await;
    let place = Place::with_server(&server);
    let mut terminal = Terminal::open();
    let mut command = place.command("run --tools write_file", &["Write notes."]);
    command.env("TERM", "xterm").stdin(terminal.end()).stdout(terminal.end()).stderr(terminal.end());
    // It waits in the terminal when the question comes.
    terminal.say("y\ny\n");
    let mut child = command.spawn().expect("it starts");
    drop(command);
    terminal.read_until("[v]iew").await;
    terminal.say("n\n");
    let status = child.wait().await.expect("it ends");
    let shown = terminal.rest().await;
    assert_eq!(status.code(), Some(0), "{shown}");
    assert!(!place.path("notes.txt").exists(), "{shown}");
}
