//! The audit of a run: the trail of its log, and the requests of tokens.

use std::time::Duration;

use archon::{
    server::{
        RequestLog, ServerOptions, TokenLimits,
        axum::{
            body::{Body, Bytes},
            http::StatusCode,
        },
    },
    types::{Json, RunFilter, StartRuns, Timestamp},
};
use archon_testkit::Ended;
use futures_util::{FutureExt, stream};
use serde_json::json;

use crate::world::{Ask, Site, World};

async fn audit(site: &Site, run: &archon::RunId) -> Json {
    let answer = site.send(Ask::get(&format!("/v1/runs/{run}/audit")).by("auditor")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    answer.body
}

/// Returns the only entry with an action.
fn entry<'a>(audit: &'a Json, action: &str) -> &'a Json {
    let entries: Vec<_> =
        audit["entries"].as_array().unwrap().iter().filter(|entry| entry["action"] == action).collect();
    let [entry] = entries[..] else { panic!("{action}: {audit}") };
    entry
}

// spec: EX-11, EX-12, EX-13
#[tokio::test]
async fn audit_has_the_trail_of_the_log_and_the_requests_of_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let log = RequestLog::open(folder.path().join("requests.jsonl")).unwrap();
    let options = ServerOptions::default().with_request_log(log);
    let site = World::new().site_with(options, TokenLimits::default());
    let run = site.run("step Paris").await;
    let other = site.run("hello").await;
    let question = site.get("/v1/approvals").await.body["approvals"][0]["request_id"].clone();
    let path = format!("/v1/approvals/{}/answer", question.as_str().unwrap());
    let answer = Ask::post(&path, &json!({ "answer": "approve" })).by("operator");
    assert_eq!(site.send(answer).await.status, StatusCode::OK);
    site.runs.reply(&run).await.ended();
    assert_eq!(site.post(&format!("/v1/runs/{run}/resume"), json!({})).await.refusal(), (409, "conflict"));

    let audit_of_run = audit(&site, &run).await;
    assert_eq!(
        (&audit_of_run["run"], &audit_of_run["agent"], &audit_of_run["damage"]),
        (&json!(run), &json!("walker"), &Json::Null)
    );
    let asked = entry(&audit_of_run, "asked");
    assert_eq!((&asked["target"], &asked["outcome"]), (&question, &json!("approve")));
    let called = entry(&audit_of_run, "tool_called");
    assert_eq!((&called["target"], &called["outcome"]), (&json!("step"), &json!("success")));
    assert_eq!((&called["effect"], &called["call"]), (&json!("side_effect"), &asked["call"]));
    let answered = entry(&audit_of_run, "answered");
    assert_eq!((&answered["actor"], &answered["target"]), (&json!("person"), &question));
    assert!(entry(&audit_of_run, "resumed")["at"].is_u64());

    let requests = audit_of_run["requests"].as_array().unwrap();
    let line = |request: &Json| {
        let field = |name: &str| request[name].as_str().unwrap_or("-").to_owned();
        format!("{} {} {} {}", field("token"), field("path"), request["status"], field("rule"))
    };
    assert_eq!(
        requests.iter().map(line).collect::<Vec<_>>(),
        [
            "admin /v1/runs 201 -".to_owned(),
            format!("operator {path} 200 -"),
            format!("admin /v1/runs/{run}/resume 409 conflict"),
        ]
    );
    let of_other = audit(&site, &other).await;
    assert_eq!(of_other["requests"].as_array().unwrap().len(), 1);
    assert_eq!(entry(&of_other, "ended")["outcome"], "finished");
}

// spec: EX-12
#[tokio::test]
async fn audit_has_a_request_whose_path_is_encoded() {
    let folder = tempfile::tempdir().unwrap();
    let log = RequestLog::open(folder.path().join("requests.jsonl")).unwrap();
    let options = ServerOptions::default().with_request_log(log);
    let site = World::new().site_with(options, TokenLimits::default());
    let run = site.run("hello").await;
    let encoded: String = run.as_str().bytes().map(|byte| format!("%{byte:02X}")).collect();
    let path = format!("/v1/runs/{encoded}/resume");
    assert_eq!(site.post(&path, json!({})).await.refusal(), (409, "conflict"));
    let requests = audit(&site, &run).await["requests"].clone();
    assert_eq!((&requests[1]["path"], &requests[1]["target"]), (&json!(path), &json!(run)));
}

// spec: EX-12
#[tokio::test]
async fn write_whose_client_goes_away_is_carried_out_and_noted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.jsonl");
    let options = ServerOptions::default().with_request_log(RequestLog::open(&file).unwrap());
    let site = World::new().site_with(options, TokenLimits::default());
    let (go, wait) = tokio::sync::oneshot::channel();
    let body = stream::once(async move {
        wait.await.map_err(std::io::Error::other)?;
        Ok::<_, std::io::Error>(Bytes::from_static(b"{\"text\": \"hello\"}"))
    });
    let mut request = Ask::new("POST", "/v1/runs").request();
    *request.body_mut() = Body::from_stream(body);
    assert!(site.send_request(request).now_or_never().is_none(), "the body has not arrived");
    go.send(()).unwrap();
    while std::fs::read_to_string(&file).unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let run = site.runs.list(&RunFilter::all()).await.unwrap().remove(0).run_id;
    assert_eq!(audit(&site, &run).await["requests"][0]["status"], 201);
}

// spec: EX-12
#[cfg(target_os = "linux")]
#[tokio::test]
async fn write_that_cannot_be_noted_because_the_disk_is_full_is_answered_as_ever() {
    let log = RequestLog::open("/dev/full").unwrap();
    let options = ServerOptions::default().with_request_log(log);
    let site = World::new().site_with(options, TokenLimits::default());
    let run = site.run("step Paris").await;
    site.approve().await;
    assert!(site.runs.reply(&run).await.ended().is_finished());
    assert_eq!(site.world.steps(), 1);
    assert_eq!(site.post(&format!("/v1/runs/{run}/resume"), json!({})).await.refusal(), (409, "conflict"));
}

// spec: EX-12
#[tokio::test]
async fn audit_without_a_log_of_requests_has_none_and_a_cancel_still_names_the_token() {
    let site = World::new().site();
    let run = site.start("wait").await;
    site.world.gate.entered().await;
    let cancel = json!({ "reason": "wrong customer" });
    let cancel = Ask::post(&format!("/v1/runs/{run}/cancel"), &cancel).by("operator");
    assert_eq!(site.send(cancel).await.status, StatusCode::ACCEPTED);
    site.runs.reply(&run).await.ended();
    let audit_of_run = audit(&site, &run).await;
    assert_eq!(audit_of_run["requests"], Json::Null);
    let cancelled = entry(&audit_of_run, "cancel_requested");
    assert_eq!(cancelled["outcome"], "wrong customer (cancelled by operator)");
    assert_eq!(entry(&audit_of_run, "ended")["outcome"], "cancelled");
}

// spec: EX-12
#[tokio::test]
async fn prune_with_summaries_leaves_a_line_of_each_run_and_those_that_matter() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("summaries.jsonl");
    let site = World::new().site();
    let usual = site.run("hello").await;
    let important = site.run("refund").await;
    let asked = site.run("step Paris").await;
    site.approve().await;
    site.runs.reply(&asked).await.ended();
    let is_important = |head: &archon::types::RunHead| head.task == "refund";
    let later = Timestamp::from_millis(u64::MAX);

    let nowhere = folder.path().join("none/summaries.jsonl");
    assert!(site.runs.prune_with_summaries(later, &nowhere, is_important).await.is_err());
    let removed =
        site.runs.prune_with_summaries(Timestamp::from_millis(0), &file, is_important).await.unwrap();
    assert_eq!(removed.runs, [] as [archon::RunId; 0]);
    let removed = site.runs.prune_with_summaries(later, &file, is_important).await.unwrap();
    assert_eq!((removed.runs, removed.failures.len()), (vec![usual.clone()], 0));

    let lines = std::fs::read_to_string(&file).unwrap();
    let summary: Json = serde_json::from_str(lines.strip_suffix('\n').unwrap()).unwrap();
    assert_eq!((&summary["run"]["run_id"], &summary["run"]["task"]), (&json!(usual), &json!("hello")));
    assert_eq!((&summary["agent"], &summary["turns"]), (&json!("walker"), &json!(1)));
    assert_eq!(summary["spent"]["cost_micros"], 140);
    for (run, is_there) in [(usual, false), (important, true), (asked, true)] {
        assert_eq!(site.runs.get(&run).await.is_ok(), is_there, "{run}");
    }
}

// spec: EX-12
#[tokio::test]
async fn prune_with_summaries_of_a_run_that_a_fork_needs_leaves_one_line_after_two_calls() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("summaries.jsonl");
    let site = World::new().site();
    let run = site.run("hello").await;
    let fork = site.post(&format!("/v1/runs/{run}/fork"), json!({})).await;
    assert_eq!(fork.status, StatusCode::CREATED, "{}", fork.body);
    let later = Timestamp::from_millis(u64::MAX);
    for _ in 0..2 {
        let removed = site.runs.prune_with_summaries(later, &file, |_| false).await.unwrap();
        assert_eq!((removed.runs.len(), removed.failures.len()), (0, 1));
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1);
}
