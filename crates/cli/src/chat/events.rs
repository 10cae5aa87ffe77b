//! The messages between the screen, the conversation and the terminal.

use archon::types::{Answer, Event, RunId, SessionId};

use super::history_of_session::History;
use crate::failure::Failure;

/// A request of the screen to the conversation.
#[derive(Debug)]
pub(crate) enum Request {
    /// Sends a message of the person.
    Send(String),
    /// Answers the question with this id.
    Answer(String, Answer),
    /// Stops the run.
    Cancel,
    /// Refuses the question with this id, and stops the run.
    Refuse(String),
}

/// News of the conversation for the screen.
pub(crate) enum Update {
    /// The earlier part of the conversation was read.
    History(Box<History>),
    /// The agent is built, with this model; from now on messages are sent.
    Ready {
        /// The name of the model.
        model: String,
    },
    /// The session has this id from now on.
    Session(SessionId),
    /// A run works, and its events follow.
    Working {
        /// The run.
        run: RunId,
        /// True if another process works on the run.
        is_elsewhere: bool,
    },
    /// An event of the run.
    Event(Event),
    /// No run works any more: it has ended or is suspended, or it stopped with this failure.
    Rest(Option<Failure>),
    /// A message was not sent.
    NotSent(String, Failure),
    /// A request failed.
    Failed(Failure),
    /// The conversation cannot begin.
    Over(Failure),
}
