//! Words to a run that may be in another process: they wait in its inbox until it reads them.

use archon_types::{InboxEntry, InboxRequest, Journal, JournalError, RecordBody, RunId};

use crate::{LoopError, is_parallel, resume::follows_plan};

/// Puts `entry` into the inbox of a run. Whoever works on the run reads it, or whoever takes it up next.
///
/// # Errors
/// The run is unknown or has ended; it is a parallel loop, which takes nothing but a cancel, or a plan or a team, which
/// take answers, too; or its journal takes no messages.
pub async fn post(journal: &dyn Journal, run: &RunId, entry: InboxEntry) -> Result<(), LoopError> {
    let inbox = journal.inbox().ok_or(JournalError::Unsupported { action: "take messages to runs" })?;
    let records = journal.read(run).await?;
    if matches!(records.last().map(|r| &r.body), Some(RecordBody::RunFinished(_))) {
        return Err(LoopError::Ended { run: run.clone() });
    }
    let is_of_leads = matches!(entry.request, InboxRequest::Cancel { .. } | InboxRequest::Answer { .. });
    if follows_plan(&records) && !is_of_leads {
        return Err(LoopError::Plan { run: run.clone() });
    }
    if is_parallel(&records) && !matches!(entry.request, InboxRequest::Cancel { .. }) {
        return Err(LoopError::Parallel { run: run.clone() });
    }
    Ok(inbox.post(run, entry).await?)
}
