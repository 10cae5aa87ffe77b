//! The log of a run that is being driven: records go to the journal first, then to the watchers.

use std::sync::Arc;

use archon_run::{Heard, Mailbox};
use archon_types::{
    BoxFuture, Context, Durability, Inbox, InboxEntry, InboxRequest, JournalError, LogAppender, PromptSource,
    Record, RecordBody, RunId, RunWriter,
};

use crate::ReactMachine;

/// Appends to one run's log and tells the watchers.
pub struct RunLog {
    appender: LogAppender,
    mailbox: Option<Arc<Mailbox>>,
}

impl RunLog {
    /// Makes a log that has `next_seq` records already.
    pub fn new(writer: Box<dyn RunWriter>, next_seq: u64, context: Context) -> Self {
        Self { appender: LogAppender::new(writer, next_seq, context), mailbox: None }
    }

    /// Makes a log that is not stored and goes to the watchers only.
    pub(crate) fn not_kept(mut context: Context) -> Self {
        // The caller must not be told of a log that does not exist.
        context.delegation = None;
        Self::new(Box::new(Nowhere), 0, context)
    }

    /// Sets the inbox whose messages are moved into the log, except those that `records`, the log so far, has
    /// already.
    pub fn with_inbox(mut self, inbox: Option<Arc<dyn Inbox>>, records: &[Arc<Record>]) -> Self {
        self.mailbox = Mailbox::of(inbox, self.appender.context(), records);
        self
    }

    /// Returns the id of the run.
    pub(crate) fn run(&self) -> &RunId {
        self.appender.run()
    }

    pub(crate) fn mailbox(&self) -> Option<Arc<Mailbox>> {
        self.mailbox.clone()
    }

    /// Moves messages of the inbox into the log; returns true if there were any.
    pub(crate) async fn receive(&mut self, machine: &mut ReactMachine) -> Result<bool, JournalError> {
        // Messages after the last record wait for a resume.
        let Some(mailbox) = self.mailbox.clone().filter(|_| machine.ended().is_none()) else {
            return Ok(false);
        };
        // Looks into the inbox itself, because the pump only runs while the driver waits.
        mailbox.look().await;
        let mut any = false;
        while let Some(bodies) = mailbox.take(|entry| meaning(machine, entry)) {
            any = true;
            self.appender.step(bodies, |record| machine.apply(record)).await?;
        }
        mailbox.clear().await;
        Ok(any)
    }

    /// Appends one record, which is stored as durably as its kind asks for when this returns.
    ///
    /// # Errors
    /// The journal could not keep the record. Nothing that depends on it may happen.
    pub async fn append(&mut self, body: RecordBody) -> Result<Arc<Record>, JournalError> {
        let mut records = self.append_all(vec![body]).await?;
        // One body in, one record out.
        Ok(records.swap_remove(0))
    }

    /// Closes the log, so that others can open it. Nothing is appended any more.
    pub(crate) fn close(&mut self) {
        let context = self.appender.context().clone();
        let closed = Closed(context.run.clone());
        self.appender = LogAppender::new(Box::new(closed), self.appender.len(), context);
    }

    /// Appends one record and applies it to the machine.
    pub(crate) async fn step(
        &mut self,
        machine: &mut ReactMachine,
        body: RecordBody,
    ) -> Result<(), JournalError> {
        self.appender.step(vec![body], |record| machine.apply(record)).await
    }

    /// Appends several records at once, which costs one sync.
    ///
    /// # Errors
    /// See [`append`](Self::append).
    pub async fn append_all(&mut self, bodies: Vec<RecordBody>) -> Result<Vec<Arc<Record>>, JournalError> {
        self.appender.append(bodies).await
    }
}

/// Returns the effect of a message on a loop. An answer to a question that is not open changes nothing.
fn meaning(machine: &ReactMachine, entry: InboxEntry) -> Heard {
    Heard::Record(match entry.request {
        InboxRequest::Steer { message } => RecordBody::Prompted { message, source: PromptSource::Steer },
        InboxRequest::FollowUp { message } => {
            RecordBody::Prompted { message, source: PromptSource::FollowUp }
        }
        InboxRequest::Cancel { reason } => RecordBody::CancelRequested { reason },
        InboxRequest::Answer { request_id, binding, answer } => {
            match machine.call_of_question(&request_id, &binding) {
                Some(call) => RecordBody::ToolAnswered { call, answer },
                None => RecordBody::ClockRead,
            }
        }
        // A request of a newer version is acknowledged and has no effect.
        _ => RecordBody::ClockRead,
    })
}

/// The writer of a closed log, which refuses every record.
struct Closed(RunId);

impl RunWriter for Closed {
    fn append<'a>(
        &'a mut self,
        _: &'a [Arc<Record>],
        _: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        let locked = JournalError::Locked { run: self.0.clone() };
        Box::pin(std::future::ready(Err(locked)))
    }
}

/// A writer that stores nothing.
struct Nowhere;

impl RunWriter for Nowhere {
    fn append<'a>(
        &'a mut self,
        _: &'a [Arc<Record>],
        _: Durability,
    ) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl std::fmt::Debug for RunLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunLog").field("appender", &self.appender).finish_non_exhaustive()
    }
}
