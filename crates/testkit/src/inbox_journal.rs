//! A journal with an inbox, for tests of runs that wait for people.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    BoxFuture, Inbox, InboxEntry, InboxRequest, Journal, JournalError, OpenMode, OpenRun, Record, RunFilter,
    RunHead, RunId, Timestamp,
};

use crate::MortalJournal;

/// A [`MortalJournal`] that has an inbox and lists its runs. Clones are the same journal.
///
/// ```
/// use archon_testkit::{InboxJournal, MortalJournal};
///
/// let journal = InboxJournal::over(&MortalJournal::default());
/// assert!(journal.posted("run_1").is_empty());
/// ```
#[derive(Clone, Default)]
pub struct InboxJournal {
    logs: MortalJournal,
    inbox: Messages,
    runs: Arc<Mutex<Vec<RunId>>>,
}

#[derive(Clone, Default)]
struct Messages(Arc<Mutex<HashMap<RunId, Vec<InboxEntry>>>>);

impl Messages {
    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Vec<InboxEntry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inbox for Messages {
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        self.lock().entry(run.clone()).or_default().push(entry);
        Box::pin(async { Ok(()) })
    }

    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        let waiting = self.lock().get(run).cloned().unwrap_or_default();
        Box::pin(async { Ok(waiting) })
    }

    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.lock().entry(run.clone()).or_default().retain(|entry| !ids.contains(&entry.id));
        Box::pin(async { Ok(()) })
    }
}

impl InboxJournal {
    /// Creates a journal over existing logs. The new journal lists only the runs that are created
    /// through it.
    pub fn over(logs: &MortalJournal) -> Self {
        Self { logs: logs.clone(), ..Self::default() }
    }

    /// Returns the journal that keeps the logs.
    pub fn logs(&self) -> &MortalJournal {
        &self.logs
    }

    /// Puts a request with the id `id` into the inbox of a run.
    pub fn post(&self, run: &str, id: &str, request: InboxRequest) {
        let entry = InboxEntry::new(id, Timestamp::from_millis(0), request);
        self.inbox.lock().entry(RunId::new(run)).or_default().push(entry);
    }

    /// Returns the requests in the inbox of a run: those that were posted and that the run has not removed.
    pub fn posted(&self, run: &str) -> Vec<InboxEntry> {
        self.inbox.lock().get(&RunId::new(run)).cloned().unwrap_or_default()
    }

    fn runs(&self) -> MutexGuard<'_, Vec<RunId>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal for InboxJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        if mode == OpenMode::Create {
            self.runs().push(run.clone());
        }
        self.logs.open(run, mode)
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.logs.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        let runs = self.runs().clone();
        let head = |run: RunId| RunHead::of(run.clone(), &self.logs.log(run.as_str()));
        let heads = runs.into_iter().rev().map(head).collect();
        Box::pin(async { Ok(filter.page(heads)) })
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(self.inbox.clone()))
    }
}
