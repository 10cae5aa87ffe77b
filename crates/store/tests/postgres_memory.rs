//! Memories in PostgreSQL with pgvector. `ARCHON_TEST_POSTGRES` says where one is, as in
//! `host=127.0.0.1 port=15432 user=postgres`; without it the tests that need one are ignored. `cargo xtask postgres` starts
//! one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{env, process::ExitCode, sync::Arc};

use archon_store::PostgresMemory;
use archon_testkit::{
    Need, Trial, all_entries, cases, check_memory_store, first_seed, foreign_memories, run_trials, trial,
};
use archon_types::{
    Collection, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder,
    MemorySearch, MemoryStore, Timestamp, Trust, Validity,
};
use tokio::sync::Barrier;

static POSTGRES: Need = Need::new(|| server().map(drop), "ARCHON_REQUIRE_POSTGRES");

static TRIALS: &[Trial] = &[
    trial!(memory_store_passes_the_shared_checks).needs(&POSTGRES),
    trial!(memory_store_random_queries_return_no_foreign_entries).needs(&POSTGRES),
    trial!(damage_and_newer_versions_are_seen).needs(&POSTGRES),
    trial!(a_row_with_a_damaged_filter_column_is_reported_by_filters_that_it_no_longer_meets)
        .needs(&POSTGRES),
    trial!(connect_without_a_server_or_with_a_bad_schema_is_an_error),
    trial!(postgres_vector_extension_in_another_schema_is_used).needs(&POSTGRES),
    trial!(postgres_dropping_one_schema_keeps_the_vectors_of_another).needs(&POSTGRES),
    trial!(postgres_role_with_table_rights_can_open_the_store).needs(&POSTGRES),
    trial!(postgres_concurrent_batches_are_all_stored).needs(&POSTGRES).on_threads(4),
    trial!(postgres_search_ignores_case_and_accents).needs(&POSTGRES),
    trial!(more_tasks_than_the_server_has_connections_are_all_served).needs(&POSTGRES),
    trial!(postgres_search_skips_words_that_are_in_too_many_entries).needs(&POSTGRES),
    trial!(postgres_nul_character_is_stored_in_text_and_refused_elsewhere).needs(&POSTGRES),
    trial!(a_damaged_vector_waits_for_another_and_disturbs_no_search).needs(&POSTGRES),
];

fn main() -> ExitCode {
    run_trials(&[TRIALS])
}

/// A schema of its own, empty.
struct Schema {
    config: String,
    name: &'static str,
}

impl Schema {
    async fn new(name: &'static str) -> Self {
        let schema = Self { config: server().unwrap(), name };
        schema.sql(&format!("DROP SCHEMA IF EXISTS {name} CASCADE")).await;
        schema
    }

    async fn sql(&self, statements: &str) {
        sql(&self.config, statements).await;
    }

    async fn open(&self) -> Result<PostgresMemory, MemoryError> {
        PostgresMemory::connect(&self.config, self.name).await
    }

    async fn drop(self) {
        self.sql(&format!("DROP SCHEMA {} CASCADE", self.name)).await;
    }
}

/// A database of its own, empty and without the extension.
struct Database {
    server: String,
    name: &'static str,
}

impl Database {
    async fn new(name: &'static str) -> Self {
        let server = server().unwrap();
        sql(&server, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        sql(&server, &format!("CREATE DATABASE {name}")).await;
        Self { server, name }
    }

    fn schema(&self, name: &'static str) -> Schema {
        Schema { config: format!("{} dbname={}", self.server, self.name), name }
    }

    async fn drop(self) {
        sql(&self.server, &format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }
}

/// Returns where PostgreSQL is.
fn server() -> Result<String, String> {
    let how = "cargo xtask postgres test -p archon-store --features postgres-memory";
    env::var("ARCHON_TEST_POSTGRES").map_err(|_| format!("no PostgreSQL; run `{how}`"))
}

async fn sql(config: &str, statements: &str) {
    let (client, connection) = tokio_postgres::connect(config, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(statements).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
}

fn scoped(store: PostgresMemory) -> impl Fn(&Collection) -> Arc<dyn MemoryStore> + Send + Sync {
    move |name| Arc::new(store.collection(name.clone()).unwrap())
}

// spec: M-07, M-20, M-27, M-28
async fn memory_store_passes_the_shared_checks() {
    let schema = Schema::new("archon_test_store").await;
    check_memory_store(&scoped(schema.open().await.unwrap())).await;
    schema.drop().await;
}

// spec: M-27
async fn memory_store_random_queries_return_no_foreign_entries() {
    let schema = Schema::new("archon_test_fuzz").await;
    assert_eq!(
        foreign_memories(&scoped(schema.open().await.unwrap()), first_seed(), cases(1_000, 20_000)).await,
        0
    );
    schema.drop().await;
}

// spec: M-20
async fn damage_and_newer_versions_are_seen() {
    let schema = Schema::new("archon_test_damage").await;
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

// spec: M-20
async fn a_row_with_a_damaged_filter_column_is_reported_by_filters_that_it_no_longer_meets() {
    let schema = Schema::new("archon_test_columns").await;
    let store = schema.open().await.unwrap().collection(Collection::new("user:x").unwrap()).unwrap();
    let mut filter = MemoryFilter::all().of(&[MemoryKind::Note]);
    (filter.trust, filter.validity) = (Trust::Trusted, Validity::At(Timestamp::from_millis(5)));
    (filter.from, filter.until) = (Some(Timestamp::from_millis(1)), Some(Timestamp::from_millis(5)));
    filter.metadata.insert("color".into(), "red".into());
    let put = |id: &str| {
        let entry = MemoryEntry::new(id, "words", Timestamp::from_millis(1));
        let mut entry = entry.with_vector("e:2", vec![1.0, 0.5]);
        (entry.trust, entry.key) = (Trust::Trusted, Some("key".to_owned()));
        entry.metadata.insert("color".into(), "red".into());
        MemoryChange::put(entry)
    };
    for damage in [
        "kind = 'turn'",
        "trust = 0",
        "key = 'other'",
        "timestamp = 9",
        "valid_from = 9",
        "valid_to = 4",
        "labels = '{}'",
    ] {
        store.apply(["one", "two"].map(put).into()).await.unwrap();
        schema.sql(&format!("UPDATE archon_test_columns.entries SET {damage} WHERE id = 'two'")).await;
        let page = store.list(&Listing::new(filter.clone(), MemoryOrder::First, 9)).await.unwrap();
        let ids: Vec<&str> = page.entries.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!((ids.as_slice(), page.damaged.len()), (&["one"][..], 1), "{damage}");
        let problem = &page.damaged[0];
        assert_eq!((&*problem.id, &*problem.problem), ("two", "the checksum of its columns does not match"));
        for mut search in
            [MemorySearch::words("words", 9), MemorySearch::default().near("e:2", vec![1.0, 0.0])]
        {
            (search.filter, search.limit) = (filter.clone(), 9);
            let found = store.candidates(&search).await.unwrap();
            assert_eq!((found.candidates.len(), found.damaged.len()), (1, 1), "{damage}");
        }
        // A change does not take it for what it may not be.
        let gone = store.apply(vec![MemoryChange::Forget(filter.clone())]).await.unwrap();
        assert_eq!(gone, if damage.starts_with("key") { 2 } else { 1 }, "{damage}");
        store.apply(vec![MemoryChange::forget("two")]).await.unwrap();
    }
    schema.drop().await;
}

async fn connect_without_a_server_or_with_a_bad_schema_is_an_error() {
    for (config, schema) in
        [("nonsense", "a"), ("host=127.0.0.1 port=1 user=x", "a"), ("host=127.0.0.1", "A;B")]
    {
        let error = PostgresMemory::connect(config, schema).await.err().unwrap();
        assert!(matches!(error, MemoryError::Storage { .. }), "{error}");
    }
}

async fn check_kept_and_found(store: PostgresMemory) {
    let store = store.collection(Collection::new("user:x").unwrap()).unwrap();
    let entry = MemoryEntry::new("a", "words", Timestamp::from_millis(1)).with_vector("e:2", vec![1.0, 0.5]);
    store.apply(vec![MemoryChange::put(entry)]).await.unwrap();
    let search = MemorySearch::words("words", 9).near("e:2", vec![1.0, 0.5]);
    let found = store.candidates(&search).await.unwrap().candidates;
    assert!(found[0].lexical.is_some() && found[0].vector.is_some(), "{found:?}");
}

// spec: M-07
async fn postgres_vector_extension_in_another_schema_is_used() {
    let database = Database::new("archon_test_elsewhere").await;
    let schema = database.schema("archon_test_here");
    let hosted = r#"CREATE SCHEMA "its ""own"""; CREATE EXTENSION vector SCHEMA "its ""own""""#;
    schema.sql(hosted).await;
    check_kept_and_found(schema.open().await.unwrap()).await;
    check_kept_and_found(schema.open().await.unwrap()).await;
    database.drop().await;
}

// spec: M-07
async fn postgres_dropping_one_schema_keeps_the_vectors_of_another() {
    let database = Database::new("archon_test_two").await;
    let (one, other) = (database.schema("archon_test_one"), database.schema("archon_test_other"));
    // Where it is made by somebody else, it is there before the extension.
    one.sql("CREATE SCHEMA archon_test_one").await;
    check_kept_and_found(one.open().await.unwrap()).await;
    check_kept_and_found(other.open().await.unwrap()).await;
    one.drop().await;
    let store = other.open().await.unwrap();
    assert!(all_entries(&store, MemoryFilter::all()).await[0].embedding.is_some());
    check_kept_and_found(store).await;
    database.drop().await;
}

// spec: M-07
async fn postgres_role_with_table_rights_can_open_the_store() {
    let database = Database::new("archon_test_rights").await;
    let schema = database.schema("archon_test_tables");
    drop(schema.open().await.unwrap());
    schema.sql("DROP ROLE IF EXISTS archon_test_user; CREATE ROLE archon_test_user LOGIN PASSWORD 'x'").await;
    let rights = "GRANT USAGE ON SCHEMA archon_test_tables TO archon_test_user;
                  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA archon_test_tables
                  TO archon_test_user";
    schema.sql(rights).await;
    let user = |name| {
        let Schema { config, name } = database.schema(name);
        Schema { config: format!("{config} user=archon_test_user password=x"), name }
    };
    check_kept_and_found(user("archon_test_tables").open().await.unwrap()).await;
    // Where there is nothing yet, it says what it may not.
    let error = user("archon_test_new").open().await.err().unwrap();
    assert!(matches!(error, MemoryError::Storage { action: "upgrade", .. }), "{error}");
    schema.sql("DROP OWNED BY archon_test_user; DROP ROLE archon_test_user").await;
    database.drop().await;
}

// spec: M-29
async fn postgres_concurrent_batches_are_all_stored() {
    let schema = Schema::new("archon_test_cross").await;
    let store = schema.open().await.unwrap().collection(Collection::new("user:x").unwrap()).unwrap();
    let work = |task: u64| {
        let store = store.clone();
        async move {
            for round in 0..10 {
                let mut batch: Vec<_> = (0..20_u64)
                    .map(|n| {
                        MemoryEntry::new(n.to_string(), format!("{task} {round}"), Timestamp::from_millis(1))
                    })
                    .map(MemoryChange::put)
                    .collect();
                if task.is_multiple_of(2) {
                    batch.reverse();
                }
                store.apply(batch).await.unwrap();
            }
        }
    };
    let tasks: Vec<_> = (0..4).map(|task| tokio::spawn(work(task))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    let all = all_entries(&store, MemoryFilter::all()).await;
    assert_eq!(all.len(), 20);
    // Each batch is whole: the last one is all that is there.
    assert!(all.iter().all(|entry| entry.content == all[0].content), "{all:?}");
    schema.drop().await;
}

// spec: M-07, M-16
async fn postgres_search_ignores_case_and_accents() {
    let schema = Schema::new("archon_test_accents").await;
    let store = schema.open().await.unwrap().collection(Collection::new("user:x").unwrap()).unwrap();
    let entry =
        |id: &str, text: &str| MemoryChange::put(MemoryEntry::new(id, text, Timestamp::from_millis(1)));
    let texts = [
        entry("swiss", "Zürich and ÉVIAN"),
        entry("apart", "Cafe\u{301}"),
        entry("russian", "МОСКВА"),
        entry("greek", "ΟΔΟΣ"),
    ];
    store.apply(texts.into()).await.unwrap();
    let table = [
        ("zurich", "swiss"),
        ("ZÜRICH", "swiss"),
        ("Zu\u{308}rich", "swiss"),
        ("evian", "swiss"),
        ("café", "apart"),
        ("cafes", "apart"),
        ("москва", "russian"),
        ("Москва", "russian"),
        ("οδος", "greek"),
        ("οδός", "greek"),
    ];
    for (asked, id) in table {
        let found = store.candidates(&MemorySearch::words(asked, 9)).await.unwrap().candidates;
        assert_eq!(found.iter().map(|hit| hit.entry.id.as_str()).collect::<Vec<_>>(), [id], "{asked}");
    }
    schema.drop().await;
}

// spec: M-29
async fn more_tasks_than_the_server_has_connections_are_all_served() {
    let schema = Schema::new("archon_test_many").await;
    let store = schema.open().await.unwrap().collection(Collection::new("user:x").unwrap()).unwrap();
    let at_once = Arc::new(Barrier::new(200));
    let work = |task: u32| {
        let (store, at_once) = (store.clone(), at_once.clone());
        async move {
            let entry = MemoryEntry::new(task.to_string(), "words", Timestamp::from_millis(1));
            at_once.wait().await;
            store.apply(vec![MemoryChange::put(entry)]).await?;
            store.candidates(&MemorySearch::words("words", 1)).await.map(drop)
        }
    };
    let tasks: Vec<_> = (0..200).map(|task| tokio::spawn(work(task))).collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(all_entries(&store, MemoryFilter::all()).await.len(), 200);
    schema.drop().await;
}

// spec: M-16
async fn postgres_search_skips_words_that_are_in_too_many_entries() {
    let schema = Schema::new("archon_test_rare").await;
    let store = schema.open().await.unwrap().collection(Collection::new("user:x").unwrap()).unwrap();
    let put = |id: &str, text: &str| MemoryChange::put(MemoryEntry::new(id, text, Timestamp::from_millis(1)));
    store.apply(vec![put("rare", "a garden with an okapi"), put("other", "a zebra")]).await.unwrap();
    // Entries that are found are damaged ones, which can be counted.
    let many = "INSERT INTO archon_test_rare.entries
                (collection, id, kind, trust, timestamp, metadata, labels, body, checksum, columns_checksum, words)
                SELECT 'user:x', n::text, 'note', 0, 1, '{}', '{}', '', 0, '', to_tsvector('english', 'a garden')
                FROM generate_series(1, 25000) n";
    schema.sql(many).await;
    let ask = async |text: &str| {
        let found = store.candidates(&MemorySearch::words(text, 30_000)).await.unwrap();
        let ids = found.candidates.into_iter().map(|hit| hit.entry.id).collect::<Vec<_>>();
        (ids, found.damaged)
    };
    for (text, ids) in
        [("okapi", &["rare"][..]), ("gardens, an okapi?", &["rare"]), ("zebra OR okapi", &["rare", "other"])]
    {
        assert_eq!(ask(text).await, (ids.iter().map(|id| (*id).to_owned()).collect(), vec![]), "{text}");
    }
    // By itself it finds the newest.
    for text in ["garden", "nothing of gardens"] {
        let (ids, damaged) = ask(text).await;
        assert_eq!((ids.len(), damaged.len()), (0, 24_000));
        assert!(
            damaged.iter().any(|entry| entry.id == "25000") && damaged.iter().all(|entry| entry.id != "1")
        );
    }
    schema.drop().await;
}

// spec: M-20
async fn postgres_nul_character_is_stored_in_text_and_refused_elsewhere() {
    let schema = Schema::new("archon_test_zero").await;
    let store = schema.open().await.unwrap().collection(Collection::new("user:x").unwrap()).unwrap();
    let entry = |id: &str| {
        let mut entry = MemoryEntry::new(id, "zero\0 here", Timestamp::from_millis(1));
        entry.metadata.insert("deep".into(), "a\0b".into());
        entry
    };
    store.apply(vec![MemoryChange::put(entry("a"))]).await.unwrap();
    let mut filter = MemoryFilter::all();
    filter.metadata = entry("a").metadata;
    let found = all_entries(&store, filter).await;
    assert_eq!((found.len(), found[0].content.as_str()), (1, "zero\0 here"));
    let embed = |embedder: String| MemoryChange::Embed {
        id: "a".into(),
        collection: Collection::new("user:x").unwrap(),
        content: "zero\0 here".into(),
        embedder,
        vector: vec![1.0],
    };
    let random = (0..3000_u32).map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 26));
    for bad in [MemoryChange::put(entry("b\0")), embed("e\0".into()), embed(random.collect())] {
        let error = store.apply(vec![bad]).await.unwrap_err();
        assert!(matches!(error, MemoryError::Invalid { .. }), "{error}");
    }
    schema.drop().await;
}

// spec: M-18, M-20
async fn a_damaged_vector_waits_for_another_and_disturbs_no_search() {
    let schema = Schema::new("archon_test_vectors").await;
    let store = schema.open().await.unwrap().collection(Collection::new("user:x").unwrap()).unwrap();
    let put = |id: &str| {
        let entry = MemoryEntry::new(id, format!("words of {id}"), Timestamp::from_millis(1));
        MemoryChange::put(entry.with_vector("e:2", vec![1.0, 0.5]))
    };
    store.apply(["whole", "long", "gone"].map(put).into()).await.unwrap();
    schema.sql("UPDATE archon_test_vectors.entries SET vector = '[1,2,3]' WHERE id = 'long'").await;
    schema.sql("UPDATE archon_test_vectors.entries SET vector = NULL WHERE id = 'gone'").await;
    let near = MemorySearch::words("", 9).near("e:2", vec![1.0, 0.0]);
    assert_eq!(store.candidates(&near).await.unwrap().candidates.len(), 1);
    let mut filter = MemoryFilter::all();
    filter.not_embedded_by = Some("e:2".to_owned());
    let damaged = all_entries(&store, filter.clone()).await;
    assert_eq!(damaged.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["long", "gone"]);
    for entry in damaged {
        assert_eq!((entry.embedder, entry.embedding), (None, None));
        let (id, collection, content) = (entry.id, entry.collection, entry.content);
        let (embedder, vector) = ("e:2".to_owned(), vec![0.5, 1.0]);
        store.apply(vec![MemoryChange::Embed { id, collection, content, embedder, vector }]).await.unwrap();
    }
    assert_eq!(all_entries(&store, filter).await, []);
    assert_eq!(store.candidates(&near).await.unwrap().candidates.len(), 3);
    schema.drop().await;
}
