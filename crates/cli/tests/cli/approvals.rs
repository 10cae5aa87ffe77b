//! Calls that need consent: refused where nobody can be asked, waiting where that is wanted, allowed by rule.

use archon_testkit::MockServer;

use crate::setup::{Place, answer, asks_for};

const WRITE: &str = r#"{"path": "notes.txt", "content": "hello\n"}"#;

// spec: AP-15, TE-37
#[tokio::test]
async fn without_a_terminal_the_answer_is_no_and_the_text_says_how_to_allow_it() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("It was not allowed.")]).await;
    let place = Place::with_server(&server);
    let ran = place.archon("run --json --tools write_file", &["Write notes."]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("there is nobody to ask"), "{ran:?}");
    assert!(ran.out.contains("allow it beforehand with a rule"), "{ran:?}");
    assert!(!place.path("notes.txt").exists());
    server.assert_paired();
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
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(0), &*format!("resume with: archon resume {run}\n")),
        "{ran:?}"
    );
    assert_eq!(place.archon("approvals list", &[]).await.out, "");
    let ran = place.archon("resume", &[run]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is written.\n"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).unwrap(), "hello\n");
    server.assert_paired();
}

// spec: AP-04
#[tokio::test]
async fn a_run_that_waits_reads_a_no_and_its_reason() {
    let server = MockServer::start([asks_for("write_file", WRITE), answer("I left it.")]).await;
    let place = Place::with_server(&server);
    place.archon("run --ask-later --tools write_file", &["Write notes."]).await;
    let listed = place.archon("approvals list --json", &[]).await;
    let waits = &listed.json()[0];
    let question = waits["request_id"].as_str().unwrap();
    let ran = place.archon("approvals deny", &[question, "--reason", "Use another name."]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = place.archon("resume --json", &[waits["run"].as_str().unwrap()]).await;
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
    place.archon("run", &["x"]).await.check_refused(2, "may not allow anything", "your own settings");
    std::fs::write(place.path("archon.toml"), "[permissions]\ndeny = ['bash(']\n").unwrap();
    let ran = place.archon("run --base-url http://127.0.0.1:1/v1 --model m", &["x"]).await;
    ran.check_refused(2, "the closing bracket is missing", "bash(git status:*)");
}
