//! Skills in a conversation: `/skills` lists them, and `/NAME` activates one.

use archon_testkit::MockServer;

use super::{basics::texts, window::Window};
use crate::setup::{Place, answer, asks_for};

/// Writes a skill of the person that only the person may activate.
fn write(place: &Place) {
    let folder = place.path(".agents/skills/notes");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = "---\nname: notes\ndescription: Writes notes.\nallowed-tools: Read\ndisable-model-invocation: true\n\
                ---\nRead the changelog first.\n";
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
    write(&place);
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
    assert!(refused.contains("The active skill `notes` does not allow this tool."), "{refused}");
    // The next message ends the limits.
    window.says("And the sum?").await;
    window.shows("It is three.").await;
    let result = texts(&server, 3).pop().expect("a result");
    assert!(result.contains('3') && !result.contains("does not allow"), "{result}");
}

#[tokio::test]
async fn skill_in_plain_lines_does_what_it_does_on_the_screen() {
    let server = MockServer::start([answer("Noted.")]).await;
    let place = Place::with_server(&server);
    write(&place);
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
