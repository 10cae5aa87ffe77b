//! An answer of a model.

use archon_types::{AssistantMessage, CommandId, Content};

use crate::{markdown, row::Row, theme::Page};

/// An answer of a model: the complete answer, or the part that has streamed so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerCell {
    /// The text in Markdown, without empty lines at its beginning. Several blocks of text are separated by an empty line.
    pub text: String,
    pub(crate) command: CommandId,
    attempt: u32,
    /// The number of bytes of this attempt that have streamed; `None` if some of them are missing.
    streamed: Option<u64>,
    /// True if another part of the answer, such as a tool call, followed the text so far.
    is_interrupted: bool,
}

impl AnswerCell {
    pub(crate) fn new(command: CommandId) -> Self {
        Self { text: String::new(), command, attempt: 0, streamed: Some(0), is_interrupted: false }
    }

    /// Creates a complete answer from a text that did not come from a model call.
    pub(crate) fn of(text: &str) -> Self {
        let text = text.trim_start_matches(is_line_end).to_owned();
        Self { text, ..Self::new(CommandId(0)) }
    }

    /// Begins an attempt of the model call, and removes the text of the earlier attempt.
    pub(crate) fn begin(&mut self, attempt: u32) {
        *self = Self { attempt, ..Self::new(self.command) };
    }

    /// Appends a streamed piece of the text, which begins at the byte `offset`. A piece that the text already has
    /// changes nothing. After a missing piece, all later pieces are ignored until `finish` sets the complete text.
    pub(crate) fn stream(&mut self, attempt: u32, offset: u64, piece: &str) {
        if attempt < self.attempt {
            return;
        }
        if attempt > self.attempt {
            self.begin(attempt);
        }
        let Some(streamed) = self.streamed else { return };
        let Some(known) = streamed.checked_sub(offset) else {
            self.streamed = None;
            return;
        };
        let Some(new) = usize::try_from(known).ok().and_then(|known| piece.get(known..)) else { return };
        self.streamed = Some(streamed + new.len() as u64);
        if std::mem::take(&mut self.is_interrupted) && !self.text.is_empty() && !new.is_empty() {
            self.text.push_str(SEPARATOR);
        }
        self.text.push_str(if self.text.is_empty() { new.trim_start_matches(is_line_end) } else { new });
    }

    /// Remembers that something other than text streams now.
    pub(crate) fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Sets the whole text.
    pub(crate) fn finish(&mut self, message: &AssistantMessage) {
        let blocks = message.content.iter().filter_map(Content::as_text).filter(|text| !text.is_empty());
        let text = blocks.collect::<Vec<_>>().join(SEPARATOR);
        self.text = text.trim_start_matches(is_line_end).to_owned();
    }

    pub(crate) fn rows(&self, page: &Page) -> Vec<Row> {
        markdown::rows(&self.text, page)
    }
}

const SEPARATOR: &str = "\n\n";

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r')
}
