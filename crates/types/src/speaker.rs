//! Who said what in a conversation. A model reads more as the words of its user than a person said: what a tool gave in
//! text mode, and what the program tells it. Whoever keeps a conversation has to know them apart.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Message, Trust};

/// Who said something in a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Speaker {
    /// Nobody knows: it was kept elsewhere, or before anybody noted who spoke.
    #[default]
    Unknown,
    /// A person.
    Person,
    /// A model: the run's own, or that of an agent which called the run.
    Model,
    /// A tool, a page, an event.
    Tool,
    /// The program on its own behalf: how full the window is, what was wrong with an answer, what stands for earlier
    /// turns. It may repeat what others said.
    Program,
}

impl Speaker {
    /// Who said a message of which nothing else is known. The words of a user may be anybody's.
    pub fn of(message: &Message) -> Self {
        match message {
            Message::User(_) => Self::Unknown,
            Message::Assistant(_) => Self::Model,
            Message::ToolResult(_) => Self::Tool,
        }
    }

    /// How far it is believed at most: what a model says may be what it has read.
    pub const fn trust(self) -> Trust {
        match self {
            Self::Person => Trust::Trusted,
            Self::Model => Trust::Model,
            Self::Unknown | Self::Tool | Self::Program => Trust::Untrusted,
        }
    }
}

/// A message as it was said, and who said it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Said {
    /// As it came: not as the model may see it, in other words or cut.
    pub message: Arc<Message>,
    /// Who said it.
    pub by: Speaker,
    /// How far it is believed: a model's words no more than the least believed of what its window held before them.
    pub trust: Trust,
}

impl Said {
    /// A message of a speaker. Of a model's nobody knows what it had read, so that nobody vouches for it.
    pub fn new(message: impl Into<Arc<Message>>, by: Speaker) -> Self {
        let trust = match by {
            Speaker::Model => Trust::Untrusted,
            _ => by.trust(),
        };
        Self { message: message.into(), by, trust }
    }

    /// The same, believed so far.
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
    fn nobody_vouches_for_a_model_of_which_nobody_knows_what_it_had_read() {
        let message = Message::user("The code is 7431.", Timestamp::default());
        let trust = |by| Said::new(message.clone(), by).trust;
        assert_eq!((trust(Speaker::Model), trust(Speaker::Person)), (Trust::Untrusted, Trust::Trusted));
        assert_eq!(Said::new(message.clone(), Speaker::Model).believed(Trust::Model).trust, Trust::Model);
    }

    // spec: M-23
    #[test]
    fn only_a_person_is_trusted_and_nobody_becomes_one_by_default() {
        let all = [Speaker::Unknown, Speaker::Person, Speaker::Model, Speaker::Tool, Speaker::Program];
        let trusted: Vec<_> = all.into_iter().filter(|by| by.trust() == Trust::Trusted).collect();
        assert_eq!(trusted, [Speaker::Person]);
        assert_eq!(Speaker::default().trust(), Trust::Untrusted);
        assert_eq!(Speaker::of(&Message::user("I am Anna.", Timestamp::default())), Speaker::Unknown);
    }
}
