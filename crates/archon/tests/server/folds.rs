//! The stream of a run folds to the transcript and the bill of its log: live, late, and after a reconnect at any record.

use std::{collections::BTreeSet, sync::Arc};

use archon::{
    RunId, Runs,
    server::{ServerOptions, TokenLimits, axum::http::StatusCode},
    types::{ExecutionLimits, ModelEvent, ProviderError, Record, RecordBody, Request, StartRuns, ToolCall},
    views::{ConversationRound, RunReport, Session},
};
use archon_testkit::{FnProvider, cases, first_seed};
use serde_json::json;

use crate::{
    forks::{self, Effects, is_long, situations},
    world::{Ask, Sent, Site, World, records, with_usage},
};

/// The transcript and the bill of a run.
#[derive(Debug, PartialEq)]
struct Folded {
    sessions: Vec<Session>,
    rounds: Vec<ConversationRound>,
    report: RunReport,
}

impl Folded {
    fn of(log: &[Arc<Record>]) -> Self {
        Self {
            sessions: Session::of_logs([log]),
            rounds: ConversationRound::of(log),
            report: RunReport::of(log).unwrap(),
        }
    }
}

/// Reads the records of the watched run back from what was sent.
fn read(sent: &[Sent]) -> Vec<Arc<Record>> {
    let record = |mut sent: Sent| {
        sent.data.as_object_mut().unwrap().remove("run_id");
        Arc::new(serde_json::from_value(sent.data).unwrap())
    };
    records(sent).into_iter().map(record).collect()
}

/// The number of sorts of runs: four of the runs that are forked elsewhere, and one of each sort below.
const SORTS: u64 = 8;
const CHILD: u64 = 4;
const CANCELLED: u64 = 5;
const LIMITED: u64 = 6;
const FAILED: u64 = 7;

/// Calls the tool `wait`, and then cannot be reached.
fn broken_model(number: usize, _: &Request) -> Vec<Result<ModelEvent, ProviderError>> {
    match number {
        0 => with_usage(FnProvider::calls(vec![ToolCall::new("c", "wait", json!({}))])),
        _ => vec![Err(ProviderError::Auth("the key has ended".into()))],
    }
}

/// Returns a server and the body of the request that starts the run with this number.
fn prepare(number: u64) -> (Site, serde_json::Value) {
    let world = World::new();
    let of_agent = |agent: archon::ArchonBuilder| {
        let limits = TokenLimits::default().with_requests_per_minute(100_000);
        world.site_of(Runs::new(agent.build().unwrap()), ServerOptions::default(), limits)
    };
    match number % SORTS {
        CHILD => (world.site(), json!({ "text": format!("delegate hello {number}"), "agent": "boss" })),
        CANCELLED => (world.site(), json!({ "text": "wait" })),
        LIMITED => {
            let limits = ExecutionLimits::default().with_max_turns(1);
            (of_agent(world.builder("walker").limits(limits)), json!({ "text": "wait" }))
        }
        FAILED => {
            let model = Arc::new(FnProvider::new(broken_model));
            (of_agent(world.builder("walker").provider(model, "scripted")), json!({ "text": "wait" }))
        }
        _ => {
            let agent = if is_long(number) { "narrow" } else { "wide" };
            let body = json!({ "text": format!("work {number}"), "agent": agent });
            (forks::site(&Effects::default()), body)
        }
    }
}

/// Brings a run to its end: says yes to its questions, and cancels it if it is of that sort.
async fn finish(site: &Site, run: &RunId, sort: u64) {
    if [CANCELLED, LIMITED, FAILED].contains(&sort) {
        site.world.gate.entered().await;
        match sort {
            CANCELLED => drop(site.post(&format!("/v1/runs/{run}/cancel"), json!({})).await),
            _ => site.world.gate.open(),
        }
    }
    loop {
        drop(site.runs.reply(run).await);
        let open = site.get("/v1/approvals?provenance=false").await.body;
        let Some(request) = open["approvals"][0]["request_id"].as_str() else { break };
        let path = format!("/v1/approvals/{request}/answer");
        let answer = site.post(&path, json!({ "answer": "approve" })).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }
}

/// Watches a run at work, with a new connection after each record.
async fn reconnecting(site: &Site, run: &RunId) -> Vec<Sent> {
    let mut all: Vec<Sent> = Vec::new();
    while all.last().is_none_or(|last| last.data["type"] != "run_finished") {
        let mut frames = site.watch(run, all.last().and_then(|last| last.id)).await;
        loop {
            let sent = frames.next().await.unwrap();
            assert!(["record", "delta"].contains(&sent.name.as_str()), "{sent:?} after {all:?}");
            if sent.id.is_some() {
                all.push(sent);
                break;
            }
        }
    }
    all
}

/// Watches a run late, and again after each of its records.
async fn check_late(site: &Site, run: &RunId, log: &[Arc<Record>], whole: &Folded) {
    let late = read(&site.watch(run, None).await.rest().await);
    assert_eq!(&Folded::of(&late), whole, "late");
    for (at, record) in log.iter().enumerate().take(log.len() - 1) {
        let rest = read(&site.watch(run, Some(record.seq)).await.rest().await);
        let both = [&log[..=at], &rest[..]].concat();
        assert_eq!(&Folded::of(&both), whole, "after record {at}");
    }
    let over = Ask::get(&format!("/v1/runs/{run}/events?after={}", log.len() - 1));
    assert_eq!(site.send(over).await.status, StatusCode::NO_CONTENT);
}

/// Checks that the bill over HTTP is that of the log.
async fn check_bill(site: &Site, run: &RunId, report: &RunReport) {
    let bill = site.get(&format!("/v1/runs/{run}/usage")).await.body;
    let outcome = &report.outcome;
    assert_eq!((&bill["usage"], &bill["is_final"]), (&json!(outcome.usage), &json!(true)));
    assert_eq!(bill["cost_micros"], json!(outcome.cost_micros));
    assert_eq!(bill["child_spending"], json!(outcome.child_spending));
}

// spec: EX-09, OB-07, OB-09
#[tokio::test]
async fn stream_folds_to_the_transcript_and_the_bill_of_the_log() {
    let (mut met, mut ends) = (BTreeSet::new(), BTreeSet::new());
    for number in first_seed()..first_seed() + cases(2 * SORTS, 200) {
        let (site, body) = prepare(number);
        let started = site.post("/v1/runs", body).await;
        assert_eq!(started.status, StatusCode::CREATED, "run {number}: {}", started.body);
        let run = RunId::new(started.body["run"].as_str().unwrap());
        let mut live = site.watch(&run, None).await;
        let (live, again, ()) =
            tokio::join!(live.rest(), reconnecting(&site, &run), finish(&site, &run, number % SORTS));
        let log = site.world.log(&run).await;
        let whole = Folded::of(&log);
        assert_eq!(Folded::of(&read(&live)), whole, "run {number}, live");
        assert_eq!(Folded::of(&read(&again)), whole, "run {number}, live with reconnects");
        check_late(&site, &run, &log, &whole).await;
        check_bill(&site, &run, &whole.report).await;
        assert!(whole.report.outcome.cost_micros > Some(0), "run {number}: {:?}", whole.report.outcome);
        met.extend(situations(&site, &run).await);
        let calls_a_run = |body: &RecordBody| matches!(body, RecordBody::ToolCallFinished { result, .. } if result.child_run.is_some());
        if log.iter().any(|record| calls_a_run(&record.body)) {
            met.insert("child run");
        }
        ends.insert(live.last().unwrap().data["status"].as_str().unwrap().to_owned());
    }
    for sort in forks::MET.into_iter().chain(["cancel_requested", "child run"]) {
        assert!(met.contains(sort), "no run had {sort}: {met:?}");
    }
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), ["cancelled", "failed", "finished", "limit"]);
}
