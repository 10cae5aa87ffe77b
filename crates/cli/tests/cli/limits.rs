//! How far a run may go: turns, tokens, time and money, said by flags.

use archon_testkit::MockServer;
use serde_json::json;

use crate::setup::{Place, Ran, answer, asks_for};

// spec: A-06
#[tokio::test]
async fn run_max_tokens_and_max_duration_end_with_4() {
    let call = || asks_for("calculator", r#"{"expression": "1 + 1"}"#);
    for (flag, value, says) in [
        ("--max-tokens", "1", "Max tokens reached (1)"),
        ("--max-duration", "0s", "Max duration reached (0 s)"),
    ] {
        let server = MockServer::start([call(), answer("2")]).await;
        let ran = Place::with_server(&server).archon("run", &[flag, value, "1 + 1?"]).await;
        assert_eq!(ran.code, Some(4), "{flag}: {ran:?}");
        assert!(ran.err.contains(says), "{flag}: {ran:?}");
        assert!(ran.err.contains(&format!("{flag} ")), "{flag}: {ran:?}");
    }
}

#[tokio::test]
async fn run_max_cost_without_a_price_is_refused_with_the_models_name() {
    let server = MockServer::start([]).await;
    let place = Place::with_server(&server);
    let team = "[[role]]\nname = \"writer\"\n[[member]]\nid = \"anna\"\nroles = [\"writer\"]\n";
    std::fs::write(place.path("team.toml"), team).expect("it is written");
    let ran = place.archon("team run", &["--max-cost", "0.5", "team.toml", "hi"]).await;
    let id = format!("openai-compatible@{}/v1", server.url());
    let settings = place.path(".config/archon/archon.toml");
    let said = format!(
        "error: the price of mock from {id} is not known, so --max-cost cannot be enforced
  use --max-tokens, or set the prices in {}, in US dollars per million tokens, by three lines:
  [models.\"{id}:mock\"]
  input = DOLLARS
  output = DOLLARS
",
        settings.display()
    );
    assert_eq!((ran.code, &ran.err), (Some(2), &said));
    for line in ["run", "run --plan", "plan", "plan --execute"] {
        let ran = place.archon(line, &["--max-cost", "0.5", "hi"]).await;
        assert_eq!((ran.code, &ran.err), (Some(2), &said), "{line}");
    }
    assert_eq!(server.requests().len(), 0);
}

// spec: TE-28
#[tokio::test]
async fn tool_execution_of_the_settings_is_how_a_run_makes_its_calls() {
    for (said, logged) in
        [("sequential", Some(json!("sequential"))), ("2", Some(json!({"batched": {"size": 2}}))), ("", None)]
    {
        let server = MockServer::start([answer("hi")]).await;
        let place = Place::with_server(&server);
        let mut command = place.command("run --json", &["hi"]);
        let ran = Ran::from(command.env("ARCHON_TOOL_EXECUTION", said).output().await.unwrap());
        let started = &ran.json()[0];
        assert_eq!(started.pointer("/config/tool_execution"), logged.as_ref(), "{said}: {started}");
    }
}

#[tokio::test]
async fn resume_max_cost_of_a_run_without_one_is_refused() {
    let server = MockServer::start([answer("30")]).await;
    let place = Place::with_server(&server);
    place.archon("run", &["hi"]).await;
    place.archon("resume --max-cost 1", &["last"]).await.check_refused(
        2,
        "was begun without --max-cost",
        "--max-tokens",
    );
}
