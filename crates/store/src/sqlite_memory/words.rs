//! Finds the entries that have words of a question, and scores them with BM25.
//!
//! FTS5 lists the entries of a word in less than 1 µs each, but its own `bm25` takes 2 µs for each entry. So
//! FTS5 is queried for one word at a time, and the scores are added here. Each word counts once per entry,
//! which is nearly always exact for short texts. The best entries are ranked again later, with all their
//! properties (`archon_memory::rank`).

use std::sync::Mutex;

use archon_vectors::GroupRange;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter, types::Value};

use super::{
    database::{Frequencies, lock},
    query::Conditions,
};
use crate::memories::words_of;

/// The maximum number of entries that are scored for one question. A word in a large part of all entries
/// carries little information about any of them, and costs most.
const SCORED: i64 = 24_000;

/// The maximum number of entries with a word that are checked against the filter, newest first: this takes
/// some tenths of a second.
const LOOKED_AT: i64 = 240_000;

/// Returns the database id of a collection; `None` if it never had entries.
pub(super) fn number_of(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT number FROM collections WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

/// The entries that have words of a question.
#[derive(Default)]
pub(super) struct Scored {
    /// Positions and scores, best first; among equal scores, newest first.
    pub(super) entries: Vec<(i64, f32)>,
    /// True if some entries were left out because there were too many.
    pub(super) cut: bool,
}

/// The index of words in one snapshot of the database.
pub(super) struct Words<'a> {
    pub(super) connection: &'a Connection,
    pub(super) frequencies: &'a Mutex<Frequencies>,
}

impl Words<'_> {
    /// Returns the entries of these collections that contain a word of the text, with their scores. With
    /// `fitting`, only entries that meet these conditions are counted and scored; for that, every entry with
    /// a word is checked, at most [`LOOKED_AT`] for each word.
    pub(super) fn scored(
        &self,
        range: &GroupRange,
        text: &str,
        fitting: Option<&Conditions>,
    ) -> rusqlite::Result<Scored> {
        let words = words_of(text);
        let owner = match range.to {
            Some(_) => number_of(self.connection, &range.name)?.map(|number| format!("(owners : {number})")),
            None => Some(String::new()),
        };
        let (false, Some(owner)) = (words.is_empty(), owner) else { return Ok(Scored::default()) };
        let newest = "SELECT coalesce(max(position), 0) FROM entries";
        let newest: i64 = self.connection.prepare_cached(newest)?.query_row([], |row| row.get(0))?;
        self.forget_old_counts(newest);
        let entries = if owner.is_empty() { newest } else { self.count(&owner, newest)? };
        let questions = words.into_iter().map(|word| match owner.as_str() {
            "" => format!("content : \"{word}\""),
            owner => format!("(content : \"{word}\") AND {owner}"),
        });
        let questions: Vec<String> = questions.collect();
        let asked = questions.len();
        let with = match fitting {
            None => self.with_rare(questions, newest)?,
            Some(conditions) => self.with_rare_of(&questions, conditions)?,
        };
        let cut = with.len() < asked || with.iter().any(|with| number_in(with) >= SCORED);
        let scored = with.into_iter().flat_map(|with| {
            let weight = weight(entries, with.len());
            with.into_iter().map(move |position| (position, weight))
        });
        Ok(Scored { entries: added_up(scored.collect()), cut })
    }

    /// Returns, for each of the rarest words, the entries that contain it. Each of `questions` is a full-text
    /// query for one word.
    fn with_rare(&self, questions: Vec<String>, newest: i64) -> rusqlite::Result<Vec<Vec<i64>>> {
        let rare = if newest <= SCORED {
            questions
        } else {
            let count = |question: String| Ok((self.count(&question, SCORED + 1)?, question));
            rarest(questions.into_iter().map(count).collect::<rusqlite::Result<_>>()?)
        };
        rare.iter().map(|question| self.entries_with(question, None)).collect()
    }

    /// Returns, for each of the rarest words, the entries that contain it and meet the conditions. To find
    /// the rarest words, the entries of every word are checked.
    fn with_rare_of(&self, questions: &[String], fitting: &Conditions) -> rusqlite::Result<Vec<Vec<i64>>> {
        let with = questions.iter().map(|question| {
            let with = self.entries_with(question, Some(fitting))?;
            Ok((number_in(&with), with))
        });
        Ok(rarest(with.collect::<rusqlite::Result<_>>()?))
    }

    /// Returns the entries that the full-text query `question` finds and, if there are conditions, that meet
    /// them; at most [`SCORED`] entries, the newest first.
    fn entries_with(&self, question: &str, fitting: Option<&Conditions>) -> rusqlite::Result<Vec<i64>> {
        let with = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?";
        let mut values = vec![Value::Text(question.to_owned())];
        let sql = match fitting {
            None => with.to_owned(),
            // SQLite keeps the order of a CROSS JOIN: the index of words is read once for the word, not for
            // each entry.
            Some(fitting) => {
                values.push(Value::Integer(LOOKED_AT));
                values.extend(fitting.values.iter().cloned());
                format!(
                    "SELECT w.rowid FROM ({with}) w CROSS JOIN entries e ON e.position = w.rowid AND {} LIMIT ?",
                    fitting.sql
                )
            }
        };
        values.push(Value::Integer(SCORED));
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values), |row| row.get(0))?;
        rows.collect()
    }

    /// Returns the number of entries with a word. Counting stops at `most`.
    fn count(&self, question: &str, most: i64) -> rusqlite::Result<i64> {
        if let Some(known) = lock(self.frequencies).counts.get(question) {
            return Ok(*known);
        }
        let sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?2)";
        let mut statement = self.connection.prepare_cached(sql)?;
        let count = statement.query_row(params![question, most], |row| row.get(0))?;
        lock(self.frequencies).counts.insert(question.to_owned(), count);
        Ok(count)
    }

    /// Drops all counts if the number of entries has grown by more than a fifth since they were made, or if
    /// there are more than 20,000 counts. Until then the counts are used, since they need not be exact.
    fn forget_old_counts(&self, newest: i64) {
        let mut known = lock(self.frequencies);
        if newest > known.newest.saturating_add(known.newest / 5) || known.counts.len() > 20_000 {
            *known = Frequencies { newest, ..Frequencies::default() };
        }
    }
}

/// Returns the rarest of the counted items, as many as keep the number of scored entries within [`SCORED`];
/// the rarest one is always kept.
fn rarest<T>(mut counted: Vec<(i64, T)>) -> Vec<T> {
    counted.sort_by_key(|(count, _)| *count);
    let mut remaining = SCORED;
    let rare = counted.into_iter().filter(|(count, _)| {
        // Words that no entry has cost nothing.
        let first = remaining == SCORED;
        remaining -= count;
        first || remaining >= 0
    });
    rare.map(|(_, counted)| counted).collect()
}

fn number_in(entries: &[i64]) -> i64 {
    i64::try_from(entries.len()).unwrap_or(i64::MAX)
}

/// Returns the weight of a word that `with` of `entries` entries contain: the inverse document frequency of
/// BM25.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "an estimate")]
fn weight(entries: i64, with: usize) -> f32 {
    let with = with as f64;
    let entries = (entries as f64).max(with);
    ((entries - with + 0.5) / (with + 0.5)).ln_1p() as f32
}

/// Returns the sum of the scores of each position, best first; among equal scores, newest first.
fn added_up(mut scored: Vec<(i64, f32)>) -> Vec<(i64, f32)> {
    // The stable sort profits from the order that each word's entries already have.
    scored.sort_by_key(|(position, _)| *position);
    scored.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 += later.1;
        }
        same
    });
    scored.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    scored
}

/// Returns positions and scores, best first; the scores are corrected for the length of the texts, as in
/// BM25.
pub(super) fn by_length(found: Vec<(i64, f32, f32)>) -> Vec<(i64, f32)> {
    #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
    let mean = found.iter().map(|(.., length)| length).sum::<f32>() / found.len() as f32;
    let divided = |(position, score, length): (i64, f32, f32)| {
        (position, score * (1.0 + K1) / (1.0 + K1 * (1.0 - B + B * length / mean.max(1.0))))
    };
    let mut divided: Vec<(i64, f32)> = found.into_iter().map(divided).collect();
    divided.sort_by(|a, b| b.1.total_cmp(&a.1));
    divided
}

/// The parameters of BM25, with the values of `archon_memory::rank`: saturation of repeated words, and the
/// penalty of long texts.
const K1: f32 = 1.0;
const B: f32 = 0.4;
