//! The pool's index: what SQLite's promises, over Redis.

use archon_redis::RedisPoolIndex;
use archon_testkit::{Trial, trial};
use archon_types::{JournalError, PendingApproval, PoolFilter, PoolIndex, RunId, TenantId, Timestamp};
use serde_json::json;

use crate::server::{REDIS, Server};

pub(crate) static TRIALS: &[Trial] = &[
    trial!(pool_index_isolates_10000_agents_of_100_tenants).needs(&REDIS),
    trial!(pool_index_put_replaces_the_entry_of_the_run).needs(&REDIS),
    trial!(an_entry_that_cannot_be_read_is_left_out_and_a_newer_index_refused).needs(&REDIS),
];

fn entry(n: u64) -> PendingApproval {
    serde_json::from_value(json!({
        "run": format!("run_{n}"), "call": {"command": 0, "index": 0}, "session": "s",
        "tenant": format!("tenant_{}", n % 100), "agent": "a", "source": "user", "created_at": 1_000 + n,
        "request_id": format!("q{n}"), "agent_name": "SendEmailAgent", "action_summary": "Send", "details": {},
        "options": ["approve"], "expires_at": 5_000 + n, "allow_modification": true,
    }))
    .unwrap()
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

async fn open(server: &Server) -> RedisPoolIndex {
    RedisPoolIndex::connect(&server.url, "pool").await.unwrap()
}

async fn runs(index: &RedisPoolIndex, filter: &PoolFilter) -> Vec<String> {
    index.find(filter).await.unwrap().iter().map(|entry| entry.run.as_str().to_owned()).collect()
}

// spec: MA-40
async fn pool_index_isolates_10000_agents_of_100_tenants() {
    let server = Server::start();
    let index = open(&server).await;
    for n in 0..10_000 {
        index.put(&RunId::new(format!("run_{n}")), vec![entry(n)]).await.unwrap();
    }
    drop(index);
    let index = open(&server).await;
    for tenant in 0..100 {
        let found =
            index.find(&PoolFilter::tenant(&TenantId::new(format!("tenant_{tenant}")))).await.unwrap();
        let expected: Vec<_> = (0..100).map(|n| entry(n * 100 + tenant)).collect();
        assert_eq!(found, expected, "all of it, oldest first");
    }
    for ms in [0, 1, 4_321] {
        assert_eq!(runs(&index, &PoolFilter::due(at(5_000 + ms))).await.len() as u64, ms + 1, "exactly");
    }
    assert!(runs(&index, &PoolFilter::due(at(4_999))).await.is_empty());
}

// spec: MA-40
async fn pool_index_put_replaces_the_entry_of_the_run() {
    let server = Server::start();
    let (index, other) = (open(&server).await, open(&server).await);
    let (mut first, mut second) = (entry(1), entry(2));
    second.run = first.run.clone();
    index.put(&first.run, vec![first.clone(), second.clone()]).await.unwrap();
    assert_eq!(runs(&other, &PoolFilter::run(&first.run)).await, ["run_1", "run_1"]);
    first.request = first.request.pause(at(4_000));
    other.put(&first.run, vec![first.clone()]).await.unwrap();
    assert_eq!(index.find(&PoolFilter::run(&first.run)).await.unwrap(), [first.clone()]);
    assert!(runs(&index, &PoolFilter::due(at(9_000))).await.is_empty(), "what is set aside does not expire");
    assert!(runs(&index, &PoolFilter::tenant(&second.tenant)).await.is_empty());
    index.put(&first.run, Vec::new()).await.unwrap();
    assert!(runs(&index, &PoolFilter::default()).await.is_empty());
}

// spec: MA-40
async fn an_entry_that_cannot_be_read_is_left_out_and_a_newer_index_refused() {
    let server = Server::start();
    let index = open(&server).await;
    for n in 1..=2 {
        index.put(&entry(n).run, vec![entry(n)]).await.unwrap();
    }
    let client = redis::Client::open(&*server.url).unwrap();
    let mut behind = client.get_multiplexed_async_connection().await.unwrap();
    let mut spoil = redis::cmd("HSET");
    let () = spoil.arg("{pool}:run:run_1").arg("bq1").arg("{").query_async(&mut behind).await.unwrap();
    assert_eq!(runs(&index, &PoolFilter::default()).await, ["run_2"]);
    let () = redis::cmd("SET").arg("{pool}:format").arg(2).query_async(&mut behind).await.unwrap();
    let newer = RedisPoolIndex::connect(&server.url, "pool").await;
    assert!(matches!(newer, Err(JournalError::UnsupportedStore { found: 2, supported: 1, .. })));
}
