//! The steps of a loop in its log: records that are applied to the machine at once, and messages for the run.

use archon_run::{Heard, RunLog};
use archon_types::{InboxEntry, InboxRequest, JournalError, PromptSource, RecordBody};

use crate::ReactMachine;

/// Appends one record and applies it to the machine.
pub(crate) async fn step(
    log: &mut RunLog,
    machine: &mut ReactMachine,
    body: RecordBody,
) -> Result<(), JournalError> {
    log.step(vec![body], |record| machine.apply(record)).await
}

/// Moves the messages of the inbox into the log; returns true if there were any.
pub(crate) async fn receive(log: &mut RunLog, machine: &mut ReactMachine) -> Result<bool, JournalError> {
    // A message after the last record waits until the run is resumed.
    let Some(mailbox) = log.mailbox().filter(|_| machine.ended().is_none()) else { return Ok(false) };
    // Reads the inbox now: the pump is polled only while the driver waits.
    mailbox.look().await;
    let mut any = false;
    while let Some(bodies) = mailbox.take(|entry| meaning(machine, entry)) {
        any = true;
        log.step(bodies, |record| machine.apply(record)).await?;
    }
    mailbox.clear().await;
    Ok(any)
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
