//! The index of suspended runs in Redis, for several machines.
//!
//! As in SQLite, the logs are the truth: a lost index is rebuilt from the logs (`AgentPool::restore`), and
//! an entry that cannot be read is skipped.

use std::io;

use archon_types::{BoxFuture, JournalError, PendingApproval, PoolFilter, PoolIndex, RunId, Timestamp};
use redis::{Client, RedisResult, Script, aio::ConnectionManager};

use crate::server::{connect, format_of, prefix};

const FORMAT: u32 = 1;

/// An index of suspended runs in one Redis. Clones share the connection.
///
/// ```
/// use archon_redis::RedisPoolIndex;
/// use archon_types::JournalError;
///
/// async fn index() -> Result<RedisPoolIndex, JournalError> {
///     RedisPoolIndex::connect("redis://127.0.0.1:6379", "shop").await
/// }
/// ```
#[derive(Clone)]
pub struct RedisPoolIndex {
    connection: ConnectionManager,
    prefix: String,
    put: Script,
    find: Script,
}

impl RedisPoolIndex {
    /// Opens the index with this `name` in the Redis at `url`, such as `redis://127.0.0.1:6379`.
    ///
    /// # Errors
    /// [`JournalError::Storage`] if the server cannot be reached, [`JournalError::UnsupportedStore`] if a
    /// newer version wrote the index.
    pub async fn connect(url: &str, name: &str) -> Result<Self, JournalError> {
        let prefix = prefix(name);
        let client = Client::open(url).map_err(failed("open", &prefix))?;
        let mut connection = connect(&client).await.map_err(failed("open", &prefix))?;
        let found = format_of(&mut connection, &prefix, FORMAT).await.map_err(failed("open", &prefix))?;
        if found > FORMAT {
            return Err(JournalError::UnsupportedStore { place: prefix, found, supported: FORMAT });
        }
        let put = Script::new(include_str!("scripts/pool_put.lua"));
        let find = Script::new(include_str!("scripts/pool_find.lua"));
        Ok(Self { connection, prefix, put, find })
    }

    async fn replace(&self, run: &RunId, waiting: &[PendingApproval]) -> Result<(), JournalError> {
        let mut call = self.put.arg(&self.prefix);
        call.arg(run.as_str());
        for entry in waiting {
            let body = serde_json::to_string(entry)
                .map_err(|error| storage("write to", &self.prefix, error.into()))?;
            let expires = entry.request.expires_at.filter(|_| entry.request.paused_at.is_none());
            call.arg(&entry.request.request_id).arg(entry.tenant.as_str()).arg(entry.created_at.as_millis());
            call.arg(expires.map(millis).unwrap_or_default()).arg(body);
        }
        let done: RedisResult<i64> = call.invoke_async(&mut self.connection.clone()).await;
        done.map(|_| ()).map_err(failed("write to", &self.prefix))
    }

    async fn look_up(&self, filter: &PoolFilter) -> Result<Vec<PendingApproval>, JournalError> {
        // The server looks up by the narrowest part of the filter; the whole filter is then applied to the
        // entries found.
        let (by, value) = match filter {
            PoolFilter { run: Some(run), .. } => ("run", run.to_string()),
            PoolFilter { tenant: Some(tenant), .. } => ("tenant", tenant.to_string()),
            PoolFilter { due: Some(due), .. } => ("due", millis(*due)),
            _ => ("all", String::new()),
        };
        let mut call = self.find.arg(&self.prefix);
        call.arg(by).arg(value);
        let bodies: RedisResult<Vec<String>> = call.invoke_async(&mut self.connection.clone()).await;
        let bodies = bodies.map_err(failed("read", &self.prefix))?;
        let mut found: Vec<_> = bodies.iter().filter_map(|body| self.entry(body)).collect();
        found.retain(|entry| filter.fits(entry));
        found.sort_by(|a, b| {
            (a.created_at, &a.run, &a.request.request_id).cmp(&(b.created_at, &b.run, &b.request.request_id))
        });
        Ok(found)
    }

    fn entry(&self, body: &str) -> Option<PendingApproval> {
        serde_json::from_str(body)
            .inspect_err(|error| {
                tracing::warn!(place = self.prefix, %error, "an entry of the index of suspended runs cannot be read and is skipped");
            })
            .ok()
    }
}

impl PoolIndex for RedisPoolIndex {
    fn put<'a>(
        &'a self,
        run: &'a RunId,
        waiting: Vec<PendingApproval>,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move { self.replace(run, &waiting).await })
    }

    fn find<'a>(
        &'a self,
        filter: &'a PoolFilter,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, JournalError>> {
        Box::pin(self.look_up(filter))
    }
}

archon_types::debug_fields!(RedisPoolIndex: prefix);

fn millis(at: Timestamp) -> String {
    at.as_millis().to_string()
}

fn failed(action: &'static str, place: &str) -> impl FnOnce(redis::RedisError) -> JournalError {
    move |error| storage(action, place, io::Error::other(error))
}

fn storage(action: &'static str, place: &str, source: io::Error) -> JournalError {
    JournalError::Storage { action, place: place.to_owned(), source }
}
