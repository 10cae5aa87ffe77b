//! The inbox of a run: messages for a run that another process or task writes to.
//!
//! A run has one writer. Others leave messages here to steer, answer or cancel it. The writer, or the next
//! process that resumes the run, moves each message into the log and then removes it from the inbox. In the
//! log it follows a `InboxMessageReceived` record with the message's id, so a message that could not be removed is not
//! moved twice.

use std::{collections::HashSet, sync::Arc};

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    messages::AgentMessage,
    tools::{Answer, ApprovalRequest},
    values::{RunId, Timestamp},
};

use super::{
    journal_error::JournalError,
    record::{Record, RecordBody},
};

/// Keeps messages for runs until they are moved into the log.
pub trait Inbox: Send + Sync {
    /// Leaves a message. It is on the storage medium once this returns.
    ///
    /// Of two messages with one id, also from two processes, one is stored: the other gets
    /// [`JournalError::Posted`].
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Returns the waiting messages, oldest first.
    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>>;

    /// Removes messages by their ids; ids that do not exist are ignored.
    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Completes when a message may have been posted since this was called; default: never.
    fn changed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, ()> {
        let _ = run;
        Box::pin(std::future::pending())
    }
}

/// Returns the ids of the messages that a log has received. A `InboxMessageReceived` record at the very end does not
/// count, because the message that should follow it is missing.
pub fn received_messages(records: &[Arc<Record>]) -> HashSet<String> {
    let ids = records.windows(2).filter_map(|pair| match &pair[0].body {
        RecordBody::InboxMessageReceived { message_id: id } => Some(id.clone()),
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
    /// The time at which it was posted.
    pub at: Timestamp,
    /// The request.
    pub request: InboxRequest,
}

impl InboxEntry {
    /// Creates a message.
    pub fn new(id: impl Into<String>, at: Timestamp, request: InboxRequest) -> Self {
        Self { id: id.into(), at, request }
    }
}

/// A request to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
#[non_exhaustive]
pub enum InboxRequest {
    /// The model reads this message in its next request, and calls that have not started are skipped.
    Steer {
        /// The message.
        message: AgentMessage,
    },
    /// The model reads this message when the run would otherwise end.
    FollowUp {
        /// The message.
        message: AgentMessage,
    },
    /// The run ends as cancelled.
    Cancel {
        /// The person or the reason behind it, for people.
        reason: String,
    },
    /// Answers a question of the run. Ignored if the question is not open any more.
    Answer {
        /// [`ApprovalRequest::request_id`](crate::ApprovalRequest::request_id).
        request_id: String,
        /// [`ApprovalRequest::binding`](crate::ApprovalRequest::binding) of the question that was answered.
        /// The answer is ignored if the question has another binding by now.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        binding: String,
        /// The answer.
        answer: Answer,
    },
}

impl ApprovalRequest {
    /// Returns the inbox message with an answer to this question.
    pub fn answered(&self, answer: Answer) -> InboxRequest {
        let (request_id, binding) = (self.request_id.clone(), self.binding.clone());
        InboxRequest::Answer { request_id, binding, answer }
    }

    /// As [`answered`](Self::answered), with an id that is made from the question's, so that an inbox stores
    /// only the first of two answers ([`JournalError::Posted`](crate::JournalError::Posted)). `log` is that of
    /// the run that asks: a run that could not take an answer asks again under the same id and reads no
    /// message twice, so the answers that it has received are counted in the id.
    pub fn first_answer(&self, answer: Answer, at: Timestamp, log: &[Arc<Record>]) -> InboxEntry {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let start = format!("answer-{}-", self.request_id).replace(|c| !is_plain(c), "_");
        let earlier = received_messages(log).iter().filter(|id| id.starts_with(&start)).count();
        InboxEntry::new(format!("{start}{earlier}"), at, self.answered(answer))
    }
}
