//! Applies changes, each batch in one transaction.

use archon_types::{Collection, MemoryChange, MemoryEntry, MemoryError};
use tokio_postgres::{Client, IsolationLevel, Transaction};

use super::{
    failed,
    query::{Conditions, Postgres, SOUND, Value, borrowed, labels, length_of, list, read},
    words::indexed,
};
use crate::memories::{
    COLUMNS, Damage, Dialect as _, Texts, check_expected, everything, number, take_vector,
};

pub(super) async fn apply(
    client: &mut Client,
    scope: &Collection,
    changes: Vec<MemoryChange>,
) -> Result<usize, MemoryError> {
    for change in &changes {
        change.check(scope)?;
        check_columns(change)?;
    }
    // Each statement must see everything that was committed before it, whatever the server's default is:
    // expectations are checked after the wait for the lock.
    let transaction = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start();
    let transaction = transaction.await.map_err(failed("write to", "a batch"))?;
    // One batch at a time for each schema: batches that change the same entries in different orders would
    // deadlock, and positions would not follow the order in which entries become visible.
    let turn = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 0))";
    transaction.execute(turn, &[]).await.map_err(failed("write to", "a batch"))?;
    for change in &changes {
        if let MemoryChange::Expect { filter, entries } = change {
            let now = list(&transaction, scope, &everything(filter)).await?;
            check_expected(&now, entries)?;
        }
    }
    let mut met = 0;
    for change in changes {
        met += one(&transaction, scope, change).await?;
    }
    // Without the commit, all changes are rolled back.
    transaction.commit().await.map_err(failed("write to", "a batch"))?;
    Ok(met)
}

/// Checks the texts that have their own column: PostgreSQL stores no zero characters. In contents and
/// metadata, JSON escapes a zero character.
fn check_columns(change: &MemoryChange) -> Result<(), MemoryError> {
    let (id, columns) = match change {
        MemoryChange::Put(entry) => {
            (&entry.id, [Some(&entry.id), entry.key.as_ref(), entry.embedder.as_ref()])
        }
        MemoryChange::Embed { id, embedder, .. } => (id, [None, None, Some(embedder)]),
        _ => return Ok(()),
    };
    if columns.into_iter().flatten().all(|text| Postgres::is_storable(text)) {
        return Ok(());
    }
    let problem = "its id, key or embedder has a zero character, which PostgreSQL cannot store".to_owned();
    Err(MemoryError::Invalid { id: id.replace('\0', "\u{fffd}"), problem })
}

async fn one(
    transaction: &Transaction<'_>,
    scope: &Collection,
    change: MemoryChange,
) -> Result<usize, MemoryError> {
    match change {
        MemoryChange::Put(entry) => put(transaction, scope, *entry).await,
        MemoryChange::Forget(filter) => {
            let Conditions { sql, values } = Conditions::of(scope, &filter, Damage::Compared)?;
            let sql = format!("DELETE FROM entries e WHERE {sql}");
            execute(transaction, &sql, &values).await
        }
        // No entry has such an id.
        MemoryChange::Embed { id, .. } if !Postgres::is_storable(&id) => Ok(0),
        MemoryChange::Embed { id, collection, content, embedder, vector } => {
            check_length(transaction, &id, &embedder, vector.len()).await?;
            let sql = format!(
                "SELECT {COLUMNS}, {SOUND} FROM entries e WHERE e.collection = $1 AND e.id = $2 FOR UPDATE"
            );
            let row = transaction.query_opt(&sql, &[&collection.as_str(), &id]).await;
            let entry = row.map_err(failed("read", "an entry"))?.map(|row| read(&row));
            let Some(Ok(mut entry)) = entry.filter(|e| e.as_ref().is_ok_and(|e| e.content == content)) else {
                return Ok(0);
            };
            (entry.embedder, entry.embedding) = (Some(embedder), Some(vector));
            put(transaction, scope, entry).await
        }
        MemoryChange::Use { id, at } => {
            let mut filter = archon_types::MemoryFilter::all();
            filter.ids = vec![id];
            let mut conditions = Conditions::of(scope, &filter, Damage::Compared)?;
            let at = conditions.value(number(at));
            let used = format!("greatest(coalesce(used, 0), {at})");
            let sql = format!("UPDATE entries e SET used = {used} WHERE {}", conditions.sql);
            execute(transaction, &sql, &conditions.values).await
        }
        _ => Ok(0),
    }
}

/// Executes a statement, and returns the number of affected rows.
async fn execute(transaction: &Transaction<'_>, sql: &str, values: &[Value]) -> Result<usize, MemoryError> {
    let rows = transaction.execute(sql, &borrowed(values)).await.map_err(failed("write to", "entries"))?;
    Ok(usize::try_from(rows).unwrap_or(usize::MAX))
}

async fn put(
    transaction: &Transaction<'_>,
    scope: &Collection,
    mut entry: MemoryEntry,
) -> Result<usize, MemoryError> {
    let vector = take_vector(&mut entry, scope);
    if let Some((embedder, vector)) = entry.embedder.as_ref().zip(vector.as_ref()) {
        check_length(transaction, &entry.id, embedder, vector.len()).await?;
    }
    let Texts { metadata, body, checksum } = Texts::of(&entry).map_err(failed("write to", "entries"))?;
    let words = indexed(&entry.content);
    let sql = "INSERT INTO entries (collection, id, kind, trust, key, timestamp, valid_from, valid_to, used, \
               embedder, metadata, labels, body, checksum, columns_checksum, words, vector) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::jsonb, $13, $14, \
               sha256(convert_to(ROW($3::text, $4::smallint, $5::text, $12::text::jsonb, $6::bigint, \
               $7::bigint, $8::bigint)::text, 'UTF8')), \
               to_tsvector('english', $15), $16::real[]::vector) \
               ON CONFLICT (collection, id) DO UPDATE SET kind = $3, trust = $4, key = $5, timestamp = $6, \
               valid_from = $7, valid_to = $8, used = $9, embedder = $10, metadata = $11, \
               labels = excluded.labels, body = $13, checksum = $14, \
               columns_checksum = excluded.columns_checksum, words = excluded.words, \
               vector = excluded.vector";
    let done = transaction
        .execute(
            sql,
            &[
                &entry.collection.as_str(),
                &entry.id,
                &entry.kind.as_str(),
                &(entry.trust as i16),
                &entry.key,
                &number(entry.timestamp),
                &entry.valid_from.map(number),
                &entry.valid_to.map(number),
                &entry.used.map(number),
                &entry.embedder,
                &metadata,
                &labels(&metadata),
                &body,
                &i64::from(checksum),
                &words,
                &vector,
            ],
        )
        .await;
    done.map_err(failed("write to", "entries"))?;
    Ok(1)
}

async fn check_length(
    transaction: &Transaction<'_>,
    id: &str,
    embedder: &str,
    found: usize,
) -> Result<(), MemoryError> {
    let length = i64::try_from(found).unwrap_or(i64::MAX);
    let sql = "INSERT INTO embedders VALUES ($1, $2) ON CONFLICT DO NOTHING";
    transaction.execute(sql, &[&embedder, &length]).await.map_err(failed("write to", "embedders"))?;
    let expected = length_of(transaction, embedder).await?;
    MemoryEntry::check_length(id, embedder, found, expected.unwrap_or(found))
}
