//! Reads entries and vectors from rows.

use archon_types::{Damaged, MemoryEntry};
use rusqlite::{Row, types::ValueRef};

use crate::memories::{Texts, columns_damaged};

/// Returns the entry of a row, without its vector, or a description of its damage.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Result<MemoryEntry, Damaged>> {
    let position: i64 = row.get(0)?;
    let text = |i: usize| row.get_ref(i).and_then(|value| Ok(value.as_str()?.to_owned()));
    let id = text(1).unwrap_or_else(|_| format!("at {position}"));
    let (Ok(collection), Ok(metadata), Ok(body)) = (text(2), text(4), text(5)) else {
        return Ok(Err(Damaged::new(id, "one of its text columns is not valid text")));
    };
    // A checksum that is no number counts as a wrong one.
    let Ok(checksum) = row.get(6) else { return Ok(Err(Damaged::new(id, "its checksum is not a number"))) };
    if !row.get(7).unwrap_or(false) {
        return Ok(Err(columns_damaged(&id)));
    }
    let used = row.get(3).ok().flatten();
    Ok(Texts { metadata, body, checksum }.read(position, &collection, &id, used))
}

/// Returns the checksum of columns; the type of each column is part of it.
pub(super) fn sum_of<'a>(columns: impl Iterator<Item = ValueRef<'a>>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for column in columns {
        let mut add = |tag: u8, bytes: &[u8]| {
            hasher.update(&[tag]);
            hasher.update(&bytes.len().to_le_bytes());
            hasher.update(bytes);
        };
        match column {
            ValueRef::Null => add(0, &[]),
            ValueRef::Integer(number) => add(1, &number.to_le_bytes()),
            ValueRef::Real(number) => add(2, &number.to_le_bytes()),
            ValueRef::Text(text) => add(3, text),
            ValueRef::Blob(bytes) => add(4, bytes),
        }
    }
    hasher.finalize()
}

/// Returns the number of words of a text.
pub(super) fn length_of(text: &str) -> i64 {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).count();
    i64::try_from(words).unwrap_or(i64::MAX)
}

/// Returns a vector as bytes, and their checksum.
pub(super) fn bytes_of(vector: &[f32]) -> (Vec<u8>, u32) {
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    let sum = crc32fast::hash(&bytes);
    (bytes, sum)
}

/// Returns a vector from its bytes, their checksum and its dimensions; `None` if they do not match.
pub(super) fn vector_in(values: [ValueRef<'_>; 3]) -> Option<Vec<f32>> {
    let [bytes, checksum, dimensions] = values;
    let (bytes, checksum, dimensions) =
        (bytes.as_blob().ok()?, checksum.as_i64().ok()?, dimensions.as_i64().ok()?);
    let length = i64::try_from(bytes.len()).ok()?;
    if dimensions.checked_mul(4) != Some(length) || i64::from(crc32fast::hash(bytes)) != checksum {
        return None;
    }
    let values = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    let values: Vec<f32> = values.collect();
    values.iter().all(|x| x.is_finite()).then_some(values)
}
