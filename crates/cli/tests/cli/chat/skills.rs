//! Skills in a conversation: `/skills` lists them, and `/NAME` activates one.

use archon_testkit::MockServer;

use super::{basics::texts, window::Window};
use crate::setup::{Place, answer, asks_for};

/// Writes a skill of the person that only the person may activate.
fn write(place: &Place, tools: &str) {
    let folder = place.path(".agents/skills/notes");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = format!(
        "---\nname: notes\ndescription: Writes notes.\nallowed-tools: {tools}\ndisable-model-invocation: true\n\
         ---\nRead the changelog first.\n"
    );
    std::fs::write(folder.join("SKILL.md"), text).expect("a file");
}

fn sum() -> archon_testkit::MockResponse {
    asks_for("calculator", r#"{"expression": "1 + 2"}"#)
}

// spec: SK-09
#[tokio::test]
async fn skill_that_a_person_activates_brings_its_instructions_and_its_limits_for_one_run() {
    let server = MockServer::start([sum(), answer("Noted."), sum(), answer("It is three.")]).await;
    let place = Place::with_server(&server);
    write(&place, "Read");
    let mut window = Window::ready(&place, "chat").await;
    window.says("/skills").await;
    window.shows("Writes notes.").await;
    window.says("/notse").await;
    window.shows("Did you mean /notes?").await;
    window.types("\x15/notes for 1.2\r");
    window.answers("Noted.").await;
    let message = texts(&server, 0).concat();
    assert!(message.contains("/notes for 1.2") && message.contains("Read the changelog first."), "{message}");
    assert!(!window.all().contains("Read the changelog first."), "{}", window.all());
    let refused = texts(&server, 1).pop().expect("a result");
    assert!(refused.contains("allowed-tools of the active skill `notes` denies it"), "{refused}");
    // The next message ends the limits.
    window.says("And the sum?").await;
    window.shows("It is three.").await;
    let result = texts(&server, 3).pop().expect("a result");
    assert!(result.contains('3') && !result.contains("denies it"), "{result}");
}

// spec: SK-09, SK-11
#[tokio::test]
async fn limits_of_a_skill_that_a_person_activates_hold_in_the_process_that_resumes_the_run() {
    let write_notes = r#"{"path": "notes.txt", "content": "x\n"}"#;
    let server = MockServer::start([asks_for("write_file", write_notes), sum(), answer("Noted.")]).await;
    let place = Place::with_server(&server);
    write(&place, "Read Write");
    let mut window = Window::open(&place, "chat --plain --ask-later");
    window.types("/notes for 1.2\n/exit\n");
    window.ends().await;
    // The log has the limits: the skill may be gone.
    std::fs::remove_dir_all(place.path(".agents")).expect("it is removed");
    let waits = place.archon("approvals list --json", &[]).await.json().remove(0);
    let question = waits["request_id"].as_str().expect("an id").to_owned();
    let ran = place.archon("approvals approve", &[&question]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Noted.\n"), "{ran:?}");
    assert!(place.path("notes.txt").exists(), "the skill allows this tool");
    let refused = texts(&server, 2).pop().expect("a result");
    assert!(refused.contains("allowed-tools of the active skill `notes` denies it"), "{refused}");
}

#[tokio::test]
async fn skill_in_plain_lines_does_what_it_does_on_the_screen() {
    let server = MockServer::start([answer("Noted.")]).await;
    let place = Place::with_server(&server);
    write(&place, "Read");
    let mut window = Window::open(&place, "chat --plain");
    for (typed, shown) in [("/help", "/notes [WORDS]"), ("/notes for 1.2", "Noted.")] {
        window.types(&format!("{typed}\n"));
        window.shows(shown).await;
    }
    window.types("/exit\n");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    let message = texts(&server, 0).concat();
    assert!(message.contains("/notes for 1.2") && message.contains("Read the changelog first."), "{message}");
}
