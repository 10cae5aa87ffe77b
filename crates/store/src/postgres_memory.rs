//! The store that keeps memories in PostgreSQL with pgvector.
//!
//! - **Words** are found by PostgreSQL's text search with English stems, in any case and with or without
//!   accents. **Vectors** are found by an exact scan whose conditions include the filters and the
//!   collection, so nothing is missed.
//! - **Isolation.** The collection is a condition of every statement, compared byte by byte.
//! - **Changes** are one transaction each, one at a time for each schema. **Damage** is found by a checksum
//!   of each row; damaged rows are left out and reported.
//! - **Deleted entries** stay in the table's files until [`PostgresMemory::compact`]; the server's write-ahead log,
//!   its replicas and its backups are beyond the reach of this store.
//! - **Connections** are opened on demand, at most 16 at a time, and some are kept for later; callers wait
//!   while all are in use. A broken connection is not used again.

mod change;
mod query;
mod words;

use std::sync::{Arc, Mutex, PoisonError};

use archon_types::{
    BoxFuture, Collection, Listing, MemoryCandidates, MemoryChange, MemoryError, MemoryPage, MemorySearch,
    MemoryStore,
};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::{Client, GenericClient, NoTls, Transaction};

/// A store of memories in one schema of a PostgreSQL database, restricted to a collection. Clones share the
/// connections.
///
/// ```
/// use archon_store::PostgresMemory;
/// use archon_types::{Collection, MemoryError};
///
/// async fn memories_of_anna() -> Result<PostgresMemory, MemoryError> {
///     let all = PostgresMemory::connect("host=localhost user=archon dbname=archon", "memories").await?;
///     all.collection(Collection::new("user:anna")?)
/// }
/// ```
#[derive(Clone)]
pub struct PostgresMemory {
    pool: Arc<Pool>,
    scope: Collection,
}

struct Pool {
    config: tokio_postgres::Config,
    schema: String,
    idle: Mutex<Vec<Client>>,
    /// Limits the number of callers that have a connection.
    turns: Semaphore,
    /// Limits the number of open connections. A connection whose caller was dropped stays open until the
    /// server has finished.
    unopened: Arc<Semaphore>,
}

/// A connection and the permit to use it.
struct Taken<'a> {
    client: Client,
    _turn: SemaphorePermit<'a>,
}

/// The maximum number of open connections; a server's default is 100 for all users. Writes to one schema are
/// made one after the other anyway.
const MOST: usize = 16;
/// The maximum number of idle connections that are kept open.
const IDLE: usize = 4;

/// Statement `n` upgrades from version `n` to `n + 1`. A released statement never changes.
const MIGRATIONS: &[&str] = &[include_str!("postgres_memory/v1.sql")];

impl PostgresMemory {
    /// Connects with `config`, for instance `host=localhost user=archon dbname=archon`, and creates the
    /// schema and its tables if they do not exist. The extension `vector` must be installed in the database,
    /// in any schema, or the user must be allowed to install it; it is then installed in `public`. To open
    /// an existing store, the user needs `USAGE` of the schema and the rights to read and write its tables.
    /// The connection is not encrypted: use a tunnel to reach other machines.
    ///
    /// # Errors
    /// [`MemoryError::Storage`] if the connection or a statement fails, [`MemoryError::FutureStore`] if a
    /// newer version wrote the schema.
    pub async fn connect(config: &str, schema: &str) -> Result<Self, MemoryError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if schema.is_empty() || schema.len() > 60 || !schema.chars().all(plain) {
            let problem = "the name of a schema has 1 to 60 characters of a-z, 0-9 and _";
            return Err(failed("open", schema)(std::io::Error::other(problem)));
        }
        let config = config.parse::<tokio_postgres::Config>().map_err(failed("open", "PostgreSQL"))?;
        let pool = Pool {
            config,
            schema: schema.to_owned(),
            idle: Mutex::default(),
            turns: Semaphore::new(MOST),
            unopened: Arc::new(Semaphore::new(MOST)),
        };
        let mut taken = pool.take().await?;
        prepare(&mut taken.client, schema).await?;
        pool.give_back(taken);
        Ok(Self { pool: Arc::new(pool), scope: Collection::root() })
    }

    /// Returns a store on the same database, restricted to a collection within this store's collection.
    ///
    /// # Errors
    /// [`MemoryError::OutOfScope`] if the collection is not within this store's collection.
    pub fn collection(&self, collection: Collection) -> Result<Self, MemoryError> {
        let scope = self.scope.narrowed(Some(&collection))?;
        Ok(Self { pool: self.pool.clone(), scope })
    }

    /// Writes the table of entries and its indexes anew (`VACUUM FULL`), so that no byte of a deleted entry is left
    /// in them. Readers and writers wait meanwhile. The user must own the table. The server's write-ahead log,
    /// replicas and backups have their own rules.
    ///
    /// # Errors
    /// [`MemoryError::Storage`] if the server refuses; no data are lost.
    pub async fn compact(&self) -> Result<(), MemoryError> {
        let taken = self.pool.take().await?;
        let done = taken.client.batch_execute("VACUUM FULL entries").await;
        self.pool.give_back(taken);
        done.map_err(failed("compact", &self.pool.schema))
    }
}

/// Creates the schema and the tables that do not exist. `IF NOT EXISTS` would require the right to create
/// them even if they exist, and the user may lack that right, so existence is checked first.
async fn prepare(client: &mut Client, schema: &str) -> Result<(), MemoryError> {
    let failed = || failed("upgrade", schema);
    let transaction = client.transaction().await.map_err(failed())?;
    // If two processes open a new schema, one creates the tables, and the other waits and finds them.
    let turn = "SELECT pg_advisory_xact_lock(4702111234474983745)";
    transaction.batch_execute(turn).await.map_err(failed())?;
    if extension(&transaction).await.map_err(failed())?.is_none() {
        // Not in the first schema of the search path: the extension would be dropped with that schema, and
        // all vectors of other schemas with it.
        let sql = "CREATE EXTENSION vector SCHEMA public";
        transaction.batch_execute(sql).await.map_err(failed())?;
    }
    let missing = "SELECT to_regnamespace($1) IS NULL, to_regclass($1 || '.schema_version') IS NULL";
    let row = transaction.query_one(missing, &[&schema]).await.map_err(failed())?;
    let make = [
        format!("CREATE SCHEMA {schema}"),
        format!("CREATE TABLE {schema}.schema_version (version int NOT NULL)"),
    ];
    for (at, sql) in make.iter().enumerate() {
        if row.try_get(at).map_err(failed())? {
            transaction.batch_execute(sql).await.map_err(failed())?;
        }
    }
    migrate(&transaction, schema).await?;
    transaction.commit().await.map_err(failed())
}

/// Returns the schema of the extension `vector`, quoted for SQL; `None` if the extension is not installed.
/// Hosted services have a schema for extensions.
async fn extension(client: &impl GenericClient) -> Result<Option<String>, tokio_postgres::Error> {
    let sql = "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
               WHERE e.extname = 'vector'";
    client.query_opt(sql, &[]).await?.map(|row| row.try_get(0)).transpose()
}

async fn migrate(transaction: &Transaction<'_>, schema: &str) -> Result<(), MemoryError> {
    let failed = || failed("upgrade", schema);
    let version = format!("SELECT coalesce(max(version), 0) FROM {schema}.schema_version");
    let row = transaction.query_one(&version, &[]).await.map_err(failed())?;
    let found = u32::try_from(row.try_get::<_, i32>(0).map_err(failed())?).unwrap_or(u32::MAX);
    let supported = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    if found > supported {
        return Err(MemoryError::FutureStore { place: schema.to_owned(), found, supported });
    }
    look_into(transaction, schema).await.map_err(failed())?;
    for (version, migration) in (1_i32..).zip(MIGRATIONS).skip(found as usize) {
        transaction.batch_execute(migration).await.map_err(failed())?;
        transaction.execute("INSERT INTO schema_version VALUES ($1)", &[&version]).await.map_err(failed())?;
    }
    Ok(())
}

/// Sets the search path of a connection: the schema of the tables, then the schema of the extension `vector`.
async fn look_into(client: &impl GenericClient, schema: &str) -> Result<(), tokio_postgres::Error> {
    let extension = extension(client).await?.unwrap_or_else(|| "public".to_owned());
    client.batch_execute(&format!("SET search_path TO {schema}, {extension}")).await
}

impl Pool {
    async fn take(&self) -> Result<Taken<'_>, MemoryError> {
        let turn = self.turns.acquire().await.map_err(failed("connect to", &self.schema))?;
        let client = match self.idle_client() {
            Some(client) => client,
            None => self.connect().await?,
        };
        Ok(Taken { client, _turn: turn })
    }

    fn idle_client(&self) -> Option<Client> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|client| !client.is_closed());
        idle.pop()
    }

    async fn connect(&self) -> Result<Client, MemoryError> {
        let failed = || failed("connect to", &self.schema);
        let place = self.unopened.clone().acquire_owned().await;
        let place = place.map_err(self::failed("connect to", &self.schema))?;
        let (client, connection) = self.config.connect(NoTls).await.map_err(failed())?;
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::warn!(%error, "a connection to PostgreSQL ended");
            }
        });
        look_into(&client, &self.schema).await.map_err(failed())?;
        Ok(client)
    }

    fn give_back(&self, taken: Taken<'_>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE && !taken.client.is_closed() {
            idle.push(taken.client);
        }
    }
}

impl MemoryStore for PostgresMemory {
    fn scope(&self) -> &Collection {
        &self.scope
    }

    fn apply(&self, changes: Vec<MemoryChange>) -> BoxFuture<'_, Result<usize, MemoryError>> {
        Box::pin(async move {
            let mut taken = self.pool.take().await?;
            let done = change::apply(&mut taken.client, &self.scope, changes).await;
            self.pool.give_back(taken);
            done
        })
    }

    fn candidates<'a>(
        &'a self,
        search: &'a MemorySearch,
    ) -> BoxFuture<'a, Result<MemoryCandidates, MemoryError>> {
        Box::pin(async move {
            let taken = self.pool.take().await?;
            let found = query::candidates(&taken.client, &self.scope, search).await;
            self.pool.give_back(taken);
            found
        })
    }

    fn list<'a>(&'a self, listing: &'a Listing) -> BoxFuture<'a, Result<MemoryPage, MemoryError>> {
        Box::pin(async move {
            let taken = self.pool.take().await?;
            let page = query::list(&taken.client, &self.scope, listing).await;
            self.pool.give_back(taken);
            page
        })
    }
}

fn failed<E>(action: &'static str, place: &str) -> impl FnOnce(E) -> MemoryError + use<E>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let place = format!("PostgreSQL, {place}");
    move |error| MemoryError::Storage { action, place, source: Box::new(error) }
}
