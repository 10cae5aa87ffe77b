//! Lists runs without reading whole logs: the first records have the session and tenant of a run, the last
//! one has its status.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{BufRead, BufReader, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
    time::UNIX_EPOCH,
};

use archon_types::{
    JournalError, Record, RecordBody, RunFilter, RunHead, RunId, RunStatus, Salvaged, SessionId, Timestamp,
};

use super::{RunFiles, index::Index, log};
use crate::{
    files::{entries, open_file},
    line,
    listing::{FIRST, page, under_lock},
    lock::is_held,
    records::{self, problem},
};

/// The maximum size in bytes of a log that is read whole, so that damage anywhere in the log is found. Of a
/// longer log, only the first records and this many bytes of the end are read. If the last record does not fit
/// into these bytes, the whole log is read.
const BLOCK: u64 = 16 * 1024;

/// Lists the heads of the runs that the filter admits, last written first. `runs` is the directory of the
/// logs.
pub(super) fn list(runs: &Path, filter: &RunFilter) -> Result<Vec<RunHead>, JournalError> {
    let index = Index::of(runs);
    let waits = filter.status == [RunStatus::Suspended];
    // The index knows nothing of damage, so a list of unreadable runs reads all logs.
    let is_page = filter.limit.is_some() && !filter.status.contains(&RunStatus::Unreadable);
    let is_indexed = filter.session.is_some() || filter.tenant.is_some() || waits || is_page;
    if !is_indexed || !runs.exists() {
        let heads = all(runs)?;
        index.check(&heads);
        return Ok(filter.page(heads));
    }
    if let Err(problem) = index.complete(|| all(runs)) {
        tracing::debug!("all logs in {} are read: {problem}", runs.display());
        return Ok(filter.page(all(runs)?));
    }
    let of = |run: &RunId| head(&RunFiles::new(runs, run.clone()));
    if waits && filter.session.is_none() {
        let found = index.suspended(filter.tenant.as_ref())?;
        return Ok(filter.page(found.iter().filter_map(of).collect()));
    }
    let notes = index.notes(filter.session.as_ref(), filter.tenant.as_ref())?;
    if is_page {
        return page(filter, notes, |run| Ok(of(run)));
    }
    let found = notes.map(|note| note.map(|(note, _)| note.run)).collect::<Result<HashSet<_>, _>>()?;
    Ok(filter.page(found.iter().filter_map(of).collect()))
}

/// Returns the runs of a session, each once, in no particular order.
pub(super) fn of_session(runs: &Path, session: &SessionId) -> Result<Vec<RunId>, JournalError> {
    let index = Index::of(runs);
    index.complete(|| all(runs))?;
    let notes = index.notes(Some(session), None)?;
    let found: HashSet<_> = notes.map(|note| note.map(|(note, _)| note.run)).collect::<Result<_, _>>()?;
    Ok(found.into_iter().collect())
}

/// Returns the heads of all logs.
fn all(runs: &Path) -> Result<Vec<RunHead>, JournalError> {
    Ok(logs(runs)?.iter().filter_map(head).collect())
}

/// Returns the files of every run; no files if the directory does not exist.
pub(super) fn logs(runs: &Path) -> Result<Vec<RunFiles>, JournalError> {
    let log = |entry: fs::DirEntry| {
        let name = entry.file_name();
        Some(RunFiles::new(runs, RunId::new(name.to_str()?.strip_suffix(".jsonl")?)))
    };
    Ok(entries(runs)?.into_iter().filter_map(log).collect())
}

/// Returns the first record of a log, if it can be read.
pub(super) fn first(files: &RunFiles) -> Option<Record> {
    next(&mut BufReader::new(open_file(&files.log).ok()?), files, 0)
}

/// Returns the head of one log for a list; `None` if the log does not exist.
fn head(files: &RunFiles) -> Option<RunHead> {
    match find(files) {
        Ok(head) => Some(head),
        Err(JournalError::UnknownRun { .. }) if !files.log.exists() || is_held(&files.runs, &files.run) => {
            None
        }
        Err(JournalError::UnknownRun { .. }) => Some(unreadable(files, EMPTY)),
        Err(e) => Some(unreadable(files, problem(&e))),
    }
}

/// Returns the head of one log.
pub(super) fn find(files: &RunFiles) -> Result<RunHead, JournalError> {
    under_lock(|| read(files), || is_held(&files.runs, &files.run))
}

/// Reads the head from the log.
fn read(files: &RunFiles) -> Result<RunHead, JournalError> {
    let of = |records: &[Arc<Record>]| RunHead::of(files.run.clone(), records);
    if let Some(records) = ends(files) {
        return Ok(of(&records));
    }
    let Salvaged { records, damage, .. } = log::read(files)?;
    Ok(match damage {
        None => of(&records),
        Some(damage) if records.is_empty() => unreadable(files, problem(&damage)),
        Some(damage) => of(&records).damaged(problem(&damage)),
    })
}

fn unreadable(files: &RunFiles, problem: impl Into<String>) -> RunHead {
    let mut head = RunHead::unreadable(files.run.clone(), problem);
    let modified = fs::metadata(&files.log).and_then(|m| m.modified()).unwrap_or(UNIX_EPOCH);
    head.updated_at = Timestamp::default() + modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    head
}

const EMPTY: &str = "its log is empty: somebody emptied it, or its process died before the first record; `archon runs delete` removes it";

/// Reads the first records of a long log, up to the prompt, and the last record. Returns `None` if the log is
/// short or unusual in any way: then the caller reads the whole log.
fn ends(files: &RunFiles) -> Option<Vec<Arc<Record>>> {
    let mut file = open_file(&files.log).ok()?;
    let length = file.metadata().ok().filter(|m| m.len() > BLOCK)?.len();
    let mut records = Vec::new();
    let mut reader = BufReader::new(&mut file);
    for seq in 0..FIRST as u64 {
        let record = next(&mut reader, files, seq)?;
        let prompt = matches!(record.body, RecordBody::MessageAdded { .. });
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

/// Reads the last record of a log, if it fits into the last [`BLOCK`] bytes and the log ends with a newline.
fn last(file: &mut File, length: u64) -> Option<Record> {
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(length - BLOCK)).ok()?;
    file.take(BLOCK).read_to_end(&mut text).ok()?;
    text.pop_if(|end| *end == b'\n')?;
    let start = text.iter().rposition(|b| *b == b'\n')? + 1;
    line::check(&text[start..]).ok()?;
    serde_json::from_slice(line::json(&mut text[start..])).ok()
}

#[cfg(test)]
mod tests {
    use archon_types::{Durability, OpenMode, SessionId, TenantId};
    use serde_json::json;

    use super::*;
    use crate::files::reads;

    /// Writes `count` runs of as many sessions, ten minutes apart. Three of them are suspended.
    async fn history(runs: &Path, count: u64) {
        for n in 0..count {
            let end = if n % (count / 3) == 1 { "suspended" } else { "hint_added" };
            run_of(runs, n, &format!("s{n}"), "t", end).await;
        }
    }

    async fn run_of(runs: &Path, n: u64, session: &str, tenant: &str, end: &str) {
        let id = RunId::new(format!("r{n}"));
        let at = 1_767_225_600_000 + n * 600_000;
        let bodies = [
            json!({
                "seq": 0, "at": at, "type": "run_started", "format": 2, "kind": "loop", "run": id, "session": session,
                "agent": "a", "loop_id": "l", "tenant": tenant, "origin": {"kind": "prompt"}, "first_trigger": "user",
                "config": {},
            }),
            json!({
                "seq": 1, "at": at, "type": end, "text": "x", "waiting": [],
                "run": "r", "status": "finished", "answer": "", "turns": 0, "usage": {},
            }),
        ];
        let records = bodies.map(|body| Arc::new(serde_json::from_value(body).unwrap()));
        let open = super::super::writer::open(RunFiles::new(runs, id), OpenMode::Create, &mut || false);
        open.unwrap().writer.append(&records, Durability::Buffered).await.unwrap();
    }

    /// Returns the number of files that a list opens, and of runs that it finds.
    fn cost(runs: &Path, filter: &RunFilter) -> (usize, usize) {
        let before = reads::count();
        let found = list(runs, filter).unwrap().len();
        (reads::count() - before, found)
    }

    #[tokio::test]
    async fn list_with_a_filter_opens_a_constant_number_of_files() {
        let filters = [
            RunFilter::of_session(SessionId::new("s5")),
            RunFilter::of_session(SessionId::new("s5")).limit(1),
            // A conversation looks for this run once a second.
            RunFilter::of_session(SessionId::new("s5")).top_level().limit(1),
            RunFilter::all().status([RunStatus::Suspended]).top_level(),
            RunFilter::all().limit(20),
            RunFilter::all().top_level().limit(1),
            RunFilter::all().status([RunStatus::Suspended]).limit(20),
        ];
        let mut costs = Vec::new();
        for count in [30, 4000] {
            let dir = tempfile::tempdir().unwrap();
            let runs = dir.path().join("runs");
            history(&runs, count).await;
            // The first list builds the index.
            let made = cost(&runs, &filters[0]).0;
            assert!(made as u64 >= count, "{made} files for {count} runs");
            costs.push(filters.iter().map(|filter| cost(&runs, filter)).collect::<Vec<_>>());
        }
        for ((few, many), filter) in costs[0].iter().zip(&costs[1]).zip(&filters) {
            assert!(many.0 * 10 <= few.0 * 12 && few.1 == many.1, "{few:?}, {many:?}: {filter:?}");
        }
    }

    #[tokio::test]
    async fn delete_and_head_open_a_constant_number_of_files() {
        let mut costs = Vec::new();
        for count in [30, 1000] {
            let dir = tempfile::tempdir().unwrap();
            let runs = dir.path().join("runs");
            history(&runs, count).await;
            list(&runs, &RunFilter::all().limit(1)).unwrap();
            let files = RunFiles::new(&runs, RunId::new("r5"));
            let before = reads::count();
            assert!(head(&files).is_some());
            let looked = reads::count();
            super::super::delete::delete(&files, &mut || false).unwrap();
            costs.push((looked - before, reads::count() - looked));
        }
        assert_eq!(costs[0], costs[1]);
    }

    /// Runs of another tenant's session, and runs that wait for other tenants, add no cost.
    #[tokio::test]
    async fn list_of_the_newest_run_opens_a_constant_number_of_files() {
        let of_session = RunFilter::of_session(SessionId::new("s"));
        let filters = [
            of_session.clone().limit(1),
            of_session.clone().tenant(TenantId::new("t")).limit(1),
            of_session.tenant(TenantId::new("t")).status([RunStatus::Finished]).limit(1),
            RunFilter::all().status([RunStatus::Suspended]).tenant(TenantId::new("t")),
            RunFilter::all().tenant(TenantId::new("small")),
        ];
        let mut costs = Vec::new();
        for count in [10, 1000] {
            let dir = tempfile::tempdir().unwrap();
            let runs = dir.path().join("runs");
            fs::create_dir(&runs).unwrap();
            list(&runs, &filters[0]).unwrap();
            for n in 0..count {
                run_of(&runs, 2 * n, "s", "t", "run_finished").await;
                run_of(&runs, 2 * n + 1, "s", "other", "suspended").await;
            }
            run_of(&runs, 2 * count, "w", "t", "suspended").await;
            run_of(&runs, 2 * count + 1, "v", "small", "run_finished").await;
            costs.push(filters.iter().map(|filter| cost(&runs, filter)).collect::<Vec<_>>());
        }
        assert_eq!(costs[0], costs[1]);
        assert!(costs[0].iter().all(|(files, found)| *files <= 4 && *found == 1), "{costs:?}");
    }
}
