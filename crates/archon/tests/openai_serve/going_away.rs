//! Clients that go away, and a server that ends.

use archon::{
    RunId,
    types::{Json, OutcomeStatus, RecordBody, RunFilter, StartRuns},
};
use archon_testkit::Ended;
use futures_util::StreamExt;
use serde_json::json;

use crate::site::{CHAT, RESPONSES, Site};

fn chat() -> Json {
    json!({ "model": "desk", "messages": [{ "role": "user", "content": "wait" }] })
}

fn response() -> Json {
    json!({ "model": "desk", "input": "wait" })
}

fn streaming(mut body: Json) -> Json {
    body["stream"] = json!(true);
    body
}

/// Sends a request whose run waits in a tool, and closes the connection. Returns the run.
async fn leave(site: &Site, path: &str, body: &Json, key: Option<&str>) -> RunId {
    let request = Site::request("POST", path, body, key);
    if body["stream"] == json!(true) {
        let mut frames = site.open(request).await.into_body().into_data_stream();
        frames.next().await.unwrap().unwrap();
        site.desk.gate.entered.acquire().await.unwrap().forget();
        site.running().await
    } else {
        let router = site.router.clone();
        let task = tokio::spawn(async move { tower::ServiceExt::oneshot(router, request).await });
        site.desk.gate.entered.acquire().await.unwrap().forget();
        let run = site.running().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        run
    }
}

/// Waits until the log of a run has a cancel.
async fn until_cancelled(site: &Site, run: &RunId) {
    loop {
        let log = site.log(run).await;
        if log.iter().any(|record| matches!(record.body, RecordBody::CancelRequested { .. })) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn run_of_a_client_that_goes_away_is_cancelled() {
    let site = Site::new();
    for (path, body) in [
        (CHAT, chat()),
        (CHAT, streaming(chat())),
        (RESPONSES, response()),
        (RESPONSES, streaming(response())),
    ] {
        let run = leave(&site, path, &body, None).await;
        until_cancelled(&site, &run).await;
        site.desk.gate.open.add_permits(1);
        let outcome = site.desk.runs.reply(&run).await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Cancelled, "{path} {body}");
        // The tool may have ended without the permit.
        if let Ok(permit) = site.desk.gate.open.try_acquire() {
            permit.forget();
        }
    }
}

#[tokio::test]
async fn run_of_a_client_that_goes_away_while_it_starts_is_cancelled() {
    let site = Site::new();
    let body = json!({ "model": "desk", "input": "wait slowly" });
    let (router, request) = (site.router.clone(), Site::request("POST", RESPONSES, &body, None));
    let task = tokio::spawn(async move { tower::ServiceExt::oneshot(router, request).await });
    // A filter checks the prompt.
    site.desk.gate.entered.acquire().await.unwrap().forget();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    site.desk.gate.open.add_permits(1);
    let run = loop {
        match site.desk.runs.list(&RunFilter::all()).await.unwrap().pop() {
            Some(head) => break head.run_id,
            None => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
        }
    };
    until_cancelled(&site, &run).await;
    site.desk.gate.open.add_permits(1);
    assert_eq!(site.desk.runs.reply(&run).await.ended().status, OutcomeStatus::Cancelled);
}

#[tokio::test]
async fn run_with_a_key_and_background_run_go_on_without_their_client() {
    let site = Site::new();
    let background = |mut body: Json| {
        body["background"] = json!(true);
        body
    };
    for (path, body, key) in [
        (CHAT, chat(), Some("k1")),
        (CHAT, streaming(chat()), Some("k2")),
        (RESPONSES, response(), Some("k3")),
        (RESPONSES, background(streaming(response())), None),
    ] {
        let run = leave(&site, path, &body, key).await;
        site.desk.gate.open.add_permits(1);
        assert!(site.desk.runs.reply(&run).await.ended().is_finished(), "{path} {body}");
        if let Some(key) = key {
            let again = site.send(Site::request("POST", path, &chat_or_response(path), Some(key))).await;
            assert!(again.status.is_success() && again.run() == run, "{again:?}");
        }
    }
}

/// Returns the request again, not streamed.
fn chat_or_response(path: &str) -> Json {
    if path == CHAT { chat() } else { response() }
}

#[tokio::test]
async fn server_that_ends_leaves_its_runs_at_work_and_names_them() {
    let site = Site::new();
    let (router, request) = (site.router.clone(), Site::request("POST", CHAT, &chat(), None));
    let waiting = tokio::spawn(async move { tower::ServiceExt::oneshot(router, request).await.unwrap() });
    site.desk.gate.entered.acquire().await.unwrap().forget();
    let run = site.running().await;
    site.end.cancel();
    let ended = waiting.await.unwrap();
    assert_eq!((ended.status().as_u16(), ended.headers()["x-should-retry"].as_bytes()), (503, &b"false"[..]));
    assert_eq!(ended.headers()["x-archon-run"], run.as_str());
    site.desk.gate.open.add_permits(1);
    assert!(site.desk.runs.reply(&run).await.ended().is_finished());
}
