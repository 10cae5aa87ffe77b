//! Candidates by words and by vector.

use std::collections::BTreeMap;

use archon_types::{Candidate, Collection, Damaged, Found, MemoryError, MemorySearch};
use archon_vectors::{GroupRange, VectorIndex, cosine};
use rusqlite::{Connection, params_from_iter, types::Value};

use super::{
    damage::failed,
    database::{Database, Frequencies, lock},
    narrowed,
    query::{Conditions, vector_at},
    row::{COLUMNS, read},
};

/// How many entries are scored by words for one question, more or less.
const SCORED: i64 = 12_000;

/// Most words of a question that are looked for: the longest ones, which tend to be the rarest.
const WORDS: usize = 24;

pub(super) fn candidates(
    database: &Database,
    scope: &Collection,
    search: &MemorySearch,
) -> Result<Found, MemoryError> {
    let conditions = Conditions::of(scope, &search.filter)?;
    let range = GroupRange::of(narrowed(scope, search.filter.collection.as_ref())?.as_str());
    database.read(|connection| {
        let mut gathered = Gathered {
            database,
            connection,
            conditions: &conditions,
            by_position: BTreeMap::new(),
            damaged: BTreeMap::new(),
        };
        let words = gathered.by_words(search);
        words.map_err(failed("read", database.path()))?;
        if let Some((embedder, vector)) = &search.vector {
            let mut scan = lock(&database.scan);
            scan.follow(connection).map_err(failed("read", database.path()))?;
            let index = scan.of(embedder);
            check(vector, index)?;
            if let Some(index) = index {
                let near = gathered.by_vector(index, &range, vector, search.limit);
                near.map_err(failed("read", database.path()))?;
            }
        }
        let mut found = Found::default();
        found.candidates = gathered.by_position.into_values().collect();
        found.damaged = gathered.damaged.into_values().collect();
        Ok(found)
    })
}

fn check(vector: &[f32], index: Option<&VectorIndex>) -> Result<(), MemoryError> {
    let problem = match index.map(VectorIndex::dimensions) {
        _ if vector.iter().any(|x| !x.is_finite()) => "the vector has a value that is no number".to_owned(),
        Some(expected) if expected != vector.len() => {
            format!("the vector has {} dimensions, those that are kept have {expected}", vector.len())
        }
        _ => return Ok(()),
    };
    Err(MemoryError::Question { problem })
}

struct Gathered<'a> {
    database: &'a Database,
    connection: &'a Connection,
    conditions: &'a Conditions,
    by_position: BTreeMap<i64, Candidate>,
    damaged: BTreeMap<i64, Damaged>,
}

impl Gathered<'_> {
    fn by_words(&mut self, search: &MemorySearch) -> rusqlite::Result<()> {
        let words = self.rare(words_of(&search.text))?;
        if words.is_empty() {
            return Ok(());
        }
        let question = words.join(" OR ");
        let sql = format!(
            "SELECT words.rowid, -bm25(words) FROM words JOIN entries e ON e.position = words.rowid \
             WHERE words MATCH ? AND {} ORDER BY 2 DESC, 1 LIMIT ?",
            self.conditions.sql
        );
        let mut values = vec![Value::Text(question)];
        values.extend(self.conditions.values.iter().cloned());
        values.push(Value::Integer(i64::try_from(search.limit).unwrap_or(i64::MAX)));
        let mut statement = self.connection.prepare_cached(&sql)?;
        let scored = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let scored: Vec<(i64, f64)> =
            statement.query_map(params_from_iter(values), scored)?.collect::<rusqlite::Result<_>>()?;
        for (position, score) in scored {
            if self.fetch(position)?
                && let Some(candidate) = self.by_position.get_mut(&position)
            {
                #[allow(clippy::cast_possible_truncation, reason = "a score is an estimate")]
                let score = score as f32;
                candidate.lexical = Some(score);
            }
        }
        Ok(())
    }

    /// Of these words the rarest, so many that not too many entries have to be scored. What is in a great part of all
    /// entries says little about any of them, and costs most.
    fn rare(&self, words: Vec<String>) -> rusqlite::Result<Vec<String>> {
        let newest = "SELECT coalesce(max(position), 0) FROM entries";
        let entries: i64 = self.connection.prepare_cached(newest)?.query_row([], |row| row.get(0))?;
        if entries <= SCORED {
            return Ok(words);
        }
        let mut known = lock(&self.database.frequencies);
        if entries > known.entries.saturating_add(known.entries / 5) || known.words.len() > 10_000 {
            *known = Frequencies { entries, ..Frequencies::default() };
        }
        let mut counted = Vec::new();
        for word in words {
            let count = match known.words.get(&word) {
                Some(count) => *count,
                None => {
                    let sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?2)";
                    let mut statement = self.connection.prepare_cached(sql)?;
                    statement.query_row(rusqlite::params![word, SCORED + 1], |row| row.get(0))?
                }
            };
            known.words.insert(word.clone(), count);
            counted.push((count, word));
        }
        counted.sort();
        let mut left = SCORED;
        let rare = counted.into_iter().enumerate().filter(|(at, (count, _))| {
            left -= count;
            *at == 0 || left >= 0
        });
        Ok(rare.map(|(_, (_, word))| word).collect())
    }

    /// The scan knows nothing of filters but the collection, so it is asked for more until enough fit.
    fn by_vector(
        &mut self,
        index: &VectorIndex,
        range: &GroupRange,
        vector: &[f32],
        limit: usize,
    ) -> rusqlite::Result<()> {
        let mut count = limit.saturating_mul(4).saturating_add(16);
        let mut near: Vec<(i64, f32)> = Vec::new();
        let mut looked = 0;
        loop {
            let rows = index.nearest(range, vector, count, |_| true);
            for row in rows.iter().skip(looked) {
                let position = i64::try_from(row.row).unwrap_or(i64::MAX);
                if self.fits(position)?
                    && let Some(exact) = vector_at(self.connection, row.row)?
                {
                    near.push((position, cosine(&exact, vector)));
                }
            }
            looked = rows.len();
            if near.len() >= limit || rows.len() < count {
                break;
            }
            count = count.saturating_mul(4);
        }
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.truncate(limit);
        for (position, cosine) in near {
            if self.fetch(position)?
                && let Some(candidate) = self.by_position.get_mut(&position)
            {
                candidate.vector = Some(cosine);
            }
        }
        Ok(())
    }

    fn fits(&self, position: i64) -> rusqlite::Result<bool> {
        let sql = format!("SELECT 1 FROM entries e WHERE e.position = ? AND {}", self.conditions.sql);
        let mut values = vec![Value::Integer(position)];
        values.extend(self.conditions.values.iter().cloned());
        self.connection.prepare_cached(&sql)?.exists(params_from_iter(values))
    }

    /// Brings an entry among the candidates; whether it is there and whole.
    fn fetch(&mut self, position: i64) -> rusqlite::Result<bool> {
        if self.by_position.contains_key(&position) {
            return Ok(true);
        }
        let sql = format!("SELECT {COLUMNS} FROM entries e WHERE e.position = ?1");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query([position])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        match read(row)? {
            Ok(entry) => _ = self.by_position.insert(position, Candidate::new(entry, None, None)),
            Err(damaged) => {
                self.damaged.insert(position, damaged);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The words of a question as FTS5 takes them: each in quotes, so that nothing is syntax.
fn words_of(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.sort_unstable();
    words.dedup();
    if words.iter().any(|word| !STOP_WORDS.contains(&word.as_str())) {
        words.retain(|word| !STOP_WORDS.contains(&word.as_str()));
    }
    words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    words.truncate(WORDS);
    words.into_iter().map(|word| format!("\"{word}\"")).collect()
}

/// English words that are in most texts and say nothing about them.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i",
    "if", "in", "into", "is", "it", "its", "me", "my", "no", "not", "of", "on", "or", "our", "she", "so",
    "some", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to", "up",
    "us", "was", "we", "were", "what", "when", "where", "which", "who", "why", "will", "with", "would",
    "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_words_only() {
        let table = [
            ("What is NEAR(tyres*)?", "\"tyres\" OR \"near\""),
            ("where is it", "\"where\" OR \"is\" OR \"it\""),
            ("\"';--", ""),
            ("", ""),
        ];
        for (text, expected) in table {
            assert_eq!(words_of(text).join(" OR "), expected, "{text}");
        }
    }
}
