//! An earlier message of a person in a session. Another text can take its place and continue the session from
//! there.

use serde::{Deserialize, Serialize};

use crate::values::{RunId, Timestamp};

/// The place of a message in a session: the run and the record that contain the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePlace {
    /// The run whose log has the record.
    pub run: RunId,
    /// The sequence number of the record.
    pub seq: u64,
}

impl MessagePlace {
    /// Creates the place of a message.
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
    /// The time of the record.
    pub at: Timestamp,
    /// The text of the message, without recalled memories.
    pub text: String,
    /// The number of messages, answers and tool results after this message. If the session goes back to this
    /// message, its conversation no longer has them.
    pub later: usize,
    /// True if another text can take the place of the message. False for a message that came between a tool
    /// call and its result, or into a plan or a team at work.
    pub is_replaceable: bool,
}

impl EarlierMessage {
    /// Creates a message that can be replaced.
    pub fn new(place: MessagePlace, at: Timestamp, text: impl Into<String>) -> Self {
        Self { place, at, text: text.into(), later: 0, is_replaceable: true }
    }
}
