//! The log of a team's run while it works: records go to the journal first, then to the machine and whoever watches.

use std::sync::Arc;

use archon_types::{Context, Durability, Event, JournalError, Record, RecordBody, RunWriter};

use crate::TeamMachine;

/// Appends to one run's log and tells the machine and the watchers.
pub(crate) struct TeamLog {
    writer: Box<dyn RunWriter>,
    next_seq: u64,
    context: Context,
}

impl TeamLog {
    /// A log that has `next_seq` records already.
    pub(crate) fn new(writer: Box<dyn RunWriter>, next_seq: u64, context: Context) -> Self {
        Self { writer, next_seq, context }
    }

    /// Appends records at once; when this returns they are as safe as their kinds ask for.
    pub(crate) async fn append(&mut self, bodies: Vec<RecordBody>) -> Result<Vec<Arc<Record>>, JournalError> {
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
        Ok(records)
    }

    /// Appends records and lets the machine know.
    pub(crate) async fn step(
        &mut self,
        machine: &mut TeamMachine,
        bodies: Vec<RecordBody>,
    ) -> Result<(), JournalError> {
        for record in self.append(bodies).await? {
            machine.apply(&record);
        }
        Ok(())
    }
}
