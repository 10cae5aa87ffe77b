//! A store of credentials in one SQLite database, encrypted if there is a key.
//!
//! - **Isolation.** Tenant, service and account are the key of a row and a condition of every statement.
//! - **Sealing** (feature `encryption`). Each row is encrypted separately with XChaCha20-Poly1305 and its
//!   own nonce, and is bound to its tenant, service and account: a row that is moved to another account
//!   cannot be decrypted. The names of the accounts and the times are not secret and not encrypted.
//! - **One key.** A sealed database cannot be opened without its key; a process that opened it before it was
//!   sealed can no longer use it. An unsealed database is sealed when it is opened with a key. Overwritten
//!   data are erased (`secure_delete`).
//! - **Durability.** A change is on the medium when it returns, entirely or not at all.

mod schema;
mod seal;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use archon_types::{
    BoxFuture, Clock, CredentialEntry, CredentialError, CredentialKey, CredentialStore, Json, Secret,
    TenantId, Timestamp,
};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};

use seal::Seal;
#[cfg(feature = "encryption")]
pub use seal::SealingKey;

use crate::{blocking::blocking_or, database_file};

/// A store that keeps credentials in one SQLite database. Clones share it.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_store::SqliteCredentials;
/// use archon_types::{Clock, CredentialError};
///
/// fn open(clock: Arc<dyn Clock>) -> Result<SqliteCredentials, CredentialError> {
///     SqliteCredentials::open("data/credentials.db", clock)
/// }
/// ```
#[derive(Clone)]
pub struct SqliteCredentials {
    database: Arc<Database>,
    clock: Arc<dyn Clock>,
}

struct Database {
    path: PathBuf,
    connection: Mutex<Connection>,
    seal: Option<Seal>,
}

impl SqliteCredentials {
    /// Opens the database at `path`. The database and its directory are created if they do not exist, for
    /// their owner only. `clock` gives the times at which credentials are saved. Blocks while it waits for
    /// the disk.
    ///
    /// # Errors
    /// [`CredentialError::Storage`], also for a database of another program,
    /// [`CredentialError::FutureStore`], and [`CredentialError::Sealed`] for a sealed database.
    pub fn open(path: impl AsRef<Path>, clock: Arc<dyn Clock>) -> Result<Self, CredentialError> {
        Self::open_with(path.as_ref(), None, clock)
    }

    /// Opens the database with a key that encrypts all secrets. Credentials that were stored without a key
    /// are encrypted when the database is opened.
    ///
    /// # Errors
    /// As for [`open`](Self::open), and [`CredentialError::Sealed`] if the database was sealed with another
    /// key.
    #[cfg(feature = "encryption")]
    pub fn open_sealed(
        path: impl AsRef<Path>,
        key: &SealingKey,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, CredentialError> {
        Self::open_with(path.as_ref(), Some(Seal::new(key)), clock)
    }

    fn open_with(path: &Path, seal: Option<Seal>, clock: Arc<dyn Clock>) -> Result<Self, CredentialError> {
        database_file::create(path).map_err(failed("create", path))?;
        let open = || {
            let connection = database_file::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            connection.execute_batch(
                "PRAGMA secure_delete = ON; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON",
            )?;
            Ok(connection)
        };
        let connection = open().map_err(failed::<rusqlite::Error>("open", path))?;
        let database = Database { path: path.to_owned(), connection: Mutex::new(connection), seal };
        database.transaction("open", |transaction| {
            schema::prepare(transaction, path)?;
            database.seal_all(transaction)
        })?;
        Ok(Self { database: Arc::new(database), clock })
    }

    /// Returns the path of the database.
    pub fn path(&self) -> &Path {
        &self.database.path
    }

    /// Runs `work` in a transaction on a thread that may block; without a Tokio runtime, on this thread.
    async fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Database, &Transaction<'_>) -> Result<T, CredentialError> + Send + 'static,
    ) -> Result<T, CredentialError> {
        let database = self.database.clone();
        let work = move || {
            database.transaction(action, |transaction| {
                database.check_seal(transaction)?;
                work(&database, transaction)
            })
        };
        blocking_or(work, |_| CredentialError::Storage("the runtime shuts down".to_owned())).await
    }
}

impl CredentialStore for SqliteCredentials {
    fn put<'a>(
        &'a self,
        key: &'a CredentialKey,
        credentials: Option<Secret<Json>>,
    ) -> BoxFuture<'a, Result<bool, CredentialError>> {
        let (key, now) = (key.clone(), self.clock.now());
        Box::pin(self.run("write to", move |database, transaction| match credentials {
            Some(credentials) => database.save(transaction, &key, &credentials, now),
            None => database.delete(transaction, &key),
        }))
    }

    fn get<'a>(
        &'a self,
        key: &'a CredentialKey,
    ) -> BoxFuture<'a, Result<Option<Secret<Json>>, CredentialError>> {
        let key = key.clone();
        Box::pin(self.run("read", move |database, transaction| database.get(transaction, &key)))
    }

    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        service: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<CredentialEntry>, CredentialError>> {
        let (tenant, service) = (tenant.clone(), service.map(str::to_owned));
        Box::pin(self.run("read", move |database, transaction| {
            database.list(transaction, &tenant, service.as_deref())
        }))
    }
}

impl Database {
    /// Runs `work` in a transaction; after an error, all its changes are rolled back.
    fn transaction<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, CredentialError>,
    ) -> Result<T, CredentialError> {
        // A transaction that a panic interrupted was rolled back when it was dropped.
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let behavior =
            if action == "read" { TransactionBehavior::Deferred } else { TransactionBehavior::Immediate };
        let transaction = connection.transaction_with_behavior(behavior).map_err(self.failed(action))?;
        let done = work(&transaction)?;
        transaction.commit().map_err(self.failed(action))?;
        Ok(done)
    }

    fn save(
        &self,
        transaction: &Transaction<'_>,
        key: &CredentialKey,
        credentials: &Secret<Json>,
        now: Timestamp,
    ) -> Result<bool, CredentialError> {
        let body = self.body_of(key, credentials.expose().to_string().into_bytes())?;
        let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let write = || {
            let there = transaction.execute(
                "UPDATE credentials SET body = ?4, updated_at = ?5 WHERE tenant = ?1 AND service = ?2 AND account = ?3",
                params![key.tenant.as_str(), key.service, key.account, body, now],
            )? > 0;
            if !there {
                transaction.execute(
                    "INSERT INTO credentials VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
                    params![key.tenant.as_str(), key.service, key.account, body, now],
                )?;
            }
            Ok(there)
        };
        write().map_err(self.failed("write to"))
    }

    fn delete(&self, transaction: &Transaction<'_>, key: &CredentialKey) -> Result<bool, CredentialError> {
        let removed = transaction.execute(
            "DELETE FROM credentials WHERE tenant = ?1 AND service = ?2 AND account = ?3",
            params![key.tenant.as_str(), key.service, key.account],
        );
        removed.map(|rows| rows > 0).map_err(self.failed("write to"))
    }

    fn get(
        &self,
        transaction: &Transaction<'_>,
        key: &CredentialKey,
    ) -> Result<Option<Secret<Json>>, CredentialError> {
        let body = transaction
            .query_row(
                "SELECT body FROM credentials WHERE tenant = ?1 AND service = ?2 AND account = ?3",
                params![key.tenant.as_str(), key.service, key.account],
                |row| row.get::<_, Vec<u8>>(0),
            )
            .optional()
            .map_err(self.failed("read"))?;
        let Some(body) = body else { return Ok(None) };
        let text = match &self.seal {
            Some(seal) => seal.open(key, &body).ok_or_else(|| {
                damaged(key, "the stored value was changed, or belongs to another account or key")
            })?,
            None => body,
        };
        let value =
            serde_json::from_slice(&text).map_err(|_| damaged(key, "the stored value is not JSON"))?;
        Ok(Some(Secret::new(value)))
    }

    fn list(
        &self,
        transaction: &Transaction<'_>,
        tenant: &TenantId,
        service: Option<&str>,
    ) -> Result<Vec<CredentialEntry>, CredentialError> {
        let read = || {
            let mut statement = transaction.prepare(
                "SELECT service, account, created_at, updated_at FROM credentials
                 WHERE tenant = ?1 AND (?2 IS NULL OR service = ?2) ORDER BY service, account",
            )?;
            let time = |millis: i64| Timestamp::from_millis(u64::try_from(millis).unwrap_or_default());
            let rows = statement.query_map(params![tenant.as_str(), service], |row| {
                let key = CredentialKey::primary(tenant.clone(), row.get::<_, String>(0)?)
                    .named(row.get::<_, String>(1)?);
                Ok(CredentialEntry::new(key, time(row.get(2)?), time(row.get(3)?)))
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(self.failed("read"))
    }

    /// Checks that the database is sealed with this key, or is unsealed if there is no key: another process
    /// may have sealed the database since this process opened it.
    fn check_seal(&self, transaction: &Transaction<'_>) -> Result<(), CredentialError> {
        let check = self.sealing_check(transaction)?;
        let sealed = |why: &str| Err(CredentialError::Sealed(format!("{why}: {}", self.path.display())));
        match (&self.seal, check) {
            (None, None) => Ok(()),
            (Some(seal), Some(check)) if seal.fits(&check) => Ok(()),
            (None, Some(_)) => sealed("this database needs the key that it was sealed with"),
            (Some(_), _) => sealed("this is not the key that the database was sealed with"),
        }
    }

    /// Seals an unsealed database if there is a key, and then checks that the key is the right one.
    fn seal_all(&self, transaction: &Transaction<'_>) -> Result<(), CredentialError> {
        if let (Some(seal), None) = (&self.seal, self.sealing_check(transaction)?) {
            let rows = self.plain_rows(transaction)?;
            for (key, text) in rows {
                let body = self.body_of(&key, text)?;
                transaction
                    .execute(
                        "UPDATE credentials SET body = ?4 WHERE tenant = ?1 AND service = ?2 AND account = ?3",
                        params![key.tenant.as_str(), key.service, key.account, body],
                    )
                    .map_err(self.failed("seal"))?;
            }
            let check = seal.check().map_err(CredentialError::Storage)?;
            transaction.execute("INSERT INTO seal VALUES (?1)", [check]).map_err(self.failed("seal"))?;
        }
        self.check_seal(transaction)
    }

    fn plain_rows(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<Vec<(CredentialKey, Vec<u8>)>, CredentialError> {
        let read = || {
            let mut statement =
                transaction.prepare("SELECT tenant, service, account, body FROM credentials")?;
            let rows = statement.query_map([], |row| {
                let tenant = TenantId::new(row.get::<_, String>(0)?);
                let key =
                    CredentialKey::primary(tenant, row.get::<_, String>(1)?).named(row.get::<_, String>(2)?);
                Ok((key, row.get(3)?))
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(self.failed("seal"))
    }

    fn sealing_check(&self, transaction: &Transaction<'_>) -> Result<Option<Vec<u8>>, CredentialError> {
        let found = transaction.query_row("SELECT body FROM seal", [], |row| row.get(0)).optional();
        found.map_err(self.failed("read"))
    }

    fn body_of(&self, key: &CredentialKey, text: Vec<u8>) -> Result<Vec<u8>, CredentialError> {
        match &self.seal {
            Some(seal) => seal.close(key, &text).map_err(CredentialError::Storage),
            None => Ok(text),
        }
    }

    fn failed(&self, action: &'static str) -> impl FnOnce(rusqlite::Error) -> CredentialError {
        failed(action, &self.path)
    }
}

fn failed<E: fmt::Display>(action: &'static str, place: &Path) -> impl FnOnce(E) -> CredentialError {
    let place = place.display().to_string();
    move |error| CredentialError::Storage(format!("cannot {action} {place}: {error}"))
}

fn damaged(key: &CredentialKey, problem: &str) -> CredentialError {
    CredentialError::Damaged {
        service: key.service.clone(),
        account: key.account.clone(),
        problem: problem.to_owned(),
    }
}

archon_types::debug_fields!(SqliteCredentials: path = database.path);
