//! Speakers of messages, and the trust level of a text.

use serde::{Deserialize, Serialize};

/// The trust level of a text. A text of lower trust never replaces one of higher trust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// From a web page, a tool, an event or another tenant.
    #[default]
    Untrusted,
    /// Concluded by a model.
    Model,
    /// From the person whose memory it is, or from the program.
    Trusted,
}

impl Trust {
    /// Returns the name, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Model => "model",
            Self::Trusted => "trusted",
        }
    }

    /// Returns the prefix for such a text in a prompt, so that the model does not take it for the person's;
    /// empty for [`Trusted`](Self::Trusted).
    pub const fn mark(self) -> &'static str {
        match self {
            Self::Untrusted => "[from an untrusted source] ",
            Self::Model => "[an assistant said] ",
            Self::Trusted => "",
        }
    }
}

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
    /// Returns the highest trust level of the speaker's words. A model may repeat what it has read.
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
    /// The lowest trust level in the text. The model's output has no higher level from here on.
    pub trust: Trust,
}

impl RecalledText {
    /// Creates a recalled text.
    pub fn new(text: impl Into<String>, trust: Trust) -> Self {
        Self { text: text.into(), trust }
    }
}
