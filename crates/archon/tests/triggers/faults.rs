//! Tasks whose storage, channel or probe fails, and tasks that another process replaces.

use super::*;

// spec: TR-11
#[tokio::test]
async fn task_whose_storage_cannot_be_read_when_its_run_ends_starts_its_next_run() {
    let mut world = World::new();
    let broken = world.store.is_broken.clone();
    let breaking = broken.clone();
    world.model = FnProvider::new(move |_, _| {
        breaking.store(true, Ordering::Relaxed);
        FnProvider::text("done")
    });
    let mut process = world.start().await;
    process.engine.create_task(hourly("mail", "read")).await.unwrap();
    for _ in 0..2 {
        process.until_idle("mail").await;
        world.clock.advance(Duration::from_secs(3600));
        assert_eq!(process.next_notification().await.about, NotificationKind::Result);
        broken.store(false, Ordering::Relaxed);
    }
    assert_eq!(process.until_idle("mail").await.state.runs, 2);
}

// spec: TR-12
#[tokio::test]
async fn task_that_another_process_replaces_while_its_run_waits_starts_its_own_runs() {
    let world = World::new();
    let mut process = world.start().await;
    process.engine.create_task(hourly("desk", "refund")).await.unwrap();
    process.until_idle("desk").await;
    world.clock.advance(Duration::from_secs(3600));
    assert!(matches!(process.next_notification().await.about, NotificationKind::Question(_)));

    let other = processes::other(&world, &process);
    other.delete_task(&"desk".into()).await.unwrap();
    other.create_task(hourly("desk", "read")).await.unwrap();
    world.store.version.fetch_add(1, Ordering::Relaxed);
    assert_eq!(process.until_idle("desk").await.next, Some(at("2026-01-31T14:00:00Z")));
    world.clock.advance(Duration::from_secs(3600));
    while process.next_notification().await.text != "did: [Scheduled Task] read" {}
}

// spec: TR-09, TR-12
#[tokio::test]
async fn channel_that_panics_leaves_a_good_run_good() {
    let world = World::new();
    let mut process = world.start().await;
    process.engine.create_task(hourly("mail", "panic").notify("sms")).await.unwrap();
    process.until_idle("mail").await;
    world.clock.advance(Duration::from_secs(3600));
    process.next_notification().await;
    let state = process.until_idle("mail").await.state;
    assert_eq!((state.failures, state.runs, &state.current), (0, 1, &None));
    assert!(
        state.problem.as_ref().unwrap().contains("the channel sms failed: its code panicked"),
        "{state:?}"
    );
}

// spec: TR-05
#[tokio::test]
async fn probe_that_panics_is_a_problem_of_the_look_and_is_read_again_after_the_pause() {
    let world = World::new();
    world.price.0.store(PANIC, Ordering::Relaxed);
    let process = world.start().await;
    let mut limits = TaskLimits::default();
    (limits.failures, limits.backoff) = (0, 0);
    let condition = TriggerCondition::new("price", Expression::new("data.eur < 100").unwrap(), 60);
    process.engine.create_task(TriggerTask::new("buy", condition, "Tell me.").limits(limits)).await.unwrap();
    let task = process.until_idle("buy").await;
    assert_eq!((task.next, task.state.failures), (Some(at("2026-01-31T12:01:00Z")), 0));
    assert!(task.state.problem.as_ref().unwrap().contains("probe price: its code panicked"), "{task:?}");
    assert_eq!(world.price.1.load(Ordering::Relaxed), 1);
}

// spec: TR-10
#[tokio::test]
async fn runs_that_wait_are_looked_at_together() {
    let world = World::new();
    let mut process = world.start().await;
    for number in 0..20 {
        process.engine.create_task(hourly(&format!("desk{number}"), "refund")).await.unwrap();
    }
    process.until_idle("desk19").await;
    world.clock.advance(Duration::from_secs(3600));
    let (mut known, mut lists) = (0, 0);
    while known < 20 {
        world.clock.until_asleep(2).await;
        world.clock.advance(Duration::from_secs(10));
        while process.sent.try_recv().is_ok() {
            known += 1;
        }
        lists = world.journal.1.load(Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
    for _ in 0..3 {
        world.clock.until_asleep(2).await;
        world.clock.advance(Duration::from_secs(10));
    }
    world.clock.until_asleep(2).await;
    let lists = world.journal.1.load(Ordering::Relaxed) - lists;
    assert!(lists < 20, "{lists} reads of the list of runs in three looks at 20 runs");
}

// spec: TR-09, TR-10, AP-10
#[tokio::test]
async fn question_whose_channel_fails_is_sent_again_with_longer_pauses_and_the_task_shows_it() {
    let world = World::new();
    world.faults.failures.store(3, Ordering::Relaxed);
    let mut process = world.start().await;
    process.engine.create_task(hourly("desk", "refund")).await.unwrap();
    process.until_idle("desk").await;
    world.clock.advance(Duration::from_secs(3600));
    let problem = async |process: &Process| process.task("desk").await.state.problem;
    while problem(&process).await.is_none() {
        tokio::task::yield_now().await;
    }
    let shown = problem(&process).await.unwrap();
    assert!(shown.contains("is sent again: the channel sms failed: the service is closed"), "{shown}");
    let mut looks = 0;
    let sent = loop {
        if let Ok(sent) = process.sent.try_recv() {
            break sent;
        }
        // The engine, and its look at the runs that wait.
        world.clock.until_asleep(2).await;
        world.clock.advance(Duration::from_secs(10));
        looks += 1;
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    };
    assert!(matches!(sent.about, NotificationKind::Question(_)), "{sent:?}");
    // After pauses of 10, 20 and 40 seconds.
    assert!((7..=9).contains(&looks), "{looks}");
    while problem(&process).await.is_some() {
        tokio::task::yield_now().await;
    }
    for _ in 0..5 {
        world.clock.until_asleep(2).await;
        world.clock.advance(Duration::from_secs(10));
        tokio::task::yield_now().await;
    }
    assert!(process.sent.try_recv().is_err(), "it was sent once");
}

// spec: TR-09, TR-12
#[tokio::test]
async fn channel_that_never_answers_delays_its_task_for_a_time_only() {
    let world = World::new();
    world.faults.is_hanging.store(true, Ordering::Relaxed);
    let mut process = world.start().await;
    let task = hourly("mail", "read").tenant("anna").notify("phone");
    process.engine.create_task(task).await.unwrap();
    process.until_idle("mail").await;
    world.clock.advance(Duration::from_secs(3600));
    // The other channel does not wait.
    assert_eq!(process.next_notification().await.about, NotificationKind::Result);
    assert!(process.task("mail").await.state.current.is_some());
    // The engine, and the deadline of the channel.
    world.clock.until_asleep(2).await;
    world.clock.advance(Duration::from_secs(6 * 60));
    let state = process.until_idle("mail").await.state;
    assert_eq!((state.runs, state.failures, &state.current), (1, 0, &None));
    let problem = state.problem.unwrap();
    assert!(problem.contains("the channel sms failed: it did not answer within 360 s"), "{problem}");
}
