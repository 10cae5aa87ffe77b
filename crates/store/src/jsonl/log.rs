//! Reads a log, and distinguishes a torn end (expected after a crash) from damage (not expected).
//!
//! A last line is torn when its newline is missing. The append that wrote it never returned, so nothing acted
//! on the record, and the line is dropped. But if the system was rebooted since, and the line may be the start
//! of a tool call with an effect, the line counts as damage: the medium may have lost the end of a synced line,
//! and without the line the effect could happen twice. A line with its newline was written completely: if it
//! cannot be read, it is damaged. A fork of the run can continue from the undamaged records.
//!
//! If complete lines are lost from the end, the log itself does not show it. So the [lock](crate::lock) file
//! that a killed writer leaves has the minimum length of the log, and the id of the system's boot in which the
//! writer ran.

use std::sync::Arc;

use archon_types::{JournalError, RunId, Salvaged};

use super::{RunFiles, lines::lines_before};
use crate::{
    blob::Blobs,
    files::{if_exists, read_file, storage},
    line, lock,
    records::{existing, from_line, record, with_media},
    rules::{corrupt, unknown},
};

/// Reads the log of a run. A log without records counts as no run.
pub(super) fn read(files: &RunFiles) -> Result<Salvaged, JournalError> {
    // The noted length is read before the log, since the log grows while its writer works.
    let note = lock::note(&files.runs, &files.run);
    let noted = note.map(|note| note.synced).filter(|synced| *synced > 0);
    let bytes = if_exists(read_file(&files.log)).map_err(storage("read", &files.log))?;
    let bytes = bytes.or_else(|| noted.map(|_| Vec::new())).ok_or_else(|| unknown(&files.run))?;
    let length = bytes.len() as u64;
    // A writer that died in this start of the system was killed within its write, which nothing acted on.
    let written = note.filter(|note| note.is_of_this_boot).map(|note| note.synced);
    let mut salvaged = parse(&files.run, bytes, written, &files.blobs)?;
    let lacks = noted.unwrap_or_default().saturating_sub(length - salvaged.torn_bytes);
    if lacks > 0 && salvaged.damage.is_none() {
        let problem = format!("{lacks} bytes are missing at the end of its log");
        salvaged.damage = Some(corrupt(&files.run, salvaged.records.len() as u64, problem));
    }
    existing(salvaged, &files.run)
}

/// Reads the last `most` records of a log; with `before`, the last ones before the record with that number.
/// Damage of other records is not detected, nor is a torn or missing end. Media have no data.
pub(super) fn read_before(
    files: &RunFiles,
    before: Option<u64>,
    most: usize,
) -> Result<Salvaged, JournalError> {
    let lines = if_exists(lines_before(&files.log, before, most)).map_err(storage("read", &files.log))?;
    let (mut first, lines) = lines.unwrap_or_default();
    // The first record tells the format of the log.
    if from_line(&files.run, 0, &mut first, &files.blobs).is_err() {
        return Ok(read(files)?.before(before, most));
    }
    let mut salvaged = Salvaged::default();
    for (seq, mut line) in lines {
        match from_line(&files.run, seq, &mut line, &files.blobs) {
            Ok(record) => salvaged.records.push(Arc::new(record)),
            Err(e) if e.is_of_another_version() => return Err(e),
            Err(e) => {
                salvaged.damage = Some(e);
                break;
            }
        }
    }
    Ok(salvaged)
}

const CUT: &str = "the record is cut off, and may be the start of a tool call that had its effect";

/// Parses the bytes of a log. `written` is the synced length that a writer noted, if that writer was killed
/// since the last boot of the system; otherwise `None`. A last line without its newline that begins at or after
/// `written` was being written when the writer was killed, so it is torn and not damaged. Returns an error if
/// another version of Archon wrote the log, since the meaning of its records is then unknown.
fn parse(
    run: &RunId,
    mut bytes: Vec<u8>,
    written: Option<u64>,
    blobs: &dyn Blobs,
) -> Result<Salvaged, JournalError> {
    let mut salvaged = Salvaged::default();
    let length = bytes.len();
    let mut start = 0;
    while start < length {
        let seq = salvaged.records.len() as u64;
        let newline = bytes[start..].iter().position(|b| *b == b'\n').map(|n| start + n);
        let (end, next) = newline.map_or((length, length), |n| (n, n + 1));
        let problem = match newline {
            Some(_) => line::check(&bytes[start..end]).err(),
            None => Some("the newline of the record is missing"),
        };
        match problem {
            None => match record(run, seq, line::json(&mut bytes[start..end]), blobs)
                .and_then(|record| with_media(run, record, blobs))
            {
                Ok(record) => salvaged.records.push(Arc::new(record)),
                Err(e) if e.is_of_another_version() => return Err(e),
                Err(e) => salvaged.damage = Some(e),
            },
            Some(_) if newline.is_none() && !line::is_two(&bytes[start..end]) => {
                let is_killed_write = written.is_some_and(|written| start as u64 >= written);
                match seq == 0 || is_killed_write || !line::may_be_effect(&bytes[start..end]) {
                    true => salvaged.torn_bytes = (length - start) as u64,
                    false => salvaged.damage = Some(corrupt(run, seq, CUT)),
                }
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
