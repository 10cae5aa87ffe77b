//! The inbox of a run: what others want of a run that somebody else writes to.
//!
//! A run has one writer. Whoever else wants to speak into it, or to stop it, leaves a message here; the
//! writer, or whoever takes the run up next, moves it into the log and then removes it. What moves
//! stands in the log behind a `Received` record with the message's id, so a message that was moved and
//! could not be removed any more is not moved again.

use std::{collections::HashSet, sync::Arc};

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{AgentMessage, Answer, JournalError, Record, RecordBody, RunId, Timestamp};

/// Where messages to runs wait.
pub trait Inbox: Send + Sync {
    /// Leaves a message. It is on the medium once this returns.
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>>;

    /// What waits, oldest first.
    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>>;

    /// Removes messages by their ids; one that is gone already is no error.
    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Ready when something may have been posted since this was called; by default never.
    fn changed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, ()> {
        let _ = run;
        Box::pin(std::future::pending())
    }
}

/// The messages that a log has received. One at its very end did not arrive: what follows from it is not there.
pub fn received_messages(records: &[Arc<Record>]) -> HashSet<String> {
    let ids = records.windows(2).filter_map(|pair| match &pair[0].body {
        RecordBody::Received { id } => Some(id.clone()),
        _ => None,
    });
    ids.collect()
}

/// One message to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InboxEntry {
    /// Unique within the run: letters, digits, `-` and `_`.
    pub id: String,
    /// When it was posted.
    pub at: Timestamp,
    /// What is wanted.
    pub request: InboxRequest,
}

impl InboxEntry {
    /// A message.
    pub fn new(id: impl Into<String>, at: Timestamp, request: InboxRequest) -> Self {
        Self { id: id.into(), at, request }
    }
}

/// What somebody wants of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
#[non_exhaustive]
pub enum InboxRequest {
    /// The model reads this in its next request, and calls that were not started are skipped.
    Steer {
        /// What is said.
        message: AgentMessage,
    },
    /// The model reads this when the run would end.
    FollowUp {
        /// What is said.
        message: AgentMessage,
    },
    /// The run ends as cancelled.
    Cancel {
        /// Who or what asks, for people.
        reason: String,
    },
    /// Answers a question of the run. One that is not open any more is not heard.
    Answer {
        /// [`ApprovalRequest::request_id`](crate::ApprovalRequest::request_id).
        request_id: String,
        /// [`ApprovalRequest::binding`](crate::ApprovalRequest::binding) as it was when the question was answered. An
        /// answer to a question that is bound to something else by now is not heard.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        binding: String,
        /// The answer.
        answer: Answer,
    },
}
