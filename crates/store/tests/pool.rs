//! What the index of suspended runs in SQLite promises.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod sample;

use archon_store::SqlitePoolIndex;
use archon_types::{JournalError, PendingApproval, PoolFilter, PoolIndex, RunId, TenantId, Timestamp};
use sample::block_on;
use serde_json::json;

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

fn runs(index: &SqlitePoolIndex, filter: &PoolFilter) -> Vec<String> {
    block_on(index.find(filter)).unwrap().iter().map(|entry| entry.run.as_str().to_owned()).collect()
}

// spec: MA-40
#[test]
fn pool_index_isolates_10000_agents_of_100_tenants_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/pool.db");
    let index = SqlitePoolIndex::open(&path).unwrap();
    for n in 0..10_000 {
        block_on(index.put(&RunId::new(format!("run_{n}")), vec![entry(n)])).unwrap();
    }
    drop(index);
    let index = SqlitePoolIndex::open(&path).unwrap();
    for tenant in 0..100 {
        let found =
            block_on(index.find(&PoolFilter::tenant(&TenantId::new(format!("tenant_{tenant}"))))).unwrap();
        let expected: Vec<_> = (0..100).map(|n| entry(n * 100 + tenant)).collect();
        assert_eq!(found, expected, "all of it, oldest first");
    }
    for ms in [0, 1, 4_321] {
        assert_eq!(runs(&index, &PoolFilter::due(at(5_000 + ms))).len() as u64, ms + 1, "exactly");
    }
    assert!(runs(&index, &PoolFilter::due(at(4_999))).is_empty());
}

// spec: MA-40
#[test]
fn pool_index_put_replaces_the_entry_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pool.db");
    let (index, other) = (SqlitePoolIndex::open(&path).unwrap(), SqlitePoolIndex::open(&path).unwrap());
    let (mut first, mut second) = (entry(1), entry(2));
    second.run = first.run.clone();
    block_on(index.put(&first.run, vec![first.clone(), second.clone()])).unwrap();
    assert_eq!(runs(&other, &PoolFilter::run(&first.run)), ["run_1", "run_1"]);
    first.request = first.request.pause(at(4_000));
    block_on(other.put(&first.run, vec![first.clone()])).unwrap();
    assert_eq!(block_on(index.find(&PoolFilter::run(&first.run))).unwrap(), [first.clone()]);
    assert!(runs(&index, &PoolFilter::due(at(9_000))).is_empty(), "what is set aside does not expire");
    block_on(index.put(&first.run, Vec::new())).unwrap();
    assert!(runs(&index, &PoolFilter::default()).is_empty());
}

// spec: MA-40
#[test]
fn a_row_that_cannot_be_read_is_left_out_and_a_newer_database_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pool.db");
    let index = SqlitePoolIndex::open(&path).unwrap();
    for n in 1..=2 {
        block_on(index.put(&entry(n).run, vec![entry(n)])).unwrap();
    }
    let behind = rusqlite::Connection::open(&path).unwrap();
    behind.execute("UPDATE waiting SET body = '{' WHERE run = 'run_1'", []).unwrap();
    // Whoever moved a row to another tenant did not move what it says.
    behind.execute("UPDATE waiting SET tenant = 'eve' WHERE run = 'run_2'", []).unwrap();
    assert_eq!(runs(&index, &PoolFilter::default()), ["run_2"]);
    assert!(runs(&index, &PoolFilter::tenant(&"eve".into())).is_empty());
    behind.pragma_update(None, "user_version", 2).unwrap();
    assert!(matches!(
        SqlitePoolIndex::open(&path),
        Err(JournalError::UnsupportedStore { found: 2, supported: 1, .. })
    ));
}
