//! Ctrl+C, Escape, Ctrl+Z and signals in each situation.

use archon_testkit::{Gate, MockResponse, MockServer};
use rustix::process::Signal;

use super::{
    basics::{halves, messages},
    window::Window,
};
use crate::setup::{Place, answer, asks_for, text};

// spec: CL-06, CL-08, A-53
#[tokio::test]
async fn ctrl_c_during_a_request_cancels_it_and_the_next_message_says_so() {
    let server = MockServer::start([halves("half ", &Gate::new(), "whole"), answer("I stopped.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("speak").await;
    window.shows("half").await;
    window.types("\x03");
    window.shows("stopped").await;
    server.until_gone(1).await;
    window.hides("the model works").await;
    window.says("What happened?").await;
    window.shows("I stopped.").await;
    let texts = messages(&server, 1);
    assert!(texts.iter().any(|(_, text)| text.contains("[Request interrupted by user]")), "{texts:?}");
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
}

// spec: CL-06, CL-08, A-53
#[tokio::test]
async fn ctrl_c_during_a_tool_ends_its_processes() {
    let arguments = serde_json::json!({"command": "echo $$ > pid; echo be''gun; sleep 1000"}).to_string();
    let server = MockServer::start([asks_for("bash", &arguments), answer("Stopped.")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat --allow bash");
    window.says("Run it.").await;
    window.shows("tools run, Esc stops them").await;
    // Partial output shows that the process is there.
    window.shows("begun").await;
    window.types("\x03");
    window.shows("stopped").await;
    window.hides("tools run").await;
    let id = std::fs::read_to_string(place.path("pid")).expect("an id");
    assert!(!std::path::Path::new("/proc").join(id.trim()).exists(), "{id}");
    window.says("What happened?").await;
    window.shows("Stopped.").await;
    let texts = messages(&server, 1);
    let is_marker =
        |(_, text): &(String, String)| text.contains("[Request interrupted by user for tool use]");
    assert!(texts.iter().any(is_marker), "{texts:?}");
    server.assert_paired();
}

// spec: CL-06, A-53
#[tokio::test]
async fn ctrl_c_with_a_draft_clears_it_and_without_one_ends_the_conversation() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.shows("mock").await;
    window.types("a draft");
    window.shows("› a draft").await;
    window.types("\x03");
    window.hides("a draft").await;
    // The second press is not the next of a quick series, but on a busy machine it may be: a draft stands between.
    window.types("\x03");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    assert!(server.requests().is_empty() && window.is_for_lines());
}

// spec: CL-07, A-53
#[tokio::test]
async fn three_quick_presses_end_the_program_at_once() {
    let server = MockServer::start([halves("half ", &Gate::new(), "whole")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("speak").await;
    window.shows("half").await;
    window.types("\x03\x03\x03");
    let status = window.ends().await;
    let all = window.all();
    assert_eq!(status.code(), Some(1), "{all}");
    assert!(all.contains("Force exiting due to rapid interrupts!"), "{all}");
    assert!(window.is_for_lines() && window.has_visible_cursor() && !window.marks_pastes());
}

#[tokio::test]
async fn escape_stops_the_run_and_the_draft_stays() {
    let server = MockServer::start([halves("half ", &Gate::new(), "whole")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("speak").await;
    window.shows("half").await;
    window.types("a draft");
    window.shows("› a draft").await;
    window.types("\x1b");
    window.shows("stopped").await;
    window.hides("the model works").await;
    assert!(window.screen().contains("› a draft"), "{}", window.screen());
}

#[tokio::test]
async fn ctrl_d_during_a_run_stops_it_and_ends() {
    let server = MockServer::start([halves("half ", &Gate::new(), "whole")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("speak").await;
    window.shows("half").await;
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    let runs = place.archon("runs list --json", &[]).await.json();
    assert_eq!(runs[0]["status"], "cancelled", "{runs:?}");
}

#[tokio::test]
async fn ctrl_d_also_stops_the_run_that_a_waiting_message_begins() {
    let server =
        MockServer::start([halves("half ", &Gate::new(), "whole"), halves("more ", &Gate::new(), "words")])
            .await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("speak").await;
    window.shows("half").await;
    window.says("and then?").await;
    window.shows("… and then? · after this run").await;
    window.types("\x04");
    assert_eq!(window.ends().await.code(), Some(0), "{}", window.all());
    let runs = place.archon("runs list --json", &[]).await.json();
    // If the program ends before the message begins its run, the message waits for the next one.
    assert!(
        !runs.is_empty() && runs.iter().all(|run| run["status"].as_str() == Some("cancelled")),
        "{runs:?}"
    );
}

#[tokio::test]
async fn hang_up_stops_the_run_and_ends_with_129() {
    let server = MockServer::start([halves("half ", &Gate::new(), "whole")]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("speak").await;
    window.shows("half").await;
    window.signal(Signal::HUP);
    assert_eq!(window.ends().await.code(), Some(129), "{}", window.all());
    assert!(window.all().contains("archon chat --session session_"), "{}", window.all());
    let runs = place.archon("runs list --json", &[]).await.json();
    assert_eq!(runs[0]["status"], "cancelled", "{runs:?}");
}

#[tokio::test]
async fn lost_terminal_stops_the_run_and_ends_with_129() {
    let gate = Gate::new();
    let response = MockResponse::events([text("half ")]).wait(&gate).event(&text("more ")).hang();
    let server = MockServer::start([response]).await;
    let place = Place::with_server(&server);
    let mut window = Window::open(&place, "chat");
    window.says("speak").await;
    window.shows("half").await;
    assert_eq!(window.ends_without_terminal(&gate).await.code(), Some(129));
    let runs = place.archon("runs list --json", &[]).await.json();
    assert_eq!(runs[0]["status"], "cancelled", "{runs:?}");
}

#[tokio::test]
async fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_back() {
    let server = MockServer::start([answer("Still here.")]).await;
    let place = Place::with_server(&server);
    let script = "set -m; \"$0\" \"$@\"; stty -a | tr ' ;' '\\n\\n' | grep -x icanon; echo in the shell; fg; echo \"code $?\"";
    let mut window = Window::shell(&place, &["bash", "-c", script], "chat");
    window.shows("· mock ·").await;
    window.types("a draft");
    window.shows("› a draft").await;
    window.types("\x1a");
    window.shows("in the shell").await;
    assert!(window.all().contains("icanon"), "{}", window.all());
    window.shows("› a draft").await;
    window.says(" goes on").await;
    window.shows("Still here.").await;
    assert_eq!(messages(&server, 0)[0].1, "a draft goes on");
    window.types("\x04");
    window.shows("code 0").await;
}
