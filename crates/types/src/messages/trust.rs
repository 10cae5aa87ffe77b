//! Speakers of messages, and the trust level of a text.

use serde::{Deserialize, Serialize};

/// The trust level of a text. A text with a lower level never replaces a text with a higher one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The text comes from a web page, a tool, an event or another tenant.
    #[default]
    Untrusted,
    /// A model concluded the text.
    Model,
    /// The text comes from the person on whose behalf the agent works, or the program itself supplied it.
    Trusted,
}

impl Trust {
    /// Returns the prefix for a text of this level in a prompt, so that the model does not take the text for
    /// the person's words; empty for [`Trusted`](Self::Trusted).
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Untrusted => "[from an untrusted source] ",
            Self::Model => "[an assistant said] ",
            Self::Trusted => "",
        }
    }
}

crate::values::named! { Trust:
    Untrusted = "untrusted",
    Model = "model",
    Trusted = "trusted",
}

/// The speaker of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Speaker {
    /// The speaker is unknown: it was not recorded, or an input filter added a text to the message.
    #[default]
    Unknown,
    /// A person.
    Person,
    /// A model: the run's own model, or the model of an agent that called the run.
    Model,
    /// A tool, a web page or an event.
    Tool,
    /// The program, for instance in a message about the fill level of the context window or about problems of
    /// an answer, or in a summary of earlier turns. Such a message may repeat the words of other speakers.
    Program,
}

impl Speaker {
    /// Returns the maximum trust level of a text by this speaker. A model's text may have a lower level,
    /// because a model may repeat a text that it has read.
    pub const fn trust(self) -> Trust {
        match self {
            Self::Person => Trust::Trusted,
            Self::Model => Trust::Model,
            Self::Unknown | Self::Tool | Self::Program => Trust::Untrusted,
        }
    }
}

/// Text recalled from memory for a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecalledText {
    /// The text for the model.
    pub text: String,
    /// The lowest trust level in the text. The model's later output has at most this level.
    pub trust: Trust,
}

impl RecalledText {
    /// Creates a recalled text with this trust level.
    pub fn new(text: impl Into<String>, trust: Trust) -> Self {
        Self { text: text.into(), trust }
    }
}
