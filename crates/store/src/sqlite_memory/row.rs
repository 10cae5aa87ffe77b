//! Entries as rows, and rows as entries.

use archon_types::{Damaged, MemoryEntry, MemoryError, Timestamp};
use rusqlite::Row;

use super::damage::failed;

/// What a row is read from, in this order.
pub(super) const COLUMNS: &str = "e.position, e.id, e.collection, e.used, e.metadata, e.body, e.checksum";

/// The texts of an entry's row, and their sum.
pub(super) struct Texts {
    pub(super) metadata: String,
    pub(super) body: String,
    pub(super) checksum: u32,
}

impl Texts {
    /// The vector and `used` stand elsewhere.
    pub(super) fn of(entry: &MemoryEntry, place: &std::path::Path) -> Result<Self, MemoryError> {
        let mut bare = entry.clone();
        let metadata = std::mem::take(&mut bare.metadata);
        (bare.embedding, bare.used) = (None, None);
        let body = serde_json::to_string(&bare).map_err(failed("write", place))?;
        let metadata = serde_json::to_string(&metadata).map_err(failed("write", place))?;
        let checksum = checksum(entry.collection.as_str(), &entry.id, &metadata, &body);
        Ok(Self { metadata, body, checksum })
    }
}

fn checksum(collection: &str, id: &str, metadata: &str, body: &str) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [collection, id, metadata, body] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    hasher.finalize()
}

/// The entry of a row, without its vector, or what is wrong with it.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Result<MemoryEntry, Damaged>> {
    let position: i64 = row.get(0)?;
    let text = |i: usize| row.get_ref(i).and_then(|value| Ok(value.as_str()?.to_owned()));
    let id = text(1).unwrap_or_else(|_| format!("at {position}"));
    let damaged = |problem: String| Ok(Err(Damaged::new(id.clone(), problem)));
    let (collection, metadata, body) = match (text(2), text(4), text(5)) {
        (Ok(collection), Ok(metadata), Ok(body)) => (collection, metadata, body),
        _ => return damaged("a text of it is no text".to_owned()),
    };
    if row.get::<_, u32>(6).ok() != Some(checksum(&collection, &id, &metadata, &body)) {
        return damaged("its checksum does not fit".to_owned());
    }
    let entry = serde_json::from_str::<MemoryEntry>(&body);
    let (mut entry, metadata) = match (entry, serde_json::from_str(&metadata)) {
        (Ok(entry), Ok(metadata)) => (entry, metadata),
        (Err(e), _) | (_, Err(e)) => return damaged(e.to_string()),
    };
    entry.metadata = metadata;
    entry.position = u64::try_from(position).unwrap_or(0);
    entry.used = row.get::<_, Option<i64>>(3).ok().flatten().map(time);
    Ok(Ok(entry))
}

/// A vector as bytes, and their sum.
pub(super) fn bytes_of(vector: &[f32]) -> (Vec<u8>, u32) {
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    let sum = crc32fast::hash(&bytes);
    (bytes, sum)
}

/// A vector from its bytes; `None` if they are not what was written.
pub(super) fn vector_of(bytes: &[u8], checksum: u32) -> Option<Vec<f32>> {
    let values = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    (bytes.len() % 4 == 0 && crc32fast::hash(bytes) == checksum).then(|| values.collect())
}

/// As SQLite has it; a time past the year 292,000,000 is that.
pub(super) fn number(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn time(number: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(number).unwrap_or(0))
}
