//! What services want back with a model's thinking, and how one text of a message says whose it is.
//!
//! A conversation may move from one service to another, and none takes what another signed. So the text
//! in `Content::Thinking::signature` begins with the name of the protocol and a colon, unless it is a
//! signature of Anthropic's models, which every service that runs them takes: those are kept as they
//! came. (They are base64, which holds no colon.)

/// A signature as it stands in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signature<'a> {
    /// Signs the thinking of one of Anthropic's models.
    Anthropic(&'a str),
    /// Thinking of one of Anthropic's models that nobody may read; the block has no text.
    Redacted(&'a str),
    /// A thought signature of Gemini that belongs to the call which follows the block.
    Gemini(&'a str),
    /// A thought signature of Gemini that belongs to the text before it.
    GeminiText(&'a str),
    /// What a Responses model said of the text before it: whether it is on the way or the answer.
    Phase(&'a str),
    /// The pieces of thinking, as a JSON list, that stand beside a message of chat completions.
    Details(&'a str),
    /// Anything of another protocol.
    Foreign(&'a str),
}

const REDACTED: &str = "redacted:";
const GEMINI: &str = "gemini:";
const GEMINI_TEXT: &str = "gemini-text:";
const PHASE: &str = "phase:";
const DETAILS: &str = "reasoning-details:";

impl<'a> Signature<'a> {
    /// What a message's text means.
    pub(crate) fn of(text: &'a str) -> Self {
        if let Some(data) = text.strip_prefix(REDACTED) {
            Self::Redacted(data)
        } else if let Some(signature) = text.strip_prefix(GEMINI) {
            Self::Gemini(signature)
        } else if let Some(signature) = text.strip_prefix(GEMINI_TEXT) {
            Self::GeminiText(signature)
        } else if let Some(phase) = text.strip_prefix(PHASE) {
            Self::Phase(phase)
        } else if let Some(details) = text.strip_prefix(DETAILS) {
            Self::Details(details)
        } else if text.contains(':') {
            Self::Foreign(text)
        } else {
            Self::Anthropic(text)
        }
    }
}

/// As it stands in a message.
impl std::fmt::Display for Signature<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anthropic(text) | Self::Foreign(text) => f.write_str(text),
            Self::Redacted(data) => write!(f, "{REDACTED}{data}"),
            Self::Gemini(text) => write!(f, "{GEMINI}{text}"),
            Self::GeminiText(text) => write!(f, "{GEMINI_TEXT}{text}"),
            Self::Phase(text) => write!(f, "{PHASE}{text}"),
            Self::Details(text) => write!(f, "{DETAILS}{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: P-13
    #[test]
    fn every_signature_says_whose_it_is() {
        for signature in [
            Signature::Anthropic("EqQBCk=="),
            Signature::Redacted("EmwK"),
            Signature::Gemini("CiQB"),
            Signature::GeminiText("CiQC"),
            Signature::Phase("commentary"),
            Signature::Details("[]"),
            Signature::Foreign("responses:rs_1:gAAA"),
        ] {
            assert_eq!(Signature::of(&signature.to_string()), signature);
        }
    }
}
