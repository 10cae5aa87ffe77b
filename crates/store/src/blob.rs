//! Keeps the bodies of large records and the data of media outside of the log, which has their hashes.
//!
//! ```text
//! {"crc":"5d41402a","seq":4,"at":1767168000000,"body":{"type":"tool_call_finished","bytes":70123,"sha256":"9f86d0…"}}
//! ```
//!
//! A record whose line would be longer than [`INLINE`] is kept in this way, so that a log can be listed and
//! searched quickly. The blob is the JSON of the record's body; it is synced before the line is written.
//!
//! An image or another file in a record (a medium) is replaced by its SHA-256. Its data is stored unchanged as a
//! blob, so that a picture in a folder of blobs can be looked at. So a record with media is mostly short.
//!
//! The first record is always inline, since its format version must be read before anything else is trusted.
//! A reference has no top-level `type`, and every record has one, so the two cannot be confused.

use archon_types::{JournalError, Media, Record, RecordBody, RunId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{line, rules::corrupt};

/// The maximum length in bytes of a log line that contains the body of its record. The body of a longer
/// record is stored as a blob; only the first record of a run is never split.
pub(crate) const INLINE: usize = 64 * 1024;

/// The body of a large record or the data of a medium, which a journal stores outside of the log.
pub(crate) struct Blob {
    /// SHA-256 of `bytes`, as 64 lower-case hexadecimal digits.
    pub(crate) sha256: String,
    pub(crate) bytes: Vec<u8>,
}

/// Access to the blobs of one run in a journal.
pub(crate) trait Blobs {
    /// Returns the blob with this hash, unchecked; `None` if it does not exist.
    fn get(&self, sha256: &str) -> Result<Option<Vec<u8>>, JournalError>;
}

/// Appends a record's line to `out`. The caller must store the returned blobs before it writes the line.
pub(crate) fn encode(out: &mut Vec<u8>, record: &Record) -> std::io::Result<Vec<Blob>> {
    let start = out.len();
    let data = |media: &Media| Some(Blob { sha256: media.sha256().to_owned(), bytes: media.data()? });
    let mut blobs: Vec<Blob> = record.body.media().filter_map(data).collect();
    let record = &*record.without_media_data();
    line::encode(out, record)?;
    if record.seq == 0 || out.len() - start <= INLINE {
        return Ok(blobs);
    }
    out.truncate(start);
    let bytes = serde_json::to_vec(&record.body)?;
    let blob = Blob { sha256: hash(&bytes), bytes };
    let kind = serde_json::from_slice::<Kind>(&blob.bytes)?.kind;
    let body = Body { kind, bytes: blob.bytes.len() as u64, sha256: blob.sha256.clone() };
    line::encode(out, &Reference { seq: record.seq, at: record.at, body })?;
    blobs.push(blob);
    Ok(blobs)
}

/// Parses the JSON of a line as a reference to a blob; `None` if the line contains a whole record.
pub(crate) fn reference(json: &[u8]) -> Option<Reference> {
    let reference: Reference = serde_json::from_slice(json).ok()?;
    let digits = reference.body.sha256.bytes();
    // The hash becomes a file name, so it is checked here.
    let plain = digits.len() == 64 && digits.into_iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    plain.then_some(reference)
}

/// The reference in a log to the body of a large record.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reference {
    seq: u64,
    at: Timestamp,
    body: Body,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    /// The type of the record, for people who search the log.
    #[serde(rename = "type")]
    kind: String,
    bytes: u64,
    sha256: String,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

impl Reference {
    /// Returns the record, with its body read from `blobs` and checked against the hash.
    pub(crate) fn resolve(self, run: &RunId, seq: u64, blobs: &dyn Blobs) -> Result<Record, JournalError> {
        let Self { seq: own, at, body } = self;
        let problem = |what: &str| corrupt(run, seq, format!("its blob {} {what}", body.sha256));
        let bytes = blobs.get(&body.sha256)?.ok_or_else(|| problem("is missing"))?;
        if bytes.len() as u64 != body.bytes || hash(&bytes) != body.sha256 {
            return Err(problem("does not match its hash"));
        }
        let body: RecordBody = serde_json::from_slice(&bytes).map_err(|e| {
            line::unknown_record(run, seq, &bytes).unwrap_or_else(|| problem(&format!("cannot be read: {e}")))
        })?;
        Ok(Record { seq: own, at, body })
    }
}

/// Returns the SHA-256 of the bytes as 64 lower-case hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(&hmac_sha256::Hash::hash(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
