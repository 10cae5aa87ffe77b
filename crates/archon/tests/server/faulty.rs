//! A journal in memory whose storage fails when a test wants it.

use std::{
    io::ErrorKind,
    sync::{Arc, Mutex},
};

use archon::{
    RunId,
    store::InMemoryJournal,
    types::{
        BoxFuture, Durability, Inbox, Journal, JournalError, OpenMode, OpenRun, Record, RunFilter, RunHead,
        RunWriter, Salvaged,
    },
};

/// The fault of the storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// Nothing can be appended, because the disk is full.
    Full,
    /// Of the records of an append only the first has space.
    NearlyFull,
    /// Nothing can be written, read or listed, because the database has stopped.
    Stopped,
    /// The log of this run cannot be read.
    Unreadable(RunId),
    /// All logs are damaged behind the records that they have.
    Damaged,
}

/// A journal in memory with a fault. Clones share the logs and the fault.
#[derive(Clone, Default)]
pub(crate) struct Faulty {
    inner: InMemoryJournal,
    fault: Arc<Mutex<Fault>>,
}

impl Faulty {
    pub(crate) fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn fault(&self) -> Fault {
        self.fault.lock().unwrap().clone()
    }

    /// Returns an error if the log of this run, or without a run the list, cannot be read now.
    fn check(&self, action: &'static str, run: Option<&RunId>) -> Result<(), JournalError> {
        match self.fault() {
            Fault::Stopped => Err(failed(action, ErrorKind::ConnectionRefused)),
            Fault::Unreadable(unreadable) if run == Some(&unreadable) => {
                Err(failed(action, ErrorKind::PermissionDenied))
            }
            _ => Ok(()),
        }
    }

    fn head_now(&self, head: RunHead) -> RunHead {
        if self.fault() == Fault::Damaged { head.damaged("record 3 has \"a secret plan") } else { head }
    }
}

fn failed(action: &'static str, kind: ErrorKind) -> JournalError {
    JournalError::Storage { action, place: "runs.db".into(), source: kind.into() }
}

impl Journal for Faulty {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        Box::pin(async move {
            self.check("open", Some(run))?;
            let OpenRun { records, writer } = self.inner.open(run, mode).await?;
            Ok(OpenRun { records, writer: Box::new(Writer { inner: writer, journal: self.clone() }) })
        })
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(async move {
            self.check("read", Some(run))?;
            self.inner.read(run).await
        })
    }

    fn salvage<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        Box::pin(async move {
            self.check("read", Some(run))?;
            self.inner.salvage(run).await
        })
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        Box::pin(async move {
            self.check("list", None)?;
            Ok(self.inner.list(filter).await?.into_iter().map(|head| self.head_now(head)).collect())
        })
    }

    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        Box::pin(async move {
            self.check("read", Some(run))?;
            Ok(self.head_now(self.inner.head(run).await?))
        })
    }

    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            self.check("delete", Some(run))?;
            self.inner.delete(run).await
        })
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.inner.inbox()
    }
}

struct Writer {
    inner: Box<dyn RunWriter>,
    journal: Faulty,
}

impl RunWriter for Writer {
    fn append<'a>(
        &'a mut self,
        records: &'a [Arc<Record>],
        durability: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            match self.journal.fault() {
                Fault::Full => return Err(failed("write", ErrorKind::StorageFull)),
                Fault::NearlyFull => {
                    self.inner.append(&records[..1], durability).await?;
                    return Err(failed("write", ErrorKind::StorageFull));
                }
                _ => self.journal.check("write", None)?,
            }
            self.inner.append(records, durability).await
        })
    }
}
