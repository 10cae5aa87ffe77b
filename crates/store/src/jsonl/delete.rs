//! Removes a run that has no writer and that no other run needs.

use std::fs;

use archon_types::{JournalError, Origin, Record, RecordBody, RunId};

use super::{
    RunFiles, heads,
    index::{Index, Owner},
    log,
};
use crate::{
    files::{if_exists, storage, sync_directory},
    lock::{self, RunLock, Wait},
    rules,
};

pub(super) fn delete(files: &RunFiles, wait: &mut Wait<'_>) -> Result<(), JournalError> {
    let has_note = || lock::note(&files.runs, &files.run).is_some_and(|note| note.synced > 0);
    if !files.log.exists() && !has_note() {
        return Err(rules::unknown(&files.run));
    }
    let mut lock = RunLock::take(&files.runs, &files.run, wait)?;
    rules::check_not_needed(&files.run, needed_by(files)?)?;
    let owner = heads::first(files).as_ref().and_then(Owner::of);
    // The log goes first: without it the blobs are only unused; the other way round a run would be broken.
    if_exists(fs::remove_file(&files.log)).map_err(storage("remove", &files.log))?;
    sync_directory(&files.runs)?;
    // On systems where the file of the lock stays, it must no longer promise a log.
    lock.accept();
    lock.note(0);
    if let Some(owner) = owner {
        Index::of(&files.runs).forget(&files.run, &owner)?;
    }
    if_exists(fs::remove_dir_all(&files.inbox)).map_err(storage("remove", &files.inbox))?;
    files.blobs.delete()
}

/// Returns the runs that may continue this one: the runs of its session, or all runs if the session cannot
/// be read.
fn may_continue(files: &RunFiles, first: Option<&Record>) -> Result<Vec<RunId>, JournalError> {
    match first.map(|record| &record.body) {
        Some(RecordBody::RunStarted(started)) => heads::of_session(&files.runs, &started.session),
        _ => Ok(heads::logs(&files.runs)?.into_iter().map(|files| files.run).collect()),
    }
}

fn needed_by(files: &RunFiles) -> Result<Vec<RunId>, JournalError> {
    let first = heads::first(files);
    let continues = |other: &RunId| {
        let first = heads::first(&RunFiles::new(&files.runs, other.clone()));
        first.is_some_and(|record| rules::continues(&record) == Some(&files.run))
    };
    let mut needed_by = may_continue(files, first.as_ref())?;
    needed_by.retain(continues);
    if let Some(Origin::CalledBy { run, call }) = first.as_ref().and_then(rules::origin)
        && rules::is_awaited(log::read(&RunFiles::new(&files.runs, run.clone())), *call)?
    {
        needed_by.push(run.clone());
    }
    Ok(needed_by)
}
