//! Whole tasks, done by teams of scripted agents.

use std::{
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use archon_orchestrator::{TeamDesk, TeamHandleError, TeamOptions};
use archon_testkit::{FnAgent, RecordingBus, answer, drive, poll_until_idle};
use archon_types::{
    AgentId, BoxFuture, Bus, BusError, BusMessage, Clock, ConflictStrategy, Heartbeat, Json, MessageType,
    OutcomeStatus, TeamRecord,
};
use futures_util::stream::BoxStream;
use serde_json::json;

use crate::support::{World, member, pause, step};

fn lead() -> Arc<FnAgent> {
    FnAgent::echo()
}

// spec: A-14, MA-13, MA-10
#[test]
fn a_calculation_and_a_search_go_to_two_members_and_the_lead_puts_them_together() {
    let world = World::new();
    let plan = vec![
        step("sum", "What is 6 * 7?", "calculator", &[]),
        step("capital", "Capital of France?", "searcher", &[]),
    ];
    let team = world
        .team(plan, &["calculator", "searcher"], |_| {})
        .with_member(member("one", "calculator"), FnAgent::saying("42"))
        .with_member(member("two", "searcher"), FnAgent::saying("Paris"))
        .with_lead("lead", lead());
    let outcome = world.start(&team, "Both");
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    assert_eq!(world.delegations()[..2], ["one: sum: What is 6 * 7?", "two: capital: Capital of France?"]);
    let machine = world.check_log();
    assert_eq!(machine.board().get("sum").unwrap().value, json!("42"));
    assert_eq!(machine.board().get("capital").unwrap().by, AgentId::new("two"));
    assert!(
        outcome.last_text().unwrap_or_default().contains("42")
            && outcome.last_text().unwrap_or_default().contains("Paris"),
        "{outcome:?}"
    );
    assert_eq!(outcome.child_spending.tokens, 30);
}

// spec: A-16, MA-13, OB-03
#[test]
fn team_research_result_reaches_the_writer_and_the_answer() {
    for is_slow in [false, true] {
        researched(is_slow);
    }
}

/// The types of the messages that delegate and answer work.
const TASKS: [MessageType; 2] = [MessageType::TaskRequest, MessageType::TaskResponse];

/// A bus that takes no message at once, like a bus with a server.
struct Slow(RecordingBus);

impl Bus for Slow {
    fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), BusError>> {
        let mut turns = 3;
        let wait = std::future::poll_fn(move |task| {
            turns -= 1;
            task.waker().wake_by_ref();
            if turns == 0 { Poll::Ready(()) } else { Poll::Pending }
        });
        Box::pin(async move {
            wait.await;
            self.0.publish(message).await
        })
    }

    fn subscribe<'a>(
        &'a self,
        agent: &'a AgentId,
        also: &'a [MessageType],
    ) -> BoxFuture<'a, Result<BoxStream<'static, BusMessage>, BusError>> {
        self.0.subscribe(agent, also)
    }
}

/// A bus that needs time for each message.
struct Distant(RecordingBus, Arc<dyn Clock>);

impl Bus for Distant {
    fn publish(&self, message: BusMessage) -> BoxFuture<'_, Result<(), BusError>> {
        Box::pin(async move {
            self.1.sleep_until(self.1.now() + Duration::from_millis(300)).await;
            self.0.publish(message).await
        })
    }

    fn subscribe<'a>(
        &'a self,
        agent: &'a AgentId,
        also: &'a [MessageType],
    ) -> BoxFuture<'a, Result<BoxStream<'static, BusMessage>, BusError>> {
        self.0.subscribe(agent, also)
    }
}

// spec: MA-13, OB-03
#[test]
fn team_finished_run_drains_its_bus_and_a_cancelled_one_stops_early() {
    let distant = |world: &World, agent: Arc<FnAgent>| {
        let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
        let bus = RecordingBus::new();
        let team = world
            .team(vec![step("a", "Work", "researcher", &[])], &["researcher"], |_| {})
            .with_member(member("r", "researcher"), agent)
            .with_bus(Arc::new(Distant(bus.clone(), clock)));
        (team, bus)
    };
    let world = World::new();
    let (team, bus) = distant(&world, FnAgent::saying("done"));
    assert_eq!(world.start(&team, "Work").status, OutcomeStatus::Finished);
    let sent = bus.messages(&TASKS).into_iter();
    let sent: Vec<String> = sent.map(|message| message.message_type.to_string()).collect();
    assert_eq!(sent, ["task_request", "task_response"]);

    let world = World::new();
    let (team, _) = distant(&world, FnAgent::hanging());
    let mut run = Box::pin(team.start("Work", &world.context));
    assert!(poll_until_idle(&mut run).is_none());
    let begun = world.clock.now();
    world.context.cancel.cancel();
    assert_eq!(drive(&world.clock, run).unwrap().status, OutcomeStatus::Cancelled);
    assert!(world.clock.now().since(begun) <= Duration::from_millis(250));
}

fn researched(is_slow: bool) {
    let world = World::new();
    let plan = vec![
        step("research", "Find the impacts of climate change", "researcher", &[]),
        step("write", "Write three paragraphs", "writer", &["research"]),
    ];
    let bus = RecordingBus::new();
    let writer = FnAgent::new(|task, context| async move {
        let found =
            task.split("<result of=\"research\">\n").nth(1).unwrap().lines().next().unwrap().to_owned();
        answer(&context, &format!("In short: {found}"))
    });
    let team = world
        .team(plan, &["researcher", "writer"], |_| {})
        .with_member(member("r", "researcher"), FnAgent::saying("The sea rises by 3.7 mm a year."))
        .with_member(member("w", "writer"), writer)
        .with_bus(if is_slow { Arc::new(Slow(bus.clone())) } else { Arc::new(bus.clone()) as Arc<dyn Bus> });
    let outcome = world.start(&team, "Research climate change impacts and write a 3-paragraph summary");
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    assert!(
        outcome.last_text().unwrap_or_default().contains("[write] In short: The sea rises by 3.7 mm a year."),
        "{outcome:?}"
    );
    let said: Vec<_> = bus
        .messages(&TASKS)
        .into_iter()
        .inspect(|m| assert_eq!(m.run_id.as_ref(), Some(&outcome.run), "{m:?}"))
        .map(|m| format!("{} to {}: {}", m.sender_id, m.receiver_id, m.message_type))
        .collect();
    assert_eq!(
        said,
        [
            "team to r: task_request",
            "r to team: task_response",
            "team to w: task_request",
            "w to team: task_response"
        ]
    );
}

// spec: A-17, MA-15
#[test]
fn team_member_asks_another_while_other_tasks_run() {
    let world = World::new();
    let plan = vec![
        step("rain", "Average rainfall in Seattle", "researcher", &[]),
        step("climate", "Climate of Seattle", "researcher", &[]),
        step("write", "One paragraph", "writer", &["rain", "climate"]),
    ];
    let desk = TeamDesk::new();
    let writer = {
        let desk = desk.clone();
        FnAgent::new(move |_, context| {
            let desk = desk.clone();
            async move {
                let seat = desk.seat(&context.run).unwrap();
                let inches = seat.ask("calculator", "952 mm in inches?").await.unwrap();
                answer(&context, &format!("It rains {inches} inches."))
            }
        })
    };
    let busy = FnAgent::new(|_, context| async move {
        pause(&context, 1_000).await;
        answer(&context, "952 mm")
    });
    let team = world
        .team(plan, &["researcher", "writer", "calculator"], |_| {})
        .with_member(member("r1", "researcher").with_max_tasks(1), busy.clone())
        .with_member(member("r2", "researcher").with_max_tasks(1), busy)
        .with_member(member("w", "writer"), writer)
        .with_member(member("c", "calculator"), FnAgent::saying("37.5"))
        .with_desk(desk);
    let outcome =
        world.start(&team, "Research the average rainfall in Seattle and write a one-paragraph summary");
    assert!(outcome.last_text().unwrap_or_default().contains("It rains 37.5 inches."), "{outcome:?}");
    assert_eq!(
        world.delegations(),
        [
            "r1: rain: Average rainfall in Seattle",
            "r2: climate: Climate of Seattle",
            "w: write: One paragraph",
            "c: 952 mm in inches?"
        ]
    );
    // Both researchers worked at the same time.
    let log = world.journal.log("run_1");
    assert_eq!(log.last().unwrap().at.since(log[0].at).as_millis(), 1_000);
}

// spec: A-18, MA-17
#[test]
fn team_steps_wait_for_dependencies_and_members_for_shared_values() {
    let world = World::new();
    let plan = vec![
        step("weather_data", "Call the API", "api", &[]),
        step("analysis", "Analyse", "analyst", &["weather_data"]),
        step("chart", "Draw", "artist", &["weather_data", "analysis"]),
        step("title", "Find a title", "editor", &[]),
    ];
    let desk = TeamDesk::new();
    let order = Arc::new(Mutex::new(Vec::new()));
    let worker = |name: &'static str, ms| {
        let order = order.clone();
        FnAgent::new(move |_, context| {
            let order = order.clone();
            async move {
                order.lock().unwrap().push(name);
                pause(&context, ms).await;
                answer(&context, name)
            }
        })
    };
    // The editor's step needs no other, but the editor waits for the analysis; that is not silence.
    let editor = {
        let (desk, order) = (desk.clone(), order.clone());
        FnAgent::new(move |_, context| {
            let (desk, order) = (desk.clone(), order.clone());
            async move {
                let found = desk.seat(&context.run).unwrap().wait("analysis", 0).await.unwrap();
                order.lock().unwrap().push("title");
                answer(&context, &format!("About {}", found.value))
            }
        })
    };
    let team = world
        .team(plan, &["api", "analyst", "artist", "editor"], |_| {})
        .with_member(member("a", "api"), worker("data", 14_000))
        .with_member(member("b", "analyst"), worker("analysis", 14_000))
        .with_member(member("c", "artist"), worker("chart", 10))
        .with_member(member("d", "editor"), editor)
        .with_desk(desk);
    let outcome = world.start(&team, "A weather script");
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
    let order = order.lock().unwrap();
    assert_eq!(order[..2], ["data", "analysis"]);
    assert_eq!(order.len(), 4, "nobody was replaced: {order:?}");
    assert!(outcome.last_text().unwrap_or_default().contains("[title] About \"analysis\""), "{outcome:?}");
}

// spec: A-19, MA-18, MA-20, MA-19
#[test]
fn team_conflict_is_recorded_resolved_and_dependent_work_repeated() {
    let world = World::new();
    let plan = vec![
        step("b", "Trend from the API", "analyst", &[]),
        {
            let mut archive = step("c", "Trend from the archive", "analyst", &[]);
            archive.rules.save_as = Some("archive".to_owned());
            archive
        },
        step("report", "Write", "writer", &["b", "c"]),
    ];
    let claims = |value: &str| {
        json!({ "result": format!("The trend is {value}"), "claims": { "trend": value } }).to_string()
    };
    let c = {
        let claims = claims("15%");
        FnAgent::new(move |task, context| {
            let claims = claims.clone();
            async move {
                match task {
                    task if task.starts_with("Others came to") => answer(&context, "From 2019 only."),
                    task if task.starts_with("Do your work again") => {
                        let settled = "<settled of=\"trend\">\n30% (lead decided)\n</settled>";
                        assert!(task.contains(settled), "{task}");
                        answer(&context, "The trend is 30%, corrected")
                    }
                    _ => answer(&context, &claims),
                }
            }
        })
    };
    let lead = FnAgent::new(|task, context| async move {
        match task.contains("Decide which") {
            true => {
                assert!(task.contains("From 2019 only."), "{task}");
                answer(&context, r#"{"result": {"winner": "bert"}}"#)
            }
            false => answer(&context, &task),
        }
    });
    let team = world
        .team(plan, &["analyst", "writer"], |options| {
            options.settings.conflicts.strategy = ConflictStrategy::Arbitration;
        })
        .with_member(member("bert", "analyst").with_max_tasks(1), FnAgent::saying(&claims("30%")))
        .with_member(member("carl", "analyst").with_max_tasks(1), c)
        .with_member(member("w", "writer"), FnAgent::echo())
        .with_lead("lead", lead);
    let outcome = world.start(&team, "The trend");
    assert_eq!(outcome.status, OutcomeStatus::Finished, "{:?}", outcome.error);
    let said = world.team_records();
    assert!(said.iter().any(
        |r| matches!(r, TeamRecord::ConflictFound { key, claims, .. } if key == "trend" && claims.len() == 2)
    ));
    assert!(said.iter().any(|r| matches!(r, TeamRecord::ConflictResolved { value, resolution: how, .. } if *value == json!("30%") && how == "lead decided")));
    let machine = world.check_log();
    assert_eq!(machine.board().get("trend").unwrap().value, json!("30%"));
    // What was worked out again stands where the wrong result stood.
    assert_eq!(machine.board().get("archive").unwrap().value, json!("The trend is 30%, corrected"));
    assert!(machine.board().get("c").is_none());
    assert!(outcome.last_text().unwrap_or_default().contains("The trend is 30%, corrected"), "{outcome:?}");
    assert!(!outcome.last_text().unwrap_or_default().contains("15%"), "{outcome:?}");
}

// spec: A-20, MA-21
#[test]
fn a_delegation_loop_is_refused_with_its_chain_and_the_task_still_ends() {
    let world = World::new();
    let desk = TeamDesk::new();
    let refused = Arc::new(Mutex::new(None));
    let asking = |other: &'static str| {
        let (desk, refused) = (desk.clone(), refused.clone());
        FnAgent::new(move |_, context| {
            let (desk, refused) = (desk.clone(), refused.clone());
            async move {
                let asked = desk.seat(&context.run).unwrap().ask(other, "Do it for me").await;
                if let Err(TeamHandleError::Refused { reason }) = &asked {
                    *refused.lock().unwrap() = Some(reason.clone());
                }
                answer(&context, &asked.unwrap_or_else(|error| format!("did it myself: {error}")))
            }
        })
    };
    let team = world
        .team(vec![step("a", "Do it", "first", &[])], &["first", "second"], |_| {})
        .with_member(member("ann", "first"), asking("bob"))
        .with_member(member("bob", "second"), asking("ann"))
        .with_desk(desk);
    let outcome = world.start(&team, "Do it");
    assert_eq!(outcome.status, OutcomeStatus::Finished);
    assert_eq!(refused.lock().unwrap().as_deref(), Some("delegation loop refused: ann → bob → ann"));
    assert!(world.team_records().iter().any(
        |r| matches!(r, TeamRecord::DelegationFailed { reason, .. } if reason.contains("ann → bob → ann"))
    ));
}

// spec: A-20, MA-21
#[test]
fn team_lead_does_the_task_of_a_refused_delegation_loop() {
    let world = World::new();
    let desk = TeamDesk::new();
    let asking = |other: &'static str| {
        let desk = desk.clone();
        FnAgent::new(move |_, context| {
            let desk = desk.clone();
            async move {
                let said = desk.seat(&context.run).unwrap().ask(other, "Do it for me").await;
                answer(&context, &said.unwrap())
            }
        })
    };
    let team = world
        .team(vec![step("a", "Do it", "first", &[])], &["first", "second"], |_| {})
        .with_member(member("ann", "first"), asking("bob"))
        .with_member(member("bob", "second"), asking("ann"))
        .with_lead("lead", FnAgent::saying("done by the lead"))
        .with_desk(desk);
    let outcome = world.start(&team, "Do it");
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "done by the lead")
    );
    assert_eq!(world.delegations()[..3], ["ann: a: Do it", "bob: Do it for me", "lead: Do it for me"]);
}

/// Sets heartbeats to the events of members only.
fn by_events(options: &mut TeamOptions) {
    options.settings.heartbeat = Heartbeat::Events;
}

// spec: A-21, MA-22
#[test]
fn team_dead_member_is_replaced_and_the_new_one_sees_shared_values() {
    let world = World::new();
    let desk = TeamDesk::new();
    let dying = {
        let desk = desk.clone();
        FnAgent::new(move |_, context| {
            let desk = desk.clone();
            async move {
                pause(&context, 4_000).await;
                desk.seat(&context.run).unwrap().write("half", json!("half done"), Some(0)).await.unwrap();
                std::future::pending().await
            }
        })
    };
    let second = FnAgent::new(|task, context| async move {
        assert!(task.contains("half done"), "{task}");
        answer(&context, "all done")
    });
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker"], by_events)
        .with_member(member("ann", "worker"), dying)
        .with_member(member("bob", "worker"), second)
        .with_desk(desk);
    let outcome = world.start(&team, "Do it");
    assert_eq!(
        (outcome.status, outcome.last_text().unwrap_or_default()),
        (OutcomeStatus::Finished, "[a] all done")
    );
    let taken = world.team_records().into_iter().find_map(|r| match r {
        TeamRecord::DelegationRevoked { member, reason, .. } => Some((member, reason)),
        _ => None,
    });
    assert_eq!(taken, Some(("ann".into(), "silent for 15 s".to_owned())));
    // It was heard after 4 s, and missed for three times 5 s from then on.
    let log = world.journal.log("run_1");
    assert_eq!(log.last().unwrap().at.since(log[0].at).as_secs(), 19);
}

// spec: MA-22, MA-05
#[test]
fn a_late_answer_is_ignored_and_written_down() {
    let world = World::new();
    let late = FnAgent::new(|_, context| async move {
        // Deaf to a cancel, and back after 16 s.
        pause(&context, 16_000).await;
        answer(&context, "too late")
    });
    let slow = FnAgent::new(|_, context| async move {
        for _ in 0..10 {
            pause(&context, 1_000).await;
            context.sink.emit(archon_types::Event::Delta(archon_types::Delta {
                run: context.run.clone(),
                command: archon_types::CommandId(0),
                attempt: 0,
                offset: 0,
                kind: archon_types::DeltaKind::Text { text: ".".into() },
            }));
        }
        answer(&context, "in time")
    });
    let team = world
        .team(vec![step("a", "Do it", "worker", &[])], &["worker"], by_events)
        .with_member(member("ann", "worker"), late)
        .with_member(member("bob", "worker"), slow);
    let outcome = world.start(&team, "Do it");
    assert_eq!(outcome.last_text(), Some("[a] in time"));
    assert!(world.team_records().iter().any(|r| matches!(r, TeamRecord::LateAnswer { member, answer, .. } if member.as_str() == "ann" && answer == "too late")));
    let machine = world.check_log();
    assert_eq!(machine.late(), 1);
    assert_eq!(
        machine.job(archon_types::CommandId(1)).unwrap().response.as_ref().unwrap().result,
        Json::from("in time")
    );
    // What the late one used was used all the same.
    assert_eq!(outcome.child_spending.tokens, 20);
}
