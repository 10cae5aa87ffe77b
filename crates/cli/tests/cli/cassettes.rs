//! Cassettes: a run is recorded once and replayed without a model, without a key and without a network.

use archon_testkit::{MockResponse, MockServer};
use serde_json::json;

use crate::setup::{Place, Ran, answer, asks_for};

#[tokio::test]
async fn run_replay_answers_from_the_recorded_cassette_without_a_key() {
    let key = "canary-key-of-a-service";
    let call = asks_for("calculator", r#"{"expression": "40 + 2"}"#);
    let server = MockServer::start([call, answer(&format!("It is 42. {key}"))]).await;
    let place = Place::with_server(&server);
    let mut command = place.command("run --record calls.jsonl", &["What is 40 + 2?"]);
    let ran = Ran::from(command.env("OPENAI_COMPATIBLE_API_KEY", key).output().await.unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is 42. ****\n"), "{ran:?}");
    let sent = server.requests();
    assert!(sent[1].headers.iter().any(|(_, sent)| sent.contains(key)), "the key was sent");
    let cassette = std::fs::read_to_string(place.path("calls.jsonl")).unwrap();
    assert_eq!(cassette.lines().count(), 3, "{cassette}");
    assert!(!cassette.contains("canary"), "{cassette}");

    let replay = async |task: &str| {
        let elsewhere = Place::new();
        let cassette = place.path("calls.jsonl").display().to_string();
        elsewhere.archon("run --replay", &[&cassette, task]).await
    };
    let ran = replay("What is 40 + 2?").await;
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "It is 42. ****\n"), "{ran:?}");
    assert!(!ran.err.contains("were not used"), "{ran:?}");
    let other = replay("What is 40 + 3?").await;
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.err.contains("from call 1 it differs at messages[0]"), "{other:?}");
    assert!(other.err.contains("--record FILE in place of --replay FILE"), "{other:?}");
    assert!(other.err.contains("2 recorded calls of"), "{other:?}");
    assert_eq!(server.requests().len(), 2, "nobody is asked");
}

#[tokio::test]
async fn run_record_to_a_file_that_is_no_cassette_is_refused_and_leaves_it() {
    let place = Place::new();
    std::fs::write(place.path("notes.txt"), "mine").unwrap();
    let ran = place.archon("run --record notes.txt", &["hi"]).await;
    ran.check_refused(2, "notes.txt exists and is not a cassette", "--record FILE");
    let ran = place.archon("run --replay notes.txt", &["hi"]).await;
    ran.check_refused(2, "notes.txt: the file is not a cassette", "--record FILE");
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).unwrap(), "mine");
    std::fs::write(place.path("empty.jsonl"), "{\"cassette\":1}\n").unwrap();
    place.archon("run --replay empty.jsonl", &["hi"]).await.check_refused(
        2,
        "has no recorded calls",
        "--record FILE",
    );
}

#[tokio::test]
async fn run_record_that_fails_leaves_the_earlier_cassette() {
    let refused = MockResponse::json(401, &json!({"error": {"message": "bad key"}}));
    let server = MockServer::start([answer("good"), refused]).await;
    let place = Place::with_server(&server);
    place.archon("run --record calls.jsonl", &["hi"]).await;
    let before = std::fs::read_to_string(place.path("calls.jsonl")).unwrap();
    let ran = place.archon("run --record calls.jsonl", &["hi"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("nothing was recorded, and calls.jsonl is as it was"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(place.path("calls.jsonl")).unwrap(), before);
}

#[tokio::test]
async fn resume_of_a_replayed_run_prints_how_to_start_it_again() {
    let server = MockServer::start([asks_for("calculator", r#"{"expression": "1 + 1"}"#)]).await;
    let place = Place::with_server(&server);
    place.archon("run --record calls.jsonl --max-turns 1", &["1 + 1?"]).await;
    let ran = place.archon("run --replay calls.jsonl --max-turns 1", &["1 + 1?"]).await;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let resumed = place.alone("resume --max-turns 2", &["last"]).await;
    assert_eq!(resumed.code, Some(2), "{resumed:?}");
    assert!(
        resumed.err.contains("was started with --replay") && resumed.err.contains("--replay FILE"),
        "{resumed:?}"
    );
}
