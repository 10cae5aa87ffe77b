//! Reads a log, and tells a torn end (a crash, expected) from damage (not expected).
//!
//! A line at the very end is torn when its newline is missing or its checksum does not match: the
//! append that wrote it never returned, so nobody acted on it and it may be dropped. A line whose
//! checksum matches was written whole; if it makes no sense, dropping it would hide something.

use std::{fs, io, sync::Arc};

use archon_types::{JournalError, LOG_FORMAT, Record, RecordBody, RunId};
use serde::Deserialize;

use super::{RunFiles, line, storage};

/// What could be read of a log.
#[derive(Debug)]
#[non_exhaustive]
pub struct Salvaged {
    /// The records before the damage; all of them when there is none.
    pub records: Vec<Arc<Record>>,
    /// What is wrong with the log, if anything.
    pub damage: Option<JournalError>,
    /// Bytes of a torn last line, which do not count as damage; 0 for a log that ended in order.
    pub torn_bytes: u64,
}

/// Reads the log of a run. A run without records does not exist.
pub(super) fn read(files: &RunFiles) -> Result<Salvaged, JournalError> {
    let unknown = || JournalError::UnknownRun { run: files.run.clone() };
    let bytes = match fs::read(&files.log) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(unknown()),
        Err(e) => return Err(storage("read", &files.log)(e)),
    };
    let salvaged = parse(&files.run, bytes)?;
    match salvaged.records.is_empty() && salvaged.damage.is_none() {
        true => Err(unknown()),
        false => Ok(salvaged),
    }
}

/// Reads the bytes of a log.
///
/// # Errors
/// [`JournalError::FutureFormat`]: nothing in such a log can be trusted to mean what it seems to.
pub(super) fn parse(run: &RunId, mut bytes: Vec<u8>) -> Result<Salvaged, JournalError> {
    let mut salvaged = Salvaged { records: Vec::new(), damage: None, torn_bytes: 0 };
    let length = bytes.len();
    let mut start = 0;
    while start < length {
        let seq = salvaged.records.len() as u64;
        let newline = bytes[start..].iter().position(|b| *b == b'\n').map(|n| start + n);
        let (end, next) = newline.map_or((length, length), |n| (n, n + 1));
        let problem = match newline {
            Some(_) => line::check(&bytes[start..end]).err(),
            None => Some("the newline is missing"),
        };
        match problem {
            None => match record(run, seq, line::json(&mut bytes[start..end])) {
                Ok(record) => salvaged.records.push(Arc::new(record)),
                Err(e @ JournalError::FutureFormat { .. }) => return Err(e),
                Err(e) => salvaged.damage = Some(e),
            },
            Some(_) if next == length && !line::is_two(&bytes[start..end]) => {
                salvaged.torn_bytes = (length - start) as u64;
            }
            Some(problem) => salvaged.damage = Some(corrupt(run, seq, problem)),
        }
        if salvaged.damage.is_some() {
            break;
        }
        start = next;
    }
    Ok(salvaged)
}

/// Reads the record at place `seq` from its JSON.
pub(super) fn record(run: &RunId, seq: u64, json: &[u8]) -> Result<Record, JournalError> {
    if seq == 0 {
        check_format(run, json)?;
    }
    let record: Record = serde_json::from_slice(json).map_err(|e| corrupt(run, seq, e.to_string()))?;
    if record.seq != seq {
        return Err(corrupt(run, seq, format!("record {} stands in its place", record.seq)));
    }
    if seq == 0 && !matches!(record.body, RecordBody::RunStarted(_)) {
        return Err(corrupt(run, seq, "the log does not begin with the start of a run"));
    }
    Ok(record)
}

/// Looks at the version before anything else: a newer record may not even parse.
fn check_format(run: &RunId, json: &[u8]) -> Result<(), JournalError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    match serde_json::from_slice::<Format>(json) {
        Ok(Format { format }) if format > LOG_FORMAT => {
            Err(JournalError::FutureFormat { run: run.clone(), found: format, supported: LOG_FORMAT })
        }
        _ => Ok(()),
    }
}

pub(super) fn corrupt(run: &RunId, record: u64, problem: impl Into<String>) -> JournalError {
    JournalError::Corrupt { run: run.clone(), record, problem: problem.into() }
}
