//! Token counters, which estimate the share of a model's context window that a text takes.
//!
//! Every count is an estimate. A loop corrects the estimate with the numbers that the service reports, so a
//! counter must be consistent rather than exact.

use serde::{Deserialize, Serialize};

use super::{
    content::Content,
    media::{MediaKind, MediaView},
    message::Message,
};

/// Counts tokens. The same text must always give the same count, because a run that is replayed must count as
/// it did before.
///
/// ```
/// use archon_types::TokenCounter;
///
/// /// Counts three bytes as one token.
/// struct ThreeBytes;
///
/// impl TokenCounter for ThreeBytes {
///     fn count(&self, text: &str) -> u64 {
///         (text.len() as u64 / 3).max(1)
///     }
/// }
///
/// assert_eq!(ThreeBytes.count("six bytes"), 3);
/// ```
pub trait TokenCounter: Send + Sync {
    /// Returns the number of tokens of a text, at least 1.
    fn count(&self, text: &str) -> u64;

    /// Returns the number of tokens of a message: 4 for the message, 1 for the role, and the tokens of every
    /// block. The arguments of a tool call count as JSON text, an image as [`IMAGE_TOKENS`], and each page of a PDF
    /// file as [`PDF_PAGE_TOKENS`].
    fn count_message(&self, message: &Message) -> u64 {
        message.content().iter().fold(TOKENS_PER_MESSAGE + TOKENS_PER_NAME, |sum, block| {
            sum.saturating_add(match block {
                Content::Text { text } => self.count(text),
                Content::Thinking { thinking, .. } => self.count(thinking),
                Content::Media(_) | Content::Image { .. } => block.as_media().map_or(0, media_tokens),
                Content::ToolCall(call) => {
                    self.count(&call.name).saturating_add(self.count(&call.arguments.to_string()))
                }
            })
        })
    }
}

/// The number of tokens that [`TokenCounter::count_message`] adds for each message, besides its role and its
/// content.
pub const TOKENS_PER_MESSAGE: u64 = 4;

/// The number of tokens that [`TokenCounter::count_message`] adds for the role of a message.
pub const TOKENS_PER_NAME: u64 = 1;

/// The number of tokens that [`TokenCounter::count_message`] adds for each image. Services count fewer for a
/// small image and more for a large one.
pub const IMAGE_TOKENS: u64 = 1_000;

/// The number of tokens that [`TokenCounter::count_message`] adds for each page of a PDF file. Anthropic
/// names 1,500 to 3,000 for the text of a page:
/// <https://platform.claude.com/docs/en/build-with-claude/pdf-support>.
pub const PDF_PAGE_TOKENS: u64 = 2_000;

/// The number of tokens of the text that stands for a medium which no model is sent.
const NOTE_TOKENS: u64 = 50;

fn media_tokens(media: MediaView<'_>) -> u64 {
    match media.kind() {
        MediaKind::Image => IMAGE_TOKENS,
        MediaKind::Pdf => {
            let pages = media.media.and_then(|media| media.pages()).unwrap_or(1);
            PDF_PAGE_TOKENS.saturating_mul(pages.into())
        }
        MediaKind::Other => NOTE_TOKENS,
    }
}

/// A token counter for any model, which assumes 3.8 characters per token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenEstimate;

impl TokenEstimate {
    /// The average number of characters per token.
    pub const CHARS_PER_TOKEN: f64 = 3.8;
}

impl TokenCounter for TokenEstimate {
    fn count(&self, text: &str) -> u64 {
        // 3.8 as 38/10, to avoid rounding of floats.
        let chars = text.chars().count() as u64;
        (chars.saturating_mul(10) / 38).max(1)
    }
}

/// The token counter of a run, as the log stores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tokenizer {
    /// The estimate of [`TokenEstimate`].
    #[default]
    Estimate,
    /// OpenAI's `cl100k_base`. A program without this tokenizer uses the estimate.
    Cl100k,
    /// OpenAI's `o200k_base`. A program without this tokenizer uses the estimate.
    O200k,
}

/// Returns `tokens` as a share of `size`, in whole percent from 0 to 100.
pub fn percentage(tokens: u64, size: u64) -> u8 {
    let percent = u128::from(tokens) * 100 / u128::from(size.max(1));
    u8::try_from(percent.min(100)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        messages::{ToolCall, ToolResult},
        values::Timestamp,
    };

    // spec: C-09
    #[test]
    fn token_estimate_counts_texts_and_messages_by_the_constants() {
        let lengths = [(0, 1), (3, 1), (4, 1), (38, 10), (100, 26), (3_800, 1_000)];
        for (chars, tokens) in lengths {
            assert_eq!(TokenEstimate.count(&"é".repeat(chars)), tokens, "{chars}");
        }
        let at = Timestamp::default();
        let call = ToolCall::new("c", "calculator", json!({"expression": "1+1"}));
        let assistant = |content| {
            Message::Assistant(crate::AssistantMessage { content, ..crate::AssistantMessage::default() })
        };
        let image = Content::Image { data: "A".repeat(100_000), mime_type: "image/png".into() };
        let thinking = Content::Thinking { thinking: "x".repeat(38), signature: Some("s".repeat(999)) };
        let table = [
            (Message::user("x".repeat(38), at), 15),
            (assistant(vec![]), 5),
            (assistant(vec![Content::text("x".repeat(38)), thinking]), 25),
            // "calculator" and {"expression":"1+1"}: 10 and 20 characters.
            (assistant(vec![Content::from(call.clone())]), 5 + 2 + 5),
            (Message::tool_result(&call, &ToolResult::success("x".repeat(38)), at), 15),
            (assistant(vec![image]), 1_005),
        ];
        for (message, tokens) in table {
            assert_eq!(TokenEstimate.count_message(&message), tokens, "{message:?}");
        }
        let percents = [(0, 0, 0), (1, 0, 100), (5, 10, 50), (999, 1_000, 99), (2_000, 1_000, 100)];
        for (tokens, size, percent) in percents {
            assert_eq!(percentage(tokens, size), percent, "{tokens} of {size}");
        }
    }
}
