//! An earlier message of a person in a session. Another text can take its place and continue the session from
//! there.

use serde::{Deserialize, Serialize};

use crate::values::{RunId, Timestamp};

/// The place of a message in a session: the run and the record that contain the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePlace {
    /// The run whose log has the record.
    pub run: RunId,
    /// The sequence number of the record in this log, from 0.
    pub seq: u64,
}

impl MessagePlace {
    /// Creates the place of the message in record `seq` of `run`.
    pub fn new(run: impl Into<RunId>, seq: u64) -> Self {
        Self { run: run.into(), seq }
    }
}

/// A message of a person in a session. To send another text in its place, use
/// [`StartRun::instead_of`](crate::StartRun::instead_of).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct EarlierMessage {
    /// The place of the message.
    pub place: MessagePlace,
    /// The time of the record that has the message.
    pub at: Timestamp,
    /// The text of the message, without recalled memories.
    pub text: String,
    /// The number of messages, answers and tool results after this message. If another text takes the place of
    /// this message, the conversation no longer has them.
    pub later: usize,
    /// True if another text can take the place of the message. False for a message that came between a tool
    /// call and its result, or while a plan or a team was at work.
    pub is_replaceable: bool,
}

impl EarlierMessage {
    /// Creates a message that can be replaced, with no message after it: [`later`](Self::later) is 0.
    pub fn new(place: MessagePlace, at: Timestamp, text: impl Into<String>) -> Self {
        Self { place, at, text: text.into(), later: 0, is_replaceable: true }
    }
}
