//! Appending to the log of a run that is being driven: records are numbered and dated, go to the journal first, and
//! then to whoever watches. Every driver writes through it, and no secret of the run gets past it.

use std::sync::Arc;

use crate::{
    Context, Delegation, Durability, Event, Journal, JournalError, OpenMode, OpenRun, Record, RecordBody,
    RunId, RunStarted, RunWriter, not_before,
};

/// Appends to one run's log and tells the watchers.
pub struct LogAppender {
    writer: Box<dyn RunWriter>,
    next_seq: u64,
    context: Context,
    /// The call that the run works for, until the caller's log says that this log is there.
    untold: Option<Arc<Delegation>>,
}

impl LogAppender {
    /// An appender to a log that has `next_seq` records already.
    pub fn new(writer: Box<dyn RunWriter>, next_seq: u64, context: Context) -> Self {
        let untold = context.delegation.clone().filter(|by| by.child == context.run);
        Self { writer, next_seq, context, untold }
    }

    /// Begins the log of the run that `context` names, which must not be there, with all that the run begins with at
    /// once: a process that dies leaves no run of which nobody knows what was asked. Gives back the records too.
    ///
    /// # Errors
    /// The run is there, or the journal could not keep its first records.
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

    /// Appends records at once, which costs one sync at most. When this returns they are as safe as their kinds ask
    /// for.
    ///
    /// # Errors
    /// The journal could not keep the records: nothing that depends on them may happen.
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
        // Before the run does anything: a log that is missing later is known to be lost.
        if let Some(by) = self.untold.take()
            && let Some(log) = &by.caller_log
        {
            log.child_begun(by.call, &by.child).await;
        }
        Ok(records)
    }

    /// Appends records, and lets the machine of the run apply each.
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

    /// The run whose log this is.
    pub fn run(&self) -> &RunId {
        &self.context.run
    }

    /// How many records the log has.
    pub fn len(&self) -> u64 {
        self.next_seq
    }

    /// Whether the log has no record yet.
    pub fn is_empty(&self) -> bool {
        self.next_seq == 0
    }

    /// In which the run is driven.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

impl OpenRun {
    /// The context of a run that is taken up: as `given`, in the session that the run was begun in and for the tenant
    /// that it was begun for, and at no earlier time than its log ends with.
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

    /// Whether somebody said what the run is to do, before its process died.
    pub fn is_asked(&self) -> bool {
        self.records.iter().any(|record| matches!(record.body, RecordBody::Prompted { .. }))
    }

    /// Goes on with the log where it ends.
    pub fn log(self, context: Context) -> LogAppender {
        LogAppender::new(self.writer, self.records.len() as u64, context)
    }
}

impl std::fmt::Debug for LogAppender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogAppender").field("next_seq", &self.next_seq).finish_non_exhaustive()
    }
}
