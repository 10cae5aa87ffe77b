//! The server killed while many runs are at work: the next one goes on with all of them, and no effect happens twice.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use archon_testkit::{MockResponse, MockServer, RecordedRequest, cases};
use rustix::process::Signal;
use serde_json::json;

use super::client::{Served, settle};
use crate::setup::{Place, answer, asks_for};

/// Effects of a run.
const EFFECTS: usize = 3;
/// The maximum time for all runs to end after the kill.
const PATIENCE: Duration = Duration::from_secs(900);

/// Says what follows from the request alone. Until the kill, each run gets no further than to its second or third
/// question to the model.
fn reply(request: &RecordedRequest, is_killed: bool) -> MockResponse {
    let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let prompt = messages.iter().find(|message| message["role"] == "user").map(|message| &message["content"]);
    let prompt = prompt.map(ToString::to_string).unwrap_or_default();
    let number: usize = prompt.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0);
    let done = messages.iter().filter(|message| message["role"] == "tool").count();
    if !is_killed && done > number % 2 {
        return MockResponse::new(200).hang();
    }
    if done == EFFECTS {
        return answer("It is done.");
    }
    asks_for("bash", &json!({ "command": format!("echo {number}-{done} >> ledger") }).to_string())
}

fn ledger(place: &Place) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for line in std::fs::read_to_string(place.path("ledger")).unwrap_or_default().lines() {
        *counted.entry(line.to_owned()).or_default() += 1;
    }
    counted
}

/// Answers questions about calls in doubt until every run has ended, and returns how many there were.
async fn until_all_have_ended(served: &Served, count: usize) -> usize {
    let mut answered = 0;
    let ended = async {
        loop {
            for question in served.questions().await {
                // Whoever does not know whether it happened says no.
                answered += usize::from(served.answer(&question, "cancel").await.status == 200);
            }
            let finished = served.get("/v1/runs?status=finished&limit=500").await.body;
            if finished["runs"].as_array().is_some_and(|runs| runs.len() == count) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, ended).await.is_err() {
        panic!("some runs did not end: {:?}", served.get("/v1/runs?limit=500").await);
    }
    answered
}

// spec: A-06
#[tokio::test]
async fn serve_after_a_kill_goes_on_with_all_runs_and_no_effect_happens_twice() {
    if let Some(missing) = archon::tools::sandbox::missing() {
        eprintln!("SKIP: {missing}");
        return;
    }
    let count = usize::try_from(cases(8, 200)).unwrap();
    let is_killed = Arc::new(AtomicBool::new(false));
    let killed = is_killed.clone();
    let model = MockServer::answering(move |request| reply(request, killed.load(Ordering::SeqCst))).await;
    let place = Place::new();
    settle(&place, &model, "tools = ['bash']\n[permissions]\nallow = ['bash']");
    let first = Served::start(&place, &[]).await;
    for number in 0..count {
        first.start_run(&format!("Work {number} now.")).await;
    }
    while ledger(&place).len() < count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(first.end(Signal::KILL).await, None);
    is_killed.store(true, Ordering::SeqCst);

    let next = Served::start(&place, &[]).await;
    let in_doubt = until_all_have_ended(&next, count).await;
    let effects = ledger(&place);
    for (effect, times) in &effects {
        assert_eq!(*times, 1, "{effect}: {effects:?}");
    }
    // An effect in doubt was denied, and may not have happened.
    let missing = count * EFFECTS - effects.len();
    assert!(missing <= in_doubt, "{missing} effects are missing, {in_doubt} were in doubt: {effects:?}");
    assert_eq!(next.end(Signal::TERM).await, Some(0));
    model.assert_paired();
    eprintln!("{count} runs were at work at the kill: all ended, no effect twice, {in_doubt} were in doubt");
}
