//! Where memories are kept in tests that every such place has to pass.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use archon::{
    store::SqliteMemory,
    types::{Collection, MemoryStore},
};
use archon_testkit::Need;

pub(crate) static POSTGRES: Need = Need::new(|| server().map(drop), "ARCHON_REQUIRE_POSTGRES");

/// Returns where PostgreSQL is.
fn server() -> Result<String, String> {
    let config = env::var("ARCHON_TEST_POSTGRES").ok().filter(|_| cfg!(feature = "postgres"));
    let how = "cargo xtask postgres test -p archon-tests --features postgres -- memory";
    config.ok_or_else(|| format!("no PostgreSQL; run `{how}`"))
}

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

    /// A schema of its own and empty in the PostgreSQL that `ARCHON_TEST_POSTGRES` names.
    pub(crate) async fn postgres(schema: &'static str) -> Self {
        let place = Self::Postgres { config: server().unwrap(), schema };
        place.sql("DROP SCHEMA IF EXISTS {schema} CASCADE").await;
        place
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
