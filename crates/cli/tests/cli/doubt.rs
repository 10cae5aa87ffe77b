//! A command that was cut off, and nobody knows whether it did its work: the question shows it, and the run is not lost.

use archon_testkit::{MockResponse, MockServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::setup::{Place, answer, asks_for};

/// A command that takes longer than any test.
fn slow() -> Value {
    json!({"command": "echo paid >> ledger; sleep 600"})
}

/// A plan of that command, and of one that follows it.
fn plan() -> MockResponse {
    let pay = json!({"id": "pay", "description": "Pay", "tool_name": "bash", "tool_args": slow(), "dependencies": []});
    let end = json!({"id": "end", "description": "Add", "tool_name": "calculator",
                     "tool_args": {"expression": "1 + 1"}, "dependencies": ["pay"]});
    answer(&json!({"subtasks": [pay, end]}).to_string())
}

/// A place whose user lets every command run.
fn place(server: &MockServer) -> Place {
    let place = Place::with_server(server);
    let settings = place.path(".config/archon/archon.toml");
    std::fs::create_dir_all(settings.parent().expect("a folder")).expect("a folder");
    std::fs::write(&settings, "[permissions]\nallow = ['bash']\n").expect("the settings");
    place
}

/// Starts a run and sends it `signal` while its command is at work; its id.
async fn cut_off(place: &Place, line: &str, signal: Signal) -> String {
    let mut child = place.command(line, &["Pay Ann."]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    while !lines.next_line().await.expect("a line").expect("it goes on").contains("process_started") {}
    let pid = i32::try_from(child.id().expect("it runs")).expect("a pid");
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("the signal is sent");
    let ended = child.wait_with_output().await.expect("it ends");
    if signal != Signal::KILL {
        assert_eq!(ended.status.code(), Some(130), "{signal:?} ends the run in order: {ended:?}");
    }
    let runs = place.archon("runs list --json", &[]).await.json();
    runs[0]["run_id"].as_str().expect("a run").to_owned()
}

/// The question that waits, after what `approvals list` says of it was looked at.
async fn question(place: &Place) -> String {
    let listed = place.archon("approvals list", &[]).await;
    for part in ["echo paid >> ledger; sleep 600", "check first whether it happened"] {
        assert!(listed.out.contains(part), "{part}: {listed:?}");
    }
    listed.out.split_whitespace().next().expect("an id").to_owned()
}

// spec: PL-25
#[tokio::test]
async fn resume_of_a_killed_plan_asks_about_the_command_that_was_cut_off_and_goes_on_by_the_reply() {
    for signal in [Signal::KILL, Signal::INT, Signal::TERM, Signal::HUP] {
        let server = MockServer::start([plan(), answer("It is paid.")]).await;
        let place = place(&server);
        let run = cut_off(&place, "run --plan --json --tools bash,calculator", signal).await;
        let resumed = place.archon("resume --ask-later", &[&run]).await;
        assert_eq!(resumed.code, Some(3), "{signal:?}: {resumed:?}");
        let id = question(&place).await;
        assert!(resumed.err.contains(&format!("archon approvals reply {id} TEXT")), "{resumed:?}");
        let replied = place.archon("approvals reply", &[&id, "The bank has it."]).await;
        assert_eq!(replied.code, Some(0), "{signal:?}: {replied:?}");
        assert!(replied.out.starts_with("It is paid.\n"), "{signal:?}: {replied:?}");
    }
}

// spec: AP-06
#[tokio::test]
async fn approvals_list_shows_the_whole_command_that_was_cut_off() {
    let server = MockServer::start([asks_for("bash", &slow().to_string()), answer("It is paid.")]).await;
    let place = place(&server);
    let run = cut_off(&place, "run --json --tools bash", Signal::KILL).await;
    let resumed = place.archon("resume --ask-later", &[&run]).await;
    assert_eq!(resumed.code, Some(3), "{resumed:?}");
    let id = question(&place).await;
    let replied = place.archon("approvals reply", &[&id, "The bank has it."]).await;
    assert_eq!((replied.code, replied.out.as_str()), (Some(0), "It is paid.\n"), "{replied:?}");
    assert!(server.requests()[1].body.to_string().contains("The bank has it."));
}
