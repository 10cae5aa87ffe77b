//! Tasks that several processes use: one serves them, and others change them and make requests.

use archon::types::{TaskCommand, TaskProblem, TaskService, TaskServiceError};

use super::*;

/// Returns the engine of another process, which does not serve.
pub(crate) fn other(world: &World, process: &Process) -> TriggerEngine {
    let (runs, store): (Arc<dyn RunService>, _) = (process.runs.clone(), Arc::new(world.store.clone()));
    let parts = TriggerParts::new().channel_of_all(Arc::new(Sent::new(mpsc::unbounded_channel().0)));
    TriggerEngine::new(runs, store, Arc::new(world.clock.clone()), parts)
}

impl World {
    /// Lets the engine that serves see what another process changed.
    async fn reload(&self) {
        self.clock.until_asleep(1).await;
        self.store.version.fetch_add(1, Ordering::Relaxed);
        self.clock.advance(Duration::from_secs(5));
        tokio::task::yield_now().await;
    }
}

// spec: TR-01
#[tokio::test]
async fn task_that_another_process_defines_pauses_and_deletes_is_taken_by_the_engine() {
    let world = World::new();
    let process = world.start().await;
    let other = other(&world, &process);
    let task = TriggerTask::new("mail", Schedule::cron("0 * * * *", "UTC").unwrap(), "read");
    other.create_task(task).await.unwrap();
    let known = async || process.engine.list_tasks(None).await.unwrap().len();
    let reload = async |count: usize| {
        while known().await != count {
            world.reload().await;
        }
    };
    reload(1).await;
    other.pause_task(&"mail".into()).await.unwrap();
    while process.task("mail").await.status() != TaskStatus::Paused {
        world.reload().await;
    }
    other.delete_task(&"mail".into()).await.unwrap();
    reload(0).await;
}

// spec: TR-01, TR-04, TR-08
#[tokio::test]
async fn event_and_start_of_another_process_are_taken_once_by_the_engine_that_serves() {
    let world = World::new();
    let mut process = world.start().await;
    let orders = TriggerTask::new("orders", EventFilter::new("shop.order.*"), "Thank.").notify("sms");
    process.engine.create_task(orders).await.unwrap();
    process.until_served().await;

    let other = other(&world, &process);
    let order = TriggerEvent::new("1", "shop", "order.created", json!({}));
    assert_eq!(other.publish(&order).await.unwrap(), ["orders".into()]);
    assert!(other.publish(&TriggerEvent::new("1", "shop", "refund", json!({}))).await.unwrap().is_empty());
    assert_eq!(world.store.list().await.unwrap().requests.len(), 1);
    other.run_task(&"orders".into(), "by hand").await.unwrap();
    world.reload().await;
    assert_ne!(process.next_notification().await.run, process.next_notification().await.run);
    assert!(world.store.list().await.unwrap().requests.is_empty());
    world.reload().await;
    assert_eq!(process.task("orders").await.state.runs, 2);
}

// spec: TR-04, TR-12
#[tokio::test]
async fn events_of_another_process_beyond_the_most_that_wait_for_a_task_wait_in_the_store() {
    let world = World::new();
    let mut process = world.start().await;
    for id in ["fast", "orders"] {
        process
            .engine
            .create_task(TriggerTask::new(id, EventFilter::new("shop.*"), "Thank.").notify("sms"))
            .await
            .unwrap();
    }
    process.until_served().await;
    let other = other(&world, &process);
    for number in 0..120 {
        let order = TriggerEvent::new(number.to_string(), "shop", "order", json!({}));
        assert_eq!(other.publish(&order).await.unwrap().len(), 2);
    }
    world.store.version.fetch_add(1, Ordering::Relaxed);
    world.clock.advance(Duration::from_secs(5));
    let mut runs = 0;
    while runs < 240 {
        match process.sent.try_recv() {
            Ok(sent) => runs += usize::from(sent.about == NotificationKind::Result),
            Err(_) => {
                world.clock.until_asleep(1).await;
                world.clock.advance(Duration::from_secs(2));
                tokio::task::yield_now().await;
            }
        }
    }
    assert!(world.store.list().await.unwrap().requests.is_empty());
    assert_eq!(world.journal.list(&RunFilter::all()).await.unwrap().len(), 240);
    for id in ["fast", "orders"] {
        assert_eq!(process.task(id).await.state.runs, 120);
    }
}

// spec: TR-11
#[tokio::test]
async fn engine_waits_while_another_process_serves_and_takes_over() {
    let world = World::new();
    world.store.is_served.store(true, Ordering::Relaxed);
    let mut process = world.start().await;
    process.engine.create_task(hourly("mail", "read")).await.unwrap();
    world.clock.until_asleep(1).await;
    world.clock.advance(Duration::from_secs(3600));
    world.clock.until_asleep(1).await;
    assert_eq!(process.task("mail").await.state.runs, 0);
    world.store.is_served.store(false, Ordering::Relaxed);
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(process.next_notification().await.about, NotificationKind::Result);
}

// spec: TR-01
#[tokio::test]
async fn service_of_a_tenant_has_the_tasks_of_this_tenant_only() {
    let world = World::new();
    let process = world.start().await;
    process.engine.create_task(hourly("bens", "read").tenant("ben")).await.unwrap();
    let anna = process.engine.for_tenant("anna");
    let definition = json!({
        "id": "annas", "tenant": "ben",
        "trigger": { "schedule": { "cron": "0 8 * * *", "zone": "Asia/Shanghai" } },
        "action": { "agent": { "instruction": "Summarize unread emails" } },
    });
    anna.carry_out(TaskCommand::Create(definition.clone())).await.unwrap();
    let heads = anna.list().await.unwrap();
    assert_eq!(
        heads.iter().map(|head| (head.id.as_str(), head.tenant.as_str())).collect::<Vec<_>>(),
        [("annas", "anna")]
    );
    assert_eq!(heads[0].next, Some(at("2026-02-01T00:00:00Z")));
    let unknown = TaskServiceError::Unknown("bens".into());
    for command in [TaskCommand::Pause("bens".into()), TaskCommand::Delete("bens".into())] {
        assert_eq!(anna.carry_out(command).await, Err(unknown.clone()));
    }
    anna.carry_out(TaskCommand::Pause("annas".into())).await.unwrap();
    assert_eq!(anna.list().await.unwrap()[0].status, TaskStatus::Paused);
    let wrong = anna.carry_out(TaskCommand::Create(json!({ "id": "x" }))).await.unwrap_err();
    assert!(wrong.to_string().contains("the definition of the task cannot be read"), "{wrong}");
    assert_eq!(process.engine.list().await.unwrap().len(), 2);
}

// spec: TR-01
#[tokio::test]
async fn task_that_two_processes_create_at_the_same_time_is_that_of_the_first() {
    let world = World::new();
    let process = world.start().await;
    process.until_served().await;
    let first = hourly("mail", "of the other process");
    let definition = serde_json::to_value(&first).unwrap();
    *world.store.rival.lock().unwrap() = Some(StoredTask::new("mail", definition, json!({})));
    let created = process.engine.create_task(hourly("mail", "of this process")).await;
    assert!(matches!(created, Err(TriggerError::Exists(_))), "{created:?}");
    assert_eq!(process.task("mail").await.task.action, first.action);
    assert_eq!(world.store.list().await.unwrap().tasks.len(), 1);
}

// spec: TR-04, TR-12
#[tokio::test]
async fn event_that_is_published_again_after_an_error_starts_no_second_run_of_the_tasks_that_have_it() {
    let world = World::new();
    let mut process = world.start().await;
    process.until_served().await;
    for id in ["full", "other"] {
        let task = TriggerTask::new(id, EventFilter::new(format!("*.{id}*")), "Thank.").notify("sms");
        process.engine.create_task(task).await.unwrap();
    }
    let event = |id: &str, kind: &str| TriggerEvent::new(id, "shop", kind, json!({}));
    // A run of this task waits for a person, so its events wait, too.
    for number in 0..101 {
        let refund = TriggerEvent::new(format!("{number}"), "shop", "full", json!({ "do": "refund" }));
        process.engine.publish(&refund).await.unwrap();
        while process.task("full").await.state.runs == 0 {
            tokio::task::yield_now().await;
        }
    }
    for _ in 0..3 {
        let refused = process.engine.publish(&event("both", "full.other")).await;
        assert!(matches!(refused, Err(TriggerError::TooManyEvents { .. })), "{refused:?}");
    }
    let mut results = 0;
    while results == 0 {
        results += usize::from(process.next_notification().await.about == NotificationKind::Result);
    }
    // Also after its run, and after more runs than the state of the task lists.
    for number in 0..60 {
        process.engine.publish(&event(&format!("n{number}"), "other")).await.unwrap();
        while process.next_notification().await.about != NotificationKind::Result {}
    }
    let _ = process.engine.publish(&event("both", "full.other")).await;
    while !process.task("other").await.state.waiting.is_empty() {
        tokio::task::yield_now().await;
    }
    while process.task("other").await.state.current.is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(process.task("other").await.state.runs, 61);
    assert!(process.sent.try_recv().is_err());
}

// spec: TR-08
#[tokio::test]
async fn event_without_a_tenant_reaches_the_tasks_of_the_tenant_local_only() {
    let world = World::new();
    let process = world.start().await;
    for (id, tenant) in [("own", None), ("annas", Some("anna"))] {
        let task = TriggerTask::new(id, EventFilter::new("shop.*"), "Thank.");
        let task = tenant.into_iter().fold(task, TriggerTask::tenant);
        process.engine.create_task(task).await.unwrap();
    }
    let order = |id: &str| TriggerEvent::new(id, "shop", "order", json!({}));
    assert_eq!(process.engine.publish(&order("1")).await.unwrap(), ["own".into()]);
    assert_eq!(process.engine.publish(&order("2").tenant("anna")).await.unwrap(), ["annas".into()]);
}

// spec: TR-01, TR-09
#[tokio::test]
async fn task_of_a_tenant_cannot_name_the_channel_of_another_tenant_and_nothing_is_sent_there() {
    let world = World::new();
    let mut process = world.start().await;
    let of = |tenant: &str| hourly(tenant, "read").tenant(tenant).notify("phone");
    process.engine.create_task(of("anna")).await.unwrap();
    let refused = process.engine.create_task(of("ben")).await.unwrap_err().to_string();
    assert_eq!(refused, "there is no notification channel \"phone\"; there is: sms");
    let definition = json!({
        "id": "bens", "trigger": { "schedule": { "cron": "0 * * * *", "zone": "UTC" } }, "notify": ["phone"],
        "action": { "agent": { "instruction": "read" } },
    });
    let service = process.engine.for_tenant("ben");
    let refused = service.carry_out(TaskCommand::Create(definition)).await;
    assert!(matches!(refused, Err(TaskServiceError::Refused(_))), "{refused:?}");

    // A task that another program stored.
    let stored = serde_json::to_value(of("ben")).unwrap();
    let state = json!({ "handled": world.clock.now() });
    world.store.change(vec![TaskChange::Define(StoredTask::new("ben", stored, state))]).await.unwrap();
    world.store.version.fetch_add(1, Ordering::Relaxed);
    process.until_idle("ben").await;
    world.clock.advance(Duration::from_secs(3600));
    let mut names = Vec::new();
    while names.len() < 3 {
        names.push(process.next_notification().await.tenant.to_string());
    }
    names.sort();
    assert_eq!(names, ["anna", "anna", "ben"]);
    let problem = process.until_idle("ben").await.state.problem.unwrap();
    assert!(problem.contains("the channel phone failed: this program has no such channel for tenant ben"));
    assert!(process.sent.try_recv().is_err());
}

// spec: TR-05
#[tokio::test]
async fn condition_of_a_tenant_reads_its_own_probe_and_cannot_name_that_of_another_tenant() {
    let world = World::new();
    let process = world.start().await;
    let of = |tenant: &str| {
        let falls = TriggerCondition::new("orders", Expression::new("data.eur < 100.0").unwrap(), 60);
        TriggerTask::new(tenant, falls, "Buy.").tenant(tenant)
    };
    let refused = process.engine.create_task(of("ben")).await.unwrap_err().to_string();
    assert_eq!(refused, "there is no probe \"orders\"; there is: price");
    world.price.0.store(120, Ordering::Relaxed);
    process.engine.create_task(of("anna")).await.unwrap();

    // A task that another program stored.
    let stored = StoredTask::new("ben", serde_json::to_value(of("ben")).unwrap(), json!({}));
    world.store.change(vec![TaskChange::Define(stored)]).await.unwrap();
    world.store.version.fetch_add(1, Ordering::Relaxed);
    let problem = process.until_idle("ben").await.state.problem.unwrap();
    assert!(problem.contains("there is no probe \"orders\" in this program"), "{problem}");
    assert_eq!(process.until_idle("anna").await.state.problem, None);
    assert_eq!(world.price.1.load(Ordering::Relaxed), 1, "only the task of Anna reads");
}

#[tokio::test]
async fn newest_problem_outside_of_the_runs_is_in_the_list_of_tasks() {
    let world = World::new();
    let process = world.start().await;
    for id in ["mail", "other"] {
        process.engine.create_task(hourly(id, "read")).await.unwrap();
    }
    process.until_served().await;
    for problem in ["the mailbox refuses: correct the password", "the channel failed: check it"] {
        let noted = process.engine.note_problem(problem, |task| task.id.as_str() == "mail").await.unwrap();
        assert_eq!(noted, ["mail".into()]);
    }
    let newest = TaskProblem::new(world.clock.now(), "the channel failed: check it");
    let heads = process.engine.list().await.unwrap();
    let problems: Vec<_> = heads.iter().map(|head| (head.id.as_str(), &head.newest_problem)).collect();
    assert_eq!(problems, [("mail", &Some(newest)), ("other", &None)]);
}
