//! Forks over HTTP: from any turn and any record, with another message and by another agent, no effect of the
//! turns that are kept is repeated, and each log replays.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use archon::{
    Archon, ArchonBuilder, RunId, Runs, Tool, ToolContext, ToolError,
    react_loop::replay,
    server::{ServerOptions, TokenLimits, axum::http::StatusCode},
    tools::FnTool,
    types::{
        Answer, AnswerRuns, AskLater, CallId, ContextConfig, Effect, Json, Message, ModelEvent, ModelPrice,
        MoreLimits, ProviderError, Record, RecordBody, Request, RunStarted, RunStatus, StartRuns,
        ToolAnnotations, ToolCall, ToolResult, ToolSpec,
    },
};
use archon_testkit::{Chance, Ended, FnProvider, VirtualClock, cases, first_seed};
use serde_json::json;

use crate::world::{Site, World};

#[tokio::test]
async fn fork_at_any_record_repeats_no_effect() {
    let site = World::new().site();
    let run = site.run("step Paris").await;
    site.approve().await;
    site.runs.reply(&run).await.ended();
    let log = site.world.log(&run).await;
    let acted =
        log.iter().position(|record| matches!(record.body, RecordBody::ToolCallStarted { .. })).unwrap();
    for record in 0..log.len() {
        let fork = site.post(&format!("/v1/runs/{run}/fork"), json!({ "record": record })).await;
        assert_eq!(fork.status, StatusCode::CREATED, "{}", fork.body);
        assert!(record < acted || fork.body["turns"].as_u64() >= Some(1), "record {record}: {}", fork.body);
        let fork = RunId::new(fork.body["run"].as_str().unwrap());
        site.post(&format!("/v1/runs/{fork}/resume"), json!({})).await;
        let status = site.runs.reply(&fork).await.map(|reply| reply.outcome().status);
        assert!(status.is_ok(), "record {record}: {status:?}");
    }
    // Before the effect, the fork asks a person again.
    assert_eq!(site.world.steps(), 1);
}

// spec: EX-10
#[tokio::test]
async fn fork_with_a_message_or_an_agent_has_them_and_wrong_bodies_are_refused() {
    let site = World::new().site();
    let run = site.run("hello").await;
    let path = format!("/v1/runs/{run}/fork");
    let body = json!({ "record": 1, "text": "goodbye", "agent": "boss" });
    let fork = site.post(&path, body).await;
    assert_eq!((fork.status, &fork.body["turns"]), (StatusCode::CREATED, &json!(0)), "{}", fork.body);
    assert_eq!((&fork.body["of"], &fork.body["wants_answer"]), (&json!(run), &json!(true)));
    let fork = RunId::new(fork.body["run"].as_str().unwrap());
    assert_eq!(RunStarted::of(&site.world.log(&fork).await).unwrap().agent.as_str(), "boss");
    let resumed = site.post(&format!("/v1/runs/{fork}/resume"), json!({})).await;
    assert_eq!(resumed.status, StatusCode::ACCEPTED, "{}", resumed.body);
    assert_eq!(site.runs.reply(&fork).await.ended().answer(), Some("done: goodbye"));

    let beyond = site.world.log(&run).await.len();
    for (body, refusal, detail) in [
        (json!({ "record": 1, "turns": 1 }), (422, "body"), "not both"),
        (json!({ "text": "a", "content": [{ "type": "text", "text": "b" }] }), (422, "body"), "not both"),
        (json!({ "model": "larger" }), (422, "body"), "unknown field `model`"),
        (json!({ "record": beyond }), (422, "refused"), "cannot be forked at record"),
        (json!({ "turns": 9, "text": "a" }), (422, "refused"), "cannot be forked after turn 9"),
        (json!({ "text": " " }), (422, "refused"), "the prompt is empty"),
        (json!({ "agent": "nobody" }), (422, "refused"), "no agent nobody is registered"),
    ] {
        let refused = site.post(&path, body.clone()).await;
        assert_eq!(refused.refusal(), refusal, "{body}: {refused:?}");
        assert!(refused.body["detail"].as_str().unwrap().contains(detail), "{body}: {refused:?}");
    }
}

/// The effects of tools: how often each happened, by run, turn and place in the turn.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<Mutex<BTreeMap<Key, usize>>>);

/// The number of a run, a turn, and a place in the turn.
type Key = (u64, u32, u64);

impl Effects {
    fn add(&self, key: Key) {
        *self.0.lock().unwrap().entry(key).or_default() += 1;
    }

    fn so_far(&self) -> BTreeMap<Key, usize> {
        self.0.lock().unwrap().clone()
    }
}

fn key(text: &str) -> Option<Key> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// A message in place of the prompt of a run begins the run with this distance of its number.
const OTHER: u64 = 1_000_000;

/// Every fourth run is long, and is worked on in a small window.
pub(crate) fn is_long(run: u64) -> bool {
    run % 4 == 3
}

fn turns_of(run: u64) -> u32 {
    if is_long(run) { 6 } else { 1 + Chance(run).below(4) as u32 }
}

/// The calls of a turn: up to three at once, some with a question, some whose tool fails at first.
fn calls_of(run: u64, turn: u32) -> Vec<ToolCall> {
    if turn >= turns_of(run) {
        return Vec::new();
    }
    let mut chance = Chance(run * 31 + u64::from(turn));
    let count = if is_long(run) { 2 } else { 1 + chance.below(3) };
    let call = |place: u64| {
        let name = ["act", "act", "flaky", "pay"][chance.below(4) as usize];
        let id = format!("{run}.{turn}.{place}");
        ToolCall::new(id.clone(), name, json!({ "key": id }))
    };
    (0..count).map(call).collect()
}

/// Returns the run and the turn that are due after the latest message that names them.
fn place_of(request: &Request) -> Option<(u64, u32)> {
    let place = |message: &Message| match message {
        Message::ToolResult(result) => {
            let (run, turn, _) = key(result.tool_call_id.as_str())?;
            Some((run, turn + 1))
        }
        Message::User(_) => Some((message.text().strip_prefix("work ")?.parse().ok()?, 0)),
        _ => None,
    };
    request.messages.iter().rev().find_map(|message| place(message))
}

/// Reports the tokens of an answer, but not those of its request, which would count for the window.
fn with_output(mut events: Vec<Result<ModelEvent, ProviderError>>) -> Vec<Result<ModelEvent, ProviderError>> {
    if let Some(Ok(ModelEvent::Done(message))) = events.last_mut() {
        message.usage.output = 20 + message.tool_calls().count() as u64;
    }
    events
}

/// Answers by the plan of the run. Some requests fail at first.
fn model() -> FnProvider {
    let failed = Mutex::new(BTreeSet::new());
    FnProvider::new(move |_, request| {
        let Some((run, turn)) = place_of(request).filter(|_| !request.tools.is_empty()) else {
            return with_output(FnProvider::text("A summary."));
        };
        if (run + u64::from(turn)) % 5 == 2 && failed.lock().unwrap().insert((run, turn)) {
            let (retry_after, message) = (Some(Default::default()), "slow".into());
            return vec![Err(ProviderError::RateLimited { retry_after, message })];
        }
        match calls_of(run, turn) {
            calls if calls.is_empty() => with_output(FnProvider::text("All done.")),
            calls => with_output(FnProvider::calls(calls)),
        }
    })
}

/// A tool whose effects are counted. A flaky one fails at its first call for each key, before the effect.
fn tool(name: &'static str, annotations: ToolAnnotations, effects: &Effects) -> Arc<dyn Tool> {
    let schema = json!({ "type": "object", "properties": { "key": { "type": "string" } } });
    let spec = ToolSpec::new(name, "Has an effect.", schema).with_annotations(annotations);
    let (effects, failed) = (effects.clone(), Arc::new(Mutex::new(BTreeSet::new())));
    Arc::new(FnTool::new(spec, move |arguments: Json, _: ToolContext| {
        let (effects, failed) = (effects.clone(), failed.clone());
        async move {
            let text = arguments["key"].as_str().unwrap_or_default().to_owned();
            let key = key(&text).unwrap();
            if name == "flaky" && failed.lock().unwrap().insert(key) {
                return Err(ToolError::Failed("connection reset".into()));
            }
            effects.add(key);
            Ok(ToolResult::success(format!("did {text} {}", "and more ".repeat(40))))
        }
    }))
}

/// A service with the agents `wide` and `narrow`, which have the same tools, and its server.
pub(crate) fn site(effects: &Effects) -> Site {
    let world = World::new();
    let mut flaky = ToolAnnotations::default();
    (flaky.effect, flaky.network) = (Effect::Idempotent, true);
    let tools = [
        tool("act", ToolAnnotations::default(), effects),
        tool("flaky", flaky, effects),
        tool("pay", ToolAnnotations::default().with_confirmation(), effects),
    ];
    let clock = VirtualClock::jumping();
    let builder = |id: &str| -> ArchonBuilder {
        Archon::builder()
            .agent_id(id)
            .provider(Arc::new(model()), "scripted")
            .price(ModelPrice::new(1_000_000, 2_000_000))
            .clock(Arc::new(clock.clone()))
            .approver(AskLater)
            .journal(Arc::new(world.journal.clone()))
            .tools(tools.clone())
    };
    let mut small = ContextConfig::new(1_000);
    (small.system_prompt_tokens, small.min_interval_ms) = (0, 0);
    let narrow = builder("narrow").context(Some(small)).build().unwrap();
    let runs = Runs::new(builder("wide").build().unwrap()).with_agent(narrow.run_agent());
    let limits = TokenLimits::default().with_requests_per_minute(100_000);
    world.site_of(runs, ServerOptions::default(), limits)
}

/// Waits for the end of a run, and says yes to its questions.
async fn finish(site: &Site, run: &RunId) {
    loop {
        site.runs.reply(run).await.ended();
        let Some(open) = site.runs.questions(None).await.unwrap().into_iter().next() else { break };
        assert!(site.runs.answer(&open.request.request_id, Answer::Approve).await.unwrap());
    }
    assert_eq!(site.runs.get(run).await.unwrap().status, RunStatus::Finished, "{run}");
    assert!(replay(&site.world.journal, run).await.unwrap().is_identical(), "{run}");
}

/// A run whose forks are checked: its id, its number and its log.
struct Forked<'a> {
    run: &'a RunId,
    number: u64,
    log: &'a [Arc<Record>],
}

impl Forked<'_> {
    /// Returns the effects that had begun with the record `last`, as the log tells.
    fn begun_by(&self, last: u64) -> BTreeSet<Key> {
        let (mut calls, mut begun) = (BTreeMap::new(), BTreeSet::new());
        for record in self.log.iter().filter(|record| record.seq <= last) {
            match &record.body {
                RecordBody::ModelCallFinished { command, message, .. } => {
                    for (call, index) in message.tool_calls().zip(0..) {
                        calls.insert(CallId::new(*command, index), key(call.id.as_str()).unwrap());
                    }
                }
                RecordBody::ToolCallStarted { call, .. } => {
                    begun.insert(calls[call]);
                }
                _ => {}
            }
        }
        begun
    }

    /// Returns the number of turns, as the log tells.
    fn turns(&self) -> usize {
        let is_answer = |body: &RecordBody| matches!(body, RecordBody::ModelCallFinished { .. });
        self.log.iter().filter(|record| is_answer(&record.body)).count()
    }

    /// Returns the effects that a fork must not repeat, of those that have happened. They follow from the request and the
    /// log alone, because the turns in the response may be wrong.
    fn effects_to_keep(&self, body: &Json, happened: &BTreeMap<Key, usize>) -> BTreeSet<Key> {
        let of_run = happened.keys().copied().filter(|key| key.0 == self.number);
        match (body["record"].as_u64(), body["turns"].as_u64()) {
            // With another message the model begins something else, so nothing of the run is left to do.
            _ if body["text"].is_string() => of_run.collect(),
            (Some(record), _) => self.begun_by(record),
            (None, Some(turns)) => of_run.filter(|key| u64::from(key.1) < turns).collect(),
            (None, None) => of_run.collect(),
        }
    }
}

/// Forks a run, works on the fork, and checks that no effect before the fork happened again. Returns the number of these
/// effects.
async fn check_fork(site: &Site, effects: &Effects, forked: &Forked<'_>, body: Json) -> usize {
    let (run, number, before) = (forked.run, forked.number, effects.so_far());
    let made = site.post(&format!("/v1/runs/{run}/fork"), body.clone()).await;
    assert_eq!(made.status, StatusCode::CREATED, "run {number}, {body}: {}", made.body);
    if body["turns"].is_u64() {
        assert_eq!(made.body["turns"], body["turns"], "run {number}, {body}");
    }
    let fork = RunId::new(made.body["run"].as_str().unwrap());
    if made.body["wants_answer"] == true {
        site.runs.resume(&fork, &MoreLimits::default()).await.unwrap();
        finish(site, &fork).await;
    }
    let kept = forked.effects_to_keep(&body, &before);
    for (key, count) in effects.so_far() {
        let was = before.get(&key).copied().unwrap_or_default();
        let most = if kept.contains(&key) { was } else { was + 1 };
        assert!(count <= most, "run {number}, {body}: {key:?} happened {} times more", count - was);
    }
    kept.len()
}

/// The sorts of records and of turns that some run must have.
pub(crate) const MET: [&str; 6] =
    ["approval_answered", "compacted", "model_call_failed", "several calls", "suspended", "tool_call_failed"];

/// Returns the sorts of records and of turns in a log.
pub(crate) async fn situations(site: &Site, run: &RunId) -> BTreeSet<&'static str> {
    let log = site.world.log(run).await;
    let mut met: BTreeSet<_> = log.iter().map(|record| record.body.name()).collect();
    let is_several = |body: &RecordBody| matches!(body, RecordBody::ModelCallFinished { message, .. } if message.tool_calls().count() > 1);
    if log.iter().any(|record| is_several(&record.body)) {
        met.insert("several calls");
    }
    met
}

// spec: EX-10
#[tokio::test]
async fn fork_at_every_turn_of_many_runs_repeats_no_effect() {
    let (mut all, mut kept_by_record) = (BTreeSet::new(), 0);
    for number in first_seed()..first_seed() + cases(12, 200) {
        let effects = Effects::default();
        let site = site(&effects);
        let (own, other) = if is_long(number) { ("narrow", "wide") } else { ("wide", "narrow") };
        let text = format!("work {number}");
        let started = site.post("/v1/runs", json!({ "text": text, "agent": own })).await;
        assert_eq!(started.status, StatusCode::CREATED, "{}", started.body);
        let run = RunId::new(started.body["run"].as_str().unwrap());
        finish(&site, &run).await;
        all.extend(situations(&site, &run).await);
        let log = site.world.log(&run).await;
        let changed = format!("work {}", number + OTHER);
        let forked = Forked { run: &run, number, log: &log };
        let end = site.post(&format!("/v1/runs/{run}/fork"), json!({})).await;
        assert_eq!(end.body["turns"], json!(forked.turns()), "run {number}");
        for turns in 0..=forked.turns() {
            for body in [
                json!({ "turns": turns }),
                json!({ "turns": turns, "text": changed }),
                json!({ "turns": turns, "agent": other }),
                json!({ "turns": turns, "text": changed, "agent": other }),
            ] {
                check_fork(&site, &effects, &forked, body).await;
            }
        }
        let mut chance = Chance(number);
        for _ in 0..4 {
            let record = chance.below(log.len() as u64);
            kept_by_record += check_fork(&site, &effects, &forked, json!({ "record": record })).await;
            let body = json!({ "record": record, "text": changed });
            check_fork(&site, &effects, &forked, body).await;
        }
        assert_eq!(site.world.log(&run).await, log, "the run that was forked is as it was");
    }
    for sort in MET {
        assert!(all.contains(sort), "no run had {sort}: {all:?}");
    }
    assert!(kept_by_record > 0, "no record was behind an effect");
}
