//! Random teams of agents that succeed, fail, hang, lie, suspend and die. Every task ends.

use std::{collections::HashSet, sync::Arc, time::Duration};

use archon_orchestrator::{JobState, Machine as _, Next, Team, TeamDesk, TeamOptions, fold};
use archon_testkit::{Chance, FnAgent, answer, cases, drive, first_seed, poll_until_idle};
use archon_types::{
    AgentId, Answer, CallId, ConflictStrategy, FailureKind, Heartbeat, Outcome, OutcomeStatus, Record,
    RecordBody, SubTask, TeamPattern, TeamRecord, TeamRole,
};
use futures_util::FutureExt;
use serde_json::json;

use crate::support::{Fixed, World, member, pause, step};

const ROLES: [&str; 3] = ["red", "green", "blue"];

/// Returns an agent whose behaviour changes with each call, as its seed determines.
fn unreliable(seed: u64, desk: TeamDesk) -> Arc<FnAgent> {
    FnAgent::new(move |task, context| {
        let desk = desk.clone();
        let of_run: u64 =
            context.run.as_str().bytes().fold(seed, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        let mut chance = Chance(of_run);
        async move {
            pause(&context, 1 + chance.below(8_000)).await;
            match chance.below(12) {
                0 => return Outcome::failed(context.run.clone(), FailureKind::Other, "cannot"),
                1 => return std::future::pending().await,
                2 => panic!("it dies"),
                // Away for so long that somebody else has the work.
                3 => pause(&context, 10_000 + chance.below(40_000)).await,
                4 => {
                    let mut lie = answer(&context, "a lie");
                    lie.run = "run_of_somebody_else".into();
                    return lie;
                }
                5 => return Outcome::new(context.run.clone(), OutcomeStatus::Suspended),
                6 | 7 => {
                    let to = ROLES[chance.below(3) as usize];
                    let asked = match desk.seat(&context.run) {
                        Some(seat) => seat.ask(to, "Help").await,
                        None => return Outcome::failed(context.run.clone(), FailureKind::Other, "no seat"),
                    };
                    if chance.percent(50) {
                        return answer(&context, &format!("{asked:?}"));
                    }
                }
                8 => {
                    if let Some(seat) = desk.seat(&context.run) {
                        let _ = seat.write("shared", json!(chance.below(3)), Some(chance.below(3))).await;
                        if chance.percent(30) {
                            let _ = seat.wait("shared", chance.below(4)).await;
                        }
                    }
                }
                _ => {}
            }
            let claims = json!({ "fact": chance.below(2), "other": chance.below(2) });
            match chance.percent(50) {
                true => answer(
                    &context,
                    &json!({ "result": task.len(), "claims": claims, "confidence": 0.5 }).to_string(),
                ),
                false => answer(&context, "plain"),
            }
        }
    })
}

fn random_team(chance: &mut Chance, world: &World, desk: &TeamDesk) -> Team {
    let mut plan: Vec<SubTask> = Vec::new();
    for n in 0..chance.below(7) {
        let after: Vec<String> = (0..n).filter(|_| chance.percent(30)).map(|m| format!("s{m}")).collect();
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        plan.push(step(&format!("s{n}"), "work", ROLES[chance.below(3) as usize], &after));
    }
    let mut options = TeamOptions::default();
    options.roles = ROLES.iter().map(|role| TeamRole::new(*role, "")).collect();
    options.limits.max_duration_ms = 3_600_000;
    let settings = &mut options.settings;
    settings.max_concurrent = 1 + chance.below(6) as u32;
    settings.max_delegation_depth = 1 + chance.below(4) as u32;
    settings.max_attempts = 1 + chance.below(3) as u32;
    settings.max_delegations = 60;
    settings.task_timeout_ms = 60_000;
    settings.redundancy = 1 + chance.below(2) as u32;
    settings.pattern = match chance.below(3) {
        0 => TeamPattern::Hierarchical,
        1 => TeamPattern::Committee { size: 1 + chance.below(3) as u32 },
        _ => TeamPattern::Market,
    };
    settings.conflicts.strategy = match chance.below(9) {
        0 => ConflictStrategy::Majority,
        1 => ConflictStrategy::Confidence,
        2 => ConflictStrategy::Authority,
        3 => ConflictStrategy::First,
        4 => ConflictStrategy::Expert { role: "red".into() },
        5 => ConflictStrategy::Arbitration,
        6 => ConflictStrategy::Simplest,
        7 => ConflictStrategy::Verification,
        _ => ConflictStrategy::Human,
    };
    settings.heartbeat = if chance.percent(50) { Heartbeat::Events } else { Heartbeat::Timer };
    settings.reviewer = chance.percent(30).then(|| "blue".to_owned());
    settings.error_budget = chance.percent(20).then_some(3);
    let mut team =
        Team::new(Arc::new(Fixed(plan)), Arc::new(world.journal.clone()), options).with_desk(desk.clone());
    let members = 1 + chance.below(5);
    for n in 0..members {
        let role = ROLES[chance.below(3) as usize];
        let who = member(&format!("m{n}"), role).with_max_tasks(1 + chance.below(2) as u32);
        team = team.with_member(who, unreliable(chance.next(), desk.clone()));
    }
    // Somebody has to be there to review.
    team = team.with_member(member("z", "blue"), unreliable(chance.next(), desk.clone()));
    if chance.percent(60) {
        team = team.with_lead("lead", unreliable(chance.next(), desk.clone()));
    }
    team
}

/// Drives a run to its end, and answers all its questions.
fn to_the_end(team: &Team, world: &World, chance: &mut Chance, seed: u64) -> Outcome {
    let mut outcome = drive(&world.clock, team.start("Do it", &world.context)).unwrap();
    let mut answers = 0;
    while outcome.status == OutcomeStatus::Suspended {
        answers += 1;
        assert!(answers < 500, "seed {seed}: it asks for ever");
        let log = world.journal.log("run_1");
        let waiting = log.iter().rev().find_map(|record| match &record.body {
            RecordBody::Suspended { waiting } => Some(waiting.clone()),
            _ => None,
        });
        let call: CallId = waiting.unwrap()[0];
        let answer = match chance.percent(50) {
            true => Answer::Approve,
            false => Answer::Cancel { reason: "no".into() },
        };
        outcome = drive(&world.clock, team.answer(call, answer, &world.context)).unwrap();
    }
    outcome
}

// spec: MA-21, MA-22, MA-05, MA-13, A-20
#[test]
fn team_random_members_every_task_ends() {
    std::panic::set_hook(Box::new(|info| {
        if info.payload_as_str() != Some("it dies") {
            eprintln!("{info}");
        }
    }));
    let (mut late, mut finished, mut taken, mut cancels) = (0, 0, 0, 0);
    for seed in 0..cases(400, 10_000) {
        let seed = seed + first_seed();
        let mut chance = Chance(seed);
        let world = World::new();
        let desk = TeamDesk::new();
        let team = random_team(&mut chance, &world, &desk);
        if chance.percent(10) {
            cancels += u32::from(cancelled(&team, &world, &mut chance, seed));
            continue;
        }
        let outcome = to_the_end(&team, &world, &mut chance, seed);
        finished += u32::from(outcome.status == OutcomeStatus::Finished);
        let log = world.journal.log("run_1");
        let machine = fold(&world.context.run, &log).unwrap();
        assert_eq!(machine.ended(), Some(&outcome), "seed {seed}");
        late += machine.late();
        // A chain names nobody twice, and nobody works at its own end.
        for record in &world.team_records() {
            if let TeamRecord::Delegated { chain, member, .. } = record {
                let mut seen: HashSet<&AgentId> = HashSet::new();
                assert!(chain.iter().chain([member]).all(|id| seen.insert(id)), "seed {seed}: {record:?}");
                assert!(chain.len() <= 4, "seed {seed}: {record:?}");
            }
            taken += u32::from(matches!(record, TeamRecord::DelegationRevoked { .. }));
        }
        // A late answer is in the log, and in no result.
        let mut over: HashSet<CallId> = HashSet::new();
        for record in &log {
            match &record.body {
                RecordBody::Team(team) => match &**team {
                    TeamRecord::DelegationRevoked { call, .. } => {
                        assert!(over.insert(*call), "seed {seed}: taken twice")
                    }
                    TeamRecord::LateAnswer { call, .. } => {
                        assert!(over.contains(call), "seed {seed}: not late")
                    }
                    _ => {}
                },
                RecordBody::ToolCallFinished { call, .. } => {
                    assert!(over.insert(*call), "seed {seed}: {call} ended twice")
                }
                _ => {}
            }
        }
        if outcome.status == OutcomeStatus::Finished {
            let is_over = |job: &archon_orchestrator::Job| {
                matches!(job.state, JobState::Done | JobState::Replaced | JobState::Failed { .. })
            };
            assert!(machine.jobs().iter().all(is_over), "seed {seed}");
        }
    }
    println!(
        "{finished} finished, {taken} times work was taken back, {late} late answers, {cancels} cancelled"
    );
    assert!(late > 0 && taken > 0 && finished > 0 && cancels > 0);
}

/// Cancels a run at a random time. The run ends as cancelled, and no work starts afterwards. Returns
/// whether the run was still open.
fn cancelled(team: &Team, world: &World, chance: &mut Chance, seed: u64) -> bool {
    let mut run = Box::pin(team.start("Do it", &world.context));
    for _ in 0..chance.below(30) {
        if let Some(outcome) = poll_until_idle(&mut run) {
            assert!(outcome.is_ok(), "seed {seed}");
            return false;
        }
        let Some(next) = world.clock.next_deadline() else { break };
        world.clock.advance(next.since(world.context.clock.now()));
    }
    // What is due now happens before the cancel, not beside it.
    if poll_until_idle(&mut run).is_some() {
        return false;
    }
    let (begun, log) = (world.context.clock.now(), world.journal.log("run_1"));
    let before = log.len();
    // Those whose work was taken back may still be on their way out when all is decided.
    let is_decided = match fold(&world.context.run, &log).unwrap().next() {
        Next::Append(RecordBody::RunFinished(outcome)) => Some(outcome.status),
        _ => None,
    };
    world.context.cancel.cancel();
    let outcome = drive(&world.clock, run.map(|outcome| outcome.unwrap()));
    let took = world.context.clock.now().since(begun);
    assert!(took <= Duration::from_millis(250), "seed {seed}: it took {took:?}");
    let is_right = outcome.status == OutcomeStatus::Cancelled || Some(outcome.status) == is_decided;
    assert!(is_right, "seed {seed}: {outcome:?}");
    let log = world.journal.log("run_1");
    assert_eq!(fold(&world.context.run, &log).unwrap().ended(), Some(&outcome), "seed {seed}");
    let begins = |record: &&Arc<Record>| matches!(record.body, RecordBody::ToolCallStarted { .. });
    assert_eq!(log[before..].iter().find(begins), None, "seed {seed}: something began after the cancel");
    true
}
