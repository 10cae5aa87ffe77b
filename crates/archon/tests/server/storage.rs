//! A full disk and a stopped database: requests and streams answer as such, and other runs go on.

use std::{sync::Arc, time::Duration};

use archon::{
    RunId, Runs,
    server::{
        AccessToken, AllowedHosts, Role, Scope, Server, ServerOptions, TokenLimits, axum::http::StatusCode,
    },
    types::{
        BoxFuture, Collection, Json, Listing, MemoryCandidates, MemoryChange, MemoryError, MemoryPage,
        MemorySearch, MemoryStore, OnStorageFailure, RunStatus, StartRun, StartRuns,
    },
};
use archon_testkit::Ended;
use serde_json::json;

#[cfg(feature = "openai-serve")]
use crate::guarded::send;
use crate::{
    faulty::{Fault, Faulty},
    world::{Answer, Ask, HOST, Sent, Site, World},
};

/// A server before a service whose storage can fail.
fn site_over(journal: &Faulty) -> Site {
    let world = World::new();
    let walker = world.builder("walker").journal(Arc::new(journal.clone())).build().unwrap();
    let limits = TokenLimits::default().with_requests_per_minute(100_000);
    world.site_of(Runs::new(walker), ServerOptions::default(), limits)
}

/// Checks that a response, or the last event of a stream, says that the storage fails and what to do.
fn check_unavailable(problem: &Json, detail: &str, of: &str) {
    assert_eq!(problem["type"], "urn:archon:problem:unavailable", "{of}: {problem}");
    assert_eq!(problem["status"], 503, "{of}: {problem}");
    assert!(problem["detail"].as_str().unwrap().contains(detail), "{of}: {problem}");
    assert!(problem["advice"].as_str().unwrap().contains("has free space"), "{of}: {problem}");
}

fn check_refused(refused: &Answer, detail: &str, of: &str) {
    assert_eq!(refused.refusal(), (503, "unavailable"), "{of}: {refused:?}");
    check_unavailable(&refused.body, detail, of);
}

fn check_failure(events: &[Sent], detail: &str) {
    let last = events.last().unwrap();
    assert_eq!((last.name.as_str(), last.id), ("failure", None), "{events:?}");
    check_unavailable(&last.data, detail, "stream");
}

// spec: EX-09
#[tokio::test]
async fn full_disk_answers_as_such_and_the_runs_go_on_once_there_is_space() {
    let journal = Faulty::default();
    let site = site_over(&journal);
    let ended = site.run("hello").await;
    let run = site.start("wait").await;
    site.world.gate.entered().await;
    let mut events = site.watch(&run, None).await;
    let before = events.until("tool_call_started").await;
    journal.set(Fault::Full);

    let refused = site.post("/v1/runs", json!({ "text": "hello" })).await;
    check_refused(&refused, "cannot write runs.db", "start");
    site.world.gate.open();
    check_failure(&events.rest().await, "cannot write runs.db");
    // The log is as it was, and everything can be read.
    assert_eq!(site.get(&format!("/v1/runs/{ended}")).await.body["status"], "finished");
    assert_eq!(site.get(&format!("/v1/runs/{run}")).await.body["status"], "interrupted");
    assert_eq!(site.get("/v1/runs").await.body["runs"].as_array().map(Vec::len), Some(2));

    journal.set(Fault::None);
    site.world.gate.open();
    let resumed = site.post(&format!("/v1/runs/{run}/resume"), json!({})).await;
    assert_eq!(resumed.status, StatusCode::ACCEPTED, "{}", resumed.body);
    assert!(site.runs.reply(&run).await.ended().is_finished());
    let last = before.iter().rev().find_map(|sent| sent.id);
    let rest = site.watch(&run, last).await.rest().await;
    assert_eq!(rest.last().unwrap().data, json!({ "status": "finished" }));
}

// spec: EX-09
#[tokio::test]
async fn stopped_database_answers_as_such_on_every_route_that_needs_it() {
    let journal = Faulty::default();
    let site = site_over(&journal);
    let run = site.run("step Paris").await;
    journal.set(Fault::Stopped);
    let of_run = |path: &str| format!("/v1/runs/{run}{path}");
    let mut asks: Vec<_> =
        ["", "/records", "/records?last=2", "/events", "/usage", "/audit", "/timeline", "/graph"]
            .map(|path| Ask::get(&of_run(path)))
            .into();
    asks.extend(
        ["/v1/runs", "/v1/approvals", "/v1/sessions", "/v1/sessions/s/messages", "/v1/usage"].map(Ask::get),
    );
    let message = json!({ "text": "hello" });
    asks.push(Ask::post("/v1/runs", &json!({ "text": "hello", "session": "s" })));
    asks.extend(["/steer", "/follow-up"].map(|path| Ask::post(&of_run(path), &message)));
    asks.extend(["/cancel", "/resume", "/fork"].map(|path| Ask::post(&of_run(path), &json!({}))));
    asks.push(Ask::post("/v1/approvals/x/answer", &json!({ "answer": "approve" })));
    asks.push(Ask::new("DELETE", &of_run("")));
    for ask in asks {
        check_refused(&site.send(ask.clone()).await, "runs.db", &format!("{ask:?}"));
    }
    journal.set(Fault::None);
    assert_eq!(site.runs.get(&run).await.unwrap().status, RunStatus::Suspended);
}

/// A store of memories whose database has stopped.
struct StoppedStore(Collection);

impl MemoryStore for StoppedStore {
    fn scope(&self) -> &Collection {
        &self.0
    }

    fn apply(&self, _: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>> {
        Box::pin(async { Err(memories_stopped()) })
    }

    fn candidates<'a>(&'a self, _: &'a MemorySearch) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>> {
        Box::pin(async { Err(memories_stopped()) })
    }

    fn list<'a>(&'a self, _: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>> {
        Box::pin(async { Err(memories_stopped()) })
    }
}

fn memories_stopped() -> MemoryError {
    let source = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    MemoryError::Storage { action: "read", place: "memories.db".to_owned(), source: source.into() }
}

// spec: EX-09
#[tokio::test]
async fn stopped_database_of_memories_answers_as_such_and_runs_go_on() {
    let site = World::new().site();
    let store = Arc::new(StoppedStore(Collection::root()));
    let scope = Scope::new(Arc::new(site.runs.clone())).with_memories(store);
    let token = AccessToken::new("admin", "admin-secret", Role::Admin, scope).unwrap();
    let clock = Arc::new(site.clock.clone());
    let site = site.with(&Server::new(AllowedHosts::new([HOST]), [token], clock, ServerOptions::default()));
    for path in ["/v1/memories", "/v1/memories?text=tea"] {
        check_refused(&site.get(path).await, "cannot read memory at memories.db", path);
    }
    let run = site.run("hello").await;
    assert_eq!(site.runs.get(&run).await.unwrap().status, RunStatus::Finished);
}

// spec: EX-09
#[cfg(feature = "openai-serve")]
#[tokio::test]
async fn openai_endpoints_answer_as_such_while_the_disk_is_full_or_the_database_has_stopped() {
    use archon::{
        openai_serve::{AgentModel, ModelServer, ModelServerOptions},
        server::Right,
    };

    let journal = Faulty::default();
    let site = site_over(&journal);
    let runs = site.server.scope("admin").unwrap().runs().clone();
    let clock = Arc::new(site.clock.clone());
    let models = ModelServer::new(runs, [AgentModel::new("walker")], clock, ModelServerOptions::default());
    let app = site.server.guarded(models.router(), Right::Operate);
    let messages = json!([{ "role": "user", "content": "hello" }]);
    for (path, body) in [
        ("/v1/chat/completions", json!({ "model": "walker", "messages": messages })),
        ("/v1/responses", json!({ "model": "walker", "input": "hello" })),
    ] {
        for fault in [Fault::Full, Fault::Stopped] {
            journal.set(fault.clone());
            let (status, refused, _) = send(&app, Ask::post(path, &body)).await;
            let error = &refused["error"];
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{path} {fault:?}: {refused}");
            assert_eq!((&error["code"], &error["type"]), (&json!("unavailable"), &json!("server_error")));
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("runs.db") && message.contains("has free space"), "{path}: {message}");
        }
        journal.set(Fault::None);
        let (status, answer, _) = send(&app, Ask::post(path, &body)).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
    }
}

#[tokio::test]
async fn stream_of_a_suspended_run_fails_when_the_database_stops() {
    let journal = Faulty::default();
    let site = site_over(&journal);
    let run = site.run("step Paris").await;
    let mut events = site.watch(&run, None).await;
    events.until("suspended").await;
    let (rest, ()) = tokio::join!(events.rest(), async {
        site.clock.until_asleep(2).await;
        journal.set(Fault::Stopped);
        site.clock.advance(Duration::from_secs(2));
    });
    assert_eq!(rest.len(), 1, "{rest:?}");
    check_failure(&rest, "cannot read runs.db");
}

#[tokio::test]
async fn run_of_another_journal_ends_while_the_database_of_the_server_is_stopped() {
    let journal = Faulty::default();
    let (site, other) = (site_over(&journal), World::new());
    let others = other.runs();
    let tokens = [("admin", &site.runs), ("other", &others)].map(|(name, runs)| {
        AccessToken::new(name, format!("{name}-secret"), Role::Admin, Scope::new(Arc::new(runs.clone())))
            .unwrap()
    });
    let clock = Arc::new(site.clock.clone());
    let server = Server::new(AllowedHosts::new([HOST]), tokens, clock, ServerOptions::default());
    let site = site.with(&server);
    let run = others.start(StartRun::new("wait")).await.unwrap().run;
    other.gate.entered().await;
    let mut events = site.watch_as(Ask::get(&format!("/v1/runs/{run}/events")).by("other")).await;
    journal.set(Fault::Stopped);
    check_refused(&site.get("/v1/runs").await, "cannot list runs.db", "list");
    other.gate.open();
    assert_eq!(events.rest().await.last().unwrap().data, json!({ "status": "finished" }));
    check_refused(&site.get("/v1/runs").await, "cannot list runs.db", "list");
}

/// Starts a run of a session, and waits until it has ended or waits for a person.
async fn run_in(site: &Site, session: &str, text: &str) -> RunId {
    let started = site.post("/v1/runs", json!({ "text": text, "session": session })).await.body;
    let run = RunId::new(started["run"].as_str().unwrap());
    drop(site.runs.reply(&run).await);
    run
}

// spec: AP-05
#[tokio::test]
async fn approval_whose_earlier_log_cannot_be_read_has_no_provenance() {
    let journal = Faulty::default();
    let site = site_over(&journal);
    let first = run_in(&site, "a", "remember Paris-Orly").await;
    run_in(&site, "a", "step Paris-Orly").await;
    run_in(&site, "b", "step Rome-Ciampino").await;
    let provenance = async |session: &str| {
        let open = site.get("/v1/approvals").await.body["approvals"].clone();
        let of_session = |one: &&Json| one["session"] == session;
        open.as_array().unwrap().iter().find(of_session).unwrap()["provenance"].clone()
    };
    let readable = provenance("b").await;
    assert_eq!(provenance("a").await[0]["run"], json!(first));
    assert_eq!(readable[0]["text"], "Rome-Ciampino");
    journal.set(Fault::Unreadable(first));
    assert_eq!((provenance("a").await, provenance("b").await), (Json::Null, readable));
}

#[tokio::test]
async fn record_of_a_run_that_is_not_stored_has_no_id() {
    let journal = Faulty::default();
    let world = World::new();
    let walker = world.builder("walker").journal(Arc::new(journal.clone()));
    let walker = walker.on_storage_failure(OnStorageFailure::Ephemeral).build().unwrap();
    let site = world.site_of(Runs::new(walker), ServerOptions::default(), TokenLimits::default());
    journal.set(Fault::NearlyFull);
    let run = site.start("hello").await;
    let seen = site.watch(&run, None).await.until("run_finished").await;
    let id = |kind: &str| seen.iter().find(|sent| sent.data["type"] == kind).unwrap().id;
    assert_eq!((id("run_started"), id("log_unavailable")), (Some(0), None));
}
