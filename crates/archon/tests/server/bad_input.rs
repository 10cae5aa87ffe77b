//! Bad input is refused by a rule that the response names, and runs go on.

use std::{sync::Arc, time::Duration};

use archon::{
    AgentSource, RunError, RunId, Runs,
    server::{
        ServerOptions, TokenLimits,
        axum::{
            body::{Body, Bytes},
            http::StatusCode,
        },
    },
    types::{BoxFuture, Journal, Record, RunAgent, StartRuns},
};
use archon_testkit::Ended;
use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::world::{Ask, World};

#[tokio::test]
async fn body_that_does_not_fit_is_refused_with_its_place() {
    let site = World::new().site();
    for (body, refusal, detail) in [
        ("{", (400, "malformed-body"), "line 1 column 1"),
        ("", (422, "body"), "`text` is missing"),
        ("{}", (422, "body"), "`text` is missing"),
        ("[]", (422, "body"), "invalid length 0"),
        (r#"{"text":1}"#, (422, "body"), "expected a string"),
        (r#"{"txt":"hello"}"#, (422, "body"), "unknown field `txt`"),
        (r#"{"text":"a","content":[{"type":"text","text":"b"}]}"#, (422, "body"), "not both"),
        (r#"{"content":[{"type":"thinking","thinking":"b"}]}"#, (422, "body"), "neither text nor an image"),
        // A reference alone: the data is on the client's side.
        (
            r#"{"content":[{"type":"media","mime_type":"image/png","bytes":8,"sha256":"4c4b6a3be1314ab86138bef4314dde022e600960d8689a2c8f8631802d20dab6"}]}"#,
            (422, "body"),
            "neither text nor an image",
        ),
        (
            r#"{"content":[{"type":"media","mime_type":"image/png","data":"JVBERi0xLjcK"}]}"#,
            (422, "body"),
            "does not match the stated type",
        ),
        (r#"{"text":" "}"#, (422, "refused"), "the prompt is empty"),
        (r#"{"text":"a","when_busy":"never"}"#, (422, "body"), "unknown variant `never`"),
        (
            r#"{"text":"a","kind":"team"}"#,
            (422, "refused"),
            "no agent walker is registered for runs of kind team",
        ),
        (r#"{"text":"a","agent":"nobody"}"#, (422, "refused"), "registered agents: loop boss, loop walker"),
    ] {
        let refused = site.send(Ask::new("POST", "/v1/runs").body(body)).await;
        assert_eq!(refused.refusal(), refusal, "{body}: {refused:?}");
        assert!(refused.body["detail"].as_str().unwrap().contains(detail), "{body}: {refused:?}");
        assert_eq!(refused.body["status"], json!(refusal.0), "{body}");
    }
    let key = |key: &str| Ask::post("/v1/runs", &json!({ "text": "a" })).with("idempotency-key", key);
    for wrong in ["", "\"\"", &"k".repeat(256), "trigger/mail/0/at/1", "\"trigger/\""] {
        assert_eq!(site.send(key(wrong)).await.refusal(), (400, "header"), "{wrong:?}");
    }
}

#[tokio::test]
async fn body_beyond_the_limit_is_refused_and_the_run_under_way_ends_well() {
    let options = ServerOptions::default().with_max_body(1_000);
    let site = World::new().site_with(options, TokenLimits::default());
    let run = site.start("wait").await;
    site.world.gate.entered().await;
    let steer = |length: usize| {
        let body = json!({ "text": "x".repeat(length) }).to_string();
        Ask::new("POST", &format!("/v1/runs/{run}/steer")).body(body)
    };
    assert_eq!(site.send(steer(1_000)).await.refusal(), (413, "body-size"));
    assert_eq!(site.send(steer(900)).await.status, StatusCode::ACCEPTED);
    site.world.gate.open();
    assert!(site.runs.reply(&run).await.ended().is_finished());
}

#[tokio::test]
async fn body_that_does_not_arrive_is_given_up() {
    let site = World::new().site();
    let beginning = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{\"text\":"))]);
    let body = Body::from_stream(beginning.chain(stream::pending()));
    let mut request = Ask::new("POST", "/v1/runs").request();
    *request.body_mut() = body;
    let (answer, ()) = tokio::join!(site.send_request(request), async {
        site.clock.until_asleep(1).await;
        site.clock.advance(Duration::from_secs(30));
    });
    assert_eq!(answer.refusal(), (408, "slow-body"));
    let broken = stream::iter([Err::<Bytes, _>(std::io::Error::other("reset by peer"))]);
    let mut request = Ask::new("POST", "/v1/runs").request();
    *request.body_mut() = Body::from_stream(broken);
    assert_eq!(site.send_request(request).await.refusal(), (400, "malformed-body"));
}

#[tokio::test]
async fn requests_and_starts_of_a_token_have_limits_which_end_with_time() {
    let limits = TokenLimits::default().with_requests_per_minute(3).with_starts_per_hour(1);
    let site = World::new().site_with(ServerOptions::default(), limits);
    let start = || Ask::post("/v1/runs", &json!({ "text": "hello" }));
    let started = site.send(start()).await;
    assert_eq!(started.status, StatusCode::CREATED);
    let fork = format!("/v1/runs/{}/fork", started.body["run"].as_str().unwrap());
    // A fork is a run of its own once it is resumed.
    for more in [start(), Ask::post(&fork, &json!({ "turns": 0, "text": "goodbye" }))] {
        let refused = site.send(more).await;
        assert_eq!(
            (refused.refusal(), &refused.headers["retry-after"]),
            ((429, "start-limit"), &"3600".parse().unwrap())
        );
    }
    let refused = site.get("/v1/runs").await;
    assert_eq!(
        (refused.refusal(), &refused.headers["retry-after"]),
        ((429, "request-limit"), &"20".parse().unwrap())
    );
    // Another token has limits of its own.
    assert_eq!(site.send(Ask::get("/v1/runs").by("viewer")).await.status, StatusCode::OK);
    site.clock.advance(Duration::from_secs(20));
    assert_eq!(site.get("/v1/runs").await.status, StatusCode::OK);
    site.clock.advance(Duration::from_secs(3_600));
    assert_eq!(site.send(start()).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn unknown_ids_answer_as_such_on_every_route_that_names_one() {
    let site = World::new().site();
    let run = site.run("hello").await;
    let near = RunId::new(format!("{}x", &run.as_str()[..run.as_str().len() - 1]));
    for (method, route, body) in [
        ("GET", "", ""),
        ("DELETE", "", ""),
        ("GET", "/records", ""),
        ("GET", "/events", ""),
        ("GET", "/usage", ""),
        ("GET", "/audit", ""),
        ("GET", "/timeline", ""),
        ("GET", "/graph", ""),
        ("GET", "/media/4c4b6a3be1314ab8", ""),
        ("POST", "/steer", r#"{"text":"a"}"#),
        ("POST", "/follow-up", r#"{"text":"a"}"#),
        ("POST", "/cancel", ""),
        ("POST", "/resume", ""),
        ("POST", "/fork", ""),
    ] {
        let refused = site.send(Ask::new(method, &format!("/v1/runs/{near}{route}")).body(body)).await;
        assert_eq!(refused.refusal(), (404, "unknown-run"), "{method} {route}");
        assert!(refused.body["detail"].as_str().unwrap().contains(run.as_str()), "{refused:?}");
    }
    // A session begins with its first run, so that none is unknown.
    let messages = site.get("/v1/sessions/unknown/messages").await;
    assert_eq!((messages.status, &messages.body), (StatusCode::OK, &json!({ "messages": [] })));
    let answer = site.post("/v1/approvals/unknown/answer", json!({ "answer": "approve" })).await;
    assert_eq!(answer.refusal(), (409, "no-open-question"));
}

#[tokio::test]
async fn route_and_method_that_are_not_there_are_named() {
    let site = World::new().site();
    let lost = site.get("/v1/nothing").await;
    assert_eq!(
        (lost.refusal(), &lost.body["detail"]),
        ((404, "unknown-route"), &json!("there is no GET /v1/nothing"))
    );
    let wrong = site.send(Ask::new("PUT", "/v1/runs")).await;
    assert_eq!(
        (wrong.refusal(), &wrong.body["detail"]),
        ((405, "method"), &json!("there is no PUT /v1/runs"))
    );
}

/// Refuses every run, as the source of a server whose folder is not that of the run.
struct Elsewhere;

impl AgentSource for Elsewhere {
    fn agent_of<'a>(&'a self, _: &'a [Arc<Record>]) -> BoxFuture<'a, Result<Arc<dyn RunAgent>, RunError>> {
        Box::pin(async { Err(RunError::OtherFolder { folder: "/srv/shop".to_owned() }) })
    }
}

#[tokio::test]
async fn run_of_another_folder_is_refused_with_the_folder_and_its_question_stays_open() {
    let world = World::new();
    let before = world.site();
    let started = before.post("/v1/runs", json!({ "text": "step Paris", "agent": "boss" })).await;
    let run = RunId::new(started.body["run"].as_str().unwrap());
    drop(before.runs.reply(&run).await);
    let runs = Runs::new(world.builder("walker").build().unwrap()).with_source(Arc::new(Elsewhere));
    let site = world.site_of(runs, ServerOptions::default(), TokenLimits::default());
    let request = site.get("/v1/approvals").await.body["approvals"][0]["request_id"].clone();
    let answer = format!("/v1/approvals/{}/answer", request.as_str().unwrap());
    for (path, body) in [
        (answer, json!({ "answer": "approve" })),
        (format!("/v1/runs/{run}/resume"), json!({})),
        (format!("/v1/runs/{run}/cancel"), json!({ "reason": "no more" })),
        (format!("/v1/runs/{run}/fork"), json!({ "text": "Go to Rome." })),
    ] {
        let refused = site.post(&path, body).await;
        assert_eq!(refused.refusal(), (409, "other-folder"), "{path}: {refused:?}");
        assert!(refused.body["detail"].as_str().unwrap().contains("/srv/shop"), "{refused:?}");
        assert!(refused.body["advice"].as_str().unwrap().contains("archon approvals"), "{refused:?}");
    }
    assert_eq!(site.get("/v1/approvals").await.body["approvals"][0]["request_id"], request);
    // The cancel was not stored for the folder of the run.
    assert!(world.journal.inbox().unwrap().waiting(&run).await.unwrap().is_empty());
}
