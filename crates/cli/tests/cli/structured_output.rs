//! Answers in a form, and how a model is asked for them: schemas, thinking, detail of results.

use archon_testkit::MockServer;
use serde_json::json;

use crate::setup::{Place, answer, asks_for};

const CITY: &str = r#"{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}"#;

fn with_schema(server: &MockServer) -> (Place, String) {
    let place = Place::with_server(server);
    let file = place.path("the city.json");
    std::fs::write(&file, CITY).expect("it is written");
    (place, file.display().to_string())
}

// spec: R-17
#[tokio::test]
async fn run_schema_retries_invalid_output_and_prints_json() {
    let server = MockServer::start([answer("Paris, I think."), answer(r#"{"name": "Paris"}"#)]).await;
    let (place, schema) = with_schema(&server);
    let ran = place.archon("run --tools none", &["--schema", &schema, "A city?"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&ran.out).unwrap(),
        json!({"name": "Paris"}),
        "{ran:?}"
    );
    let asked = server.requests()[0].body["response_format"]["json_schema"].clone();
    assert_eq!(asked["name"], "the_city", "{asked}");
    assert_eq!(asked["schema"]["required"][0], "name", "{asked}");
}

#[tokio::test]
async fn plan_and_team_with_a_schema_end_with_json() {
    let only = json!({"id": "a", "description": "Find one", "dependencies": []});
    let plan = || answer(&json!({"subtasks": [only]}).to_string());
    let server = MockServer::start([plan(), answer("Paris."), answer(r#"{"name": "Paris"}"#)]).await;
    let (place, schema) = with_schema(&server);
    let ran = place.archon("run --plan --tools none", &["--schema", &schema, "A city?"]).await;
    assert_eq!((ran.code, ran.out.trim()), (Some(0), r#"{"name": "Paris"}"#), "{ran:?}");
    let team = include_str!("../../examples/team.toml");
    std::fs::write(place.path("team.toml"), team).expect("it is written");
    for words in ["It is old.", "Paris it is.", r#"{"name": "Paris"}"#] {
        server.push(answer(words));
    }
    let ran = place.archon("team run", &["--schema", &schema, "team.toml", "A city?"]).await;
    assert_eq!((ran.code, ran.out.trim()), (Some(0), r#"{"name": "Paris"}"#), "{ran:?}");
}

#[tokio::test]
async fn run_invalid_schema_is_refused_before_any_request() {
    let server = MockServer::start([]).await;
    let (place, _) = with_schema(&server);
    std::fs::write(place.path("list.json"), "[1]").expect("it is written");
    for (file, what) in
        [("gone.json", "cannot read gone.json"), ("list.json", "list.json is not a JSON object")]
    {
        place.archon("run", &["--schema", file, "A city?"]).await.check_refused(
            2,
            what,
            "a schema looks like",
        );
    }
}

// spec: P-12
#[tokio::test]
async fn thinking_and_output_level_reach_the_model() {
    let long = "x".repeat(4_000);
    let server = MockServer::start([
        asks_for("read_file", r#"{"path": "long.txt"}"#),
        answer("Long."),
        asks_for("read_file", r#"{"path": "long.txt"}"#),
        answer("Long."),
    ])
    .await;
    let place = Place::new();
    std::fs::write(place.path("long.txt"), &long).expect("it is written");
    let line = format!("run --base-url {}/v1 --model openai:gpt-5-mini", server.url());
    place.archon(&format!("{line} --thinking high --output-level brief"), &["How long?"]).await;
    place.archon(&line, &["How long?"]).await;
    let requests = server.requests();
    let bodies: Vec<_> = requests.iter().map(|request| request.body.to_string()).collect();
    assert_eq!(requests[0].body["reasoning_effort"], "high", "{}", bodies[0]);
    assert!(requests[2].body["reasoning_effort"].is_null(), "{}", bodies[2]);
    assert!(!bodies[1].contains(&long) && bodies[3].contains(&long), "{}", bodies[1]);
}
