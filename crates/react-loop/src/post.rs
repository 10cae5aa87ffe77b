//! Posts messages to a run through its inbox. The run may be in another process.

use archon_types::{InboxEntry, InboxRequest, Journal, JournalError, RunId, RunKind, RunRefused, RunStarted};

use crate::{LoopError, agent::check_media, resume::is_finished};

/// Puts `entry` into the inbox of a run. The driver of the run reads the entry, now or after a resume.
///
/// # Errors
/// The run is unknown or has ended; its kind does not accept the entry (a parallel loop accepts only a
/// cancel, a plan or a team only a cancel and answers); the message has a file that neither the model nor a tool of
/// the run can read; or the journal has no inbox.
pub async fn post(journal: &dyn Journal, run: &RunId, entry: InboxEntry) -> Result<(), LoopError> {
    let inbox = journal.inbox().ok_or(JournalError::Unsupported { action: "deliver messages to runs" })?;
    let records = journal.read(run).await?;
    if is_finished(&records) {
        return Err(RunRefused::Ended { run: run.clone() }.into());
    }
    let started = RunStarted::of(&records).ok_or_else(|| LoopError::NotARun { run: run.clone() })?;
    let takes = match entry.request {
        InboxRequest::Cancel { .. } => true,
        InboxRequest::Answer { .. } => started.kind != RunKind::Parallel,
        _ => started.kind == RunKind::Loop,
    };
    if !takes {
        return Err(LoopError::OtherKind { run: run.clone(), kind: started.kind });
    }
    if let InboxRequest::Steer { message } | InboxRequest::FollowUp { message } = &entry.request {
        check_media([message], &started.config)?;
    }
    Ok(inbox.post(run, entry).await?)
}
