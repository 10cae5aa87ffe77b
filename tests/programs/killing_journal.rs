//! A journal whose process dies at a chosen moment; part of the programs that are killed.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Result, bail};
use archon::{
    store::{JsonlJournal, SqliteJournal},
    types::{
        BoxFuture, Durability, Journal, JournalError, OpenMode, OpenRun, Record, RunFilter, RunHead, RunId,
        RunWriter,
    },
};

/// A journal whose process dies right after a chosen record, whichever run it belongs to.
pub(crate) struct KillingJournal {
    inner: Arc<dyn Journal>,
    kill_at: Option<u64>,
    written: Arc<AtomicU64>,
}

struct KillingWriter {
    inner: Box<dyn RunWriter>,
    kill_at: Option<u64>,
    written: Arc<AtomicU64>,
}

impl KillingJournal {
    /// The journal of `kind` in `dir`. With `kill_at` the process dies right after so many records of this
    /// process, counted from 0 over all runs.
    pub(crate) fn open(dir: &Path, kind: &str, kill_at: Option<u64>) -> Result<Self> {
        let inner: Arc<dyn Journal> = match kind {
            "jsonl" => Arc::new(JsonlJournal::open(dir)?),
            "sqlite" => Arc::new(SqliteJournal::open(dir.join("runs.db"))?),
            other => bail!("{other}: jsonl or sqlite"),
        };
        Ok(Self { inner, kill_at, written: Arc::default() })
    }
}

impl Journal for KillingJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            let OpenRun { records, writer } = self.inner.open(run, mode).await?;
            let (kill_at, written) = (self.kill_at, self.written.clone());
            Ok(OpenRun { records, writer: Box::new(KillingWriter { inner: writer, kill_at, written }) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.inner.read(run)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.inner.list(filter)
    }
}

impl RunWriter for KillingWriter {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            for record in records {
                self.inner.append(std::slice::from_ref(record), durability).await?;
                if Some(self.written.fetch_add(1, Ordering::Relaxed)) == self.kill_at {
                    let me = rustix::process::getpid();
                    let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
                    std::future::pending::<()>().await;
                }
            }
            Ok(())
        })
    }
}
