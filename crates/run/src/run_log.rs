//! Appends records to the log of a run: adds sequence numbers and times, redacts secrets, writes to the
//! journal and then sends events. Every driver writes through a `RunLog`.

use std::sync::Arc;

use archon_types::{
    BoxFuture, Context, Delegation, Durability, Event, Journal, JournalError, OpenMode, OpenRun, Record,
    RecordBody, RunId, RunStarted, RunWriter,
};

use crate::{Mailbox, cancelled_alone};

/// Appends records to the log of one run and sends them to watchers.
pub struct RunLog {
    writer: Box<dyn RunWriter>,
    next_seq: u64,
    context: Context,
    /// The delegation for which the run works; `None` if there is none, or once the caller's log records that this
    /// log exists.
    unannounced: Option<Arc<Delegation>>,
    mailbox: Option<Arc<Mailbox>>,
}

impl RunLog {
    /// Creates the log of a run without an inbox; the log already has `next_seq` records.
    pub fn new(writer: Box<dyn RunWriter>, next_seq: u64, context: Context) -> Self {
        let unannounced = context.delegation.clone().filter(|by| by.child == context.run);
        Self { writer, next_seq, context, unannounced, mailbox: None }
    }

    /// Creates a log that is not stored; its records go to the watchers only.
    pub fn unstored(context: Context) -> Self {
        // The caller must not record a log that does not exist.
        Self { unannounced: None, ..Self::new(Box::new(Unstored { closed: None }), 0, context) }
    }

    /// Creates the log of the run that `context` names. Writes `started` and `rest` together, so that a crash leaves
    /// no run without a prompt. The run gets a cancellation token of its own. Returns the log and its records.
    ///
    /// # Errors
    /// The run exists already, or the journal could not write the first records.
    pub async fn begin(
        journal: &dyn Journal,
        started: RunStarted,
        rest: Vec<RecordBody>,
        context: &Context,
    ) -> Result<(Self, Vec<Arc<Record>>), JournalError> {
        let open = journal.open(&context.run, OpenMode::Create).await?;
        let mut log = Self::resume(journal, open, cancelled_alone(context));
        let first = std::iter::once(RecordBody::RunStarted(Box::new(started)));
        let records = log.append(first.chain(rest).collect()).await?;
        Ok((log, records))
    }

    /// Continues a log after its last record. The cancellation token of `context` must belong to the run alone.
    pub fn resume(journal: &dyn Journal, open: OpenRun, context: Context) -> Self {
        let mailbox = Mailbox::of(journal.inbox(), &context, &open.records);
        Self { mailbox, ..Self::new(open.writer, open.records.len() as u64, context) }
    }

    /// Appends records in one write, with at most one sync to the disk. When this function returns, the records
    /// are as durable as their types require.
    ///
    /// # Errors
    /// The journal could not write the records; nothing that depends on them may happen.
    pub async fn append(&mut self, mut bodies: Vec<RecordBody>) -> Result<Vec<Arc<Record>>, JournalError> {
        self.context.redactor.clean_records(&mut bodies);
        let synced = bodies.iter().any(RecordBody::needs_sync);
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        let at = self.context.clock.now();
        let records: Vec<_> =
            (self.next_seq..).zip(bodies).map(|(seq, body)| Arc::new(Record { seq, at, body })).collect();
        self.writer.append(&records, durability).await?;
        self.next_seq += records.len() as u64;
        for record in &records {
            self.context.sink.emit(Event::Record { run: self.context.run.clone(), record: record.clone() });
        }
        // Must come before the run does anything, so that a missing log is known to be lost.
        if let Some(by) = self.unannounced.take()
            && let Some(log) = &by.caller_log
        {
            log.child_run_created(by.call, &by.child).await;
        }
        Ok(records)
    }

    /// Appends records, and applies each record to the run's machine.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub async fn step(
        &mut self,
        bodies: Vec<RecordBody>,
        mut apply: impl FnMut(&Record) + Send,
    ) -> Result<(), JournalError> {
        self.append(bodies).await?.iter().for_each(|record| apply(record));
        Ok(())
    }

    /// Returns the mailbox of the run; `None` if the journal has no inbox.
    pub fn mailbox(&self) -> Option<Arc<Mailbox>> {
        self.mailbox.clone()
    }

    /// Closes the log, so that other processes can open it. Nothing can be appended after that.
    pub fn close(&mut self) {
        self.writer = Box::new(Unstored { closed: Some(self.context.run.clone()) });
    }

    /// Returns the id of the run.
    pub fn run(&self) -> &RunId {
        &self.context.run
    }

    /// Returns the context of the run.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

/// A writer that stores nothing.
struct Unstored {
    /// The id of the run, once its log is closed: the writer then refuses every record.
    closed: Option<RunId>,
}

impl RunWriter for Unstored {
    fn append<'a>(
        &'a mut self,
        _: &'a [Arc<Record>],
        _: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        let locked = self.closed.clone().map(|run| JournalError::Locked { run });
        Box::pin(std::future::ready(locked.map_or(Ok(()), Err)))
    }
}

archon_types::debug_fields!(RunLog: next_seq);
