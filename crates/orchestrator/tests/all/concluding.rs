//! The answer of a team, when other things come up while it is put together and looked at.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use archon_orchestrator::Desk;
use archon_types::{Answer, CallId, CommandId, ConflictStrategy, Outcome, OutcomeStatus};
use serde_json::json;

use crate::support::{FnAgent, World, answer, drive, member, step};

fn says_in_turn(says: &'static [&'static str]) -> (Arc<FnAgent>, Arc<AtomicU32>) {
    let round = Arc::new(AtomicU32::new(0));
    let seen = round.clone();
    let agent = FnAgent::new(move |_, context| {
        let round = seen.fetch_add(1, Ordering::SeqCst) as usize;
        async move {
            match says.get(round) {
                Some(text) if !text.is_empty() => answer(&context, text),
                _ => Outcome::failed(context.run.clone(), "not now"),
            }
        }
    });
    (agent, round)
}

// spec: MA-25, MA-15
#[test]
fn a_reviewer_who_asks_somebody_is_heard() {
    let world = World::new();
    let desk = Desk::new();
    let reviewer = {
        let desk = desk.clone();
        FnAgent::new(move |task, context| {
            let desk = desk.clone();
            async move {
                let checked = desk.seat(&context.run).unwrap().ask("checker", "Is it so?").await.unwrap();
                let good = task.contains("second draft");
                let notes = format!("checked: {checked}");
                answer(&context, &json!({ "result": { "approved": good, "notes": notes } }).to_string())
            }
        })
    };
    let (lead, rounds) = says_in_turn(&["first draft", "second draft"]);
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker", "reviewer", "checker"], |options| {
            options.settings.reviewer = Some("reviewer".into());
        })
        .with_member(member("w", "worker"), FnAgent::saying("work"))
        .with_member(member("r", "reviewer"), reviewer)
        .with_member(member("c", "checker"), FnAgent::saying("no"))
        .with_lead("lead", lead)
        .with_desk(desk);
    let outcome = world.start(&team, "Do it");
    assert_eq!((outcome.answer.as_str(), rounds.load(Ordering::SeqCst)), ("second draft", 2));
}

// spec: MA-25, ER-16
#[test]
fn an_answer_that_was_put_together_after_a_person_was_asked_is_the_answer() {
    let world = World::new();
    let (lead, _) = says_in_turn(&["", "the draft"]);
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker"], |o| o.settings.error_budget = Some(1))
        .with_member(member("w", "worker"), FnAgent::saying("work"))
        .with_lead("lead", lead);
    assert_eq!(world.start(&team, "Do it").status, OutcomeStatus::Suspended);
    let call = CallId::new(CommandId(3), 0);
    let outcome = drive(&world.clock, team.answer(call, Answer::Approve, &world.context)).unwrap();
    assert_eq!(outcome.answer, "the draft");
}

// spec: MA-25, MA-19
#[test]
fn a_contradiction_in_the_answer_itself_is_settled_and_the_answer_is_given() {
    let world = World::new();
    let claims = |text: &str, value: u32| {
        FnAgent::saying(&json!({ "result": text, "claims": { "height": value } }).to_string())
    };
    let expert = ConflictStrategy::Expert { role: "expert".into() };
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker", "expert"], |options| {
            options.settings.conflicts.strategy = expert;
        })
        .with_member(member("w", "worker"), claims("work", 10))
        .with_member(member("e", "expert"), FnAgent::saying(r#"{"result": {"winner": "w"}}"#))
        .with_lead("lead", claims("the draft", 20));
    assert_eq!(world.start(&team, "Do it").answer, "the draft");
    assert!(world.delegations().iter().any(|given| given == "e: who is right about height"));
}
