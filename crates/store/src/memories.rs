//! Code that the database stores of memories share: checks of changes, and entries as texts with a checksum.

mod conditions;
mod question;

use archon_types::{
    Collection, Damaged, Listing, MemoryEntry, MemoryError, MemoryFilter, MemoryOrder, MemoryPage, Timestamp,
};
use archon_vectors::GroupRange;

pub(crate) use conditions::{Conditions, Damage, Dialect};
pub(crate) use question::words_of;

/// Returns the range of collections that a filter selects.
pub(crate) fn range(scope: &Collection, filter: &MemoryFilter) -> Result<GroupRange, MemoryError> {
    let collection = scope.narrowed(filter.collection.as_ref())?;
    Ok(match filter.exact {
        true => GroupRange::only(collection.as_str()),
        false => GroupRange::of(collection.as_str()),
    })
}

/// Returns the first text in order that is after all texts that begin with `prefix`.
fn past_all_of(prefix: &str) -> Option<String> {
    let mut past = prefix.to_owned();
    while let Some(last) = past.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            past.push(next);
            return Some(past);
        }
    }
    None
}

/// Returns a listing of all entries that the filter admits, in the order that
/// [`MemoryChange::Expect`](archon_types::MemoryChange::Expect) requires.
pub(crate) fn everything(filter: &MemoryFilter) -> Listing {
    Listing::new(filter.clone(), MemoryOrder::First, usize::MAX >> 1)
}

/// Returns [`MemoryError::Changed`] if the entries differ from those that were read.
pub(crate) fn check_expected(now: &MemoryPage, expected: &[MemoryEntry]) -> Result<(), MemoryError> {
    let same = now.entries.len() == expected.len()
        && now.entries.iter().zip(expected).all(|(now, before)| now.is_as_written(before));
    if same { Ok(()) } else { Err(MemoryError::Changed) }
}

/// The first columns that a statement selects from `entries e`, in the order that the function `read` of each
/// store expects. The next column is the condition [`Dialect::SOUND`].
pub(crate) const COLUMNS: &str = "e.position, e.id, e.collection, e.used, e.metadata, e.body, e.checksum";

/// Removes and returns the vector of an entry. Fills in a missing collection.
pub(crate) fn take_vector(entry: &mut MemoryEntry, scope: &Collection) -> Option<Vec<f32>> {
    if entry.collection.is_root() {
        entry.collection = scope.clone();
    }
    let vector = entry.embedding.take();
    entry.embedder = entry.embedder.take().filter(|_| vector.is_some());
    vector
}

/// The texts of an entry's row and their checksum. The vector, `used`, and the values that filters compare
/// are in other columns.
pub(crate) struct Texts {
    pub(crate) metadata: String,
    pub(crate) body: String,
    pub(crate) checksum: u32,
}

impl Texts {
    pub(crate) fn of(entry: &MemoryEntry) -> Result<Self, serde_json::Error> {
        let mut bare = entry.clone();
        let metadata = std::mem::take(&mut bare.metadata);
        (bare.embedding, bare.used) = (None, None);
        let (metadata, body) = (serde_json::to_string(&metadata)?, serde_json::to_string(&bare)?);
        let checksum = checksum(entry.collection.as_str(), &entry.id, &metadata, &body);
        Ok(Self { metadata, body, checksum })
    }

    /// Returns the entry without its vector, or a description of its damage.
    pub(crate) fn read(
        &self,
        position: i64,
        collection: &str,
        id: &str,
        used: Option<i64>,
    ) -> Result<MemoryEntry, Damaged> {
        let damaged = |problem: String| Damaged::new(id, problem);
        if self.checksum != checksum(collection, id, &self.metadata, &self.body) {
            return Err(damaged("its checksum does not match".to_owned()));
        }
        let mut entry: MemoryEntry = serde_json::from_str(&self.body).map_err(|e| damaged(e.to_string()))?;
        entry.metadata = serde_json::from_str(&self.metadata).map_err(|e| damaged(e.to_string()))?;
        entry.position = u64::try_from(position).unwrap_or(0);
        entry.used = used.map(time);
        Ok(entry)
    }
}

/// Returns the damage of an entry whose columns for filters differ from those that were written.
pub(crate) fn columns_damaged(id: &str) -> Damaged {
    Damaged::new(id, "the checksum of its columns does not match")
}

fn checksum(collection: &str, id: &str, metadata: &str, body: &str) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [collection, id, metadata, body] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    hasher.finalize()
}

/// Returns a time as databases store it; times after the year 292,000,000 become that year.
pub(crate) fn number(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn time(number: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(number).unwrap_or(0))
}
