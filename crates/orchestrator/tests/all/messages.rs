//! Tests of a team's bus messages, and of the load of a member.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use archon_orchestrator::{AssignmentState, Job, JobState, Team, TeamDesk, TeamOptions, fold};
use archon_testkit::{FnAgent, RecordingBus, answer};
use archon_types::{
    BusMessage, FailureKind, Json, MessageType, Outcome, OutcomeStatus, PlanError, Planner, PlanningContext,
    SubTask, Task, TeamRecord, TeamRole,
};
use serde_json::json;

use crate::support::{World, member, pause, step};

/// A planner that also returns initial values.
struct Knowing(Vec<SubTask>);

impl Planner for Knowing {
    async fn create_plan(&self, goal: &str, _: &PlanningContext) -> Result<Task, PlanError> {
        let mut task = Task::new("task_1", goal).with_subtasks(self.0.clone());
        task.context.insert("city".into(), json!("Rome"));
        Ok(task)
    }
}

/// Returns the bus messages of a run with this plan: `from > to`, the type, and the content.
fn bus_messages(
    world: &World,
    plan: Vec<SubTask>,
    add: impl FnOnce(Team) -> Team,
) -> Vec<(String, MessageType, Json)> {
    let bus = RecordingBus::new();
    let kinds =
        [MessageType::TaskRequest, MessageType::TaskResponse, MessageType::StatusUpdate, MessageType::Error];
    let mut options = TeamOptions::default();
    options.roles = ["red", "blue"].map(|role| TeamRole::new(role, "")).to_vec();
    (options.settings.max_attempts, options.settings.max_replans) = (1, 0);
    let team = Team::new(Knowing(plan), Arc::new(world.journal.clone()), options);
    world.start(&add(team).with_bus(Arc::new(bus.clone())), "A trip");
    let pairs_with_task = |message: &BusMessage| {
        let is_status = message.message_type == MessageType::StatusUpdate;
        let task = message.content["task_id"].as_str().filter(|_| !is_status);
        assert_eq!(message.correlation_id.as_deref(), task);
    };
    bus.messages(&kinds)
        .into_iter()
        .inspect(pairs_with_task)
        .map(|m| (format!("{} > {}", m.sender_id, m.receiver_id), m.message_type, Json::Object(m.content)))
        .collect()
}

// spec: T-30, MA-02, MA-03
#[test]
fn team_task_request_and_response_messages_are_complete() {
    let world = World::new();
    let mut first = step("find", "Find sights", "red", &[]);
    first.expected_output = Some("a list".into());
    first.rules.save_as = Some("sights".into());
    let plan = vec![first, step("write", "Write", "blue", &["find"])];
    let begun = world.context.clock.now();
    let half = FnAgent::saying(r#"{"result": ["Forum"], "status": "partial"}"#);
    let said = bus_messages(&world, plan, |team| {
        team.with_member(member("r", "red"), half).with_member(member("b", "blue"), FnAgent::saying("Go."))
    });
    let due = (begun + Duration::from_secs(300)).to_string();
    let is_task = |kind: &MessageType| matches!(kind, MessageType::TaskRequest | MessageType::TaskResponse);
    let said: Vec<_> = said.into_iter().filter(|(_, kind, _)| is_task(kind)).collect();
    let expected = [
        (
            "team > r",
            MessageType::TaskRequest,
            json!({
                "task_id": "run_1.1-0", "subtask_description": "find: Find sights", "expected_output": "a list",
                "deadline": due, "dependencies": [], "shared_context_key": "sights", "delegation_chain": [],
                "context": { "goal": "A trip", "known": { "city": "Rome" }, "results": {} }, "priority": "normal",
            }),
        ),
        (
            "r > team",
            MessageType::TaskResponse,
            json!({ "task_id": "run_1.1-0", "result": ["Forum"], "status": "partial" }),
        ),
        (
            "team > b",
            MessageType::TaskRequest,
            json!({
                "task_id": "run_1.2-0", "subtask_description": "write: Write", "deadline": due,
                "dependencies": ["find"], "shared_context_key": "write", "delegation_chain": [],
                "context": { "goal": "A trip", "known": { "city": "Rome" }, "results": { "find": ["Forum"] } },
                "priority": "normal",
            }),
        ),
        (
            "b > team",
            MessageType::TaskResponse,
            json!({ "task_id": "run_1.2-0", "result": "Go.", "status": "success" }),
        ),
    ];
    assert_eq!(said, expected.map(|(between, kind, content)| (between.to_owned(), kind, content)));
}

// spec: MA-03
#[test]
fn team_response_without_a_result_has_status_failed() {
    let world = World::new();
    let empty = FnAgent::saying(r#"{"result": "no rooms", "status": "failed"}"#);
    let said = bus_messages(&world, vec![step("book", "Book", "red", &[])], |team| {
        team.with_member(member("r", "red"), empty)
    });
    let (between, kind, content) = said.last().unwrap();
    assert_eq!((between.as_str(), kind), ("r > team", &MessageType::TaskResponse));
    assert_eq!(content, &json!({ "task_id": "run_1.1-0", "result": "no rooms", "status": "failed" }));
}

// spec: MA-02, MA-15
#[test]
fn team_help_request_is_urgent_and_lists_its_delegation_chain() {
    let world = World::new();
    let desk = TeamDesk::new();
    let at = desk.clone();
    let asking = FnAgent::new(move |_, context| {
        let desk = at.clone();
        async move {
            let said = desk.seat(&context.run).unwrap().ask("blue", "Which colour?").await.unwrap();
            answer(&context, &said)
        }
    });
    let said = bus_messages(&world, vec![step("a", "Paint", "red", &[])], |team| {
        team.with_member(member("r", "red"), asking)
            .with_member(member("b", "blue"), FnAgent::saying("Blue."))
            .with_desk(desk)
    });
    let request = said.iter().rfind(|(_, kind, _)| *kind == MessageType::TaskRequest).unwrap();
    assert_eq!(request.0, "team > b");
    assert_eq!((&request.2["priority"], &request.2["delegation_chain"]), (&json!("high"), &json!(["r"])));
}

// spec: MA-14, MA-22
#[test]
fn team_worker_sends_acknowledgement_progress_and_final_message() {
    let world = World::new();
    let begun = world.context.clock.now();
    // Neither emits anything, as if a tool or the first word of a model took long.
    let slow = FnAgent::new(|_, context| async move {
        pause(&context, 40_000).await;
        answer(&context, "done")
    });
    let broken = FnAgent::new(|_, context| async move {
        pause(&context, 20_000).await;
        Outcome::failed(context.run.clone(), FailureKind::Other, "no ink")
    });
    let plan = vec![step("a", "1", "red", &[]), step("b", "2", "blue", &[])];
    let said = bus_messages(&world, plan, |team| {
        team.with_member(member("r", "red"), slow).with_member(member("b", "blue"), broken)
    });
    let of = |from: &str| -> Vec<String> {
        let line = |(between, kind, content): &(String, MessageType, Json)| {
            let after = content["heard"].as_str().map(|at| at.parse::<archon_types::Timestamp>().unwrap());
            let after = after.map(|at| format!(" {}", at.since(begun).as_secs())).unwrap_or_default();
            (between == from).then(|| {
                format!("{kind} {}{after} {}", content["status"].as_str().unwrap(), content["task_id"])
            })
        };
        said.iter().filter_map(line).collect()
    };
    assert_eq!(
        of("r > team"),
        [
            "status_update accepted 0 \"run_1.1-0\"",
            "status_update executing 15 \"run_1.1-0\"",
            "status_update executing 30 \"run_1.1-0\"",
            "task_response success \"run_1.1-0\"",
        ]
    );
    let of_b = of("b > team");
    assert_eq!(of_b.first().unwrap(), "status_update accepted 0 \"run_1.2-0\"");
    assert_eq!(of_b.last().unwrap(), "error failed \"run_1.2-0\"");
    let error = said.iter().find(|(_, kind, _)| *kind == MessageType::Error).unwrap();
    assert!(error.2["error"].as_str().unwrap().contains("no ink"), "{error:?}");
    let taken = |record: &TeamRecord| matches!(record, TeamRecord::DelegationRevoked { .. });
    assert!(!world.team_records().iter().any(taken), "nobody who is at work is silent");
}

/// Returns the status of a delegated task.
fn status(job: &Job) -> &'static str {
    let is_running =
        |state: AssignmentState| matches!(state, AssignmentState::Running | AssignmentState::Asked);
    match &job.state {
        JobState::Done => "completed",
        JobState::Failed { .. } => "failed",
        _ if job.hands.iter().any(|hand| is_running(hand.state)) => "executing",
        _ => "pending",
    }
}

/// Returns the statuses of the tasks after each record, without repetitions.
fn statuses(world: &World) -> Vec<String> {
    let log = world.journal.log("run_1");
    let line = |length: usize| {
        let machine = fold(&world.context.run, &log[..length]).unwrap();
        let jobs = machine.jobs().iter().map(|job| format!("{} {}", job.command.0, status(job)));
        jobs.collect::<Vec<_>>().join(", ")
    };
    let mut lines: Vec<String> = (1..=log.len()).map(line).collect();
    lines.dedup();
    lines
}

// spec: MA-12
#[test]
fn team_delegation_states_are_in_the_log() {
    let world = World::new();
    let desk = TeamDesk::new();
    let at = desk.clone();
    let asking = FnAgent::new(move |_, context| {
        let desk = at.clone();
        async move {
            let said = desk.seat(&context.run).unwrap().ask("bob", "Which year?").await.unwrap();
            answer(&context, &said)
        }
    });
    let broken = FnAgent::new(|_, context| async move {
        Outcome::failed(context.run.clone(), FailureKind::Other, "no ink")
    });
    let plan = vec![step("find", "Find it", "finder", &[]), step("print", "Print it", "printer", &["find"])];
    let team = world
        .team(plan, &["finder", "printer", "expert"], |options| options.settings.max_attempts = 1)
        .with_member(member("ann", "finder"), asking)
        .with_member(member("bob", "expert"), FnAgent::saying("1969"))
        .with_member(member("cleo", "printer"), broken)
        .with_desk(desk.clone());
    world.start(&team, "A card");
    assert_eq!(
        statuses(&world),
        [
            "",
            "1 pending, 2 pending",
            "1 executing, 2 pending",
            "1 executing, 2 pending, 3 pending",
            "1 executing, 2 pending, 3 executing",
            "1 executing, 2 pending, 3 completed",
            "1 completed, 2 pending, 3 completed",
            "1 completed, 2 executing, 3 completed",
            "1 completed, 2 failed, 3 completed",
        ]
    );
    let machine = world.check_log();
    let shown = |job: &Job| {
        let id = world.context.run.of_call(job.call(0));
        assert!(desk.seat(&id).is_none(), "the desk has no handle of {id}");
        let result = job.response.as_ref().map(|response| response.text());
        (id.to_string(), machine.title(job), job.hands[0].member.to_string(), job.chain.clone(), result)
    };
    let expected = [
        ("run_1.1-0", "find: Find it", "ann", vec![], Some("1969")),
        ("run_1.2-0", "print: Print it", "cleo", vec![], None),
        ("run_1.3-0", "Which year?", "bob", vec!["ann".into()], Some("1969")),
    ];
    let expected = expected.map(|(id, title, member, chain, result)| {
        (id.to_owned(), title.to_owned(), member.to_owned(), chain, result.map(str::to_owned))
    });
    assert_eq!(machine.jobs().iter().map(shown).collect::<Vec<_>>(), expected);
    let after: Vec<_> =
        machine.jobs().iter().filter_map(|job| job.subtask()).map(|s| s.dependencies()).collect();
    assert_eq!(after, [vec![], vec!["find".into()]]);
    assert!(matches!(&machine.jobs()[1].state, JobState::Failed { reason } if reason.contains("no ink")));
}

// spec: MA-22
#[test]
fn a_member_whose_run_never_ends_loses_its_task_at_the_deadline_of_the_task() {
    let world = World::new();
    let plan = vec![step("a", "Do it", "worker", &[])];
    let team = world
        .team(plan, &["worker"], |options| options.settings.task_timeout_ms = 60_000)
        .with_member(member("ann", "worker"), FnAgent::hanging())
        .with_member(member("bob", "worker"), FnAgent::saying("done"));
    assert_eq!(world.start(&team, "Do it").last_text(), Some("[a] done"));
    let taken = world.team_records().into_iter().find_map(|record| match record {
        TeamRecord::DelegationRevoked { member, reason, .. } => Some((member, reason)),
        _ => None,
    });
    assert_eq!(taken, Some(("ann".into(), "not done after 60 s".to_owned())));
}

// spec: MA-14
#[test]
fn team_worker_never_exceeds_its_max_tasks() {
    for (given, most) in [(None, 3), (Some(1), 1), (Some(2), 2), (Some(9), 7)] {
        let world = World::new();
        let plan = (0..7).map(|n| step(&format!("s{n}"), "", "worker", &[])).collect();
        let (busy, highest) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let worker = {
            let (busy, highest) = (busy.clone(), highest.clone());
            FnAgent::new(move |_, context| {
                let (busy, highest) = (busy.clone(), highest.clone());
                async move {
                    highest.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    pause(&context, 1_000).await;
                    busy.fetch_sub(1, Ordering::SeqCst);
                    answer(&context, "done")
                }
            })
        };
        let mut who = member("ann", "worker");
        if let Some(given) = given {
            who = who.with_max_tasks(given);
        }
        let team = world.team(plan, &["worker"], |_| {}).with_member(who, worker);
        assert_eq!(world.start(&team, "Do it").status, OutcomeStatus::Finished);
        assert_eq!(highest.load(Ordering::SeqCst), most, "{given:?}");
    }
}
