//! A journal in memory that can die at a chosen append.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use archon_types::{
    BoxFuture, Durability, Journal, JournalError, OpenMode, OpenRun, Record, RunHead, RunId, RunWriter,
};

#[derive(Clone, Default)]
pub(crate) struct TestJournal(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    logs: HashMap<RunId, Vec<Arc<Record>>>,
    /// Appends until the process dies.
    left: Option<u64>,
    /// Whether the last append before the death is in the log.
    is_written: bool,
}

impl TestJournal {
    /// Dies at the `appends`th append from now, after it was written or before.
    pub(crate) fn die_after(&self, appends: u64, is_written: bool) {
        let mut state = self.0.lock().unwrap();
        (state.left, state.is_written) = (Some(appends), is_written);
    }

    pub(crate) fn live(&self) {
        self.0.lock().unwrap().left = None;
    }

    pub(crate) fn log(&self, run: &str) -> Vec<Arc<Record>> {
        self.0.lock().unwrap().logs.get(&RunId::new(run)).cloned().unwrap_or_default()
    }
}

fn died() -> JournalError {
    JournalError::Storage {
        action: "write",
        place: "memory".into(),
        source: std::io::Error::other("the process died"),
    }
}

impl Journal for TestJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let mut state = self.0.lock().unwrap();
            let records = match (state.logs.get(run).cloned(), mode) {
                (Some(_), OpenMode::Create) => return Err(JournalError::Exists { run: run.clone() }),
                (None, OpenMode::Existing) => return Err(JournalError::UnknownRun { run: run.clone() }),
                (records, _) => records.unwrap_or_default(),
            };
            state.logs.entry(run.clone()).or_default();
            Ok(OpenRun { records, writer: Box::new(Writer(self.clone(), run.clone())) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(async move {
            let log = self.0.lock().unwrap().logs.get(run).cloned();
            log.ok_or_else(|| JournalError::UnknownRun { run: run.clone() })
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<RunHead>, JournalError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

struct Writer(TestJournal, RunId);

impl RunWriter for Writer {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        _: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let mut state = self.0.0.lock().unwrap();
            let is_last = match &mut state.left {
                None => false,
                Some(0) => return Err(died()),
                Some(left) => {
                    *left -= 1;
                    *left == 0
                }
            };
            if is_last && !state.is_written {
                return Err(died());
            }
            let log = state.logs.get_mut(&self.1).unwrap();
            for record in records {
                // A log is text: what is read again has to be what was written.
                let text = serde_json::to_string(record).unwrap();
                assert_eq!(record.seq, log.len() as u64);
                log.push(Arc::new(serde_json::from_str(&text).unwrap()));
            }
            if is_last { Err(died()) } else { Ok(()) }
        })
    }
}
