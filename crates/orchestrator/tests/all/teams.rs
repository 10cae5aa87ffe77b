//! Tests of teams: matching, conflicts, failures, cancel and resume.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use archon_orchestrator::{Team, TeamError, TeamOptions, TeamProblem, check_team, contradict, needs_team};
use archon_testkit::{FnAgent, answer, drive, poll_until_idle};
use archon_types::{
    Agent, Answer, CallId, CommandId, ConflictStrategy, FailureKind, ForEach, LimitReached, MoreLimits,
    Outcome, OutcomeStatus, PlanError, Planner, PlanningContext, RecordBody, RunRefused, Spending, SubTask,
    Task, TeamPattern, TeamRecord, TeamRole, TeamSettings,
};
use serde_json::json;

use crate::support::{World, member, pause, step};

/// Returns an agent that answers `says` after `ms` ms.
fn after(ms: u64, says: &'static str) -> Arc<FnAgent> {
    FnAgent::new(move |_, context| async move {
        pause(&context, ms).await;
        answer(&context, says)
    })
}

/// Returns a team of three members with these answers to the same step; the first member has the highest
/// authority.
fn committee(world: &World, says: [&str; 3], strategy: ConflictStrategy, size: u32) -> Team {
    let mut team =
        world.team(vec![step("a", "What is it?", "worker", &[])], &["worker", "expert"], |options| {
            options.settings.pattern = TeamPattern::Committee { size };
            options.settings.conflicts.strategy = strategy;
        });
    for (place, says) in says.into_iter().enumerate() {
        let id = format!("m{place}");
        team =
            team.with_member(member(&id, "worker").with_authority(2 - place as i32), FnAgent::saying(says));
    }
    team
}

// spec: MA-18, MA-19, MA-24
#[test]
fn a_committee_settles_its_contradictions_in_every_way() {
    use ConflictStrategy::{Authority, Confidence, First, Majority, Simplest};
    let sure = r#"{"result": "blue", "confidence": 0.9}"#;
    let unsure = r#"{"result": "green", "confidence": 0.2}"#;
    let check = |says: [&str; 3], strategy: ConflictStrategy, expected: &str| {
        let world = World::new();
        let outcome = world.start(&committee(&world, says, strategy.clone(), 3), "What is it?");
        assert_eq!(outcome.status, OutcomeStatus::Finished, "{strategy:?}: {:?}", outcome.error);
        let answer = outcome.last_text().unwrap_or_default().lines().next().unwrap();
        assert_eq!(answer, format!("[a] {expected}"), "{strategy:?}");
    };
    check(["red", "green", " Green"], Majority, "green");
    check(["100", "103", "50"], Majority, "100");
    // Both are near the first and far from each other, so they contradict each other.
    let near = r#"{"result": 100, "confidence": 0.2}"#;
    let far = r#"{"result": 108, "confidence": 0.9}"#;
    check([r#"{"result": 104, "confidence": 0.2}"#, near, far], Confidence, "108");
    check([unsure, sure, unsure], Confidence, "blue");
    check(["red", "green", "green"], Authority, "red");
    check(["red", "green", "green"], First, "red");
    check(["crimson red", "green", "blue-green"], Simplest, "green");
    check(["same", "same", "same"], Majority, "same");
}

// spec: MA-18
#[test]
fn numbers_of_which_two_contradict_each_other_are_a_contradiction_in_any_order() {
    // 104 agrees with both of the others, and 100 and 108 differ by more than a twentieth.
    for says in [["104", "100", "108"], ["104", "108", "100"], ["100", "104", "108"], ["108", "100", "104"]] {
        let world = World::new();
        let outcome = world.start(&committee(&world, says, ConflictStrategy::First, 3), "How many?");
        assert_eq!(outcome.status, OutcomeStatus::Finished, "{says:?}: {:?}", outcome.error);
        let settled = |record| match record {
            TeamRecord::ConflictResolved { value, resolution: how, .. } => Some((value, how)),
            _ => None,
        };
        let settled: Vec<_> = world.team_records().into_iter().filter_map(settled).collect();
        assert_eq!(settled, [(json!(says[0]), "m0 said it first".to_owned())], "{says:?}");
    }
    // So it is within objects.
    let says = [r#"{"result": {"n": 104}}"#, r#"{"result": {"n": 100}}"#, r#"{"result": {"n": 108}}"#];
    let world = World::new();
    world.start(&committee(&world, says, ConflictStrategy::First, 3), "How many?");
    let conflicts =
        world.team_records().iter().filter(|r| matches!(r, TeamRecord::ConflictFound { .. })).count();
    assert_eq!(conflicts, 1, "two of them are far from each other");
    let world = World::new();
    world.start(&committee(&world, ["104", "100", "105"], ConflictStrategy::First, 3), "How many?");
    let conflicts =
        world.team_records().iter().filter(|r| matches!(r, TeamRecord::ConflictFound { .. })).count();
    assert_eq!(conflicts, 0, "each agrees with each");
}

// spec: MA-19
#[test]
fn team_conflict_strategy_first_takes_the_earliest_answer() {
    let world = World::new();
    let team = world
        .team(vec![step("a", "What is it?", "worker", &[])], &["worker"], |options| {
            options.settings.pattern = TeamPattern::Committee { size: 3 };
            options.settings.conflicts.strategy = ConflictStrategy::First;
        })
        .with_member(member("m0", "worker"), after(900, "red"))
        .with_member(member("m1", "worker"), after(500, "green"))
        .with_member(member("m2", "worker"), after(100, "blue"));
    let outcome = world.start(&team, "What is it?");
    let asked = ["m0: a: What is it?", "m1: a: What is it?", "m2: a: What is it?"];
    assert_eq!(world.delegations(), asked);
    assert!(outcome.last_text().unwrap_or_default().starts_with("[a] blue\n"), "{outcome:?}");
    assert!(outcome.last_text().unwrap_or_default().contains("m2 said it first"), "{outcome:?}");
    let claims = world.team_records().into_iter().find_map(|record| match record {
        TeamRecord::ConflictFound { claims, .. } => Some(claims),
        _ => None,
    });
    let by: Vec<_> = claims.unwrap().into_iter().map(|claim| (claim.by, claim.call.index)).collect();
    assert_eq!(by, [("m2".into(), 2), ("m1".into(), 1), ("m0".into(), 0)]);
}

// spec: MA-19
#[test]
fn a_contradiction_in_the_work_of_a_role_is_settled_in_the_way_of_that_role() {
    let world = World::new();
    let plan = vec![step("a", "Say it", "writer", &[]), step("b", "Draw it", "artist", &[])];
    let mut team = world.team(plan, &["writer", "artist"], |options| {
        options.settings.pattern = TeamPattern::Committee { size: 3 };
        let conflicts = &mut options.settings.conflicts;
        conflicts.strategy = ConflictStrategy::Majority;
        conflicts.by_role.insert("artist".to_owned(), ConflictStrategy::Simplest);
    });
    for role in ["writer", "artist"] {
        for (n, says) in ["crimson", "crimson", "red"].into_iter().enumerate() {
            team = team.with_member(member(&format!("{role}{n}"), role), FnAgent::saying(says));
        }
    }
    let outcome = world.start(&team, "Do it");
    let said = outcome.last_text().unwrap_or_default();
    assert!(said.contains("[a] crimson\n"), "most say so: {said}");
    assert!(said.contains("[b] red\n"), "the simplest, which is what the role asks for: {said}");
}

// spec: A-15
#[test]
fn start_of_a_team_that_dies_after_its_first_append_is_resumed() {
    let world = World::new();
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker"], |_| {})
        .with_member(member("ann", "worker"), FnAgent::saying("done"));
    world.journal.die_after(1, true);
    drive(&world.clock, team.start("Do it", &world.context)).unwrap_err();
    world.journal.live();
    let outcome = drive(&world.clock, team.resume(&world.context)).unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
}

// spec: MA-19
#[test]
fn team_conflict_is_resolved_by_an_expert_or_an_arbiter() {
    let world = World::new();
    let expert = ConflictStrategy::Expert { role: "expert".into() };
    let team = committee(&world, ["red", "green", "blue"], expert, 3)
        .with_member(member("judge", "expert"), FnAgent::saying(r#"{"result": {"winner": "m1"}}"#));
    assert!(world.start(&team, "What is it?").last_text().unwrap_or_default().starts_with("[a] green\n"));

    let world = World::new();
    // Two are asked, and the third works it out.
    let team = committee(&world, ["red", "green", "green"], ConflictStrategy::Verification, 2);
    let outcome = world.start(&team, "What is it?");
    assert!(outcome.last_text().unwrap_or_default().starts_with("[a] green\n"), "{outcome:?}");
    assert!(outcome.last_text().unwrap_or_default().contains("m2 decided"), "{outcome:?}");
}

// spec: MA-19, ER-16
#[test]
fn team_unresolved_conflict_is_asked_of_a_person() {
    let world = World::new();
    let team = committee(&world, ["red", "green", "blue"], ConflictStrategy::Majority, 3);
    assert_eq!(world.start(&team, "What is it?").status, OutcomeStatus::Suspended);
    let asked = world.journal.log("run_1").iter().find_map(|record| match &record.body {
        RecordBody::ApprovalRequested { call, request } => Some((*call, request.action_summary.clone())),
        _ => None,
    });
    let (call, summary) = asked.unwrap();
    assert_eq!(summary, "a: What is it?: who is right?");
    let wrong =
        drive(&world.clock, team.answer(CallId::new(CommandId(9), 0), Answer::Approve, &world.context));
    assert!(matches!(wrong, Err(TeamError::Refused(RunRefused::NoQuestion { .. }))));
    let answer = Answer::Edit { arguments: json!({ "value": "violet" }) };
    let outcome = drive(&world.clock, team.answer(call, answer, &world.context)).unwrap();
    assert!(outcome.last_text().unwrap_or_default().starts_with("[a] violet\n"), "{outcome:?}");
    let again = drive(&world.clock, team.resume(&world.context));
    assert!(matches!(again, Err(TeamError::Refused(RunRefused::Ended { .. }))));
}

// spec: CR-01, TE-53
#[test]
fn team_resume_keeps_the_tenant_of_its_start() {
    for appends in 1.. {
        let mut world = World::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let worker = seen.clone();
        let worker = FnAgent::new(move |_, context| {
            worker.lock().unwrap().push(context.tenant.to_string());
            async move { answer(&context, "done") }
        });
        let plan = vec![step("a", "1", "worker", &[]), step("b", "2", "worker", &["a"])];
        let team = world.team(plan, &["worker"], |_| {}).with_member(member("ann", "worker"), worker);
        world.context.tenant = "acme".into();
        world.journal.die_after(appends, true);
        let outcome = drive(&world.clock, team.start("Do it", &world.context));
        assert!(outcome.is_err(), "it died nowhere between the two steps");
        world.journal.live();
        if seen.lock().unwrap().len() != 1 {
            continue;
        }
        (world.context.tenant, world.context.session) = ("another".into(), "another".into());
        let outcome = drive(&world.clock, team.resume(&world.context)).unwrap();
        assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
        let seen = seen.lock().unwrap();
        assert!(seen.len() > 1 && seen.iter().all(|tenant| tenant == "acme"), "{seen:?}");
        return;
    }
}

// spec: MA-18
#[test]
fn numbers_may_differ_a_little() {
    let cases = [
        (json!(30), json!(15), true),
        (json!("30%"), json!("15 %"), true),
        (json!("0.3"), json!("30%"), false),
        (json!(100), json!(105), false),
        (json!(100), json!(106), true),
        (json!("Yes"), json!(" yes "), false),
        (json!(0), json!(0.0), false),
        (json!(["a"]), json!(["b"]), true),
        (json!({"a": 1, "b": 2}), serde_json::from_str(r#"{"b": 2, "a": 1}"#).unwrap(), false),
        (json!([30]), json!([30.0]), false),
        (json!([30, 1]), json!([1, 30]), true),
        (json!([30]), json!([30, 30]), true),
        (json!({"trend": 30}), json!({"trend": 30.2}), false),
        (json!({"trend": 30}), json!({"trend": 32}), true),
        (json!({"trend": 30}), json!({"trend": 30, "up": null}), true),
        (json!({"trend": 30}), json!({"rend": 30}), true),
        (json!({"in": [{"p": "30 %", "name": "Ann "}]}), json!({"in": [{"name": "ann", "p": 0.31}]}), false),
        (json!({"in": [{"p": "30 %", "name": "Ann "}]}), json!({"in": [{"name": "ann", "p": 0.4}]}), true),
        (json!([]), json!({}), true),
        (json!([30]), json!(30), true),
        (json!([30]), json!("[30]"), false),
    ];
    for (one, other, expected) in cases {
        assert_eq!(contradict(&one, &other, 0.05), expected, "{one} {other}");
        assert_eq!(contradict(&other, &one, 0.05), expected, "{other} {one}");
    }
}

// spec: MA-24
#[test]
fn team_market_assigns_the_task_to_the_best_offer() {
    let bidder = |offer: &'static str, says: &'static str| {
        FnAgent::new(move |task, context| async move {
            answer(&context, if task.contains("What would it take you") { offer } else { says })
        })
    };
    let winner = |first: &'static str, second: &'static str| {
        let world = World::new();
        let team = world
            .team(vec![step("a", "Do it", "worker", &[])], &["worker"], |options| {
                options.settings.pattern = TeamPattern::Market;
            })
            .with_member(member("first", "worker"), bidder(first, "first"))
            .with_member(member("second", "worker"), bidder(second, "second"))
            .with_member(member("mute", "worker"), bidder("no idea", "mute"));
        world.start(&team, "Do it").last_text().map(str::to_owned)
    };
    let plain = r#"{"result": {"quality": 0.5, "cost": 5, "time": 9}}"#;
    for better in [
        r#"{"result": {"quality": 0.6, "cost": 5, "time": 9}}"#,
        r#"{"result": {"quality": 0.5, "cost": 4, "time": 9}}"#,
        r#"{"result": {"quality": 0.5, "cost": 5, "time": 8}}"#,
        // Half the cost is worth more than a little quality.
        r#"{"result": {"quality": 0.4, "cost": 1, "time": 9}}"#,
    ] {
        assert_eq!(winner(better, plain).as_deref(), Some("[a] first"), "{better}");
        assert_eq!(winner(plain, better).as_deref(), Some("[a] second"), "{better}");
    }
    // An honest offer that is worth little is still better than none.
    let poor = r#"{"result": {"quality": 0.1, "cost": 5, "time": 9}}"#;
    for none in ["yes", "0.9", r#"{"result": {"quality": "high"}}"#, r#"{"result": 1}"#] {
        assert_eq!(winner(none, poor).as_deref(), Some("[a] second"), "{none}");
    }
    assert_eq!(winner("yes", "no").as_deref(), Some("[a] first"), "nobody made an offer");
    assert_eq!(TeamPattern::default(), TeamPattern::Hierarchical);
}

// spec: MA-25
#[test]
fn a_reviewer_sends_the_answer_back_once() {
    let world = World::new();
    let round = Arc::new(AtomicU32::new(0));
    let reviewer = FnAgent::new(|task, context| async move {
        let good = task.contains("second draft");
        answer(&context, &json!({ "result": { "approved": good, "notes": "too short" } }).to_string())
    });
    let lead = {
        let round = round.clone();
        FnAgent::new(move |task, context| {
            let text = match round.fetch_add(1, Ordering::SeqCst) {
                0 => "first draft",
                _ => "second draft",
            };
            assert!(text == "first draft" || task.contains("too short"), "{task}");
            async move { answer(&context, text) }
        })
    };
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker", "reviewer"], |options| {
            options.settings.reviewer = Some("reviewer".into());
        })
        .with_member(member("w", "worker"), FnAgent::saying("work"))
        .with_member(member("r", "reviewer"), reviewer)
        .with_lead("lead", lead);
    let outcome = world.start(&team, "Do it");
    assert_eq!((outcome.last_text().unwrap_or_default(), round.load(Ordering::SeqCst)), ("second draft", 2));
}

// spec: MA-23
#[test]
fn team_redundant_delegations_take_the_first_answer() {
    let world = World::new();
    let after = |ms| {
        FnAgent::new(move |_, context| async move {
            tokio::select! {
                () = pause(&context, ms) => answer(&context, &format!("after {ms}")),
                () = context.cancel.cancelled() => Outcome::new(context.run.clone(), OutcomeStatus::Cancelled),
            }
        })
    };
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker"], |options| options.settings.redundancy = 2)
        .with_member(member("m1", "worker"), after(900))
        .with_member(member("m2", "worker"), after(100));
    let outcome = world.start(&team, "Do it");
    assert_eq!(outcome.last_text(), Some("[a] after 100"));
    let machine = world.check_log();
    assert!(machine.members().all(|state| state.failed == 0), "to be slower is no failure");
}

// spec: MA-10, MA-26
#[test]
fn team_assignment_prefers_success_rate_then_load_then_id() {
    let world = World::new();
    let plan = vec![
        step("a", "1", "worker", &[]),
        step("b", "2", "worker", &["a"]),
        step("c", "3", "worker", &["b"]),
        step("d", "4", "worker", &["b"]),
    ];
    let failing = FnAgent::new(|_, context| async move {
        Outcome::failed(context.run.clone(), FailureKind::Other, "cannot")
    });
    let mut other = member("aaa", "other");
    other.roles.push("worker".into());
    let team = world
        .team(plan, &["worker", "other"], |_| {})
        .with_member(member("ann", "worker"), failing)
        .with_member(member("bob", "worker"), FnAgent::saying("done"))
        .with_member(member("cid", "worker"), FnAgent::saying("done"))
        // It could, but this is not what it is for.
        .with_member(other, FnAgent::saying("done"));
    world.start(&team, "Do it");
    assert_eq!(world.delegations(), ["ann: a: 1", "bob: a: 1", "bob: b: 2", "bob: c: 3", "bob: d: 4"]);
}

// spec: MA-10, MA-11, MA-09
#[test]
fn check_team_lists_all_problems_before_the_start() {
    let role = |name: &str| TeamRole::new(name, "");
    let problems = check_team(
        &[role("writer").with_tools(["typewriter"]), role("writer")],
        &[member("ann", "writer"), member("ann", "ghost")],
        None,
        &["reviewer".into()],
    );
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "the id ann is used twice among the members and the lead of the team",
            "the member ann has the role ghost, which the team does not define",
            "the role writer needs the tool typewriter, which no member with that role has",
            "two roles have the name writer",
            "no member has the role reviewer, and the team has no lead",
        ]
    );
    assert!(problems.iter().all(|problem| !problem.advice().is_empty()));
    let world = World::new();
    let team = world.team(vec![], &[], |_| {});
    let error = drive(&world.clock, team.start("Do it", &world.context)).unwrap_err();
    assert!(
        matches!(&error, TeamError::Problems { problems } if problems[..] == [TeamProblem::Empty]),
        "{error}"
    );
    let plan = |roles: &[&str]| {
        Task::new("t", "g")
            .with_subtasks((0..).zip(roles).map(|(n, r)| step(&format!("s{n}"), "", r, &[])).collect())
    };
    assert!(needs_team(&plan(&["a", "b"])) && !needs_team(&plan(&["a", "a"])));
}

// spec: MA-10, ER-15
#[test]
fn team_without_a_member_for_a_role_fails_the_task_with_the_reason() {
    let world = World::new();
    let plan = vec![
        step("a", "Do it", "worker", &[]),
        step("b", "Draw it", "artist", &[]),
        step("c", "Frame it", "worker", &["b"]),
    ];
    let team = world
        .team(plan, &["worker", "artist"], |_| {})
        .with_member(member("ann", "worker"), FnAgent::saying("done"));
    let outcome = world.start(&team, "Do it");
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(outcome.last_text(), Some("[a] done"));
    assert_eq!(
        outcome.error.unwrap(),
        "2 of 3 subtasks failed: b (there is no member with the role artist); c (it needs b, which failed)"
    );
    assert!(world.team_records().iter().any(|r| matches!(r, TeamRecord::DelegationFailed { .. })));
}

// spec: PL-06
#[test]
fn a_plan_that_cannot_be_followed_is_refused() {
    for (plan, problem) in [
        (
            vec![step("a", "", "w", &["b"]), step("b", "", "w", &["a"])],
            "Cycle detected in dependency graph: a → b → a",
        ),
        // Each depends on the one before; `0` only waits for one of them.
        (
            vec![
                step("0", "", "w", &["c"]),
                step("b", "", "w", &["a"]),
                step("a", "", "w", &["c"]),
                step("c", "", "w", &["b"]),
            ],
            "Cycle detected in dependency graph: a → b → c → a",
        ),
        (vec![step("a", "", "w", &["x"])], "the subtask a depends on x, which the plan does not have"),
        (vec![step("a", "", "w", &[]), step("a", "", "w", &[])], "the subtask a is in the plan twice"),
    ] {
        let world = World::new();
        let team = world.team(plan, &["w"], |_| {}).with_member(member("ann", "w"), FnAgent::saying("done"));
        let outcome = world.start(&team, "Do it");
        assert_eq!(outcome.error.unwrap(), format!("there is no plan: {problem}"));
    }
}

// spec: ER-16
#[test]
fn after_too_many_failures_a_person_is_asked() {
    let world = World::new();
    let failing = FnAgent::new(|_, context| async move {
        Outcome::failed(context.run.clone(), FailureKind::Other, "cannot")
    });
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker"], |o| o.settings.error_budget = Some(2))
        .with_member(member("ann", "worker"), failing);
    assert_eq!(world.start(&team, "Do it").status, OutcomeStatus::Suspended);
    let machine = world.check_log();
    let call = CallId::new(machine.jobs().last().unwrap().command, 0);
    assert!(machine.is_waiting_for(call));
    let no = Answer::Cancel { reason: String::new() };
    let outcome = drive(&world.clock, team.answer(call, no, &world.context)).unwrap();
    assert_eq!(outcome.error.unwrap(), "stopped by a person after 2 failures");
}

// spec: MA-13
#[test]
fn a_cancel_stops_everything_within_a_quarter_of_a_second() {
    let world = World::new();
    let plan = (0..20).map(|n| step(&format!("s{n}"), "", "worker", &[])).collect();
    let mut team = world.team(plan, &["worker"], |_| {});
    for n in 0..20 {
        team = team.with_member(member(&format!("m{n}"), "worker"), FnAgent::hanging());
    }
    let mut run = Box::pin(team.start("Do it", &world.context));
    assert!(poll_until_idle(&mut run).is_none());
    let begun = world.context.clock.now();
    world.context.cancel.cancel();
    let outcome = drive(&world.clock, run).unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Cancelled);
    assert!(world.context.clock.now().since(begun) <= Duration::from_millis(250));
}

// spec: MA-13
#[test]
fn team_total_spending_stays_within_the_budget_plus_open_calls() {
    let world = World::new();
    let plan = (0..50).map(|n| step(&format!("s{n}"), "", "worker", &[])).collect();
    let leases = Arc::new(Mutex::new(Vec::new()));
    let spender = {
        let leases = leases.clone();
        FnAgent::new(move |_, context| {
            let leases = leases.clone();
            async move {
                let lease = context.delegation.as_ref().unwrap().lease;
                leases.lock().unwrap().push(lease.tokens);
                pause(&context, 10).await;
                // It uses all that it has, and its last call costs a little more than anybody knew.
                let mut outcome = answer(&context, "done");
                outcome.usage.input = lease.tokens + 5;
                outcome
            }
        })
    };
    let mut team = world.team(plan, &["worker"], |options| {
        options.limits.max_total_tokens = 1_000;
        options.settings.max_concurrent = 4;
    });
    for n in 0..4 {
        team = team.with_member(member(&format!("m{n}"), "worker"), spender.clone());
    }
    let outcome = world.start(&team, "Do it");
    assert_eq!(outcome.status, OutcomeStatus::Limit(LimitReached::Tokens { max: 1_000 }));
    assert!(outcome.child_spending.tokens <= 1_000 + 4 * 5, "{:?}", outcome.child_spending);
    assert_eq!(leases.lock().unwrap()[..4], [200, 200, 200, 200]);
}

#[test]
fn resume_of_a_team_that_met_a_limit_goes_on_with_more_and_is_refused_without() {
    let slow = || {
        FnAgent::new(|_, context| async move {
            pause(&context, 10).await;
            answer(&context, "done")
        })
    };
    let tokens = |max: u64| {
        let mut more = MoreLimits::default();
        more.max_total_tokens = Some(max);
        more
    };
    let mut time = MoreLimits::default();
    time.max_duration_ms = Some(60_000);
    let by_tokens = (LimitReached::Tokens { max: 25 }, tokens(26), tokens(1_000));
    let by_time = (LimitReached::Duration { max_ms: 25 }, MoreLimits::default(), time);
    for (limit, too_little, enough) in [by_tokens, by_time] {
        let world = World::new();
        let plan = vec![
            step("a", "1", "worker", &[]),
            step("b", "2", "worker", &["a"]),
            step("c", "3", "worker", &["b"]),
            step("d", "4", "worker", &["c"]),
        ];
        let team = world.team(plan, &["worker"], |options| match limit {
            LimitReached::Duration { max_ms } => options.limits.max_duration_ms = max_ms,
            _ => options.limits.max_total_tokens = 25,
        });
        let team = team.with_member(member("ann", "worker"), slow());
        assert_eq!(world.start(&team, "Do it").status, OutcomeStatus::Limit(limit));
        let given = world.delegations().len();
        for more in [MoreLimits::default(), too_little] {
            let refused = drive(&world.clock, team.resume_with(&more, &world.context)).unwrap_err();
            assert!(
                matches!(refused, TeamError::Refused(RunRefused::AtLimit { .. })),
                "{limit} and {more:?}: {refused}"
            );
        }
        let outcome = drive(&world.clock, team.resume_with(&enough, &world.context)).unwrap();
        world.check_log();
        assert_eq!(outcome.status, OutcomeStatus::Finished, "{limit}: {outcome:?}");
        assert!(given < 4, "{given} of 4 were given out before the limit");
        assert_eq!(world.delegations().len(), 4, "{limit}: nobody was given the same twice");
    }
}

/// The process dies at each append in turn, before or after the append is written. Finished work is not
/// repeated, and the answer is the same.
// spec: MA-23, ER-13
#[test]
fn team_killed_at_any_record_resumes_without_repeating_work() {
    let run = |die: Option<(u64, bool)>| {
        let world = World::new();
        let finished = Arc::new(Mutex::new(Vec::new()));
        let worker = |says: &'static str| {
            let finished = finished.clone();
            FnAgent::new(move |_, context| {
                let finished = finished.clone();
                async move {
                    let mut finished = finished.lock().unwrap();
                    // As the journal of a real member would: a run that ended is not done again.
                    if !finished.contains(&context.run) {
                        finished.push(context.run.clone());
                    }
                    answer(&context, says)
                }
            })
        };
        let plan = vec![
            step("a", "1", "worker", &[]),
            step("b", "2", "worker", &["a"]),
            step("c", "3", "other", &[]),
        ];
        let team = world
            .team(plan, &["worker", "other"], |_| {})
            .with_member(member("ann", "worker"), worker("one"))
            .with_member(member("bob", "other"), worker("two"))
            .with_lead("lead", worker("all"));
        let Some((appends, is_written)) = die else {
            return (world.start(&team, "Do it"), world.journal.log("run_1").len(), 4);
        };
        world.journal.die_after(appends, is_written);
        let mut outcome = drive(&world.clock, team.start("Do it", &world.context)).ok();
        world.journal.live();
        if outcome.is_none() {
            let log = world.journal.log("run_1");
            outcome = match log.iter().any(|record| matches!(record.body, RecordBody::RunFinished(_))) {
                true => world.check_log().ended().cloned(),
                false if log.iter().any(|record| matches!(record.body, RecordBody::MessageAdded { .. })) => {
                    Some(drive(&world.clock, team.resume(&world.context)).unwrap())
                }
                false => return (Outcome::failed("run_1".into(), FailureKind::Other, "not begun"), 0, 4),
            };
        }
        let outcome = outcome.unwrap();
        world.check_log();
        let delegated = world.delegations();
        assert_eq!(delegated.len(), 4, "{appends} {is_written}: {delegated:?}");
        let runs = finished.lock().unwrap().len();
        (outcome, world.journal.log("run_1").len(), runs)
    };
    let (whole, records, _) = run(None);
    assert_eq!(whole.last_text(), Some("all"));
    let mut resumed = 0;
    for appends in 1..=records as u64 {
        for is_written in [false, true] {
            let (outcome, _, runs) = run(Some((appends, is_written)));
            if outcome.error.as_deref() == Some("not begun") {
                continue;
            }
            resumed += 1;
            assert_eq!(
                (outcome.status, outcome.last_text().unwrap_or_default(), runs),
                (OutcomeStatus::Finished, "all", 4)
            );
            assert_eq!(outcome.child_spending, whole.child_spending);
        }
    }
    assert!(resumed > 20, "{resumed}");
}

// spec: MA-27
#[test]
fn a_team_is_an_agent_and_a_member_may_be_a_team() {
    let world = World::new();
    let inner = world
        .team(vec![step("x", "Inner", "worker", &[])], &["worker"], |_| {})
        .with_member(member("deep", "worker"), FnAgent::saying("from below"));
    let outer = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker"], |options| options.limits.max_depth = 3)
        .with_member(member("sub", "worker"), Arc::new(inner) as Arc<dyn Agent>);
    let outcome = world.start(&outer, "Do it");
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "[a] [x] from below")
    );
    assert_eq!(outcome.child_spending.tokens, 10);
    assert!(
        !world.journal.log("run_1.1-0").is_empty(),
        "the inner run has a log beside that of the outer one"
    );
    let settings = TeamSettings::default();
    assert_eq!(
        (settings.heartbeat_ms, settings.missed_heartbeats, settings.max_delegation_depth),
        (5_000, 3, 5)
    );
}

/// A planner whose model calls cost tokens, with or without a plan.
struct Dear(Result<Vec<SubTask>, ()>);

impl Planner for Dear {
    async fn create_plan(&self, goal: &str, context: &PlanningContext) -> Result<Task, PlanError> {
        context.expenses.add(Spending::new(30, 6));
        match &self.0 {
            Ok(steps) => Ok(Task::new("task_1", goal).with_subtasks(steps.clone())),
            Err(()) => Err(PlanError::Unreadable { problem: "prose".into() }),
        }
    }
}

#[test]
fn team_planner_spending_is_counted_with_and_without_a_plan() {
    let plans = [
        (Ok(vec![step("a", "Do it", "worker", &[])]), Spending::new(40, 6)),
        (Err(()), Spending::new(30, 6)),
    ];
    for (plan, spent) in plans {
        let world = World::new();
        let mut options = TeamOptions::default();
        options.roles = vec![TeamRole::new("worker", "")];
        let team = Team::new(Dear(plan), Arc::new(world.journal.clone()), options)
            .with_member(member("ann", "worker"), FnAgent::saying("done"));
        assert_eq!(world.start(&team, "Do it").spending(), spent);
    }
}

// spec: EX-07
#[test]
fn team_plan_with_a_for_each_over_a_result_is_refused() {
    let world = World::new();
    let mut each = step("pages", "Read all", "worker", &["find"]);
    each.rules.each =
        Some(Box::new(ForEach::new(json!("{find}"), "page", vec![step("read", "Read it", "worker", &[])])));
    let plan = vec![step("find", "Find pages", "worker", &[]), each];
    let team = world.team(plan, &["worker"], |_| {}).with_member(member("ann", "worker"), FnAgent::echo());
    let outcome = world.start(&team, "Read");
    assert_eq!(outcome.failure_kind(), Some(FailureKind::Plan));
    let error = outcome.error.unwrap();
    assert_eq!(error, "there is no plan: the subtask pages is a loop, which a team does not follow");
    assert_eq!(world.delegations(), Vec::<String>::new());
}

/// A planner whose first request fails.
struct Later(std::sync::atomic::AtomicUsize);

impl Planner for Later {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Err(PlanError::Model(archon_types::ProviderError::Auth("no key".into()))),
            _ => Ok(Task::new("task_1", goal).with_subtasks(vec![step("a", "Do it", "worker", &[])])),
        }
    }
}

#[test]
fn team_whose_planner_was_not_reached_is_resumed() {
    let world = World::new();
    let mut options = TeamOptions::default();
    options.roles = vec![TeamRole::new("worker", "")];
    let team = Team::new(Later(0.into()), Arc::new(world.journal.clone()), options)
        .with_member(member("ann", "worker"), FnAgent::saying("done"));
    assert_eq!(world.start(&team, "Do it").failure_kind(), Some(archon_types::FailureKind::Auth));
    let outcome = drive(&world.clock, team.resume(&world.context)).unwrap();
    world.check_log();
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{outcome:?}");
}
