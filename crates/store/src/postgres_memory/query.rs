//! Builds SQL conditions, and runs listings and searches by words and by vector.

use std::collections::BTreeMap;

use archon_types::{
    Candidate, Collection, Damaged, Listing, MemoryCandidates, MemoryEntry, MemoryError, MemoryFilter,
    MemoryPage, MemorySearch, Trust,
};
use tokio_postgres::{Client, GenericClient, Row, types::ToSql};

use super::{failed, words::query_words};
use crate::memories::{self, COLUMNS, Damage, Dialect, Texts, columns_damaged};

/// The condition that the vector of `entries e` has as many dimensions as all vectors of its embedder. A
/// vector with another number of dimensions counts as damaged and is computed again, like a missing one.
const INTACT: &str = "coalesce((SELECT vector_dims(e.vector) = d.dimensions FROM embedders d \
                      WHERE d.id = e.embedder), FALSE)";

/// The value of a statement's parameter.
pub(super) struct Value(Box<dyn ToSql + Sync + Send>);

impl<T: ToSql + Sync + Send + 'static> From<T> for Value {
    fn from(value: T) -> Self {
        Self(Box::new(value))
    }
}

/// Borrows the values in the form that the client accepts.
pub(super) fn borrowed(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| &*value.0 as &(dyn ToSql + Sync)).collect()
}

/// The SQL dialect of PostgreSQL.
pub(super) struct Postgres;

pub(super) type Conditions = memories::Conditions<Postgres>;

pub(super) const SOUND: &str = "e.columns_checksum = sha256(convert_to(ROW(e.kind, e.trust, e.key, e.labels, \
                                e.timestamp, e.valid_from, e.valid_to)::text, 'UTF8'))";

impl Dialect for Postgres {
    type Value = Value;
    const SOUND: &'static str = SOUND;
    const KEY: &'static str = "e.key COLLATE \"C\"";

    fn is_storable(text: &str) -> bool {
        !text.contains('\0')
    }

    fn placeholder(number: usize) -> String {
        format!("${number}")
    }

    /// Texts that cannot be stored are not sent, since PostgreSQL refuses them.
    fn add_indexed(conditions: &mut Conditions, filter: &MemoryFilter) {
        let known = |name: &&String| Self::is_storable(name);
        if !filter.ids.is_empty() {
            let ids = filter.ids.iter().filter(known).cloned().collect::<Vec<String>>();
            let ids = conditions.value(ids);
            conditions.and(&format!("e.id = ANY({ids})"));
        }
        if !filter.without.is_empty() {
            let ids = filter.without.iter().filter(known).cloned().collect::<Vec<String>>();
            let ids = conditions.value(ids);
            conditions.and(&format!("e.id <> ALL({ids})"));
        }
        if let Some(session) = filter.metadata.get("session").and_then(|session| session.as_str()) {
            let session = conditions.value(label(session));
            // Written as in the index of sessions, so that it can be used.
            conditions.and("jsonb_typeof(e.labels -> 'session') = 'string'");
            conditions.and(&format!("e.labels ->> 'session' = {session}"));
        }
        if let Some(embedder) = filter.not_embedded_by.as_ref().filter(known) {
            let embedder = conditions.value(embedder.clone());
            conditions.and(&format!("(e.embedder IS DISTINCT FROM {embedder} OR NOT {INTACT})"));
        }
    }

    fn add_compared(conditions: &mut Conditions, filter: &MemoryFilter) {
        for (name, value) in &filter.metadata {
            let (name, value) = (conditions.value(label(name)), conditions.value(labels(&value.to_string())));
            conditions.and(&format!("e.labels -> {name}::text = {value}::text::jsonb"));
        }
        if !filter.kinds.is_empty() {
            let kinds: Vec<&'static str> = filter.kinds.iter().map(|kind| kind.as_str()).collect();
            let kinds = conditions.value(kinds);
            conditions.and(&format!("e.kind = ANY({kinds})"));
        }
        if filter.trust > Trust::Untrusted {
            let trust = conditions.value(filter.trust as i16);
            conditions.and(&format!("e.trust >= {trust}"));
        }
    }
}

pub(super) async fn list(
    client: &impl GenericClient,
    scope: &Collection,
    listing: &Listing,
) -> Result<MemoryPage, MemoryError> {
    let mut conditions = Conditions::of(scope, &listing.filter, Damage::Admitted)?;
    let end = conditions.end_of_page(listing);
    let sql = format!(
        "SELECT {COLUMNS}, {SOUND}, CASE WHEN {INTACT} THEN e.vector::real[] END FROM entries e {end}"
    );
    let rows = client.query(&sql, &borrowed(&conditions.values)).await.map_err(failed("read", "a list"))?;
    let mut page = MemoryPage::default();
    for (count, row) in rows.iter().enumerate() {
        if count == listing.limit {
            page.next = rows.get(count.wrapping_sub(1)).and_then(|row| position(row).try_into().ok());
            break;
        }
        match read(row) {
            Ok(mut entry) => {
                entry.embedding = row.try_get(8).map_err(failed("read", "a vector"))?;
                // Without its embedder, the entry counts as not embedded, so a damaged vector is made again.
                entry.embedder = entry.embedder.filter(|_| entry.embedding.is_some());
                page.entries.push(entry);
            }
            Err(damaged) => page.damaged.push(damaged),
        }
    }
    Ok(page)
}

fn position(row: &Row) -> i64 {
    row.try_get(0).unwrap_or(0)
}

pub(super) async fn candidates(
    client: &Client,
    scope: &Collection,
    search: &MemorySearch,
) -> Result<MemoryCandidates, MemoryError> {
    let mut found: BTreeMap<i64, Candidate> = BTreeMap::new();
    let mut damaged: BTreeMap<i64, Damaged> = BTreeMap::new();
    let limit = i64::try_from(search.limit).unwrap_or(i64::MAX);
    let mut keep = |row: &Row| -> Option<(i64, f32)> {
        let (at, score) = (position(row), row.try_get::<_, f32>(8).ok()?);
        match read(row) {
            Ok(entry) => _ = found.entry(at).or_insert_with(|| Candidate::new(entry, None, None)),
            Err(problem) => {
                damaged.insert(at, problem);
                return None;
            }
        }
        Some((at, score))
    };
    let (mut lexical, mut near) = (Vec::new(), Vec::new());
    let words = query_words(&search.text);
    if !words.is_empty() {
        let mut conditions = Conditions::of(scope, &search.filter, Damage::Admitted)?;
        let (words, most) = (conditions.value(words), conditions.value(limit));
        let sql = by_words(&conditions.sql, &words, &most);
        let rows = client.query(&sql, &borrowed(&conditions.values)).await;
        lexical = rows.map_err(failed("read", "words"))?.iter().filter_map(&mut keep).collect();
    }
    let searched = search.vector.as_ref().filter(|(embedder, _)| Postgres::is_storable(embedder));
    if let Some((embedder, vector)) = searched {
        MemorySearch::check_vector(vector, length_of(client, embedder).await?)?;
        let mut conditions = Conditions::of(scope, &search.filter, Damage::Admitted)?;
        let length = conditions.value(i32::try_from(vector.len()).unwrap_or(i32::MAX));
        let (embedder, vector) = (conditions.value(embedder.clone()), conditions.value(vector.clone()));
        let most = conditions.value(limit);
        // The zero vector has no cosine: its distance is no number. Only the nearest rows are read whole.
        let sql = format!(
            "SELECT {COLUMNS}, {SOUND}, n.score FROM (SELECT e.position, \
             (1 - (e.vector <=> {vector}::real[]::vector))::real AS score FROM entries e \
             WHERE e.embedder = {embedder} AND vector_dims(e.vector) = {length} \
             AND vector_norm(e.vector) > 0 AND {} \
             ORDER BY e.vector <=> {vector}::real[]::vector, 1 LIMIT {most}) n JOIN entries e USING (position)",
            conditions.sql
        );
        let rows = client.query(&sql, &borrowed(&conditions.values)).await;
        near = rows.map_err(failed("read", "vectors"))?.iter().filter_map(&mut keep).collect();
    }
    for (at, score) in lexical {
        found.entry(at).and_modify(|candidate| candidate.lexical = Some(score));
    }
    for (at, cosine) in near.into_iter().filter(|(_, cosine)| cosine.is_finite()) {
        found.entry(at).and_modify(|candidate| candidate.vector = Some(cosine));
    }
    let mut all = MemoryCandidates::default();
    all.candidates = found.into_values().filter(|c| c.lexical.is_some() || c.vector.is_some()).collect();
    all.damaged = damaged.into_values().collect();
    Ok(all)
}

/// Returns the number of dimensions of an embedder's vectors in this schema.
pub(super) async fn length_of(
    client: &impl GenericClient,
    embedder: &str,
) -> Result<Option<usize>, MemoryError> {
    let sql = "SELECT dimensions FROM embedders WHERE id = $1";
    let row = client.query_opt(sql, &[&embedder]).await.map_err(failed("read", "embedders"))?;
    Ok(row.and_then(|row| row.try_get::<_, i64>(0).ok()).and_then(|length| usize::try_from(length).ok()))
}

/// The maximum number of entries that are scored for one question, as in SQLite. A word in a large part of
/// all entries carries little information about any of them, and costs most.
const SCORED: usize = 24_000;

/// Builds a BM25 query that counts each word once per entry, with frequencies among the entries that have
/// any of the words. `ts_rank` uses no frequencies, so with it a word in all entries would count as much as
/// a name.
///
/// The query searches for the rarest words, as many as keep the number of scored entries within [`SCORED`].
/// If the rarest word alone exceeds that, the newest entries with it are scored. Counting stops when a word
/// is clearly too frequent. `MATERIALIZED` is for tables that were not analyzed yet: without it the planner
/// would evaluate the subquery again for each row.
fn by_words(conditions: &str, words: &str, most: &str) -> String {
    let with = format!("FROM entries e WHERE e.words @@ q AND {conditions}");
    format!(
        "WITH asked AS MATERIALIZED (SELECT DISTINCT q FROM unnest({words}::text[]) w, \
             plainto_tsquery('english', w) q WHERE numnode(q) > 0), \
         counted AS MATERIALIZED (SELECT q, (SELECT count(*) FROM (SELECT {with} LIMIT {SCORED} + 1) few) AS entries \
             FROM asked), \
         added AS (SELECT q, row_number() OVER rarest AS nth, sum(entries) OVER rarest AS entries FROM counted \
             WHERE entries > 0 WINDOW rarest AS (ORDER BY entries, q::text)), \
         matched AS MATERIALIZED (SELECT q, position, size FROM added CROSS JOIN LATERAL \
             (SELECT e.position, length(e.words) AS size {with} ORDER BY e.position DESC LIMIT {SCORED}) found \
             WHERE nth = 1 OR entries <= {SCORED}), \
         whole AS (SELECT greatest(count(*), (SELECT max(entries) FROM counted)) AS entries, \
             greatest(avg(size), 1)::float8 AS mean FROM (SELECT DISTINCT position, size FROM matched) each), \
         weighed AS MATERIALIZED (SELECT q, ln(1 + (entries - count(*) + 0.5) / (count(*) + 0.5))::float8 AS weight \
             FROM matched, whole GROUP BY q, entries), \
         scored AS MATERIALIZED (SELECT position, sum(weight) * 2 / (1.6 + 0.4 * size / mean) AS score \
             FROM matched JOIN weighed USING (q), whole GROUP BY position, size, mean \
             ORDER BY 2 DESC, 1 DESC LIMIT {most}) \
         SELECT {COLUMNS}, {SOUND}, s.score::real FROM scored s JOIN entries e USING (position) ORDER BY 9 DESC, 1 DESC"
    )
}

/// Replaces zero characters in metadata, a JSON text, since `jsonb` refuses them. The replaced text is only
/// compared with other metadata, never shown.
pub(super) fn labels(json: &str) -> String {
    // A double backslash is an escaped backslash, so a `u0000` after it is plain text.
    let parts = json.split(r"\\").map(|part| part.replace(r"\u0000", r"\u0001"));
    parts.collect::<Vec<_>>().join(r"\\")
}

/// Replaces zero characters in a text that is not JSON.
fn label(text: &str) -> String {
    text.replace('\0', "\u{1}")
}

/// Returns the entry of a row, without its vector, or a description of its damage.
pub(super) fn read(row: &Row) -> Result<MemoryEntry, Damaged> {
    let text = |i: usize| row.try_get::<_, String>(i);
    let id = text(1).unwrap_or_default();
    let damaged = |problem: String| Damaged::new(id.clone(), problem);
    let (collection, metadata, body) = match (text(2), text(4), text(5)) {
        (Ok(collection), Ok(metadata), Ok(body)) => (collection, metadata, body),
        (Err(e), ..) | (_, Err(e), _) | (.., Err(e)) => return Err(damaged(e.to_string())),
    };
    if !row.try_get(7).unwrap_or(false) {
        return Err(columns_damaged(&id));
    }
    let checksum = row.try_get::<_, i64>(6).ok().and_then(|sum| u32::try_from(sum).ok());
    let Some(checksum) = checksum else { return Err(damaged("its checksum is not a number".to_owned())) };
    let used = row.try_get(3).ok().flatten();
    Texts { metadata, body, checksum }.read(position(row), &collection, &id, used)
}
