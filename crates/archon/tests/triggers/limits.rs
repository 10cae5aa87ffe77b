//! The limits of a task over all its runs.

use super::*;

// spec: TR-02, ER-16
#[tokio::test]
async fn task_whose_runs_have_cost_its_limit_is_disabled_and_a_person_is_notified() {
    let world = World::new();
    let mut process = world.start().await;
    let mut limits = TaskLimits::default();
    limits.cost_micros = Some(1);
    process.engine.create_task(hourly("mail", "read").limits(limits)).await.unwrap();
    process.until_idle("mail").await;
    world.clock.advance(Duration::from_secs(3600));
    assert_eq!(process.next_notification().await.about, NotificationKind::Result);
    let sent = process.next_notification().await;
    assert_eq!(sent.about, NotificationKind::Disabled);
    assert!(sent.text.contains("task mail is disabled: its runs have cost 0.00"), "{}", sent.text);
    let task = process.task("mail").await;
    assert_eq!((task.status(), task.next, task.state.runs), (TaskStatus::Disabled, None, 1));
    assert!(task.state.spent_micros > 1);
}

// spec: TR-02
#[tokio::test]
async fn task_is_completed_at_the_time_of_its_limit() {
    let world = World::new();
    let mut process = world.start().await;
    let mut limits = TaskLimits::default();
    limits.until = Some(at("2026-01-31T13:30:00Z"));
    process.engine.create_task(hourly("mail", "read").limits(limits)).await.unwrap();
    process.until_idle("mail").await;
    world.clock.advance(Duration::from_secs(3600));
    assert_eq!(process.next_notification().await.about, NotificationKind::Result);
    assert_eq!(process.until_idle("mail").await.next, Some(at("2026-01-31T13:30:00Z")));
    world.clock.advance(Duration::from_secs(3600));
    while process.task("mail").await.status() != TaskStatus::Completed {
        tokio::task::yield_now().await;
    }
    assert_eq!(process.task("mail").await.state.runs, 1);
}

// spec: TR-02
#[tokio::test]
async fn task_is_completed_after_the_number_of_runs_of_its_limit() {
    let world = World::new();
    let mut process = world.start().await;
    let mut limits = TaskLimits::default();
    limits.runs = Some(2);
    process.engine.create_task(hourly("mail", "read").limits(limits)).await.unwrap();
    for _ in 0..2 {
        process.until_idle("mail").await;
        world.clock.advance(Duration::from_secs(3600));
        assert_eq!(process.next_notification().await.about, NotificationKind::Result);
    }
    while process.task("mail").await.status() != TaskStatus::Completed {
        tokio::task::yield_now().await;
    }
    let task = process.task("mail").await;
    assert_eq!((task.next, task.state.runs), (None, 2));
}
