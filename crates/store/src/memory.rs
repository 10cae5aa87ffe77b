//! The journal that keeps logs in memory: records are shared, never serialised, and lost when the journal is
//! dropped.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    BoxFuture, Durability, Inbox, InboxEntry, Journal, JournalError, OpenMode, OpenRun, Origin, Record,
    RunFilter, RunHead, RunId, RunWriter,
};

use crate::{
    doorbell::Doorbell,
    listing::FIRST,
    rules::{self, check_id, check_records, unknown},
};

type Runs = Arc<Mutex<HashMap<RunId, Arc<Mutex<Log>>>>>;

/// A journal that keeps logs in memory. Clones share the same logs.
///
/// The [`Durability`](archon_types::Durability) of an append makes no difference: nothing survives the
/// process.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_store::InMemoryJournal;
/// use archon_types::Journal;
///
/// let journal: Arc<dyn Journal> = Arc::new(InMemoryJournal::new());
/// ```
#[derive(Clone, Debug, Default)]
pub struct InMemoryJournal {
    runs: Runs,
    bell: Doorbell,
}

impl InMemoryJournal {
    /// Creates a journal without runs.
    pub fn new() -> Self {
        Self::default()
    }

    fn open_now(&self, run: &RunId, mode: OpenMode) -> Result<OpenRun, JournalError> {
        check_id(run)?;
        let mut runs = guard(&self.runs);
        let log = match runs.get(run) {
            Some(log) => log.clone(),
            None if mode == OpenMode::Create => runs.entry(run.clone()).or_default().clone(),
            None => return Err(unknown(run)),
        };
        let mut inner = guard(&log);
        match mode {
            _ if inner.has_writer => return Err(JournalError::Locked { run: run.clone() }),
            OpenMode::Create if !inner.records.is_empty() => {
                return Err(JournalError::Exists { run: run.clone() });
            }
            OpenMode::Existing if inner.records.is_empty() => return Err(unknown(run)),
            _ => inner.has_writer = true,
        }
        let records = inner.records.clone();
        drop(inner);
        let writer = MemoryWriter { run: run.clone(), log, runs: self.runs.clone() };
        Ok(OpenRun { records, writer: Box::new(writer) })
    }

    fn read_now(&self, run: &RunId) -> Result<Vec<Arc<Record>>, JournalError> {
        check_id(run)?;
        let log = guard(&self.runs).get(run).cloned();
        let records = log.map(|log| guard(&log).records.clone()).unwrap_or_default();
        match records.is_empty() {
            true => Err(unknown(run)),
            false => Ok(records),
        }
    }

    fn list_now(&self, filter: &RunFilter) -> Vec<RunHead> {
        let runs = guard(&self.runs);
        let heads = runs.iter().filter_map(|(run, log)| head(run, &guard(log))).collect();
        filter.page(heads)
    }

    fn head_now(&self, run: &RunId) -> Result<RunHead, JournalError> {
        check_id(run)?;
        let log = guard(&self.runs).get(run).cloned();
        log.and_then(|log| head(run, &guard(&log))).ok_or_else(|| unknown(run))
    }

    fn delete_now(&self, run: &RunId) -> Result<(), JournalError> {
        check_id(run)?;
        let mut runs = guard(&self.runs);
        let unknown = || unknown(run);
        let log = guard(runs.get(run).ok_or_else(unknown)?);
        if log.has_writer {
            return Err(JournalError::Locked { run: run.clone() });
        }
        let origin = log.records.first().ok_or_else(unknown).map(|first| rules::origin(first).cloned())?;
        drop(log);
        let continues = |log: &Log| log.records.first().and_then(|r| rules::continues(r)) == Some(run);
        let mut needed_by: Vec<RunId> =
            runs.iter().filter(|(_, log)| continues(&guard(log))).map(|(id, _)| id.clone()).collect();
        if let Some(Origin::CalledBy { run: caller, call }) = origin
            && runs.get(&caller).is_some_and(|log| rules::waits_for(&guard(log).records, call))
        {
            needed_by.push(caller);
        }
        rules::check_not_needed(run, needed_by)?;
        runs.remove(run);
        Ok(())
    }
}

impl Journal for InMemoryJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(std::future::ready(self.open_now(run, mode)))
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(std::future::ready(self.read_now(run)))
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        Box::pin(std::future::ready(Ok(self.list_now(filter))))
    }

    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        Box::pin(std::future::ready(self.head_now(run)))
    }

    /// Removes a run. Its memory is freed when no caller holds its records any more.
    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(self.delete_now(run)))
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(self.clone()))
    }
}

impl InMemoryJournal {
    fn with_log<T>(&self, run: &RunId, work: impl FnOnce(&mut Log) -> T) -> Result<T, JournalError> {
        let log = guard(&self.runs).get(run).cloned();
        let Some(log) = log else {
            // An existing run has a valid id, so the id is checked only here.
            check_id(run)?;
            return Err(unknown(run));
        };
        let mut log = guard(&log);
        Ok(work(&mut log))
    }

    fn post_now(&self, run: &RunId, entry: InboxEntry) -> Result<(), JournalError> {
        let stored = self.with_log(run, |log| match log.inbox.iter().any(|other| other.id == entry.id) {
            true => Err(JournalError::Posted { run: run.clone(), id: entry.id }),
            false => {
                log.inbox.push(entry);
                Ok(())
            }
        })?;
        self.bell.ring();
        stored
    }
}

impl Inbox for InMemoryJournal {
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(self.post_now(run, entry)))
    }

    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        Box::pin(std::future::ready(self.with_log(run, |log| log.inbox.clone())))
    }

    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        let removed = self.with_log(run, |log| log.inbox.retain(|entry| !ids.contains(&entry.id)));
        Box::pin(std::future::ready(removed))
    }

    fn changed<'a>(&'a self, _: &'a RunId) -> BoxFuture<'a, ()> {
        self.bell.rung()
    }
}

/// Returns the head of a log; `None` for a log without records, which counts as no run. As in the other
/// journals, the first records have the session and tenant, and the last one has the status.
fn head(run: &RunId, log: &Log) -> Option<RunHead> {
    let first = log.records.iter().take(FIRST);
    let ends: Vec<_> = first.chain(log.records.last()).cloned().collect();
    let head = RunHead::of(run.clone(), &ends);
    let head = if log.has_writer { head } else { head.not_worked_on() };
    (!ends.is_empty()).then_some(head)
}

#[derive(Debug, Default)]
struct Log {
    records: Vec<Arc<Record>>,
    has_writer: bool,
    inbox: Vec<InboxEntry>,
}

struct MemoryWriter {
    run: RunId,
    log: Arc<Mutex<Log>>,
    runs: Runs,
}

impl MemoryWriter {
    fn append_now(&self, records: &[Arc<Record>]) -> Result<(), JournalError> {
        let mut log = guard(&self.log);
        check_records(&self.run, log.records.len() as u64, records)?;
        log.records.extend_from_slice(records);
        Ok(())
    }
}

impl RunWriter for MemoryWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        _: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(self.append_now(records)))
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        let mut runs = guard(&self.runs);
        let mut log = guard(&self.log);
        log.has_writer = false;
        // No log is kept of a run that never began.
        if log.records.is_empty() {
            runs.remove(&self.run);
        }
    }
}

/// Locks a mutex, even after a thread panicked while it held the lock: each change of a log is a single step,
/// so the log is still valid.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
