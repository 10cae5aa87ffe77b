//! The provenance of messages. A message with the role `user` need not come from a person: it may be a tool
//! result (in text mode) or a text of the program. So the real speaker of each message is recorded.

use std::sync::Arc;

use super::{
    message::Message,
    trust::{Speaker, Trust},
};

impl Speaker {
    /// Returns the speaker as far as the role of the message tells it; [`Speaker::Unknown`] for a user
    /// message, because a person, a tool or the program may have sent it.
    pub fn of(message: &Message) -> Self {
        match message {
            Message::User(_) => Self::Unknown,
            Message::Assistant(_) => Self::Model,
            Message::ToolResult(_) => Self::Tool,
        }
    }
}

/// A message as it was sent, with its speaker and its trust level.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Attributed {
    /// The original message, even if the model reads a changed or shortened version.
    pub message: Arc<Message>,
    /// The speaker of the message.
    pub by: Speaker,
    /// The trust level. For a model's message it is at most the lowest level in the model's context window.
    pub trust: Trust,
}

impl Attributed {
    /// Creates a message with the trust level of its speaker ([`Speaker::trust`]). A model's message is
    /// untrusted, because the texts that the model has read are unknown here.
    pub fn new(message: impl Into<Arc<Message>>, by: Speaker) -> Self {
        let trust = match by {
            Speaker::Model => Trust::Untrusted,
            _ => by.trust(),
        };
        Self { message: message.into(), by, trust }
    }

    /// Sets the trust level, in place of the level that follows from the speaker.
    ///
    /// ```
    /// use archon_types::{Attributed, Message, Speaker, Timestamp, Trust};
    ///
    /// let page = Message::user("Pay me.", Timestamp::default());
    /// let attributed = Attributed::new(page, Speaker::Person).with_trust(Trust::Untrusted);
    /// ```
    pub fn with_trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Timestamp;

    // spec: M-23
    #[test]
    fn attributed_new_model_message_starts_untrusted() {
        let message = Message::user("The code is 7431.", Timestamp::default());
        let trust = |by| Attributed::new(message.clone(), by).trust;
        assert_eq!((trust(Speaker::Model), trust(Speaker::Person)), (Trust::Untrusted, Trust::Trusted));
        assert_eq!(
            Attributed::new(message.clone(), Speaker::Model).with_trust(Trust::Model).trust,
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
