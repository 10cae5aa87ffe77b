//! The messages between the screen, the conversation and the terminal.

use archon::types::{Answer, Event, RunId, SessionId, SessionMode, WhenBusy};

use super::{attachments::PersonMessage, history_of_session::History, way_back::Earlier};
use crate::failure::Failure;

/// A request of the screen to the conversation.
#[derive(Debug)]
pub(crate) enum Request {
    /// Sends a message of the person. The second value tells when a run at work reads the message.
    Send(PersonMessage, WhenBusy),
    /// Answers the question with this id.
    Answer(String, Answer),
    /// Stops the run.
    Cancel,
    /// Refuses the question with this id, and stops the run.
    Refuse(String),
    /// Runs a line of the shell that the person wrote.
    Line(String),
    /// Looks for the earlier message with this number, counted from 1 and from the newest one.
    Back(usize),
    /// Sends a message in place of an earlier one.
    SendFrom(Earlier, PersonMessage),
    /// Sets the mode of the session; `None` for the next mode.
    Mode(Option<SessionMode>),
    /// Compacts the conversation, with these wishes for the summary.
    Compact(String),
    /// Continues in a fork of the newest run.
    Fork,
    /// Goes over to a session; `None` for a new one.
    Open(Option<SessionId>),
    /// Uses this model from the next message on.
    Model(String),
    /// Reads the permission rules again.
    Reload,
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
    /// The session has this mode from now on.
    Mode(SessionMode),
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
    /// The conversation continues in another session; the later updates are about that session.
    Anew,
    /// An earlier message of the person, to be changed and sent in its place.
    Earlier(Earlier),
    /// A line of the shell was not run: the line, and the reason.
    NotRun(String, Failure),
    /// A message was not sent: its text, the earlier message that it replaces, and the reason.
    NotSent(String, Option<Earlier>, Failure),
    /// A request failed.
    Failed(Failure),
    /// The conversation cannot begin.
    Over(Failure),
}
