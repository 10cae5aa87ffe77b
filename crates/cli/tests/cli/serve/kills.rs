//! The server killed while many runs are at work and others wait for a person: the next one goes on with all that were at
//! work, each question still waits, and no effect happens twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use archon_testkit::{MockResponse, MockServer, RecordedRequest, cases, may_skip};
use rustix::process::Signal;
use serde_json::json;

use super::client::{Served, settle};
use crate::setup::{Place, answer, asks_for};

/// Effects of a run.
const EFFECTS: usize = 3;
/// Of so many runs, one asks a person about its second effect.
const ONE_OF: usize = 3;
/// The maximum time for all runs to end after the kill.
const PATIENCE: Duration = Duration::from_secs(900);

/// Returns true for a run that asks a person about its second effect.
fn asks(number: usize) -> bool {
    number.is_multiple_of(ONE_OF)
}

/// Says what follows from the request alone. Until the kill, a run that asks a person gets no further than to its question,
/// and each other run no further than to its second or third question to the model.
fn reply(request: &RecordedRequest, is_killed: bool) -> MockResponse {
    let messages = request.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let prompt = messages.iter().find(|message| message["role"] == "user").map(|message| &message["content"]);
    let prompt = prompt.map(ToString::to_string).unwrap_or_default();
    let number: usize = prompt.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0);
    let done = messages.iter().filter(|message| message["role"] == "tool").count();
    if !is_killed && !asks(number) && done > number % 2 {
        return MockResponse::new(200).hang();
    }
    if done == EFFECTS {
        return answer("It is done.");
    }
    let program = if asks(number) && done == 1 { "printf '%s\\n'" } else { "echo" };
    asks_for("bash", &json!({ "command": format!("{program} {number}-{done} >> ledger") }).to_string())
}

fn ledger(place: &Place) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for line in std::fs::read_to_string(place.path("ledger")).unwrap_or_default().lines() {
        *counted.entry(line.to_owned()).or_default() += 1;
    }
    counted
}

async fn open_questions(served: &Served) -> BTreeSet<String> {
    served.questions().await.into_iter().collect()
}

/// Waits until each run that asks has asked, and returns the questions.
async fn until_all_have_asked(served: &Served, count: usize) -> BTreeSet<String> {
    for _ in 0..3_000 {
        let open = open_questions(served).await;
        if open.len() == count {
            return open;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("not {count} runs have asked: {:?}", served.get("/v1/runs?limit=500").await)
}

/// Answers questions about calls in doubt, but none of those that wait, until so many runs have ended. Returns the
/// number of calls in doubt.
async fn until_ended(served: &Served, count: usize, waiting: &BTreeSet<String>) -> usize {
    let mut answered = 0;
    let ended = async {
        loop {
            for question in open_questions(served).await.difference(waiting) {
                // Whoever does not know whether it happened says no.
                answered += usize::from(served.answer(question, "cancel").await.status == 200);
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
async fn serve_after_a_kill_goes_on_with_all_runs_and_questions_and_no_effect_happens_twice() {
    if let Some(missing) = archon::tools::sandbox::missing() {
        assert!(may_skip(), "commands cannot run: {missing}");
        eprintln!("SKIP: {missing}");
        return;
    }
    let at_work = usize::try_from(cases(8, 200)).unwrap();
    let asking = at_work / (ONE_OF - 1);
    let count = at_work + asking;
    let is_killed = Arc::new(AtomicBool::new(false));
    let killed = is_killed.clone();
    let model = MockServer::answering(move |request| reply(request, killed.load(Ordering::SeqCst))).await;
    let place = Place::new();
    let rules = "[permissions]\nallow = ['bash']\nask = ['bash(printf:*)']";
    settle(&place, &model, &format!("tools = ['bash']\n{rules}"));
    let first = Served::start(&place, &[]).await;
    for number in 0..count {
        first.start_run(&format!("Work {number} now.")).await;
    }
    let waiting = until_all_have_asked(&first, asking).await;
    while ledger(&place).len() < count {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(first.end(Signal::KILL).await, None);
    is_killed.store(true, Ordering::SeqCst);

    let next = Served::start(&place, &[]).await;
    assert!(open_questions(&next).await.is_superset(&waiting), "a question is missing: {waiting:?}");
    let in_doubt = until_ended(&next, at_work, &waiting).await;
    assert_eq!(open_questions(&next).await, waiting);
    let asked = (0..count).filter(|number| asks(*number)).map(|number| format!("{number}-1"));
    let asked: Vec<String> = asked.collect();
    let before = ledger(&place);
    assert!(!asked.iter().any(|effect| before.contains_key(effect)), "nobody agreed: {before:?}");
    for question in &waiting {
        let approved = next.answer(question, "approve").await;
        assert_eq!(approved.status, 200, "{approved:?}");
    }
    assert_eq!(until_ended(&next, count, &waiting).await, 0);
    check_effects(&ledger(&place), count, in_doubt, &asked);
    assert_eq!(next.end(Signal::TERM).await, Some(0));
    model.assert_paired();
    eprintln!(
        "{at_work} runs were at work at the kill and {asking} waited for a person: all ended, no effect twice, \
         {in_doubt} were in doubt"
    );
}

fn check_effects(effects: &BTreeMap<String, usize>, count: usize, in_doubt: usize, asked: &[String]) {
    for (effect, times) in effects {
        assert_eq!(*times, 1, "{effect}: {effects:?}");
    }
    for effect in asked {
        assert!(effects.contains_key(effect), "{effect} was approved: {effects:?}");
    }
    // An effect in doubt was denied, and may not have happened.
    let missing = count * EFFECTS - effects.len();
    assert!(missing <= in_doubt, "{missing} effects are missing, {in_doubt} were in doubt: {effects:?}");
}
