//! An in-memory journal whose process dies at a chosen append, before or after the write.

#![allow(clippy::expect_used, reason = "a check may panic")]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    BoxFuture, Durability, Journal, JournalError, OpenMode, OpenRun, Record, RunFilter, RunHead, RunId,
    RunWriter,
};

/// A journal in memory that fails from a chosen append on, as if the process had died. Records go through JSON text,
/// as in a real journal. Clones share the logs. Logs are not locked, so that a run can be resumed while async tasks
/// of the "dead" process still hold its log.
///
/// ```
/// use archon_testkit::MortalJournal;
///
/// let journal = MortalJournal::default();
/// journal.die_after(3, true); // the third append fails, although its record is written
/// ```
#[derive(Clone, Default)]
pub struct MortalJournal(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    logs: HashMap<RunId, Vec<Arc<Record>>>,
    /// The number of appends until the process dies; `None` if it does not die.
    appends: Option<u64>,
    /// True if the append at which the process dies still writes its records.
    is_written: bool,
}

impl MortalJournal {
    /// Makes the `appends`th append from now fail, and all later ones. With `is_written`, the `appends`th append
    /// fails only after its records are in the log.
    pub fn die_after(&self, appends: u64, is_written: bool) {
        let mut state = self.state();
        (state.appends, state.is_written) = (Some(appends), is_written);
    }

    /// Makes appends succeed again.
    pub fn live(&self) {
        self.state().appends = None;
    }

    /// Returns the records of a run; empty if there is no such run.
    pub fn log(&self, run: &str) -> Vec<Arc<Record>> {
        self.state().logs.get(&RunId::new(run)).cloned().unwrap_or_default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn died() -> JournalError {
    JournalError::Storage {
        action: "write",
        place: "memory".into(),
        source: std::io::Error::other("the process died"),
    }
}

impl Journal for MortalJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let state = self.state();
            let records = match (state.logs.get(run).cloned(), mode) {
                (Some(_), OpenMode::Create) => return Err(JournalError::Exists { run: run.clone() }),
                (None, OpenMode::Existing) => return Err(JournalError::UnknownRun { run: run.clone() }),
                (records, _) => records.unwrap_or_default(),
            };
            Ok(OpenRun { records, writer: Box::new(Writer(self.clone(), run.clone())) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(async move {
            let log = self.state().logs.get(run).cloned();
            log.ok_or_else(|| JournalError::UnknownRun { run: run.clone() })
        })
    }

    fn list<'a>(&'a self, _: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

struct Writer(MortalJournal, RunId);

impl RunWriter for Writer {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        _: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let mut state = self.0.state();
            let is_last = match &mut state.appends {
                None => false,
                Some(0) => return Err(died()),
                Some(appends) => {
                    *appends -= 1;
                    *appends == 0
                }
            };
            if is_last && !state.is_written {
                return Err(died());
            }
            let log = state.logs.entry(self.1.clone()).or_default();
            for record in records {
                // Records go through text, as in a real journal.
                let text = serde_json::to_string(record).expect("a record is text");
                assert_eq!(record.seq, log.len() as u64);
                log.push(Arc::new(serde_json::from_str(&text).expect("what was written is read")));
            }
            if is_last { Err(died()) } else { Ok(()) }
        })
    }
}
