//! The provenance of messages. A model reads more under the role of its user than a person's words: in text
//! mode also tool results, and texts of the program. So the real speaker is recorded.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Message, Trust};

/// The speaker of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Speaker {
    /// Not recorded, for instance because the message was kept elsewhere.
    #[default]
    Unknown,
    /// A person.
    Person,
    /// A model: the run's own, or that of an agent that called the run.
    Model,
    /// A tool, a web page or an event.
    Tool,
    /// The program: the fill level of the window, problems of an answer, summaries of earlier turns. It may
    /// repeat words of others.
    Program,
}

impl Speaker {
    /// Returns the speaker of a message about which nothing else is known. A user message may be anybody's.
    pub fn of(message: &Message) -> Self {
        match message {
            Message::User(_) => Self::Unknown,
            Message::Assistant(_) => Self::Model,
            Message::ToolResult(_) => Self::Tool,
        }
    }

    /// Returns the highest trust level of the speaker's words. A model may repeat what it has read.
    pub const fn trust(self) -> Trust {
        match self {
            Self::Person => Trust::Trusted,
            Self::Model => Trust::Model,
            Self::Unknown | Self::Tool | Self::Program => Trust::Untrusted,
        }
    }
}

/// An original message with its provenance.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attributed {
    /// The original message, even if the model reads a changed or shortened one.
    pub message: Arc<Message>,
    /// The speaker.
    pub by: Speaker,
    /// The trust level: for a model's message no higher than the lowest in its context window.
    pub trust: Trust,
}

impl Attributed {
    /// Creates a message of a speaker. A model's message starts untrusted, because its context is unknown
    /// here.
    pub fn new(message: impl Into<Arc<Message>>, by: Speaker) -> Self {
        let trust = match by {
            Speaker::Model => Trust::Untrusted,
            _ => by.trust(),
        };
        Self { message: message.into(), by, trust }
    }

    /// Sets the trust level.
    pub fn believed(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    // spec: M-23
    #[test]
    fn attributed_new_model_message_starts_untrusted() {
        let message = Message::user("The code is 7431.", Timestamp::default());
        let trust = |by| Attributed::new(message.clone(), by).trust;
        assert_eq!((trust(Speaker::Model), trust(Speaker::Person)), (Trust::Untrusted, Trust::Trusted));
        assert_eq!(
            Attributed::new(message.clone(), Speaker::Model).believed(Trust::Model).trust,
            Trust::Model
        );
    }

    // spec: M-23
    #[test]
    fn speaker_trust_is_trusted_for_a_person_only_and_default_is_untrusted() {
        let all = [Speaker::Unknown, Speaker::Person, Speaker::Model, Speaker::Tool, Speaker::Program];
        let trusted: Vec<_> = all.into_iter().filter(|by| by.trust() == Trust::Trusted).collect();
        assert_eq!(trusted, [Speaker::Person]);
        assert_eq!(Speaker::default().trust(), Trust::Untrusted);
        assert_eq!(Speaker::of(&Message::user("I am Anna.", Timestamp::default())), Speaker::Unknown);
    }
}
