//! The inbox of a run: messages to the run from other processes and tasks.
//!
//! A run has one writer. Other processes and tasks leave messages in the inbox to steer, answer or cancel the
//! run. The writer, or the next process that resumes the run, moves each message into the log and then
//! removes it from the inbox. In the log, an `InboxMessageReceived` record with the message's id precedes the
//! message, so a message that could not be removed is not moved twice.

use std::{collections::HashSet, sync::Arc};

use futures_core::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{
    messages::AgentMessage,
    tools::{Answer, ApprovalRequest, SessionMode},
    values::{RunId, Timestamp},
};

use super::{
    journal_error::JournalError,
    record::{Record, RecordBody},
};

/// Stores messages to runs until they are moved into the log.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{BoxFuture, Inbox, InboxEntry, JournalError, RunId};
///
/// /// Prints the messages of another inbox.
/// struct Printed(Arc<dyn Inbox>);
///
/// impl Inbox for Printed {
///     fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
///         println!("to {run}: {:?}", entry.request);
///         self.0.post(run, entry)
///     }
///
///     fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
///         self.0.waiting(run)
///     }
///
///     fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
///         self.0.remove(run, ids)
///     }
///
///     fn changed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, ()> {
///         self.0.changed(run)
///     }
/// }
/// ```
pub trait Inbox: Send + Sync {
    /// Stores a message to a run. The message is on the storage medium once this returns.
    ///
    /// If two messages have the same id, also from two processes, one is stored and the other fails with
    /// [`JournalError::Posted`].
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Returns the waiting messages of a run, oldest first.
    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>>;

    /// Removes messages by their ids; ids that do not exist are ignored.
    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Returns a future that completes when a message may have been posted since this call. Default: the
    /// future never completes.
    fn changed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, ()> {
        let _ = run;
        Box::pin(std::future::pending())
    }
}

/// Returns the ids of the inbox messages that were moved into a log. An `InboxMessageReceived` record at the
/// very end does not count, because the record with the message should follow it and is missing.
pub fn received_messages(records: &[Arc<Record>]) -> HashSet<String> {
    let ids = records.windows(2).filter_map(|pair| match &pair[0].body {
        RecordBody::InboxMessageReceived { message_id: id } => Some(id.clone()),
        _ => None,
    });
    ids.collect()
}

/// A message to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InboxEntry {
    /// The id, unique within the run: letters, digits, `-` and `_`.
    pub id: String,
    /// The time at which the message was posted.
    pub at: Timestamp,
    /// The content: a message for the model, an answer, a cancel and so on.
    pub request: InboxRequest,
}

impl InboxEntry {
    /// Creates a message to a run. `id` may have only letters, digits, `-` and `_`.
    pub fn new(id: impl Into<String>, at: Timestamp, request: InboxRequest) -> Self {
        Self { id: id.into(), at, request }
    }
}

/// The content of an [`InboxEntry`]: the request to the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
#[non_exhaustive]
pub enum InboxRequest {
    /// The model reads this message in its next request, and tool calls that have not started are skipped.
    Steer {
        /// The message.
        message: AgentMessage,
    },
    /// The model reads this message when the run would otherwise end.
    FollowUp {
        /// The message.
        message: AgentMessage,
    },
    /// Cancels the run.
    Cancel {
        /// The person who cancels the run, or the reason for the cancel; the text is shown to people.
        reason: String,
    },
    /// Answers a question of the run. The answer is ignored if the question is not open any more.
    Answer {
        /// The [`request_id`](crate::ApprovalRequest::request_id) of the question.
        request_id: String,
        /// The [`binding`](crate::ApprovalRequest::binding) of the question that the person answered. The
        /// answer is ignored if the question was asked again with another binding.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        binding: String,
        /// The answer.
        answer: Answer,
    },
    /// Sets the mode of the session.
    SetMode {
        /// The mode.
        mode: SessionMode,
    },
    /// Compacts the conversation before the next request to the model.
    Compact {
        /// The instructions of the person for the summary; `None` for none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<String>,
    },
}

impl ApprovalRequest {
    /// Returns the inbox request that answers this question with `answer`.
    pub fn answered(&self, answer: Answer) -> InboxRequest {
        let (request_id, binding) = (self.request_id.clone(), self.binding.clone());
        InboxRequest::Answer { request_id, binding, answer }
    }

    /// Returns the inbox message with this answer. The id of the message is computed from the id of the question,
    /// so an inbox stores only the first of two answers and refuses the second with
    /// [`JournalError::Posted`](crate::JournalError::Posted).
    ///
    /// `log` is the log of the run that asks. A run that could not use an answer asks again with the same
    /// question id, but never reads two messages with the same id. So the message id also has the number of
    /// earlier answers to this question in `log`.
    pub fn first_answer(&self, answer: Answer, at: Timestamp, log: &[Arc<Record>]) -> InboxEntry {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let start = format!("answer-{}-", self.request_id).replace(|c| !is_plain(c), "_");
        let earlier = received_messages(log).iter().filter(|id| id.starts_with(&start)).count();
        InboxEntry::new(format!("{start}{earlier}"), at, self.answered(answer))
    }
}
