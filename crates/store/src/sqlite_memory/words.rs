//! Which entries have the words of a question.
//!
//! FTS5 walks the entries of a word, and those of a word and an owner, in well under a microsecond each, but its own
//! `bm25` takes two for each of them. So it is asked for one word after the other, and the scores are added here:
//! BM25 with each word counted once in an entry, which in texts as short as memories it nearly always is. What scores
//! best is ordered by its words anyway, with all that is known of it (`archon_memory::rank`).

use std::sync::Mutex;

use archon_vectors::GroupRange;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter, types::Value};

use super::{
    database::{Frequencies, lock},
    query::Conditions,
};
use crate::memories::words_of;

/// How many entries are scored for one question. What is in a great part of all entries says little about any of
/// them, and costs most.
const SCORED: i64 = 24_000;

/// How many entries of a word are looked at for those that fit, the newest first: some tenths of a second.
const LOOKED_AT: i64 = 240_000;

/// The number of a collection, if anything is or was in it.
pub(super) fn number_of(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT number FROM collections WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

/// What has words of a question.
#[derive(Default)]
pub(super) struct Scored {
    /// Positions and scores, best first; of equally good ones the newest.
    pub(super) entries: Vec<(i64, f32)>,
    /// Whether it is not all, because it would be too many.
    pub(super) cut: bool,
}

/// The index of words in one moment's state.
pub(super) struct Words<'a> {
    pub(super) connection: &'a Connection,
    pub(super) frequencies: &'a Mutex<Frequencies>,
}

impl Words<'_> {
    /// Entries of these collections with a word of the text. With conditions it is what fits them that is counted and
    /// scored, however much else has the words; then each entry of a word is looked at.
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

    /// For each of the rarest of these questions the entries with it.
    fn with_rare(&self, questions: Vec<String>, newest: i64) -> rusqlite::Result<Vec<Vec<i64>>> {
        let rare = if newest <= SCORED {
            questions
        } else {
            let count = |question: String| Ok((self.count(&question, SCORED + 1)?, question));
            rarest(questions.into_iter().map(count).collect::<rusqlite::Result<_>>()?)
        };
        rare.iter().map(|question| self.entries_with(question, None)).collect()
    }

    /// The same of what fits, which is counted by looking at it.
    fn with_rare_of(&self, questions: &[String], fitting: &Conditions) -> rusqlite::Result<Vec<Vec<i64>>> {
        let with = questions.iter().map(|question| {
            let with = self.entries_with(question, Some(fitting))?;
            Ok((number_in(&with), with))
        });
        Ok(rarest(with.collect::<rusqlite::Result<_>>()?))
    }

    /// The entries that something is in, or those of them that fit; if these are too many, the newest of them.
    fn entries_with(&self, question: &str, fitting: Option<&Conditions>) -> rusqlite::Result<Vec<i64>> {
        let with = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?";
        let mut values = vec![Value::Text(question.to_owned())];
        let sql = match fitting {
            None => with.to_owned(),
            // A CROSS JOIN is done as it stands: the index of words is asked for a whole word, not for each entry.
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

    /// In how many entries something is; it stops to count at `most`.
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

    /// Counts are kept until there are a fifth more entries: they need not be exact.
    fn forget_old_counts(&self, newest: i64) {
        let mut known = lock(self.frequencies);
        if newest > known.newest.saturating_add(known.newest / 5) || known.counts.len() > 20_000 {
            *known = Frequencies { newest, ..Frequencies::default() };
        }
    }
}

/// Of what was counted the rarest, so much that not too many entries have to be scored.
fn rarest<T>(mut counted: Vec<(i64, T)>) -> Vec<T> {
    counted.sort_by_key(|(count, _)| *count);
    let mut left = SCORED;
    let rare = counted.into_iter().filter(|(count, _)| {
        // One is asked for however many have it; words that none has are none.
        let first = left == SCORED;
        left -= count;
        first || left >= 0
    });
    rare.map(|(_, counted)| counted).collect()
}

fn number_in(entries: &[i64]) -> i64 {
    i64::try_from(entries.len()).unwrap_or(i64::MAX)
}

/// What a word counts that so many of all entries have: the inverse document frequency of BM25.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "an estimate")]
fn weight(entries: i64, with: usize) -> f32 {
    let with = with as f64;
    let entries = (entries as f64).max(with);
    ((entries - with + 0.5) / (with + 0.5)).ln_1p() as f32
}

/// The sum of each position's scores, best first; of equal ones the newest.
fn added_up(mut scored: Vec<(i64, f32)>) -> Vec<(i64, f32)> {
    // Stable, because it makes use of the order that each word's entries are in already.
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

/// Positions, scores and lengths, with the scores divided as BM25 does it for the length of a text, and in order.
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

/// How soon more of the same word stops to matter, and how much a long text is held back: as the order has it.
const K1: f32 = 1.0;
const B: f32 = 0.4;
