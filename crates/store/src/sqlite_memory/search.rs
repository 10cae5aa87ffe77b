//! Finds candidates by words and by vector.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use archon_types::{Candidate, Collection, Damaged, MemoryCandidates, MemoryError, MemorySearch};
use archon_vectors::{GroupRange, Near, VectorIndex, cosine};
use rusqlite::{Connection, OptionalExtension, params_from_iter, types::Value};

use super::{
    damage::failed,
    database::{Database, lock},
    query::{Conditions, SOUND, vector_at},
    row::read,
    words,
};
use crate::memories::{COLUMNS, Damage, range};

pub(super) fn candidates(
    database: &Database,
    scope: &Collection,
    search: &MemorySearch,
) -> Result<MemoryCandidates, MemoryError> {
    // Excluded ids are checked here: SQLite would parse their list anew for each entry.
    let mut filter = search.filter.clone();
    let without = std::mem::take(&mut filter.without);
    let conditions = Conditions::of(scope, &filter, Damage::Admitted)?;
    // The index of words knows a collection only with all within it; the conditions check each entry.
    let around = GroupRange::of(scope.narrowed(search.filter.collection.as_ref())?.as_str());
    let range = range(scope, &search.filter)?;
    database.read(|connection| {
        let mut gathered = Gathered {
            database,
            connection,
            conditions: &conditions,
            without: &without,
            by_position: BTreeMap::new(),
            damaged: BTreeMap::new(),
        };
        gathered.by_words(&around, search).map_err(failed("read", database.path()))?;
        if let Some((embedder, vector)) = &search.vector {
            gathered.by_vector(&range, embedder, vector, search.limit)?;
        }
        let mut found = MemoryCandidates::default();
        found.candidates = gathered.by_position.into_values().collect();
        found.damaged = gathered.damaged.into_values().collect();
        Ok(found)
    })
}

struct Gathered<'a> {
    database: &'a Database,
    connection: &'a Connection,
    conditions: &'a Conditions,
    without: &'a BTreeSet<String>,
    by_position: BTreeMap<i64, Candidate>,
    damaged: BTreeMap<i64, Damaged>,
}

impl Gathered<'_> {
    fn failed(&self) -> impl FnOnce(rusqlite::Error) -> MemoryError {
        failed("read", self.database.path())
    }

    fn by_words(&mut self, range: &GroupRange, search: &MemorySearch) -> rusqlite::Result<()> {
        let words = words::Words { connection: self.connection, frequencies: &self.database.frequencies };
        // More than the limit, since the length of a text may move it before an earlier one.
        let enough = search.limit.saturating_mul(2).saturating_add(16);
        let scored = words.scored(range, &search.text, None)?;
        let looked_at = scored.entries.len();
        let mut fitting = self.fitting(scored.entries, enough)?;
        // If the filter admits few of them, more entries that fit may be beyond the cut, so all are scored.
        let few = fitting.len() < search.limit && (fitting.len() < looked_at || fitting.is_empty());
        if scored.cut && few {
            let scored = words.scored(range, &search.text, Some(self.conditions))?;
            fitting = self.fitting(scored.entries, enough)?;
        }
        for (position, score) in words::by_length(fitting).into_iter().take(search.limit) {
            if let Some(candidate) = self.fetch(position)? {
                candidate.lexical = Some(score);
            }
        }
        Ok(())
    }

    /// Returns the first `enough` entries that the filter admits, with their numbers of words.
    fn fitting(&self, scored: Vec<(i64, f32)>, enough: usize) -> rusqlite::Result<Vec<(i64, f32, f32)>> {
        let mut fitting = Vec::new();
        for (position, score) in scored {
            if fitting.len() == enough {
                break;
            }
            if let Some(length) = self.fits(position)? {
                fitting.push((position, score, length));
            }
        }
        Ok(fitting)
    }

    /// Finds the nearest vectors. The scan applies no filter but the collection, so it is repeated for more
    /// vectors until enough entries fit the filter. If only few fit, the scan gets the list of all that fit.
    fn by_vector(
        &mut self,
        range: &GroupRange,
        embedder: &str,
        vector: &[f32],
        limit: usize,
    ) -> Result<(), MemoryError> {
        let mut count = limit.saturating_mul(4).saturating_add(16);
        let mut looked: HashSet<u64> = HashSet::new();
        let mut keep: Option<HashSet<u64>> = None;
        let mut near: Vec<(i64, f32)> = Vec::new();
        loop {
            let rows = self.nearest(range, embedder, vector, count, keep.as_ref())?;
            let new = rows.iter().map(|row| row.row).filter(|row| looked.insert(*row));
            near.extend(self.exactly(new, embedder, vector).map_err(self.failed())?);
            if near.len() >= limit || rows.len() < count {
                break;
            }
            match count.saturating_mul(4) {
                more if keep.is_none() && more > TRIED => {
                    keep = Some(self.all_fitting().map_err(self.failed())?)
                }
                more => count = more,
            }
        }
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.truncate(limit);
        for (position, cosine) in near {
            let path = self.database.path();
            if let Some(candidate) = self.fetch(position).map_err(failed("read", path))? {
                candidate.vector = Some(cosine);
            }
        }
        Ok(())
    }

    /// Returns the rows with the nearest vectors, from the copy of the vectors in RAM. The copy is locked
    /// only for the scan.
    fn nearest(
        &self,
        range: &GroupRange,
        embedder: &str,
        vector: &[f32],
        count: usize,
        keep: Option<&HashSet<u64>>,
    ) -> Result<Vec<Near>, MemoryError> {
        let mut scan = lock(&self.database.scan);
        scan.follow(self.connection).map_err(self.failed())?;
        let index = scan.of(embedder);
        MemorySearch::check_vector(vector, index.map(VectorIndex::dimensions))?;
        let keep = |row| keep.is_none_or(|rows| rows.contains(&row));
        Ok(index.map(|index| index.nearest(range, vector, count, keep)).unwrap_or_default())
    }

    /// Returns the rows that the filter admits, with their exact cosines.
    fn exactly(
        &self,
        rows: impl Iterator<Item = u64>,
        embedder: &str,
        vector: &[f32],
    ) -> rusqlite::Result<Vec<(i64, f32)>> {
        let mut near = Vec::new();
        for row in rows {
            let position = i64::try_from(row).unwrap_or(i64::MAX);
            if self.fits(position)?.is_some()
                && let Some(exact) = vector_at(self.connection, row, embedder)?
            {
                near.push((position, cosine(&exact, vector)));
            }
        }
        Ok(near)
    }

    /// Returns all positions that the filter admits, including those of excluded ids.
    fn all_fitting(&self) -> rusqlite::Result<HashSet<u64>> {
        let sql = format!("SELECT e.position FROM entries e WHERE {}", self.conditions.sql);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows =
            statement.query_map(params_from_iter(&self.conditions.values), |row| row.get::<_, i64>(0))?;
        rows.map(|position| Ok(u64::try_from(position?).unwrap_or(0))).collect()
    }

    /// Returns the number of words of an entry that the filter admits; `None` for all other entries.
    fn fits(&self, position: i64) -> rusqlite::Result<Option<f32>> {
        let sql =
            format!("SELECT e.length, e.id FROM entries e WHERE e.position = ? AND {}", self.conditions.sql);
        let mut values = vec![Value::Integer(position)];
        values.extend(self.conditions.values.iter().cloned());
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let Some(row) = rows.next()? else { return Ok(None) };
        if row.get_ref(1)?.as_str().is_ok_and(|id| self.without.contains(id)) {
            return Ok(None);
        }
        // The length of a damaged entry may be no number.
        #[allow(clippy::cast_precision_loss, reason = "an entry has far fewer than 16 million words")]
        Ok(Some(row.get::<_, i64>(0).unwrap_or(0) as f32))
    }

    /// Returns the candidate for an entry, which is read if it is not a candidate yet; `None` if the entry
    /// does not exist or is damaged.
    fn fetch(&mut self, position: i64) -> rusqlite::Result<Option<&mut Candidate>> {
        if !self.by_position.contains_key(&position) {
            let sql = format!("SELECT {COLUMNS}, {SOUND} FROM entries e WHERE e.position = ?1");
            match self.connection.prepare_cached(&sql)?.query_row([position], read).optional()? {
                Some(Ok(entry)) => _ = self.by_position.insert(position, Candidate::new(entry, None, None)),
                Some(Err(damaged)) => _ = self.damaged.insert(position, damaged),
                None => {}
            }
        }
        Ok(self.by_position.get_mut(&position))
    }
}

/// The maximum number of rows of the scan that are checked one by one. Listing all entries that fit costs as
/// much as some thousands of checks.
const TRIED: usize = 1_000;
