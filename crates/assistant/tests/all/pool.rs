//! Tests of the pool of waiting agents.

use std::time::Duration;

use archon_assistant::{FieldKind, InMemoryPoolIndex, InputField, PoolOptions};
use archon_types::{
    AgentStatus, Answer, Clock, PendingApproval, PoolFilter, PoolIndex, TenantId, ToolResultStatus,
};

use crate::office::{Office, complete, mailer};

async fn wait(office: &Office, tenant: &str, run: &str) -> PendingApproval {
    let tool = mailer().0.needs_approval();
    office.call(tenant, run, &tool, complete()).await.unwrap_err();
    let noted = office.pool.note(&run.into()).await.unwrap();
    assert_eq!((noted.waiting.len(), noted.withdrawn.len()), (1, 0));
    noted.waiting[0].clone()
}

fn runs(waiting: &[PendingApproval]) -> Vec<&str> {
    waiting.iter().map(|entry| entry.run.as_str()).collect()
}

// spec: MA-40, MA-33
#[tokio::test]
async fn pool_waiting_lists_the_tenants_runs_oldest_first() {
    let office = Office::new();
    wait(&office, "ann", "run_b").await;
    office.clock.advance(Duration::from_millis(1));
    wait(&office, "bob", "run_c").await;
    office.clock.advance(Duration::from_millis(1));
    wait(&office, "ann", "run_a").await;
    assert_eq!(runs(&office.pool.waiting(&"ann".into()).await.unwrap()), ["run_b", "run_a"]);
    assert_eq!(runs(&office.pool.waiting(&"bob".into()).await.unwrap()), ["run_c"]);
    assert!(office.pool.waiting(&"eve".into()).await.unwrap().is_empty());
}

// spec: MA-40
#[tokio::test]
async fn a_waiting_agent_expires_exactly_when_its_time_is_up() {
    let office = Office::new();
    let entry = wait(&office, "ann", "run_1").await;
    let end = entry.request.expires_at.unwrap();
    assert_eq!(end.since(office.clock.now()), Duration::from_secs(1_800));
    office.clock.advance(Duration::from_millis(1_799_999));
    assert_eq!(office.pool.waiting(&"ann".into()).await.unwrap().len(), 1);
    assert!(office.pool.expired().await.unwrap().is_empty());
    office.clock.advance(Duration::from_millis(1));
    assert_eq!(office.clock.now(), end);
    assert!(office.pool.waiting(&"ann".into()).await.unwrap().is_empty());
    assert!(!office.pool.answer(&entry, Answer::Approve).await.unwrap(), "too late");
    let tool = mailer().0.needs_approval();
    let result = office.call("ann", "run_1", &tool, complete()).await.unwrap();
    assert_eq!(result.status, ToolResultStatus::Error);
    assert!(result.text().starts_with("Nobody answered in time"), "{}", result.text());
}

// spec: MA-40, AP-03
#[tokio::test]
async fn pool_expired_question_is_listed_until_its_run_is_resumed() {
    let office = Office::new();
    wait(&office, "ann", "run_1").await;
    wait(&office, "bob", "run_2").await;
    office.clock.advance(Duration::from_secs(1_800));
    for _ in 0..2 {
        assert_eq!(runs(&office.pool.expired().await.unwrap()), ["run_1", "run_2"]);
    }
    let tool = mailer().0.needs_approval();
    office.call("ann", "run_1", &tool, complete()).await.unwrap();
    office.pool.note(&"run_1".into()).await.unwrap();
    assert_eq!(runs(&office.pool.expired().await.unwrap()), ["run_2"]);
}

// spec: MA-33, MA-40
#[tokio::test]
async fn pool_answered_run_is_listed_until_it_is_resumed() {
    let office = Office::new();
    let (ann, tool) = ("ann".into(), mailer().0.needs_approval());
    let entry = wait(&office, "ann", "run_1").await;
    wait(&office, "ann", "run_2").await;
    assert!(office.pool.answer(&entry, Answer::Approve).await.unwrap());
    let later = Office::reopened(office.clock.clone(), office.journal.clone());
    let restored = later.pool.restore().await.unwrap();
    assert_eq!(runs(&restored.waiting), ["run_2"]);
    let ready = [("run_1".into(), TenantId::new("ann"))];
    assert_eq!(restored.ready, ready);
    for pool in [&office.pool, &later.pool, &later.pool] {
        let noted = pool.waiting_and_resumable(&ann).await.unwrap();
        assert_eq!((runs(&noted.waiting), noted.ready.as_slice()), (vec!["run_2"], ready.as_slice()));
    }
    office.call("ann", "run_1", &tool, complete()).await.unwrap();
    // Somebody else resumed it: it does not wait, and whoever looks finds no more to do.
    assert!(later.pool.waiting_and_resumable(&ann).await.unwrap().ready.is_empty());
    assert_eq!(later.pool.note(&"run_1".into()).await.unwrap().ready, []);
    assert_eq!(runs(&later.pool.waiting_and_resumable(&ann).await.unwrap().waiting), ["run_2"]);
}

// spec: MA-39, MA-40
#[tokio::test]
async fn pool_paused_question_keeps_its_remaining_time_across_processes() {
    let office = Office::new();
    let entry = wait(&office, "ann", "run_1").await;
    office.clock.advance(Duration::from_secs(600));
    let paused = office.pool.pause(&entry).await.unwrap();
    assert_eq!(paused.status(), AgentStatus::Paused);
    office.clock.advance(Duration::from_secs(86_400));
    // All that is known of it stands in the logs.
    let later = Office::reopened(office.clock.clone(), office.journal.clone());
    assert_eq!(later.pool.restore().await.unwrap().waiting, std::slice::from_ref(&paused));
    let waiting = later.pool.waiting(&"ann".into()).await.unwrap();
    assert_eq!(waiting[0].status(), AgentStatus::Paused);
    assert_eq!(AgentStatus::of(&later.journal.logs().log("run_1.0-0")), AgentStatus::Paused);
    // Taken up, it still waits, and does not expire.
    let (tool, sent) = mailer();
    let tool = tool.needs_approval();
    assert!(later.call("ann", "run_1", &tool, complete()).await.is_err());
    assert_eq!(later.open("run_1")[0].status(), AgentStatus::Paused);

    let resumed = later.pool.resume(&waiting[0]).await.unwrap();
    assert_eq!(resumed.request.expires_at.unwrap().since(later.clock.now()), Duration::from_secs(1_200));
    assert!(later.pool.answer(&resumed, Answer::Approve).await.unwrap());
    later.call("ann", "run_1", &tool, complete()).await.unwrap();
    assert_eq!(sent.lock().unwrap().len(), 1);
}

// spec: MA-40
#[tokio::test]
async fn pool_cancel_removes_the_agent_and_cancels_its_run() {
    let office = Office::new();
    let entry = wait(&office, "ann", "run_1").await;
    assert!(office.pool.cancel(&entry, "not today").await.unwrap());
    assert!(office.pool.waiting(&"ann".into()).await.unwrap().is_empty());
    assert!(!office.pool.cancel(&entry, "again").await.unwrap());
    let tool = mailer().0.needs_approval();
    let result = office.call("ann", "run_1", &tool, complete()).await.unwrap();
    assert_eq!(result.text(), "User cancelled this action. not today");
}

// spec: MA-40
#[tokio::test]
async fn pool_question_above_the_tenant_limit_is_withdrawn() {
    let mut office = Office::new();
    let mut options = PoolOptions::default();
    assert_eq!(options.max_per_tenant, 10);
    options.max_per_tenant = 2;
    office.pool = office.pool.with_options(options);
    wait(&office, "ann", "run_1").await;
    wait(&office, "ann", "run_2").await;
    wait(&office, "bob", "run_3").await;
    let tool = mailer().0.needs_approval();
    office.call("ann", "run_4", &tool, complete()).await.unwrap_err();
    let noted = office.pool.note(&"run_4".into()).await.unwrap();
    assert_eq!((noted.waiting.len(), noted.withdrawn.len()), (0, 1));
    let result = office.call("ann", "run_4", &tool, complete()).await.unwrap();
    assert!(result.text().contains("2 agents wait for this person already"), "{}", result.text());
    // A run that is looked at again does not stand in its own way.
    assert_eq!(office.pool.note(&"run_2".into()).await.unwrap().waiting.len(), 1);
}

// spec: MA-41, A-37, MA-40
#[tokio::test]
async fn pool_restart_discards_only_agents_with_changed_fields() {
    let office = Office::new();
    for n in 0..20 {
        wait(&office, &format!("t{}", n % 4), &format!("run_{n}")).await;
    }
    let answered = office.open("run_0").remove(0);
    assert!(office.pool.answer(&answered, Answer::Approve).await.unwrap());
    let mut later = Office::reopened(office.clock.clone(), office.journal.clone());
    let same = mailer().0.needs_approval();
    later.pool = later.pool.with_agents([&same]);
    let restored = later.pool.restore().await.unwrap();
    assert_eq!((restored.waiting.len(), restored.withdrawn.len(), restored.ready.len()), (19, 0, 1));
    assert_eq!(
        later.pool.waiting(&"t1".into()).await.unwrap(),
        office.pool.waiting(&"t1".into()).await.unwrap()
    );

    // The index of before, and a program with another agent of the name.
    let other = same.field(InputField::optional("cc", FieldKind::Text, "Who else."));
    later.pool = later.pool.with_agents([&other]);
    assert!(later.pool.waiting(&"t1".into()).await.unwrap().is_empty());
    let restored = later.pool.restore().await.unwrap();
    assert_eq!(
        (restored.waiting.len(), restored.withdrawn.len()),
        (0, 14),
        "t1 was discarded when it was looked at"
    );
    let result = later.call("t1", "run_1", &other, complete()).await.unwrap();
    assert!(result.text().contains("has changed since it was asked about"), "{}", result.text());
}

// spec: MA-40
#[tokio::test]
async fn pool_index_isolates_10000_agents_of_100_tenants() {
    let office = Office::new();
    let sample = wait(&office, "t", "run_1").await;
    let index = InMemoryPoolIndex::default();
    for n in 0..10_000_u64 {
        let mut entry = sample.clone();
        entry.tenant = TenantId::new(format!("tenant_{}", n % 100));
        entry.run = format!("run_{n}").into();
        entry.request.expires_at = Some(office.clock.now() + Duration::from_millis(n));
        index.put(&entry.run.clone(), vec![entry]).await.unwrap();
    }
    for tenant in 0..100 {
        let tenant = TenantId::new(format!("tenant_{tenant}"));
        let found = index.find(&PoolFilter::tenant(&tenant)).await.unwrap();
        assert_eq!(found.len(), 100);
        assert!(found.iter().all(|entry| entry.tenant == tenant));
    }
    for ms in [0, 1, 4_999, 9_999] {
        let due = index.find(&PoolFilter::due(office.clock.now() + Duration::from_millis(ms))).await.unwrap();
        assert_eq!(due.len() as u64, ms + 1);
    }
    index.put(&"run_7".into(), Vec::new()).await.unwrap();
    assert!(index.find(&PoolFilter::run(&"run_7".into())).await.unwrap().is_empty());
    assert_eq!(index.find(&PoolFilter::tenant(&"tenant_7".into())).await.unwrap().len(), 99);
}
