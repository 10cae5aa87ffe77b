//! Going back: another text in place of a message of a person.
//!
//! The new text starts a run that continues the conversation as it was before the message. Effects of tools
//! remain: files are not restored.

use std::sync::Arc;

use archon_types::{
    Content, ContinuationKind, Journal, Message, Origin, Record, RecordBody, RunId, RunKind, RunStarted,
    Speaker,
};

use crate::{LoopError, Machine, ReactMachine, fold_before, fold_with, resume::conversation_start};

/// A message of a person in the log of a run, and the place from which a new run continues if the person replaces
/// the message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlacedMessage {
    /// The sequence number of the record that has the message.
    pub seq: u64,
    /// The text of the message, without recalled memories.
    pub text: String,
    /// The origin of a run that continues the conversation as it was before the message. `None` if the message
    /// came between a tool call and its result, or into a plan or a team at work.
    pub before: Option<Origin>,
}

/// Returns the messages of people in a log, oldest first. `log` has all records of `run`, or its first records.
///
/// # Errors
/// The log does not start with the first record of a run of a conversation, or a run that `run` continues cannot be
/// read.
pub async fn messages_of_people(
    journal: &dyn Journal,
    run: &RunId,
    log: &[Arc<Record>],
) -> Result<Vec<PlacedMessage>, LoopError> {
    let started = conversation_start(run, log)?;
    let mut messages = Vec::new();
    let mut prefix = None;
    for (at, record) in log.iter().enumerate() {
        let Some(text) = text_of_person(record) else { continue };
        let before = match started.kind {
            _ if is_opening(log, at) => before_run(started),
            RunKind::Loop => {
                if prefix.is_none() {
                    prefix = Some(Prefix::new(journal, run, log).await?);
                }
                prefix.as_mut().and_then(|prefix| prefix.point(run, log, beginning(log, at)))
            }
            _ => None,
        };
        messages.push(PlacedMessage { seq: record.seq, text, before });
    }
    Ok(messages)
}

/// Returns the origin of a run that continues the conversation as it was before the message in record `seq` of
/// `run`.
///
/// # Errors
/// [`LoopError::NoSuchMessage`] if the record is no message of a person; [`LoopError::BetweenCallAndResult`];
/// or the run, or a run that it continues, cannot be read.
pub async fn point_before(
    journal: &dyn Journal,
    run: &RunId,
    log: &[Arc<Record>],
    seq: u64,
) -> Result<Origin, LoopError> {
    let messages = messages_of_people(journal, run, log).await?;
    let Some(message) = messages.into_iter().find(|message| message.seq == seq) else {
        return Err(LoopError::NoSuchMessage { run: run.clone(), seq });
    };
    message.before.ok_or_else(|| LoopError::BetweenCallAndResult { run: run.clone(), seq })
}

/// The state of a loop after the first records of its log.
struct Prefix {
    machine: ReactMachine,
    records: usize,
}

impl Prefix {
    async fn new(journal: &dyn Journal, run: &RunId, log: &[Arc<Record>]) -> Result<Self, LoopError> {
        let history = fold_before(journal, run, log).await?.history;
        Ok(Self { machine: fold_with(run, &log[..1], history, Default::default())?, records: 1 })
    }

    /// Returns the point after `records` records; `None` if a call has no result there.
    fn point(&mut self, run: &RunId, log: &[Arc<Record>], records: usize) -> Option<Origin> {
        for record in log.iter().take(records).skip(self.records) {
            self.machine.apply(record);
        }
        self.records = self.records.max(records);
        let (run, records) = (run.clone(), records as u64);
        self.machine.calls().is_empty().then(|| Origin::Continues {
            run,
            records,
            continuation: Default::default(),
        })
    }
}

/// Returns true if no message comes before record `at`.
fn is_opening(log: &[Arc<Record>], at: usize) -> bool {
    let is_message = |record: &Arc<Record>| {
        matches!(record.body, RecordBody::MessageAdded { .. } | RecordBody::ConversationRestored { .. })
    };
    !log.iter().take(at).any(is_message)
}

/// Returns the origin of a run that replaces this one; `None` if another run called this one.
fn before_run(started: &RunStarted) -> Option<Origin> {
    match &started.origin {
        Origin::CalledBy { .. } => None,
        // A run that replaces a fork is no fork: it has a budget of its own.
        Origin::Continues { run, records, continuation: ContinuationKind::Branch { .. } } => {
            let (run, records) = (run.clone(), *records);
            Some(Origin::Continues { run, records, continuation: ContinuationKind::Default })
        }
        origin => Some(origin.clone()),
    }
}

/// Returns the number of records before the message at index `at`. If the message came through the inbox, the record
/// of its arrival is not counted either.
pub(crate) fn beginning(log: &[Arc<Record>], at: usize) -> usize {
    let before = at.saturating_sub(1);
    let is_inbox =
        log.get(before).is_some_and(|record| matches!(record.body, RecordBody::InboxMessageReceived { .. }));
    if is_inbox { before } else { at }
}

/// Returns the text of a person's message in a record; `None` for any other record.
fn text_of_person(record: &Record) -> Option<String> {
    let RecordBody::MessageAdded { message, .. } = &record.body else { return None };
    if message.speaker().is_some_and(|by| by != Speaker::Person) {
        return None;
    }
    let message = message.as_llm().filter(|message| matches!(message, Message::User(_)))?;
    Some(Content::join_text(message.own_content()).into_owned())
}
