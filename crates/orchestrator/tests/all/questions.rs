//! Tests of the questions of a team, and of messages to a suspended run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use archon_orchestrator::{Team, TeamError};
use archon_testkit::{FnAgent, InboxJournal, answer, drive, poll_until_idle};
use archon_types::{
    Answer, ApprovalRequest, CallId, CommandId, ConflictStrategy, FailureKind, InboxRequest, Outcome,
    OutcomeStatus, PendingApproval, RecordBody, RunRefused, TeamPattern, pending_approvals,
};
use serde_json::json;

use crate::support::{World, member, step};

/// Returns a team of two members that contradict each other, without a judge.
fn quarrel(world: &World, journal: &InboxJournal) -> Team {
    let plan = vec![step("a", "What is it?", "worker", &[])];
    let team = world.team_in(journal, plan, &["worker"], |options| {
        options.settings.pattern = TeamPattern::Committee { size: 2 };
        options.settings.conflicts.strategy = ConflictStrategy::Human;
    });
    team.with_member(member("m0", "worker"), FnAgent::saying("red"))
        .with_member(member("m1", "worker"), FnAgent::saying("green"))
}

/// Returns a team with a member that fails once or always, and a person who is asked after the first
/// failure.
fn failing(world: &World, journal: &InboxJournal, times: u32) -> Team {
    let tries = Arc::new(AtomicU32::new(0));
    let agent = FnAgent::new(move |_, context| {
        let n = tries.fetch_add(1, Ordering::SeqCst);
        async move {
            match n < times {
                true => Outcome::failed(context.run.clone(), FailureKind::Other, "cannot"),
                false => answer(&context, "done"),
            }
        }
    });
    let plan = vec![step("a", "Do it", "worker", &[])];
    world
        .team_in(journal, plan, &["worker"], |options| options.settings.error_budget = Some(1))
        .with_member(member("ann", "worker"), agent)
}

fn open(world: &World) -> Vec<PendingApproval> {
    pending_approvals(&world.journal.log("run_1"))
}

fn answers(request: &ApprovalRequest, answer: Answer) -> InboxRequest {
    request.answered(answer)
}

fn resume(world: &World, team: &Team) -> Outcome {
    let outcome = drive(&world.clock, team.resume(&world.context)).unwrap();
    world.check_log();
    outcome
}

// spec: MA-19, AP-07
#[test]
fn team_resume_applies_an_answer_from_the_inbox() {
    let world = World::new();
    let journal = InboxJournal::over(&world.journal);
    let team = quarrel(&world, &journal);
    assert_eq!(world.start(&team, "What is it?").status, OutcomeStatus::Suspended);
    let asked = open(&world).remove(0);
    assert!(asked.request.call_path.is_empty(), "the team itself asks");
    assert_eq!(asked.request.agent_name, "team");
    // An answer to something else changes nothing, and does not stay.
    let mut other = asked.request.clone();
    other.request_id = "another".to_owned();
    journal.post("run_1", "in-1", answers(&other, Answer::Approve));
    assert_eq!(resume(&world, &team).status, OutcomeStatus::Suspended);
    assert_eq!(journal.posted("run_1"), []);
    let violet = Answer::Edit { arguments: json!({ "value": "violet" }) };
    journal.post("run_1", "in-2", answers(&asked.request, violet));
    let outcome = resume(&world, &team);
    assert!(outcome.last_text().unwrap_or_default().starts_with("[a] violet\n"), "{outcome:?}");
    assert_eq!(journal.posted("run_1"), []);
}

// spec: AP-05
#[test]
fn team_answer_with_another_binding_is_dropped_and_the_question_stays_open() {
    let world = World::new();
    let journal = InboxJournal::over(&world.journal);
    let team = quarrel(&world, &journal);
    world.start(&team, "What is it?");
    let asked = open(&world).remove(0);
    let mut other = asked.request.clone();
    other.binding = "of another call".to_owned();
    journal.post("run_1", "in-1", answers(&other, Answer::Approve));
    assert_eq!(resume(&world, &team).status, OutcomeStatus::Suspended);
    assert_eq!((journal.posted("run_1"), open(&world)), (vec![], vec![asked.clone()]));
    journal.post("run_1", "in-2", answers(&asked.request, Answer::Approve));
    assert_eq!(resume(&world, &team).status, OutcomeStatus::Finished);
}

// spec: AP-07, MA-13
#[test]
fn team_resume_applies_a_cancel_from_the_inbox_first_and_once() {
    let world = World::new();
    let journal = InboxJournal::over(&world.journal);
    let begun = Arc::new(AtomicU32::new(0));
    let agent = {
        let begun = begun.clone();
        FnAgent::new(move |_, _| {
            begun.fetch_add(1, Ordering::SeqCst);
            std::future::pending()
        })
    };
    let team = world
        .team_in(&journal, vec![step("a", "Do it", "worker", &[])], &["worker"], |_| {})
        .with_member(member("ann", "worker"), agent);
    let mut run = Box::pin(team.start("Do it", &world.context));
    assert!(poll_until_idle(&mut run).is_none());
    drop(run);
    let cancel = InboxRequest::Cancel { reason: "enough".to_owned() };
    journal.post("run_1", "in-1", cancel.clone());
    assert_eq!(resume(&world, &team).status, OutcomeStatus::Cancelled);
    assert_eq!(begun.load(Ordering::SeqCst), 1, "nobody began again");
    // A process may have died before it took the message out of the inbox: it does not cancel the run that goes on.
    journal.post("run_1", "in-1", cancel);
    let mut run = Box::pin(team.resume(&world.context));
    assert!(poll_until_idle(&mut run).is_none());
    assert_eq!((begun.load(Ordering::SeqCst), journal.posted("run_1")), (2, vec![]));
}

// spec: AP-03, MA-19, ER-16
#[test]
fn team_question_without_an_answer_expires_and_the_run_goes_on() {
    let world = World::new();
    let journal = InboxJournal::over(&world.journal);
    let team = quarrel(&world, &journal);
    world.start(&team, "What is it?");
    let asked = open(&world).remove(0);
    assert_eq!(asked.request.expires_at.unwrap().since(asked.created_at), Duration::from_secs(1_800));
    world.clock.advance(Duration::from_millis(1_799_999));
    assert_eq!(resume(&world, &team).status, OutcomeStatus::Suspended);
    world.clock.advance(Duration::from_millis(1));
    let late = drive(&world.clock, team.answer(asked.call, Answer::Approve, &world.context));
    assert!(matches!(late, Err(TeamError::Refused(RunRefused::NoQuestion { .. }))), "{late:?}");
    let outcome = resume(&world, &team);
    assert!(
        outcome.last_text().unwrap_or_default().contains("no person decided, so the first answer counts"),
        "{outcome:?}"
    );
    let expired =
        |body: &RecordBody| matches!(body, RecordBody::ApprovalAnswered { answer: Answer::Expired, .. });
    assert!(world.journal.log("run_1").iter().any(|record| expired(&record.body)));

    let world = World::new();
    let journal = InboxJournal::over(&world.journal);
    let team = failing(&world, &journal, 9);
    world.start(&team, "Do it");
    world.clock.advance(Duration::from_secs(1_800));
    let outcome = resume(&world, &team);
    assert_eq!(outcome.error.unwrap(), "no person answered in time whether to go on after 1 failures");
}

// spec: AP-03
#[test]
fn a_question_expires_also_while_others_work() {
    let world = World::new();
    let journal = InboxJournal::over(&world.journal);
    let busy = FnAgent::new(|_, context| async move {
        crate::support::pause(&context, 120_000).await;
        answer(&context, "done")
    });
    let cannot = FnAgent::new(|_, context| async move {
        Outcome::failed(context.run.clone(), FailureKind::Other, "cannot")
    });
    let plan = vec![step("a", "", "failing", &[]), step("b", "", "busy", &[])];
    let team = world
        .team_in(&journal, plan, &["failing", "busy"], |options| {
            options.settings.error_budget = Some(1);
            options.settings.question_timeout_ms = 60_000;
            options.settings.heartbeat_ms = 0;
        })
        .with_member(member("ann", "failing"), cannot)
        .with_member(member("bob", "busy"), busy);
    let begun = world.context.clock.now();
    let outcome = world.start(&team, "Do it");
    assert_eq!(outcome.error.unwrap(), "no person answered in time whether to go on after 1 failures");
    assert!(world.context.clock.now().since(begun) < Duration::from_secs(61));
}

// spec: AP-15, AP-03
#[test]
fn team_without_an_approver_does_not_suspend() {
    let mut world = World::new();
    world.context.can_ask = false;
    let journal = InboxJournal::over(&world.journal);
    let outcome = world.start(&quarrel(&world, &journal), "What is it?");
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
    assert!(
        outcome.last_text().unwrap_or_default().contains("no person decided, so the first answer counts"),
        "{outcome:?}"
    );

    let mut world = World::new();
    world.context.can_ask = false;
    let journal = InboxJournal::over(&world.journal);
    let outcome = world.start(&failing(&world, &journal, 1), "Do it");
    assert_eq!(outcome.error.unwrap(), "stopped after 1 failures: nobody can be asked here");
}

// spec: AP-15
#[test]
fn team_open_question_waits_across_a_resume_without_an_approver() {
    let mut world = World::new();
    let journal = InboxJournal::over(&world.journal);
    let team = failing(&world, &journal, 1);
    world.start(&team, "Do it");
    world.context.can_ask = false;
    assert_eq!(resume(&world, &team).status, OutcomeStatus::Suspended);
    let call = CallId::new(CommandId(2), 0);
    let outcome = drive(&world.clock, team.answer(call, Answer::Approve, &world.context)).unwrap();
    assert_eq!(outcome.last_text(), Some("[a] done"));
}

// spec: AP-05, AP-06, MA-13
#[test]
fn team_members_questions_surface_and_answers_reach_the_member() {
    let world = World::new();
    let journal = InboxJournal::over(&world.journal);
    let plan = vec![step("a", "One?", "worker", &[]), step("b", "Two?", "worker", &[])];
    let inner = world.team_in(&journal, plan, &["worker"], |options| {
        options.settings.pattern = TeamPattern::Committee { size: 2 };
        options.settings.conflicts.strategy = ConflictStrategy::Human;
    });
    let inner = inner
        .with_member(member("m0", "worker"), FnAgent::saying("red"))
        .with_member(member("m1", "worker"), FnAgent::saying("green"));
    let team = world
        .team_in(&journal, vec![step("x", "Both?", "office", &[])], &["office"], |options| {
            options.limits.max_depth = 2;
        })
        .with_member(member("office", "office"), Arc::new(inner));
    assert_eq!(world.start(&team, "Both?").status, OutcomeStatus::Suspended);
    let asked = open(&world);
    assert_eq!(asked.len(), 2, "one for each question: {asked:?}");
    assert!(asked.iter().all(|one| one.asker().as_str() == "run_1.1-0" && one.call == asked[0].call));

    let said = |text: &str| Answer::Edit { arguments: json!({ "value": text }) };
    journal.post("run_1.1-0", "in-1", answers(&asked[1].request, said("blue")));
    assert_eq!(resume(&world, &team).status, OutcomeStatus::Suspended);
    let open_now: Vec<_> = open(&world).into_iter().map(|one| one.request.request_id).collect();
    assert_eq!(open_now, [asked[0].request.request_id.clone()], "what is answered is not open");
    // And the other through the team: the member hears it.
    let outcome = drive(&world.clock, team.answer(asked[0].call, said("violet"), &world.context)).unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
    assert!(
        outcome.last_text().unwrap_or_default().contains("[a] violet")
            && outcome.last_text().unwrap_or_default().contains("[b] blue"),
        "{outcome:?}"
    );
}
