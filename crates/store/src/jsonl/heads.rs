//! Lists runs without reading whole logs: the first records say who and what, the last one how it is.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
    time::UNIX_EPOCH,
};

use archon_types::{
    JournalError, Record, RecordBody, RunFilter, RunHead, RunId, RunStatus, Salvaged, Timestamp,
};

use super::{RunFiles, index::Index, log};
use crate::{
    damage::problem,
    files::{open_file, storage},
    line,
    listing::page,
    lock::is_held,
    records,
};

/// Logs up to this many bytes are read whole, which also finds damage in their middle. Of longer ones
/// this much of the end is read; a longer last record costs a whole read.
const BLOCK: u64 = 16 * 1024;
/// How many records from the start are looked at for the prompt.
const FIRST: u64 = 4;

/// The heads of the logs in `runs` that a filter lets through, the last written first.
pub(super) fn list(runs: &Path, filter: &RunFilter) -> Result<Vec<RunHead>, JournalError> {
    let index = Index::of(runs);
    let waits = filter.status == [RunStatus::Suspended];
    // Damage is in no index.
    let is_page = filter.limit.is_some() && !filter.status.contains(&RunStatus::Unreadable);
    if !(filter.session.is_some() || waits || is_page) || !runs.exists() {
        let heads = all(runs)?;
        index.check(&heads);
        return Ok(filter.page(heads));
    }
    if let Err(problem) = index.complete(|| all(runs)) {
        tracing::debug!("all logs in {} are read: {problem}", runs.display());
        return Ok(filter.page(all(runs)?));
    }
    let of = |run: &RunId| head(&RunFiles::new(runs, run.clone()));
    let found = match &filter.session {
        Some(session) => index.of_session(session)?,
        None if waits => index.who_waits()?,
        None => return page(filter, index.notes()?, |run| Ok(of(run))),
    };
    Ok(filter.page(found.iter().filter_map(of).collect()))
}

/// The heads of all logs.
fn all(runs: &Path) -> Result<Vec<RunHead>, JournalError> {
    Ok(logs(runs)?.iter().filter_map(head).collect())
}

/// Every log there is; without a directory there are none.
pub(super) fn logs(runs: &Path) -> Result<Vec<RunFiles>, JournalError> {
    let entries = match fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(storage("list", runs)(e)),
    };
    let mut logs = Vec::new();
    for entry in entries {
        let name = entry.map_err(storage("list", runs))?.file_name();
        let Some(id) = name.to_str().and_then(|n| n.strip_suffix(".jsonl")) else { continue };
        logs.push(RunFiles::new(runs, RunId::new(id)));
    }
    Ok(logs)
}

/// The first record of a log, if there is a good one.
pub(super) fn first(files: &RunFiles) -> Option<Record> {
    next(&mut BufReader::new(open_file(&files.log).ok()?), files, 0)
}

/// The head of one log; `None` for one that is not there.
fn head(files: &RunFiles) -> Option<RunHead> {
    let run = &files.run;
    let of = |records: &[Arc<Record>]| {
        let head = RunHead::of(run.clone(), records);
        if head.status != RunStatus::Running || is_held(&files.runs, run) {
            head
        } else {
            head.not_worked_on()
        }
    };
    if let Some(records) = ends(files) {
        return Some(of(&records));
    }
    let problem = match log::read(files) {
        Ok(Salvaged { records, damage: None, .. }) => return Some(of(&records)),
        Ok(Salvaged { records, damage: Some(damage), .. }) => match records.is_empty() {
            false => return Some(RunHead::of(run.clone(), &records).damaged(problem(&damage))),
            true => problem(&damage),
        },
        Err(JournalError::UnknownRun { .. }) if !files.log.exists() || is_held(&files.runs, run) => {
            return None;
        }
        Err(JournalError::UnknownRun { .. }) => EMPTY.to_owned(),
        Err(e) => problem(&e),
    };
    let mut head = RunHead::unreadable(run.clone(), problem);
    let modified = fs::metadata(&files.log).and_then(|m| m.modified()).unwrap_or(UNIX_EPOCH);
    head.updated_at = Timestamp::default() + modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(head)
}

const EMPTY: &str = "its log is empty: somebody emptied it, or its process died before it began; `archon runs delete` removes it";

/// The first records of a long log, up to the prompt, and the last one. `None` when the log is short
/// or anything about it is unusual: then it is read whole.
fn ends(files: &RunFiles) -> Option<Vec<Arc<Record>>> {
    let mut file = open_file(&files.log).ok()?;
    let length = file.metadata().ok().filter(|m| m.len() > BLOCK)?.len();
    let mut records = Vec::new();
    let mut reader = BufReader::new(&mut file);
    for seq in 0..FIRST {
        let record = next(&mut reader, files, seq)?;
        let prompt = matches!(record.body, RecordBody::Prompted { .. });
        records.push(Arc::new(record));
        if prompt {
            break;
        }
    }
    records.push(Arc::new(last(&mut file, length)?));
    Some(records)
}

fn next(reader: &mut impl BufRead, files: &RunFiles, seq: u64) -> Option<Record> {
    let mut text = Vec::new();
    reader.read_until(b'\n', &mut text).ok()?;
    text.pop_if(|end| *end == b'\n')?;
    records::from_line(&files.run, seq, &mut text, &files.blobs).ok()
}

/// The last record, if it fits into the last block and the log ended in order.
fn last(file: &mut File, length: u64) -> Option<Record> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(length - BLOCK)).ok()?;
    file.take(BLOCK).read_to_end(&mut text).ok()?;
    text.pop_if(|end| *end == b'\n')?;
    let start = text.iter().rposition(|b| *b == b'\n')? + 1;
    line::check(&text[start..]).ok()?;
    serde_json::from_slice(line::json(&mut text[start..])).ok()
}
