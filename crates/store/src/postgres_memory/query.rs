//! Conditions as SQL, listings, and candidates by words and by vector.

use std::collections::BTreeMap;

use archon_types::{
    Candidate, Collection, Damaged, Found, Listing, MemoryEntry, MemoryError, MemoryFilter, MemoryOrder,
    MemoryPage, MemorySearch, Trust, Validity,
};
use tokio_postgres::{Client, GenericClient, Row, types::ToSql};

use super::{failed, words::asked};
use crate::memories::{Texts, check_question, number, past_all_of, range, time};

/// What a row is read from.
pub(super) const COLUMNS: &str = "e.position, e.id, e.collection, e.used, e.metadata, e.body, e.checksum";

/// Whether the vector of `entries e` is as long as its embedder's are: a damaged one is made again like one that was never
/// made.
const INTACT: &str = "coalesce((SELECT vector_dims(e.vector) = d.dimensions FROM embedders d \
                      WHERE d.id = e.embedder), FALSE)";

/// A value of a statement.
pub(super) type Value = Box<dyn ToSql + Sync + Send>;

/// Values as the client takes them.
pub(super) fn borrowed(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
}

/// Conditions on `entries e`, joined by AND, with the values of their parameters.
pub(super) struct Conditions {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    /// The collection first: nothing is ever asked without it.
    pub(super) fn of(scope: &Collection, filter: &MemoryFilter) -> Result<Self, MemoryError> {
        let mut conditions = Self { sql: "TRUE".to_owned(), values: Vec::new() };
        let range = range(scope, filter)?;
        if let Some(to) = range.to {
            let (name, from, to) =
                (conditions.value(range.name), conditions.value(range.from), conditions.value(to));
            conditions
                .and(&format!("(e.collection = {name} OR (e.collection >= {from} AND e.collection < {to}))"));
        }
        conditions.add(filter);
        Ok(conditions)
    }

    fn and(&mut self, sql: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
    }

    /// The mark of a parameter with this value.
    pub(super) fn value(&mut self, value: impl ToSql + Sync + Send + 'static) -> String {
        self.values.push(Box::new(value));
        format!("${}", self.values.len())
    }

    /// What nothing here can have, with a zero character, is not given to PostgreSQL, which knows none.
    fn add_names(&mut self, filter: &MemoryFilter) {
        let known = |name: &&String| !name.contains('\0');
        if !filter.ids.is_empty() {
            let ids = self.value(filter.ids.iter().filter(known).cloned().collect::<Vec<String>>());
            self.and(&format!("e.id = ANY({ids})"));
        }
        if !filter.without.is_empty() {
            let ids = self.value(filter.without.iter().filter(known).cloned().collect::<Vec<String>>());
            self.and(&format!("e.id <> ALL({ids})"));
        }
        if [&filter.key, &filter.key_prefix].into_iter().flatten().any(|key| key.contains('\0')) {
            return self.and("FALSE");
        }
        if let Some(key) = &filter.key {
            let key = self.value(key.clone());
            self.and(&format!("e.key = {key}"));
        }
        if let Some(prefix) = &filter.key_prefix {
            // As a range, which the index of keys can answer.
            let from = self.value(prefix.clone());
            self.and(&format!("e.key COLLATE \"C\" >= {from}"));
            if let Some(past) = past_all_of(prefix) {
                let past = self.value(past);
                self.and(&format!("e.key COLLATE \"C\" < {past}"));
            }
        }
    }

    fn add_metadata(&mut self, filter: &MemoryFilter) {
        for (name, value) in &filter.metadata {
            if let (true, Some(session)) = (name == "session", value.as_str()) {
                let session = self.value(label(session));
                // As the index of sessions has it.
                self.and("jsonb_typeof(e.labels -> 'session') = 'string'");
                self.and(&format!("e.labels ->> 'session' = {session}"));
            }
            let (name, value) = (self.value(label(name)), self.value(labels(&value.to_string())));
            self.and(&format!("e.labels -> {name}::text = {value}::text::jsonb"));
        }
    }

    fn add(&mut self, filter: &MemoryFilter) {
        self.add_names(filter);
        self.add_metadata(filter);
        if !filter.kinds.is_empty() {
            let kinds: Vec<&'static str> = filter.kinds.iter().map(|kind| kind.as_str()).collect();
            let kinds = self.value(kinds);
            self.and(&format!("e.kind = ANY({kinds})"));
        }
        if filter.trust > Trust::Untrusted {
            let trust = self.value(filter.trust as i16);
            self.and(&format!("e.trust >= {trust}"));
        }
        if let Some(from) = filter.from {
            let from = self.value(number(from));
            self.and(&format!("e.timestamp >= {from}"));
        }
        if let Some(until) = filter.until {
            let until = self.value(number(until));
            self.and(&format!("e.timestamp < {until}"));
        }
        match filter.validity {
            Validity::Any => {}
            Validity::At(time) => {
                let time = self.value(number(time));
                self.and(&format!(
                    "coalesce(e.valid_from <= {time}, TRUE) AND coalesce({time} < e.valid_to, TRUE)"
                ));
            }
            _ => self.and("e.valid_to IS NULL"),
        }
        if let Some(embedder) = filter.not_embedded_by.as_ref().filter(|embedder| !embedder.contains('\0')) {
            let embedder = self.value(embedder.clone());
            self.and(&format!("(e.embedder IS DISTINCT FROM {embedder} OR NOT {INTACT})"));
        }
    }
}

pub(super) async fn list(
    client: &impl GenericClient,
    scope: &Collection,
    listing: &Listing,
) -> Result<MemoryPage, MemoryError> {
    let mut conditions = Conditions::of(scope, &listing.filter)?;
    let (past, order) = match listing.order {
        MemoryOrder::First => (">", "ASC"),
        MemoryOrder::Latest => ("<", "DESC"),
    };
    if let Some(after) = listing.after {
        let after = conditions.value(i64::try_from(after).unwrap_or(i64::MAX));
        conditions.and(&format!("e.position {past} {after}"));
    }
    let most = i64::try_from(listing.limit).unwrap_or(i64::MAX);
    let limit = conditions.value(most.saturating_add(1));
    let sql = format!(
        "SELECT {COLUMNS}, CASE WHEN {INTACT} THEN e.vector::real[] END FROM entries e WHERE {} \
         ORDER BY e.position {order} LIMIT {limit}",
        conditions.sql
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
                entry.embedding = row.try_get(7).map_err(failed("read", "a vector"))?;
                // A vector that is damaged is made again.
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
) -> Result<Found, MemoryError> {
    let mut found: BTreeMap<i64, Candidate> = BTreeMap::new();
    let mut damaged: BTreeMap<i64, Damaged> = BTreeMap::new();
    let limit = i64::try_from(search.limit).unwrap_or(i64::MAX);
    let mut keep = |row: &Row| -> Option<(i64, f32)> {
        let (at, score) = (position(row), row.try_get::<_, f32>(7).ok()?);
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
    let words = asked(&search.text);
    if !words.is_empty() {
        let mut conditions = Conditions::of(scope, &search.filter)?;
        let (words, most) = (conditions.value(words), conditions.value(limit));
        let sql = by_words(&conditions.sql, &words, &most);
        let rows = client.query(&sql, &borrowed(&conditions.values)).await;
        lexical = rows.map_err(failed("read", "words"))?.iter().filter_map(&mut keep).collect();
    }
    if let Some((embedder, vector)) = search.vector.as_ref().filter(|(embedder, _)| !embedder.contains('\0'))
    {
        check_question(vector, length_of(client, embedder).await?)?;
        let mut conditions = Conditions::of(scope, &search.filter)?;
        let length = conditions.value(i32::try_from(vector.len()).unwrap_or(i32::MAX));
        let (embedder, vector) = (conditions.value(embedder.clone()), conditions.value(vector.clone()));
        let most = conditions.value(limit);
        // Zero is near to nothing: its distance is no number.
        let sql = format!(
            "SELECT {COLUMNS}, (1 - (e.vector <=> {vector}::real[]::vector))::real FROM entries e \
             WHERE e.embedder = {embedder} AND vector_dims(e.vector) = {length} \
             AND vector_norm(e.vector) > 0 AND {} \
             ORDER BY e.vector <=> {vector}::real[]::vector, 1 LIMIT {most}",
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
    let mut all = Found::default();
    all.candidates = found.into_values().filter(|c| c.lexical.is_some() || c.vector.is_some()).collect();
    all.damaged = damaged.into_values().collect();
    Ok(all)
}

/// How long the vectors of an embedder are here.
pub(super) async fn length_of(
    client: &impl GenericClient,
    embedder: &str,
) -> Result<Option<usize>, MemoryError> {
    let sql = "SELECT dimensions FROM embedders WHERE id = $1";
    let row = client.query_opt(sql, &[&embedder]).await.map_err(failed("read", "embedders"))?;
    Ok(row.and_then(|row| row.try_get::<_, i64>(0).ok()).and_then(|length| usize::try_from(length).ok()))
}

/// How many entries are scored for one question, as in SQLite. What is in a great part of all entries says little about
/// any of them, and costs most.
const SCORED: usize = 24_000;

/// BM25 with each word counted once in an entry, and its frequency among the entries that have any of the words:
/// `ts_rank` knows no frequencies, so that a word that is everywhere would count as much as a name.
///
/// Of the words the rarest are looked for, so many that not too many entries have to be scored; if one by itself is in
/// too many, in the newest of them. Counting stops where it is clear that a word is too frequent. What is `MATERIALIZED` is
/// so for tables that were not analyzed yet: there the planner would work it out anew for each row.
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
         SELECT {COLUMNS}, s.score::real FROM scored s JOIN entries e USING (position) ORDER BY 8 DESC, 1 DESC"
    )
}

/// Metadata, as JSON, as `jsonb` takes it, which has no zero characters. It is only compared, never shown.
pub(super) fn labels(json: &str) -> String {
    // A backslash that is a character takes two, and what comes behind them stands for itself.
    let parts = json.split(r"\\").map(|part| part.replace(r"\u0000", r"\u0001"));
    parts.collect::<Vec<_>>().join(r"\\")
}

/// The same of a text that is no JSON.
fn label(text: &str) -> String {
    text.replace('\0', "\u{1}")
}

/// The entry of a row, without its vector, or what is wrong with it.
pub(super) fn read(row: &Row) -> Result<MemoryEntry, Damaged> {
    let text = |i: usize| row.try_get::<_, String>(i);
    let id = text(1).unwrap_or_default();
    let damaged = |problem: String| Damaged::new(id.clone(), problem);
    let (collection, metadata, body) = match (text(2), text(4), text(5)) {
        (Ok(collection), Ok(metadata), Ok(body)) => (collection, metadata, body),
        (Err(e), ..) | (_, Err(e), _) | (.., Err(e)) => return Err(damaged(e.to_string())),
    };
    let checksum = row.try_get::<_, i64>(6).ok().and_then(|sum| u32::try_from(sum).ok());
    let Some(checksum) = checksum else { return Err(damaged("its checksum is no number".to_owned())) };
    let mut entry = Texts { metadata, body, checksum }.read(position(row), &collection, &id)?;
    let used: Option<i64> = row.try_get(3).ok().flatten();
    entry.used = used.map(time);
    Ok(entry)
}
