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
    /// Anything of another protocol.
    Foreign(&'a str),
}

const REDACTED: &str = "redacted:";
const GEMINI: &str = "gemini:";
const GEMINI_TEXT: &str = "gemini-text:";

impl<'a> Signature<'a> {
    /// What a message's text means.
    pub(crate) fn of(text: &'a str) -> Self {
        if let Some(data) = text.strip_prefix(REDACTED) {
            Self::Redacted(data)
        } else if let Some(signature) = text.strip_prefix(GEMINI) {
            Self::Gemini(signature)
        } else if let Some(signature) = text.strip_prefix(GEMINI_TEXT) {
            Self::GeminiText(signature)
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
            Signature::Foreign("responses:rs_1:gAAA"),
        ] {
            assert_eq!(Signature::of(&signature.to_string()), signature);
        }
    }
}
