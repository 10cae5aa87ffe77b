//! Where memories are kept in tests that every such place has to pass.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use archon::{
    store::SqliteMemory,
    types::{Collection, MemoryStore},
};

/// A collection.
pub(crate) fn of(name: &str) -> Collection {
    Collection::new(name).unwrap()
}

/// Tests that had nothing to test.
static SKIPPED: AtomicU32 = AtomicU32::new(0);

/// A database of memories.
pub(crate) enum Place {
    Sqlite(PathBuf),
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "there is none without its feature"))]
    Postgres {
        config: String,
        schema: &'static str,
    },
}

impl Place {
    /// A file in a directory.
    pub(crate) fn sqlite(dir: &Path) -> Self {
        Self::Sqlite(dir.join("memory.db"))
    }

    /// A schema of its own and empty in the PostgreSQL that `ARCHON_TEST_POSTGRES` names; `None`, said aloud, if there
    /// is none.
    pub(crate) async fn postgres(schema: &'static str) -> Option<Self> {
        let required = std::env::var("ARCHON_REQUIRE_POSTGRES").is_ok();
        match std::env::var("ARCHON_TEST_POSTGRES") {
            Ok(config) if cfg!(feature = "postgres") => {
                let place = Self::Postgres { config, schema };
                place.sql("DROP SCHEMA IF EXISTS {schema} CASCADE").await;
                Some(place)
            }
            _ => {
                assert!(
                    !required,
                    "ARCHON_TEST_POSTGRES names no PostgreSQL, or the feature `postgres` is off"
                );
                // Not by `eprintln!`, which is shown for tests that fail only.
                let how = "`cargo xtask postgres test -p archon-tests --features postgres -- memory`";
                let skipped = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
                _ = writeln!(std::io::stderr(), "SKIP {skipped}: {schema}: no PostgreSQL: {how}");
                None
            }
        }
    }

    pub(crate) async fn open(&self, collection: &Collection) -> Arc<dyn MemoryStore> {
        match self {
            Self::Sqlite(path) => {
                Arc::new(SqliteMemory::open(path).unwrap().collection(collection.clone()).unwrap())
            }
            #[cfg(feature = "postgres")]
            Self::Postgres { config, schema } => {
                let all = archon::store::PostgresMemory::connect(config, schema).await.unwrap();
                Arc::new(all.collection(collection.clone()).unwrap())
            }
            #[cfg(not(feature = "postgres"))]
            Self::Postgres { .. } => unreachable!("there is none without its feature"),
        }
    }

    /// What a program that is told where memories are takes for it.
    pub(crate) fn argument(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres { schema, .. } => format!("postgres:{schema}"),
        }
    }

    /// Takes away what no directory takes with it.
    pub(crate) async fn drop(self) {
        self.sql("DROP SCHEMA {schema} CASCADE").await;
    }

    #[cfg(feature = "postgres")]
    async fn sql(&self, sql: &str) {
        let Self::Postgres { config, schema } = self else { return };
        let (client, connection) = tokio_postgres::connect(config, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(&sql.replace("{schema}", schema)).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    }

    #[cfg(not(feature = "postgres"))]
    #[allow(clippy::unused_async, reason = "as with the feature")]
    async fn sql(&self, _: &str) {}
}
