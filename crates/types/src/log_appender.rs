//! Appends records to the log of a run: numbers and dates them, redacts secrets, writes to the journal and
//! then sends events. Every driver writes through it.

use std::sync::Arc;

use crate::{
    Context, Delegation, Durability, Event, Journal, JournalError, OpenMode, OpenRun, Record, RecordBody,
    RunId, RunStarted, RunWriter, not_before,
};

/// Appends to one run's log and sends the records to watchers.
pub struct LogAppender {
    writer: Box<dyn RunWriter>,
    next_seq: u64,
    context: Context,
    /// The call that the run works for, until the caller's log records that this log exists.
    untold: Option<Arc<Delegation>>,
}

impl LogAppender {
    /// Creates an appender for a log that has `next_seq` records already.
    pub fn new(writer: Box<dyn RunWriter>, next_seq: u64, context: Context) -> Self {
        let untold = context.delegation.clone().filter(|by| by.child == context.run);
        Self { writer, next_seq, context, untold }
    }

    /// Creates the log of the run that `context` names, with all of its first records at once, so that a
    /// crash leaves no run without a prompt. Returns the records too.
    ///
    /// # Errors
    /// The run exists, or the journal could not write its first records.
    pub async fn begin(
        journal: &dyn Journal,
        started: RunStarted,
        rest: Vec<RecordBody>,
        context: &Context,
    ) -> Result<(Self, Vec<Arc<Record>>), JournalError> {
        let OpenRun { writer, .. } = journal.open(&context.run, OpenMode::Create).await?;
        let mut log = Self::new(writer, 0, context.clone());
        let first = std::iter::once(RecordBody::RunStarted(Box::new(started)));
        let records = log.append(first.chain(rest).collect()).await?;
        Ok((log, records))
    }

    /// Appends records together, with one sync at most. When this returns they are as durable as their kinds
    /// need.
    ///
    /// # Errors
    /// The journal could not write the records: nothing that depends on them may happen.
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
        if let Some(by) = self.untold.take()
            && let Some(log) = &by.caller_log
        {
            log.child_begun(by.call, &by.child).await;
        }
        Ok(records)
    }

    /// Appends records, and applies each to the run's machine.
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

    /// Returns the run of this log.
    pub fn run(&self) -> &RunId {
        &self.context.run
    }

    /// Returns the number of records in the log.
    pub fn len(&self) -> u64 {
        self.next_seq
    }

    /// Returns true if the log has no record yet.
    pub fn is_empty(&self) -> bool {
        self.next_seq == 0
    }

    /// Returns the context of the run.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

impl OpenRun {
    /// Returns the context for resuming a run: `given`, with the session and the tenant of the run, and a
    /// clock that does not fall behind the end of its log.
    pub fn context(&self, given: &Context) -> Context {
        let mut context = given.clone();
        if let Some(last) = self.records.last() {
            context.clock = not_before(last.at, context.clock);
        }
        if let Some(RecordBody::RunStarted(started)) = self.records.first().map(|record| &record.body) {
            context.session = started.session.clone();
            context.tenant = started.tenant.clone();
        }
        context
    }

    /// Returns true if the log has a prompt.
    pub fn is_asked(&self) -> bool {
        self.records.iter().any(|record| matches!(record.body, RecordBody::Prompted { .. }))
    }

    /// Creates an appender at the end of the log.
    pub fn log(self, context: Context) -> LogAppender {
        LogAppender::new(self.writer, self.records.len() as u64, context)
    }
}

impl std::fmt::Debug for LogAppender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogAppender").field("next_seq", &self.next_seq).finish_non_exhaustive()
    }
}
