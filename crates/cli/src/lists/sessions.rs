//! The list of sessions, made from the runs of the journal.

use archon::types::{RunHead, RunStatus, SessionId, Timestamp};
use serde::Serialize;

/// A session in a list.
#[derive(Debug, Serialize)]
pub(crate) struct Item {
    pub(crate) session_id: SessionId,
    pub(crate) started_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) runs: usize,
    pub(crate) status: RunStatus,
    /// The first prompt, shortened.
    pub(crate) task: String,
}

/// Returns an item for each session of the runs. Runs and items are ordered by the last write, newest first.
pub(crate) fn items(heads: Vec<RunHead>) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for head in heads {
        let Some(session_id) = head.session else { continue };
        match items.iter_mut().find(|item| item.session_id == session_id) {
            Some(item) => {
                item.runs += 1;
                if head.started_at <= item.started_at {
                    (item.started_at, item.task) = (head.started_at, head.task);
                }
            }
            None => items.push(Item {
                session_id,
                started_at: head.started_at,
                updated_at: head.updated_at,
                runs: 1,
                status: head.status,
                task: head.task,
            }),
        }
    }
    items
}
