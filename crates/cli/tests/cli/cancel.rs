//! Runs that are stopped from another process, and what is said of answers that say nothing.

use archon_testkit::{MockResponse, MockServer};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::setup::{Place, Ran, answer, asks_for, chunk, text};

/// A run that waits for its model for ever, and its id.
async fn hanging(place: &Place) -> (tokio::process::Child, String) {
    let mut child = place.command("run --json", &["speak"]).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = async || lines.next_line().await.expect("a line").expect("the run goes on");
    let first: Value = serde_json::from_str(&next().await).expect("JSON");
    while !next().await.contains("half") {}
    // What comes after this is read by nobody, which the program has to stand.
    (child, first["run_id"].as_str().expect("an id").to_owned())
}

fn half() -> MockResponse {
    MockResponse::sse("").event(&text("half ")).hang()
}

async fn status(place: &Place, run: &str) -> String {
    let runs = place.archon("runs list --json", &[]).await.json();
    let head = runs.iter().find(|head| head["run_id"] == run).expect("the run");
    head["status"].as_str().expect("a status").to_owned()
}

// spec: R-13
#[tokio::test]
async fn a_run_of_another_process_is_cancelled_and_can_be_resumed() {
    let server = MockServer::start([half()]).await;
    let place = Place::with_server(&server);
    let (child, run) = hanging(&place).await;
    let cancelled = place.archon("runs cancel", &[&run]).await;
    assert_eq!(
        (cancelled.code, cancelled.out.as_str()),
        (Some(0), format!("asked {run} to stop\n").as_str())
    );
    let ran = Ran::from(child.wait_with_output().await.expect("it ends"));
    assert_eq!(ran.code, Some(130), "{ran:?}");
    server.until_gone(1).await;
    assert_eq!(status(&place, &run).await, "cancelled");

    place.archon("runs cancel", &[&run]).await.check_refused(2, "has ended", "runs show");
    place.archon("runs cancel", &["nobody"]).await.check_refused(2, "nobody", "runs list");
    server.push(answer("whole"));
    let resumed = place.archon("resume", &[&run]).await;
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "whole\n"), "{resumed:?}");
    assert!(resumed.err.contains("the interrupted answer is given again"), "{resumed:?}");
}

// spec: R-13
#[tokio::test]
async fn cancel_of_an_interrupted_run_ends_it_in_this_process() {
    let server = MockServer::start([half()]).await;
    let place = Place::with_server(&server);
    let (mut child, run) = hanging(&place).await;
    child.kill().await.expect("it is killed");
    let json = place.archon("runs cancel --json", &[&run]).await.json();
    assert_eq!(json[0]["cancelled"], run.as_str());
    assert_eq!((status(&place, &run).await.as_str(), server.requests().len()), ("cancelled", 1));
    server.push(answer("whole"));
    assert_eq!(place.archon("resume", &[&run]).await.out, "whole\n");
}

#[tokio::test]
async fn an_answer_that_is_empty_or_declines_is_pointed_out() {
    let sorry = "I'm sorry, but I can't help with that.";
    let server = MockServer::start([answer(""), answer(sorry)]).await;
    let place = Place::with_server(&server);
    let empty = place.archon("run", &["speak"]).await;
    assert_eq!((empty.code, empty.out.as_str()), (Some(0), ""), "{empty:?}");
    assert!(empty.err.contains("finished with an empty answer: 1 turn"), "{empty:?}");
    let declined = place.archon("run", &["do harm"]).await;
    assert_eq!((declined.code, declined.out.trim_end()), (Some(0), sorry), "{declined:?}");
    assert!(declined.err.contains("finished; the model declined: 1 turn"), "{declined:?}");
}

// spec: P-10
#[tokio::test]
async fn run_with_a_truncated_answer_notes_it_in_the_last_line() {
    let cut = MockResponse::events([
        text("Once upon"),
        chunk(&serde_json::json!({}), Some("length")),
        "[DONE]".into(),
    ]);
    let server = MockServer::start([cut]).await;
    let ran = Place::with_server(&server).archon("run", &["tell a story"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Once upon\n"), "{ran:?}");
    assert!(
        ran.err.contains("finished; the answer was cut off at the maximum number of tokens: 1 turn"),
        "{ran:?}"
    );
}

// spec: ER-09
#[tokio::test]
async fn a_key_that_is_refused_gives_way_to_the_next_numbered_one() {
    let no = MockResponse::json(401, &serde_json::json!({"error": "revoked"}));
    let server = MockServer::start([no, answer("30")]).await;
    let place = Place::with_server(&server);
    let mut command = place.command("run", &["What is 15% of 200?"]);
    command.env("OPENAI_COMPATIBLE_API_KEY", "key-one").env("OPENAI_COMPATIBLE_API_KEY_2", "key-two");
    let ran = Ran::from(command.output().await.expect("the program runs"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "30\n"), "{ran:?}");
    assert!(ran.err.contains("going on with key 2") && !ran.err.contains("key-"), "{ran:?}");
    let sent: Vec<_> =
        server.requests().iter().map(|r| r.header("authorization").map(str::to_owned)).collect();
    assert_eq!(sent, [Some("Bearer key-one".to_owned()), Some("Bearer key-two".to_owned())]);
}

// spec: R-37
#[tokio::test]
async fn the_projects_file_is_read_if_that_is_asked_for() {
    let calculate = r#"{"expression": "1 + 1"}"#;
    let server = MockServer::start([asks_for("calculator", calculate), answer("2"), answer("2")]).await;
    let place = Place::with_server(&server);
    std::fs::write(place.path("AGENTS.md"), "Answer in Latin.").expect("a file");
    let ran = place.archon("run --project-file AGENTS.md", &["1 + 1?"]).await;
    assert_eq!(ran.out, "2\n", "{ran:?}");
    let system = |n: usize| server.requests()[n].body["messages"][0]["content"].to_string();
    assert!(
        system(0).contains("Answer in Latin.") && system(1).contains("Answer in Latin."),
        "{}",
        system(0)
    );
    place.archon("run", &["1 + 1?"]).await;
    assert!(!system(2).contains("Latin"), "it is not read by itself");
}
