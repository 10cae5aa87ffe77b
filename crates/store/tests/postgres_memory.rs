//! Memories in PostgreSQL with pgvector. `ARCHON_TEST_POSTGRES` says where one is, as in
//! `host=127.0.0.1 port=15432 user=postgres`; without it nothing is tested, and that is said aloud.

#![allow(clippy::print_stderr, reason = "says what it skips")]

use std::{env, sync::Arc};

use archon_store::PostgresMemory;
use archon_testkit::{all_entries, check_memory_store, foreign_memories};
use archon_types::{
    Collection, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryOrder, MemoryStore,
    Timestamp,
};

/// A schema of its own, empty.
struct Schema {
    config: String,
    name: &'static str,
}

impl Schema {
    async fn new(name: &'static str) -> Option<Self> {
        let Ok(config) = env::var("ARCHON_TEST_POSTGRES") else {
            assert!(env::var("ARCHON_REQUIRE_POSTGRES").is_err(), "ARCHON_TEST_POSTGRES says no PostgreSQL");
            eprintln!("SKIP: no PostgreSQL with pgvector in ARCHON_TEST_POSTGRES; nothing of it was tested");
            return None;
        };
        let schema = Self { config, name };
        schema.sql(&format!("DROP SCHEMA IF EXISTS {name} CASCADE")).await;
        Some(schema)
    }

    async fn sql(&self, sql: &str) {
        let (client, connection) =
            tokio_postgres::connect(&self.config, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    }

    async fn open(&self) -> Result<PostgresMemory, MemoryError> {
        PostgresMemory::connect(&self.config, self.name).await
    }

    async fn drop(self) {
        self.sql(&format!("DROP SCHEMA {} CASCADE", self.name)).await;
    }
}

fn scoped(store: PostgresMemory) -> impl Fn(&Collection) -> Arc<dyn MemoryStore> + Send + Sync {
    move |name| Arc::new(store.collection(name.clone()).unwrap())
}

// spec: M-07, M-20, M-27, M-28
#[tokio::test]
async fn it_is_a_store() {
    let Some(schema) = Schema::new("archon_test_store").await else { return };
    check_memory_store(&scoped(schema.open().await.unwrap())).await;
    schema.drop().await;
}

// spec: M-27
#[tokio::test]
async fn no_question_finds_what_is_anothers() {
    let Some(schema) = Schema::new("archon_test_fuzz").await else { return };
    let queries = if env::var("ARCHON_ACCEPT").as_deref() == Ok("full") { 20_000 } else { 1_000 };
    let seed = env::var("ARCHON_ACCEPT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    assert_eq!(foreign_memories(&scoped(schema.open().await.unwrap()), seed, queries).await, 0);
    schema.drop().await;
}

// spec: M-20
#[tokio::test]
async fn damage_and_newer_versions_are_seen() {
    let Some(schema) = Schema::new("archon_test_damage").await else { return };
    let store = schema.open().await.unwrap().collection(Collection::new("user:x").unwrap()).unwrap();
    let entry = |id: &str| MemoryChange::put(MemoryEntry::new(id, "words", Timestamp::from_millis(1)));
    store.apply(vec![entry("one"), entry("two")]).await.unwrap();
    schema
        .sql("UPDATE archon_test_damage.entries SET body = replace(body, 'words', 'lies') WHERE id = 'two'")
        .await;
    let page = store.list(&Listing::new(MemoryFilter::all(), MemoryOrder::First, 9)).await.unwrap();
    assert_eq!((page.entries.len(), page.damaged.len(), page.damaged[0].id.as_str()), (1, 1, "two"));
    store.apply(vec![MemoryChange::forget("two")]).await.unwrap();
    assert_eq!(all_entries(&store, MemoryFilter::all()).await.len(), 1);
    schema.sql("INSERT INTO archon_test_damage.schema_version VALUES (99)").await;
    let error = schema.open().await.err().unwrap();
    assert!(matches!(error, MemoryError::FutureStore { found: 99, .. }), "{error}");
    schema.drop().await;
}

#[tokio::test]
async fn where_there_is_no_postgres_there_is_an_error() {
    for (config, schema) in
        [("nonsense", "a"), ("host=127.0.0.1 port=1 user=x", "a"), ("host=127.0.0.1", "A;B")]
    {
        let error = PostgresMemory::connect(config, schema).await.err().unwrap();
        assert!(matches!(error, MemoryError::Storage { .. }), "{error}");
    }
}
