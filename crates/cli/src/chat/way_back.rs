//! Going back: another message takes the place of an earlier message of the person, and continues the session from
//! there.

use std::collections::HashMap;

use archon::{
    RunError, Runs,
    types::{MessagePlace, RecordBody, SessionId},
};

use super::history_of_session::{message_of_person, read_all};
use crate::{assemble::asks_no_model, failure::Failure};

/// The note for a person who goes back, and then stays.
pub(crate) const STAYS: &str = "the next message continues the conversation where it ends";

/// An earlier message of the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    /// The number of the message, from 1 for the newest one.
    pub(crate) number: usize,
    /// The text, without the files that the message carries.
    pub(crate) text: String,
    pub(crate) place: MessagePlace,
    /// The number of messages, answers and results that are left behind, this message included.
    pub(crate) left: usize,
}

impl Earlier {
    /// Returns a note about what is left behind if another message replaces this one. `stay` names the input that keeps
    /// the conversation as it is.
    pub(crate) fn note(&self, stay: &str) -> String {
        format!(
            "{} messages, answers and results are left behind by what you send now, and stay in the logs; {stay} keeps \
             the conversation as it is",
            self.left
        )
    }
}

/// Returns the message with this number, counted from 1 and from the newest one.
///
/// # Errors
/// There is no such message, or a log of the session cannot be read.
pub(crate) async fn find(
    runs: &Runs,
    session: Option<&SessionId>,
    number: usize,
) -> Result<Earlier, Failure> {
    let messages = match session {
        Some(session) => earlier(runs, session).await?,
        None => Vec::new(),
    };
    let count = messages.len();
    messages.into_iter().find(|message| message.number == number).ok_or_else(|| {
        let what = format!("there is no message {number}: the conversation has {count}");
        Failure::usage(what, "/back lists your messages with their numbers")
    })
}

/// Returns the messages of the person that another one can replace, newest first. Shell lines of the person are left
/// out, because they were not for the agent.
///
/// # Errors
/// A log of the session cannot be read.
pub(crate) async fn earlier(runs: &Runs, session: &SessionId) -> Result<Vec<Earlier>, RunError> {
    let (mut texts, mut is_for_agent) = (HashMap::new(), true);
    for (run, record) in read_all(runs, session).await?.records {
        if let RecordBody::RunStarted(started) = &record.body {
            is_for_agent = !asks_no_model(&started.config);
        }
        if let Some(text) = message_of_person(&record).filter(|_| is_for_agent) {
            texts.insert((run, record.seq), text);
        }
    }
    let messages = runs.earlier_messages(session, None).await?.into_iter().rev();
    let replaceable = messages.filter(|message| message.is_replaceable).filter_map(|message| {
        let text = texts.remove(&(message.place.run.clone(), message.place.seq))?;
        Some((text, message))
    });
    let earlier = (1..).zip(replaceable).map(|(number, (text, message))| Earlier {
        number,
        text,
        place: message.place,
        left: message.later + 1,
    });
    Ok(earlier.collect())
}
