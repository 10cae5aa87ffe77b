//! Reads records from lines.

use archon_types::{JournalError, LOG_FORMAT, OpenMode, Record, RecordBody, RunId, RunKind, Salvaged};
use serde::Deserialize;

use crate::{
    blob::{self, Blobs},
    line,
    rules::{corrupt, unknown},
};

/// Returns an error and its advice as one text, for the entry of a damaged run in a list of runs.
pub(crate) fn problem(error: &JournalError) -> String {
    format!("{error}; {}", error.advice())
}

/// Returns the log, or an error if the log has neither records nor damage: then the run does not exist.
pub(crate) fn existing(log: Salvaged, run: &RunId) -> Result<Salvaged, JournalError> {
    match log.records.is_empty() && log.damage.is_none() {
        true => Err(unknown(run)),
        false => Ok(log),
    }
}

/// Reads record number `seq` from its line.
pub(crate) fn from_line(
    run: &RunId,
    seq: u64,
    line: &mut [u8],
    blobs: &dyn Blobs,
) -> Result<Record, JournalError> {
    line::check(line).map_err(|problem| corrupt(run, seq, problem))?;
    record(run, seq, line::json(line), blobs)
}

/// Reads record number `seq` from its JSON.
pub(crate) fn record(run: &RunId, seq: u64, json: &[u8], blobs: &dyn Blobs) -> Result<Record, JournalError> {
    if seq == 0 {
        check_format(run, json)?;
    }
    let record: Record = match serde_json::from_slice(json) {
        Ok(record) => record,
        Err(e) => match blob::reference(json) {
            Some(reference) => reference.resolve(run, seq, blobs)?,
            None => {
                return Err(
                    line::unknown_record(run, seq, json).unwrap_or_else(|| corrupt(run, seq, e.to_string()))
                );
            }
        },
    };
    if record.seq != seq {
        return Err(corrupt(run, seq, format!("the log has record {} at its position", record.seq)));
    }
    if seq == 0 && !matches!(record.body, RecordBody::RunStarted(_)) {
        return Err(corrupt(run, seq, "the log does not begin with the start of a run"));
    }
    Ok(record)
}

/// Adds the data of media to a record, from the blobs of its run.
pub(crate) fn with_media(run: &RunId, mut record: Record, blobs: &dyn Blobs) -> Result<Record, JournalError> {
    let seq = record.seq;
    for media in record.body.media_mut().into_iter().filter(|media| media.base64().is_none()) {
        let blob = media.sha256().to_owned();
        let problem = |what: &str| corrupt(run, seq, format!("its blob {blob} {what}"));
        let bytes = blobs.get(&blob)?.ok_or_else(|| problem("is missing"))?;
        media.set_data(&bytes).map_err(|_| problem("does not match its hash"))?;
    }
    Ok(record)
}

/// Checks the log format and the kind of run in the JSON of a first record. This comes before anything else:
/// a record of another format may not even parse.
fn check_format(run: &RunId, json: &[u8]) -> Result<(), JournalError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
        kind: Option<String>,
    }
    match serde_json::from_slice::<Format>(json) {
        Ok(Format { format, .. }) if format != LOG_FORMAT => {
            Err(JournalError::UnsupportedFormat { run: run.clone(), found: format, supported: LOG_FORMAT })
        }
        Ok(Format { kind, .. }) if kind.as_deref().and_then(RunKind::of_name).is_none() => {
            Err(JournalError::UnknownKind { run: run.clone(), kind })
        }
        _ => Ok(()),
    }
}

/// Checks the log that a writer starts from: it must exist and be undamaged, or, with [`OpenMode::Create`],
/// must not exist.
pub(crate) fn for_writing(
    run: &RunId,
    mode: OpenMode,
    log: Result<Salvaged, JournalError>,
) -> Result<Salvaged, JournalError> {
    match (log, mode) {
        (Ok(Salvaged { damage: Some(damage), .. }), OpenMode::Existing) => Err(damage),
        (Ok(salvaged), OpenMode::Existing) => Ok(salvaged),
        (Ok(_), OpenMode::Create) => Err(JournalError::Exists { run: run.clone() }),
        (Err(JournalError::UnknownRun { .. }), OpenMode::Create) => Ok(Salvaged::default()),
        (Err(e), _) => Err(e),
    }
}
