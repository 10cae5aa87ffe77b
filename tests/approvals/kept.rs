//! Approvals and what is kept: runs that died while they waited, what a person trusts, and what is in doubt.

use std::sync::{Arc, Mutex};

use archon::{
    Archon, OutcomeStatus, RunId, RunOptions, SubAgentTool, ToolContext, ToolResult,
    react_loop::replay,
    store::InMemoryJournal,
    tools::{Ask, EngineOptions, FnTool, Permissions, builtin},
    types::{
        Answer, ApprovalRequest, Approver, Decision, Durability, Effect, Journal, Json, OpenMode,
        QuestionKind, Record, RecordBody, ToolAnnotations, ToolSpec,
    },
};
use archon_testkit::{Ended, FnProvider, VirtualClock};
use serde_json::json;

use crate::{
    approvals::asked_at_once::{Done, Person, careful, now},
    shared::stage::{Stage, acts, call},
};

/// Agrees to calls, but not to run again what may have run.
struct Agrees;

impl Approver for Agrees {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        let answer = match request.kind {
            QuestionKind::Consent => Answer::Approve,
            _ => Answer::Cancel { reason: String::new() },
        };
        now(answer)
    }
}

fn secretary(journal: &InMemoryJournal, done: &Done, approver: impl Approver + 'static) -> Archon {
    // The model answers by what it is asked, so that a run that was cut off can be taken up by a fresh one.
    let model = FnProvider::new(|_, request| {
        let turns =
            request.messages.iter().filter(|m| matches!(***m, archon::types::Message::Assistant(_))).count();
        match turns {
            0 => FnProvider::calls(vec![
                archon::types::ToolCall::new("c0", "send_email", json!({"to": "Ann"})),
                archon::types::ToolCall::new("c1", "send_email", json!({"to": "Bob"})),
            ]),
            _ => FnProvider::text("Both letters are on their way."),
        }
    });
    Archon::builder()
        .provider(Arc::new(model), "scripted")
        .tool(careful("send_email", done))
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(VirtualClock::new()))
        .approver(Arc::new(approver))
        .build()
        .unwrap()
}

async fn cut(records: &[Arc<Record>], run: &RunId) -> InMemoryJournal {
    let journal = InMemoryJournal::new();
    let mut open = journal.open(run, OpenMode::Create).await.unwrap();
    open.writer.append(records, Durability::Synced).await.unwrap();
    journal
}

// spec: AP-04, R-18
#[tokio::test]
async fn a_run_that_died_at_any_record_starts_nothing_without_a_yes_and_nothing_twice() {
    let (journal, done) = (InMemoryJournal::new(), Done::default());
    let waits = secretary(&journal, &done, Person::default());
    let run = waits.run("Write to both.").await.ended().run;
    for open in waits.approvals(None).await.unwrap() {
        waits.answer_pending(&open, Answer::Approve).await.unwrap();
    }
    waits.resume(run.clone()).await.unwrap().reply().await.ended();
    let whole = journal.read(&run).await.unwrap();
    assert!(matches!(whole.last().unwrap().body, RecordBody::RunFinished(_)));
    // What was asked before the first record of a prompt cannot be taken up.
    for n in 2..whole.len() {
        let (journal, again) = (cut(&whole[..n], &run).await, Done::default());
        let taken = secretary(&journal, &again, Agrees);
        let outcome = taken.resume(run.clone()).await.unwrap().reply().await.ended();
        assert_eq!(outcome.status, OutcomeStatus::Finished, "cut at {n}");
        let log = journal.read(&run).await.unwrap();
        let mut agreed = Vec::new();
        let mut started = Vec::new();
        for record in &log {
            match &record.body {
                RecordBody::ApprovalAnswered { call, answer } if answer.is_consent() => agreed.push(*call),
                RecordBody::ToolCallStarted { call, .. } => {
                    assert!(agreed.contains(call), "cut at {n}: {call} started without a yes");
                    assert!(!started.contains(call), "cut at {n}: {call} started twice");
                    started.push(*call);
                }
                _ => {}
            }
        }
        assert_eq!(started.len(), 2, "cut at {n}");
        let before =
            whole[..n].iter().filter(|r| matches!(r.body, RecordBody::ToolCallStarted { .. })).count();
        assert_eq!(again.lock().unwrap().len(), 2 - before, "cut at {n}: what ran after it");
        let replayed = replay(&journal, &run).await.unwrap();
        assert!(replayed.is_identical(), "cut at {n}: {replayed:?}");
    }
}

#[tokio::test]
async fn key_of_a_call_is_its_own_and_the_same_after_a_crash() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let pay = || {
        let keys = keys.clone();
        let mut annotations = ToolAnnotations::default();
        annotations.effect = Effect::Idempotent;
        let spec = ToolSpec::new("pay", "Pays.", json!({"type": "object"})).with_annotations(annotations);
        FnTool::new(spec, move |_: Json, context: ToolContext| {
            keys.lock().unwrap().push(context.key());
            async { Ok(ToolResult::success("paid")) }
        })
    };
    // A model that repeats an id.
    let stage = Stage::new(|n, _| match n {
        0 | 1 => call("c0", "pay", json!({})),
        _ => FnProvider::text("done"),
    });
    let (outcome, show) = stage.with(|b| b.tool(pay())).play("Pay twice.").await;
    let log = show.journal_log(&outcome.run).await;
    let start = log.iter().rposition(|r| matches!(r.body, RecordBody::ToolCallStarted { .. })).unwrap();
    let again = Archon::builder()
        .provider(Arc::new(FnProvider::new(|_, _| FnProvider::text("done"))), "scripted")
        .tool(pay())
        .journal(Arc::new(cut(&log[..=start], &outcome.run).await))
        .clock(Arc::new(VirtualClock::new()))
        .build()
        .unwrap();
    assert!(again.resume(outcome.run).await.unwrap().reply().await.ended().is_finished());
    let keys = keys.lock().unwrap();
    let [first, second, resumed] = &keys[..] else { panic!("{keys:?}") };
    assert_ne!(first, second);
    assert_eq!(second, resumed);
}

// spec: AP-05
#[tokio::test]
async fn question_in_doubt_about_an_approved_call_has_the_words_of_its_approval() {
    let mut annotations = ToolAnnotations::default();
    annotations.effect = Effect::SideEffect;
    annotations.requires_confirmation = true;
    let charge = || acts("charge", annotations.clone(), |_, _| Ok("charged".into())).0;
    let stage = Stage::new(|n, _| match n {
        0 => call("c0", "charge", json!({})),
        _ => FnProvider::text("done"),
    });
    let person = Person::saying([now(Answer::Approve), now(Answer::Cancel { reason: String::new() })]);
    let stage = stage.with(|b| b.tool(charge()).approver(Arc::new(person.clone())));
    let (outcome, show) = stage.play("Charge it.").await;
    let log = show.journal_log(&outcome.run).await;
    let start = log.iter().position(|r| matches!(r.body, RecordBody::ToolCallStarted { .. })).unwrap();
    let again = Archon::builder()
        .provider(Arc::new(show.model.clone()), "scripted")
        .tool(charge())
        .journal(Arc::new(cut(&log[..=start], &outcome.run).await))
        .clock(Arc::new(VirtualClock::new()))
        .approver(Arc::new(person.clone()))
        .build()
        .unwrap();
    assert!(again.resume(outcome.run).await.unwrap().reply().await.ended().is_finished());
    assert_eq!(
        person.seen()[1],
        "Run charge with {}, again? It was cut off, and may have done its work: check first whether it happened."
    );
}

// spec: AP-04
#[tokio::test]
async fn call_in_doubt_runs_again_only_after_approval() {
    for (answer, runs, said) in [
        (Answer::Approve, 1, "charged"),
        (Answer::Reply { text: "It went through.".into() }, 0, "It went through."),
        (Answer::Cancel { reason: String::new() }, 0, "the effect of this call is unknown"),
    ] {
        let mut annotations = ToolAnnotations::default();
        annotations.effect = Effect::SideEffect;
        let (charge, count) = acts("charge", annotations, |_, _| Ok("charged".into()));
        let stage = Stage::new(|_, request| match request.messages.iter().last().unwrap().text() {
            text if text == "Charge it." => call("c0", "charge", json!({})),
            text => FnProvider::text(&text),
        });
        let person = Person::saying([now(answer)]);
        let stage = stage.with(|b| b.tool(charge).approver(Arc::new(person.clone())));
        let (outcome, show) = stage.play("Charge it.").await;
        let log = show.journal_log(&outcome.run).await;
        let start = log.iter().position(|r| matches!(r.body, RecordBody::ToolCallStarted { .. })).unwrap();
        let journal = cut(&log[..=start], &outcome.run).await;
        count.store(0, std::sync::atomic::Ordering::SeqCst);
        let (again, count) = {
            let mut annotations = ToolAnnotations::default();
            annotations.effect = Effect::SideEffect;
            acts("charge", annotations, |_, _| Ok("charged".into()))
        };
        let taken = Archon::builder()
            .provider(Arc::new(show.model.clone()), "scripted")
            .tool(again)
            .journal(Arc::new(journal.clone()))
            .clock(Arc::new(VirtualClock::new()))
            .approver(Arc::new(person.clone()))
            .build()
            .unwrap();
        let outcome = taken.resume(outcome.run).await.unwrap().reply().await.ended();
        assert!(outcome.last_text().unwrap_or_default().contains(said), "{outcome:?}");
        assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), runs, "{said}");
        assert_eq!(
            person.seen(),
            [
                "Run `charge` with {} again? It was cut off, and may have done its work: check first whether it happened."
            ]
        );
    }
}

pub(crate) fn asking_before_changes() -> EngineOptions {
    let mut options = EngineOptions::default();
    options.ask = Ask::BeforeChanges;
    options
}

// spec: AP-11, AP-13
#[tokio::test]
async fn trust_answer_applies_to_the_session_and_not_to_a_branch() {
    let (put, count) = acts("put", ToolAnnotations::default(), |_, _| Ok("put".into()));
    let stage = Stage::new(|n, _| match n % 2 {
        0 => call(&format!("c{n}"), "put", json!({"n": n})),
        _ => FnProvider::text("Done."),
    });
    let person = Person::saying([now(Answer::Trust { rules: vec!["put".into()] })]);
    let show = stage
        .with(|b| b.tool(put).approver(Arc::new(person.clone())).engine_options(asking_before_changes()))
        .raise();
    let first = show.says("Put it.", RunOptions::default()).await;
    let session = {
        let log = show.journal_log(&first.run).await;
        let RecordBody::RunStarted(started) = &log[0].body else { panic!() };
        started.session.clone()
    };
    let second = show.says("And again.", RunOptions::in_session(session)).await;
    assert_eq!((person.seen().len(), count.load(std::sync::atomic::Ordering::SeqCst)), (1, 2));
    assert!(replay(&show.journal, &second.run).await.unwrap().is_identical());
    // Another session asks, and so does a branch.
    let other = show.says("Put it.", RunOptions::default()).await;
    assert_eq!((other.status, person.seen().len()), (OutcomeStatus::Suspended, 2));
}

// spec: AP-11, AP-13
#[tokio::test]
async fn trust_of_a_session_does_not_hold_in_another_folder() {
    let journal = InMemoryJournal::new();
    let agent = |folder: &str, person: &Person| {
        let (put, _) = acts("put", ToolAnnotations::default(), |_, _| Ok("put".into()));
        let model = FnProvider::new(|n, _| match n {
            0 => call("c0", "put", json!({})),
            _ => FnProvider::text("Done."),
        });
        let builder = Archon::builder().provider(Arc::new(model), "scripted").tool(put);
        let builder = builder.journal(Arc::new(journal.clone())).clock(Arc::new(VirtualClock::new()));
        let builder = builder.engine_options(asking_before_changes()).approver(Arc::new(person.clone()));
        builder.workspace(folder).build().unwrap()
    };
    let trust = || now(Answer::Trust { rules: vec!["put".into()] });
    let (first, same, other) = (Person::saying([trust()]), Person::saying([]), Person::saying([]));
    let session = || RunOptions::in_session("letters".into());
    agent("/one", &first).run_with("Write.", session()).await.ended();
    assert!(agent("/one", &same).run_with("Again.", session()).await.ended().is_finished());
    agent("/two", &other).run_with("Again.", session()).await.ended();
    assert_eq!([&first, &same, &other].map(|person| person.seen().len()), [1, 0, 1]);
}

// spec: AP-11, AP-15
#[tokio::test]
async fn a_rule_allows_without_asking_and_denies_without_running() {
    for (deny, allow, runs) in [(vec!["put"], vec!["put"], 0), (vec![], vec!["put"], 1), (vec![], vec![], 0)]
    {
        let (put, count) = acts("put", ToolAnnotations::default(), |_, _| Ok("put".into()));
        let stage = Stage::new(|n, request| match n {
            0 => call("c0", "put", json!({})),
            _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
        });
        let mut options = asking_before_changes();
        options.permissions = Permissions::parse(deny.clone(), vec![], allow.clone()).unwrap();
        let (outcome, _) = stage.with(|b| b.tool(put).engine_options(options)).play("Put it.").await;
        assert!(outcome.is_finished());
        assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), runs, "{deny:?} {allow:?}");
        let said = match (deny.is_empty(), allow.is_empty()) {
            (false, _) => "the rule put denies it",
            (true, false) => "put",
            (true, true) => "allow it beforehand with a rule, for instance `put`",
        };
        assert!(outcome.last_text().unwrap_or_default().contains(said), "{outcome:?}");
    }
}

// spec: MA-31, AP-14
#[tokio::test]
async fn child_run_is_denied_what_its_parent_is_denied() {
    let (put, count) = acts("put", ToolAnnotations::default(), |_, _| Ok("put".into()));
    let journal = InMemoryJournal::new();
    let worker = FnProvider::new(|n, request| match n {
        0 => call("c0", "put", json!({})),
        _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
    });
    let worker = Archon::builder()
        .provider(Arc::new(worker), "scripted")
        .tool(put)
        .journal(Arc::new(journal.clone()))
        .clock(Arc::new(VirtualClock::new()))
        .build()
        .unwrap();
    let stage = Stage::new(|n, request| match n {
        0 => call("c0", "worker", json!({"task": "Put it."})),
        _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
    });
    let mut options = EngineOptions::default();
    options.permissions = Permissions::parse(vec!["put"], vec![], vec![]).unwrap();
    let stage = stage.with(|b| b.tool(SubAgentTool::new("worker", worker)).engine_options(options));
    let (outcome, _) = stage.play("Have it put.").await;
    assert!(outcome.last_text().unwrap_or_default().contains("the rule put denies it"), "{outcome:?}");
    assert_eq!(count.load(std::sync::atomic::Ordering::SeqCst), 0);
}

// spec: A-54, AP-08
#[tokio::test]
async fn a_model_asks_a_person_itself() {
    let asks = |n: usize, request: &archon::types::Request| match n {
        0 => call(
            "c0",
            "human_approval",
            json!({"operation_description": "Delete the logs", "timeout_minutes": 1}),
        ),
        1 => call("c1", "human_guidance", json!({"question": "Which year?", "options": ["2025", "2026"]})),
        _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
    };
    let person =
        Person::saying([now(Answer::Approve), now(Answer::Reply { text: "2025, please.".to_owned() })]);
    let stage = Stage::new(asks).with(|b| {
        b.tool(builtin::HumanApproval::new())
            .tool(builtin::HumanGuidance::new())
            .approver(Arc::new(person.clone()))
    });
    let (outcome, show) = stage.play("Clean up.").await;
    assert_eq!(show.results(), ["A person approved it.", "2025, please."]);
    assert_eq!(outcome.last_text(), Some("2025, please."));
    assert_eq!(person.seen(), ["Delete the logs", "Which year? [2025 | 2026]"]);

    // No, and none in time.
    for (says, expected) in [
        (Some(now(Answer::Cancel { reason: String::new() })), "User cancelled this action."),
        (None, "Nobody answered in time whether this may be done, so it was cancelled."),
    ] {
        let clock = VirtualClock::new();
        let person = Person::saying(says);
        let one = |n: usize, request: &archon::types::Request| match n {
            0 => call(
                "c0",
                "human_approval",
                json!({"operation_description": "Delete the logs", "timeout_minutes": 1}),
            ),
            _ => FnProvider::text(&request.messages.iter().last().unwrap().text()),
        };
        let stage = Stage::new(one).with(|b| {
            b.tool(builtin::HumanApproval::new()).clock(Arc::new(clock.clone())).approver(Arc::new(person))
        });
        let (mut outcome, show) = stage.play("Clean up.").await;
        if outcome.status == OutcomeStatus::Suspended {
            clock.advance(std::time::Duration::from_secs(60));
            outcome = show.agent.resume(outcome.run).await.unwrap().reply().await.ended();
        }
        assert_eq!(outcome.last_text().unwrap_or_default(), expected);
    }
}
