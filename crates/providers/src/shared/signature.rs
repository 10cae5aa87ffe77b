//! Encodes in one text the data that services require back with a model's thinking, and the protocol of the
//! data.
//!
//! A conversation may move from one service to another, and no service accepts the signatures of another. So
//! the text in `Content::Thinking::signature` begins with the name of the protocol and a colon. Signatures
//! of Anthropic's models are kept unchanged, because every service that runs these models accepts them.
//! (They are base64, which has no colon.)

/// A signature in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signature<'a> {
    /// The signature of thinking of Anthropic's models.
    Anthropic(&'a str),
    /// Encrypted thinking of Anthropic's models; the block has no text.
    Redacted(&'a str),
    /// A thought signature of Gemini, for the tool call after the block.
    Gemini(&'a str),
    /// A thought signature of Gemini, for the text before the block.
    GeminiText(&'a str),
    /// The phase that a Responses model gave to the text before the block: a commentary or the answer.
    Phase(&'a str),
    /// The reasoning details of a chat-completions message, as a JSON list.
    Details(&'a str),
    /// A signature of another protocol.
    Foreign(&'a str),
}

const REDACTED: &str = "redacted:";
const GEMINI: &str = "gemini:";
const GEMINI_TEXT: &str = "gemini-text:";
const PHASE: &str = "phase:";
const DETAILS: &str = "reasoning-details:";

impl<'a> Signature<'a> {
    /// Parses a signature.
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

/// Formats the signature for a message.
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
    fn signature_of_its_text_returns_the_same_kind() {
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
