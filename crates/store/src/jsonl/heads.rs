//! Lists runs without reading whole logs: the first records say who and what, the last one how it is.

use std::{
    fs::{self, DirEntry, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use archon_types::{JournalError, Record, RecordBody, RunHead, RunId, Salvaged, Timestamp};

use super::{RunFiles, log};
use crate::{
    damage::unreadable,
    files::{open_file, storage},
    line, records,
};

/// Logs up to this many bytes are read whole, which also finds damage in their middle. Of longer ones
/// this much of the end is read; a longer last record costs a whole read.
const BLOCK: u64 = 16 * 1024;
/// How many records from the start are looked at for the prompt.
const FIRST: u64 = 4;

/// The heads of all logs in `runs`, the last written first.
pub(super) fn list(runs: &Path) -> Result<Vec<RunHead>, JournalError> {
    let mut heads = Vec::new();
    for (entry, files) in logs(runs)? {
        let modified = modified(&entry);
        if let Some(head) = head(&files, modified) {
            heads.push((modified, head));
        }
    }
    heads.sort_by(|(ta, a), (tb, b)| (tb, b.updated_at, &b.run_id).cmp(&(ta, a.updated_at, &a.run_id)));
    Ok(heads.into_iter().map(|(_, head)| head).collect())
}

/// Every log there is; without a directory there are none.
pub(super) fn logs(runs: &Path) -> Result<Vec<(DirEntry, RunFiles)>, JournalError> {
    let entries = match fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(storage("list", runs)(e)),
    };
    let mut logs = Vec::new();
    for entry in entries {
        let entry = entry.map_err(storage("list", runs))?;
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|n| n.strip_suffix(".jsonl")) else { continue };
        logs.push((entry, RunFiles::new(runs, RunId::new(id))));
    }
    Ok(logs)
}

/// The first record of a log, if there is a good one.
pub(super) fn first(files: &RunFiles) -> Option<Record> {
    next(&mut BufReader::new(open_file(&files.log).ok()?), files, 0)
}

fn modified(entry: &DirEntry) -> SystemTime {
    entry.metadata().and_then(|m| m.modified()).unwrap_or(UNIX_EPOCH)
}

/// The head of one log; `None` for one without records, which is no run.
fn head(files: &RunFiles, modified: SystemTime) -> Option<RunHead> {
    let run = &files.run;
    if let Some(records) = ends(files) {
        return Some(RunHead::of(run.clone(), &records));
    }
    let problem = match log::read(files) {
        Ok(Salvaged { records, damage: None, .. }) => return Some(RunHead::of(run.clone(), &records)),
        Ok(Salvaged { damage: Some(damage), .. }) => damage,
        Err(JournalError::UnknownRun { .. }) => return None,
        Err(e) => e,
    };
    let mut head = unreadable(run, &problem);
    head.updated_at = Timestamp::default() + modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(head)
}

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
