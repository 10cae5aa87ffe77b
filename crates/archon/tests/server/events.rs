//! The stream of events of a run is its log: live, late, after a reconnect, and while the run waits.

use std::time::Duration;

use archon::{
    Event, RunId,
    server::{ServerOptions, TokenLimits, axum::http::StatusCode},
    types::{Answer, AnswerRuns, DeltaKind, Json, StartRuns},
};
use archon_testkit::Ended;
use futures_util::future::join_all;
use serde_json::json;

use crate::world::{Ask, PIECES, Sent, Site, World, as_sent, records};

/// Returns the pieces of the answers' text.
pub(crate) fn texts(sent: &[Sent]) -> Vec<String> {
    let deltas = sent.iter().filter(|sent| sent.name == "delta");
    let deltas = deltas.map(|sent| serde_json::from_value::<Event>(sent.data.clone()).unwrap());
    deltas.filter_map(|event| event.as_text().map(str::to_owned)).collect()
}

/// The last event of the stream of a run with this status.
pub(crate) fn end(status: &str) -> Sent {
    Sent { id: None, name: "end".to_owned(), data: json!({ "status": status }) }
}

/// Watches a run late, and again after each of its records.
async fn check_late(site: &Site, run: &RunId) {
    let log = as_sent(run, &site.world.log(run).await);
    let mut late = site.watch(run, None).await.rest().await;
    // The process that worked on the run may still have pieces of its last answer.
    late.retain(|sent| sent.name != "delta");
    assert_eq!(late, [&log[..], &[end("finished")]].concat());
    let (last, before) = log.split_last().unwrap();
    for record in before {
        let seq = record.id.unwrap();
        let rest = site.watch(run, Some(seq)).await.rest().await;
        assert_eq!(records(&rest), log[usize::try_from(seq).unwrap() + 1..], "after {seq}");
        assert_eq!(rest.last(), Some(&end("finished")), "after {seq}");
    }
    let over =
        Ask::get(&format!("/v1/runs/{run}/events")).with("last-event-id", &last.id.unwrap().to_string());
    assert_eq!(site.send(over).await.status, StatusCode::NO_CONTENT);
}

// spec: EX-09, OB-07
#[tokio::test]
async fn events_are_the_log_live_late_and_after_a_reconnect_at_any_record() {
    let site = World::new().site();
    for text in ["hello", "wait", "step Paris", "say more"] {
        let run = site.start(text).await;
        let mut live = site.watch(&run, None).await;
        let seen = match text {
            "wait" => {
                site.world.gate.entered().await;
                site.world.gate.open();
                live.rest().await
            }
            "step Paris" => {
                let before = live.until("suspended").await;
                drop(site.runs.reply(&run).await);
                site.approve().await;
                [before, live.rest().await].concat()
            }
            _ => live.rest().await,
        };
        let log = as_sent(&run, &site.world.log(&run).await);
        assert_eq!(records(&seen), log);
        assert_eq!(seen.last(), Some(&end("finished")));
        check_late(&site, &run).await;
    }
}

#[tokio::test]
async fn stream_of_a_suspended_run_goes_on_once_a_request_answers_the_question() {
    let site = World::new().site();
    let run = site.run("step Paris").await;
    let mut events = site.watch(&run, None).await;
    events.until("suspended").await;
    // Two sleepers: the heartbeat, and the look for another process.
    let (next, ()) = tokio::join!(events.next(), async {
        site.clock.until_asleep(2).await;
        site.approve().await;
    });
    let rest = [vec![next.unwrap()], events.rest().await].concat();
    let log = as_sent(&run, &site.world.log(&run).await);
    assert_eq!(records(&rest), log[log.len() - records(&rest).len()..]);
    assert_eq!((rest.last(), site.world.steps()), (Some(&end("finished")), 1));
}

#[tokio::test]
async fn stream_of_a_suspended_run_goes_on_when_another_part_of_the_program_resumes_it() {
    let site = World::new().site();
    let run = site.run("step Paris").await;
    let mut events = site.watch(&run, None).await;
    events.until("suspended").await;
    let (next, ()) = tokio::join!(events.next(), async {
        site.clock.until_asleep(2).await;
        let open = site.runs.questions(None).await.unwrap().remove(0);
        assert!(site.runs.answer(&open.request.request_id, Answer::Approve).await.unwrap());
        site.runs.reply(&run).await.ended();
        site.clock.advance(Duration::from_secs(2));
    });
    let rest = [vec![next.unwrap()], events.rest().await].concat();
    assert_eq!(rest.last(), Some(&end("finished")));
}

#[tokio::test]
async fn stream_sends_a_comment_while_nothing_happens() {
    let site = World::new().site();
    let run = site.run("step Paris").await;
    let mut events = site.watch(&run, None).await;
    events.until("suspended").await;
    let (frame, ()) = tokio::join!(events.frame(), async {
        site.clock.until_asleep(2).await;
        site.clock.advance(Duration::from_secs(15));
    });
    assert_eq!(frame.as_deref(), Some(": alive\n\n"));
}

#[tokio::test]
async fn stream_without_an_end_event_ends_with_the_server() {
    let site = World::new().site();
    let run = site.run("step Paris").await;
    let mut events = site.watch(&run, None).await;
    let seen = events.until("suspended").await;
    let (rest, ()) = tokio::join!(events.rest(), async {
        site.clock.until_asleep(2).await;
        site.server.end().cancel();
    });
    assert_eq!(rest, []);
    // The next server goes on where this one ended.
    let next = site.world.site();
    let last = seen.last().and_then(|sent| sent.id);
    let mut events = next.watch(&run, last).await;
    next.approve().await;
    let rest = events.rest().await;
    assert_eq!([records(&seen), records(&rest)].concat(), as_sent(&run, &next.world.log(&run).await));
}

#[tokio::test]
async fn slow_watcher_gets_every_record_all_of_the_text_and_fewer_pieces() {
    let site = World::new().site();
    let run = site.start("wait").await;
    site.world.gate.entered().await;
    let mut slow = site.watch(&run, None).await;
    // The watcher is there from here on, and reads nothing until the run has ended.
    slow.frame().await.unwrap();
    slow.next().await.unwrap();
    site.world.gate.open();
    let answer = site.runs.reply(&run).await.ended();
    let rest = slow.rest().await;
    let log = as_sent(&run, &site.world.log(&run).await);
    assert_eq!(records(&rest), log[1..]);
    let pieces = texts(&rest);
    assert_eq!(Some(pieces.concat().as_str()), answer.answer());
    assert!(pieces.len() < PIECES / 2, "{} pieces", pieces.len());
}

#[tokio::test]
async fn many_watchers_see_the_same_log() {
    let site = World::new().site();
    let run = site.start("wait").await;
    site.world.gate.entered().await;
    let mut watchers = Vec::new();
    for _ in 0..50 {
        watchers.push(site.watch(&run, None).await);
    }
    site.world.gate.open();
    let seen = join_all(watchers.iter_mut().map(|watcher| watcher.rest())).await;
    let log = as_sent(&run, &site.world.log(&run).await);
    for seen in seen {
        assert_eq!(records(&seen), log);
    }
}

#[tokio::test]
async fn events_of_child_runs_come_on_request_and_have_no_id() {
    let site = World::new().site();
    for children in [false, true] {
        let started = site.post("/v1/runs", json!({ "text": "delegate wait", "agent": "boss" })).await.body;
        let run = RunId::new(started["run"].as_str().unwrap());
        let mut events = site.watch_as(Ask::get(&format!("/v1/runs/{run}/events?children={children}"))).await;
        let before = events.until("suspended").await;
        drop(site.runs.reply(&run).await);
        site.approve().await;
        let started = events.until("tool_call_started").await;
        site.world.gate.entered().await;
        site.world.gate.open();
        let seen = [before, started, events.rest().await].concat();
        assert_eq!(records(&seen), as_sent(&run, &site.world.log(&run).await));
        let of_others: Vec<_> =
            seen.iter().filter(|sent| sent.name != "end" && sent.data["run_id"] != json!(run)).collect();
        assert_eq!(!of_others.is_empty(), children, "{seen:?}");
        assert!(of_others.iter().all(|sent| sent.id.is_none()));
    }
}

#[tokio::test]
async fn streams_of_a_token_have_a_limit_until_one_is_closed() {
    let limits = TokenLimits::default().with_watchers(1);
    let site = World::new().site_with(ServerOptions::default(), limits);
    let run = site.run("step Paris").await;
    let first = site.watch(&run, None).await;
    let watch = || Ask::get(&format!("/v1/runs/{run}/events"));
    assert_eq!(site.send(watch()).await.refusal(), (429, "watcher-limit"));
    drop(site.watch_as(watch().by("auditor")).await);
    drop(first);
    drop(site.watch_as(watch()).await);
}

#[tokio::test]
async fn last_event_id_that_is_no_number_is_refused() {
    let site = World::new().site();
    let run = site.run("hello").await;
    let watch = Ask::get(&format!("/v1/runs/{run}/events"));
    assert_eq!(site.send(watch.clone().with("last-event-id", "x")).await.refusal(), (400, "header"));
    assert_eq!(
        site.send(watch.with("last-event-id", "1").and("last-event-id", "2")).await.refusal(),
        (400, "header")
    );
    assert_eq!(site.get(&format!("/v1/runs/{run}/events?after=x")).await.refusal(), (400, "query"));
}

#[tokio::test]
async fn delta_names_the_run_and_its_kind() {
    let site = World::new().site();
    let run = site.start("wait").await;
    site.world.gate.entered().await;
    let mut events = site.watch(&run, None).await;
    site.world.gate.open();
    let seen = events.rest().await;
    let delta = seen.iter().find(|sent| sent.name == "delta").unwrap();
    assert_eq!((delta.id, &delta.data["run_id"]), (None, &json!(run)));
    let Event::Delta(delta) = serde_json::from_value::<Event>(delta.data.clone()).unwrap() else { panic!() };
    assert!(matches!(delta.kind, DeltaKind::Text { .. } | DeltaKind::ToolCallStarted { .. }), "{delta:?}");
    assert!(seen.iter().all(|sent| sent.data != Json::Null));
}
