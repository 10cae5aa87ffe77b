//! Each route does what the run service does.

use archon::{
    RunId,
    server::{OPENAPI, ServerOptions, TokenLimits, axum::http::StatusCode},
    tools::{EngineOptions, Permissions},
    types::{Json, RecordBody, RunStatus, StartRuns},
};
use archon_testkit::Ended;
use serde_json::json;

use crate::world::{Ask, World};

fn ids(list: &Json) -> Vec<RunId> {
    let runs = list["runs"].as_array().unwrap().iter();
    runs.map(|head| RunId::new(head["run_id"].as_str().unwrap())).collect()
}

// spec: EX-09
#[tokio::test]
async fn start_with_the_same_key_finds_the_run_and_with_another_text_is_refused() {
    let site = World::new().site();
    let start = |text: &str| Ask::post("/v1/runs", &json!({ "text": text })).with("idempotency-key", "k1");
    let first = site.send(start("hello")).await;
    assert_eq!((first.status, &first.body["how"]), (StatusCode::CREATED, &json!("new")));
    let run = first.body["run"].as_str().unwrap();
    assert_eq!(first.headers["location"].to_str().unwrap(), format!("runs/{run}"));
    site.runs.reply(&RunId::new(run)).await.ended();
    // The quotes of the draft for this header.
    let again = site.send(start("hello").with("idempotency-key", "\"k1\"")).await;
    assert_eq!((again.status, &again.body["how"]), (StatusCode::OK, &json!("before")));
    assert_eq!(again.body["run"].as_str(), Some(run));
    assert_eq!(site.send(start("goodbye")).await.refusal(), (409, "idempotency-key"));
    assert_eq!(ids(&site.get("/v1/runs").await.body).len(), 1);
}

#[tokio::test]
async fn start_in_a_busy_session_is_refused_or_queued() {
    let site = World::new().site();
    let start = |when: &str| json!({ "text": "wait", "session": "s", "when_busy": when });
    let run = site.post("/v1/runs", start("refuse")).await.body["run"].clone();
    site.world.gate.entered().await;
    let refused = site.post("/v1/runs", start("refuse")).await;
    assert_eq!((refused.refusal(), &refused.body["run"]), ((409, "session-busy"), &run));
    let queued = site.post("/v1/runs", start("queue")).await;
    assert_eq!((queued.status, &queued.body["how"]), (StatusCode::ACCEPTED, &json!("queued")));
    assert_eq!(queued.body["run"], run);
}

#[tokio::test]
async fn list_has_filters_and_pages() {
    let site = World::new().site();
    let mut started = Vec::new();
    for session in ["a", "b", "a"] {
        let answer = site.post("/v1/runs", json!({ "text": "hello", "session": session })).await;
        let run = RunId::new(answer.body["run"].as_str().unwrap());
        site.runs.reply(&run).await.ended();
        started.push(run);
    }
    let waiting = site.run("step Paris").await;
    let mut of_session = ids(&site.get("/v1/runs?session=a").await.body);
    of_session.sort();
    assert_eq!(of_session, [started[0].clone(), started[2].clone()]);
    assert_eq!(ids(&site.get("/v1/runs?status=suspended,running").await.body), [waiting]);
    assert_eq!(ids(&site.get("/v1/runs?tenant=nobody").await.body), []);

    let whole = ids(&site.get("/v1/runs?limit=500").await.body);
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let page = site.get(&format!("/v1/runs?limit=3{after}")).await.body;
        pages.extend(ids(&page));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!((pages.len(), &pages), (4, &whole));
    for wrong in ["status=finshed", "limit=x", "after=x", "staus=finished"] {
        assert_eq!(site.get(&format!("/v1/runs?{wrong}")).await.refusal(), (400, "query"), "{wrong}");
    }
}

// spec: OB-07
#[tokio::test]
async fn records_come_in_pages_that_are_the_log() {
    let site = World::new().site();
    let run = site.run("hello").await;
    let log = json!(site.world.log(&run).await);
    let (mut pages, mut after) = (Vec::new(), String::new());
    loop {
        let page = site.get(&format!("/v1/runs/{run}/records?limit=2{after}")).await.body;
        assert_eq!(page["damage"], Json::Null);
        pages.extend(page["records"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next"].as_u64() else { break };
        after = format!("&after={next}");
    }
    assert!(pages.len() > 4);
    assert_eq!(Json::Array(pages), log);
}

#[tokio::test]
async fn cancel_ends_the_run_and_names_who_wanted_it_and_resume_goes_on() {
    let site = World::new().site();
    let run = site.start("wait").await;
    site.world.gate.entered().await;
    let cancel = Ask::post(&format!("/v1/runs/{run}/cancel"), &json!({})).by("operator");
    assert_eq!(site.send(cancel).await.status, StatusCode::ACCEPTED);
    site.runs.reply(&run).await.ended();
    assert_eq!(site.get(&format!("/v1/runs/{run}")).await.body["status"], "cancelled");
    let reasons = site.world.log(&run).await.iter().find_map(|record| match &record.body {
        RecordBody::CancelRequested { reason } => Some(reason.clone()),
        _ => None,
    });
    assert_eq!(reasons.as_deref(), Some("cancelled by operator"));

    let resumed = site.post(&format!("/v1/runs/{run}/resume"), json!({ "max_turns": 60 })).await;
    assert_eq!((resumed.status, &resumed.body["how"]), (StatusCode::ACCEPTED, &json!("resumed")));
    site.runs.reply(&run).await.ended();
    assert_eq!(site.get(&format!("/v1/runs/{run}")).await.body["status"], "finished");
    assert_eq!(site.post(&format!("/v1/runs/{run}/resume"), json!({})).await.refusal(), (409, "conflict"));
}

#[tokio::test]
async fn steer_and_follow_up_reach_the_model() {
    for route in ["steer", "follow-up"] {
        let site = World::new().site();
        let run = site.start("wait").await;
        site.world.gate.entered().await;
        let sent = site.post(&format!("/v1/runs/{run}/{route}"), json!({ "text": "and faster" })).await;
        assert_eq!(sent.status, StatusCode::ACCEPTED, "{route}");
        site.world.gate.open();
        let answer = site.runs.reply(&run).await.ended();
        assert_eq!(answer.answer(), Some("done: and faster"), "{route}");
    }
}

// spec: AP-06
#[tokio::test]
async fn approvals_are_listed_and_an_answer_resumes_the_run_once() {
    let site = World::new().site();
    let run = site.run("step Paris").await;
    let open = site.get("/v1/approvals").await.body["approvals"][0].clone();
    assert_eq!(
        (&open["run"], &open["agent_name"], &open["source"]),
        (&json!(run), &json!("walker"), &json!("user"))
    );
    assert_eq!(open["details"]["arguments"], json!({ "to": "Paris" }));
    assert!(open["created_at"].is_u64() && open["expires_at"].is_u64(), "{open}");
    let path = format!("/v1/approvals/{}/answer", open["request_id"].as_str().unwrap());
    for wrong in [json!({ "answer": "expired" }), json!({ "answer": "perhaps" }), json!({})] {
        assert_eq!(site.post(&path, wrong.clone()).await.refusal(), (422, "body"), "{wrong}");
    }
    let edit = json!({ "answer": "edit", "arguments": { "to": "Rome" } });
    assert_eq!(site.post(&path, edit).await.status, StatusCode::OK);
    let ended = site.runs.reply(&run).await.ended();
    assert!(ended.answer().is_some_and(|answer| answer.ends_with("stepped to Rome")), "{ended:?}");
    assert_eq!(site.post(&path, json!({ "answer": "approve" })).await.refusal(), (409, "no-open-question"));
    assert_eq!((site.world.steps(), &site.get("/v1/approvals").await.body["approvals"]), (1, &json!([])));
}

// spec: AP-11
#[tokio::test]
async fn answer_that_trusts_a_rule_that_the_question_does_not_offer_is_refused_and_trusts_nothing() {
    let world = World::new();
    let rules = Permissions::parse([""; 0], ["step"], [""; 0]).unwrap();
    let mut options = EngineOptions::default();
    options.permissions = rules;
    let strict = world.builder("strict").engine_options(options).build().unwrap();
    let runs = world.runs().with_agent(strict.run_agent());
    let site = world.site_of(runs, ServerOptions::default(), TokenLimits::default());
    for (agent, offered) in [("walker", json!(["step"])), ("strict", Json::Null)] {
        let started = site.post("/v1/runs", json!({ "text": "step Paris", "agent": agent })).await;
        let run = RunId::new(started.body["run"].as_str().unwrap());
        drop(site.runs.reply(&run).await);
        let open = site.get("/v1/approvals").await.body["approvals"][0].clone();
        assert_eq!((&open["run"], &open["rules"]), (&json!(run), &offered), "{open}");
        let path = format!("/v1/approvals/{}/answer", open["request_id"].as_str().unwrap());
        let steps = site.world.steps();
        let beyond = if agent == "walker" { json!(["step", "wait"]) } else { json!(["step"]) };
        let refused = site.post(&path, json!({ "answer": "trust", "rules": beyond })).await;
        assert_eq!(refused.refusal(), (422, "refused"), "{refused:?}");
        assert!(
            refused.body["detail"].as_str().unwrap().contains("the answer trusts the permission rule"),
            "{refused:?}"
        );
        assert_eq!(site.world.steps(), steps);
        let fits = if agent == "walker" {
            json!({ "answer": "trust", "rules": ["step"] })
        } else {
            json!({ "answer": "approve" })
        };
        assert_eq!(site.post(&path, fits).await.status, StatusCode::OK);
        assert!(site.runs.reply(&run).await.ended().is_finished());
        assert_eq!(site.world.steps(), steps + 1);
    }
}

// spec: MA-40
#[tokio::test]
async fn token_of_a_customer_sees_and_changes_own_runs_only() {
    let site = World::new().site();
    let other = site.run("step Paris").await;
    let question = site.get("/v1/approvals").await.body["approvals"][0]["request_id"].clone();
    let own =
        site.send(Ask::post("/v1/runs", &json!({ "text": "hello" })).by("anna")).await.body["run"].clone();
    let own = RunId::new(own.as_str().unwrap());
    site.runs.reply(&own).await.ended();
    assert_eq!(ids(&site.send(Ask::get("/v1/runs").by("anna")).await.body), [own]);
    assert_eq!(site.send(Ask::get("/v1/approvals").by("anna")).await.body["approvals"], json!([]));
    let never = RunId::new(format!("{}x", &other.as_str()[..other.as_str().len() - 1]));
    for route in ["", "/records", "/events", "/usage"] {
        let of = |run: &RunId| Ask::get(&format!("/v1/runs/{run}{route}")).by("anna");
        let refused = site.send(of(&other)).await;
        assert_eq!(refused.refusal(), (404, "unknown-run"), "{route}");
        let unknown = site.send(of(&never)).await.body.to_string();
        assert_eq!(refused.body.to_string(), unknown.replace(never.as_str(), other.as_str()), "{route}");
    }
    let cancel = Ask::post(&format!("/v1/runs/{other}/cancel"), &json!({})).by("anna");
    assert_eq!(site.send(cancel).await.refusal(), (404, "unknown-run"));
    let path = format!("/v1/approvals/{}/answer", question.as_str().unwrap());
    let answer = Ask::post(&path, &json!({ "answer": "approve" })).by("anna");
    assert_eq!(site.send(answer).await.refusal(), (409, "no-open-question"));
    assert_eq!(site.runs.get(&other).await.unwrap().status, RunStatus::Suspended);
}

#[tokio::test]
async fn sessions_have_their_newest_run_and_their_messages() {
    let site = World::new().site();
    for text in ["hello", "again"] {
        let started = site.post("/v1/runs", json!({ "text": text, "session": "s" })).await.body;
        site.runs.reply(&RunId::new(started["run"].as_str().unwrap())).await.ended();
    }
    let sessions = site.get("/v1/sessions").await.body["sessions"].clone();
    let [session] = &sessions.as_array().unwrap()[..] else { panic!("{sessions}") };
    assert_eq!(
        (&session["session"], &session["runs"], &session["task"]),
        (&json!("s"), &json!(2), &json!("hello"))
    );
    let messages = site.get("/v1/sessions/s/messages").await.body["messages"].clone();
    let texts: Vec<_> =
        messages.as_array().unwrap().iter().map(|message| message["content"][0]["text"].clone()).collect();
    assert_eq!(texts, ["hello", "done: hello", "again", "done: again"]);
    assert_eq!(site.get("/v1/sessions/unknown/messages").await.body["messages"], json!([]));
}

// spec: OB-09
#[tokio::test]
async fn usage_is_that_of_the_outcome_and_before_it_that_of_the_answers() {
    let site = World::new().site();
    let run = site.start("wait").await;
    site.world.gate.entered().await;
    let so_far = site.get(&format!("/v1/runs/{run}/usage")).await.body;
    assert_eq!((&so_far["turns"], &so_far["is_final"]), (&json!(1), &json!(false)));
    assert_eq!((&so_far["usage"]["output"], &so_far["cost_micros"]), (&json!(20), &json!(140)));
    site.world.gate.open();
    let outcome = site.runs.reply(&run).await.ended();
    let all = site.get(&format!("/v1/runs/{run}/usage")).await.body;
    assert_eq!((&all["usage"], &all["cost_micros"]), (&json!(outcome.usage), &json!(outcome.cost_micros)));
    assert_eq!((&all["turns"], &all["is_final"], &all["agent"]), (&json!(2), &json!(true), &json!("walker")));
    site.run("hello").await;
    let sum = site.get("/v1/usage").await.body;
    assert_eq!((sum["runs"].as_array().unwrap().len(), &sum["total"]["cost_micros"]), (2, &json!(3 * 140)));
}

#[tokio::test]
async fn me_and_the_document_are_for_every_token() {
    let site = World::new().site();
    let me = site.send(Ask::get("/v1/me").by("auditor")).await;
    assert_eq!(me.body, json!({ "name": "auditor", "role": "auditor", "rights": ["monitor", "read_logs"] }));
    let document = site.send(Ask::get("/v1/openapi.json").by("viewer")).await;
    assert_eq!(document.body, serde_json::from_str::<Json>(OPENAPI).unwrap());
}

#[tokio::test]
async fn delete_removes_a_run_that_has_ended() {
    let site = World::new().site();
    let run = site.run("hello").await;
    let delete = || Ask::new("DELETE", &format!("/v1/runs/{run}"));
    assert_eq!(site.send(delete()).await.status, StatusCode::NO_CONTENT);
    assert_eq!(site.send(delete()).await.refusal(), (404, "unknown-run"));
    let working = site.start("wait").await;
    site.world.gate.entered().await;
    assert_eq!(
        site.send(Ask::new("DELETE", &format!("/v1/runs/{working}"))).await.refusal(),
        (409, "conflict")
    );
}

#[cfg(feature = "memory")]
#[tokio::test]
async fn memories_are_listed_and_searched_in_the_store_of_the_token() {
    use std::sync::Arc;

    use archon::{
        memory::InMemoryStore,
        server::{AccessToken, AllowedHosts, Role, Scope, Server, ServerOptions},
        types::{MemoryChange, MemoryEntry, MemoryStore, Timestamp},
    };

    use crate::world::HOST;

    let site = World::new().site();
    assert_eq!(site.get("/v1/memories").await.refusal(), (404, "no-memories"));
    let store = InMemoryStore::new();
    let entry =
        |id: &str, text: &str| MemoryChange::put(MemoryEntry::new(id, text, Timestamp::from_millis(1)));
    store.apply(vec![entry("a", "Anna likes tea"), entry("b", "Ben likes coffee")]).await.unwrap();
    let scope = Scope::new(Arc::new(site.runs.clone())).with_memories(Arc::new(store));
    let token = AccessToken::new("admin", "admin-secret", Role::Admin, scope).unwrap();
    let clock = Arc::new(site.clock.clone());
    let site = site.with(&Server::new(AllowedHosts::new([HOST]), [token], clock, ServerOptions::default()));
    let ids = |body: &Json| -> Vec<String> {
        body["memories"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(&site.get("/v1/memories").await.body), ["b", "a"]);
    let first = site.get("/v1/memories?limit=1").await.body;
    let second = site.get(&format!("/v1/memories?limit=1&after={}", first["next"])).await.body;
    assert_eq!((ids(&first), ids(&second)), (vec!["b".to_owned()], vec!["a".to_owned()]));
    assert_eq!(ids(&site.get("/v1/memories?text=tea").await.body), ["a"]);
    assert_eq!(site.get("/v1/memories?collection=a::b").await.refusal(), (400, "query"));
}
