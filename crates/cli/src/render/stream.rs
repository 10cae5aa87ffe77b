//! Shows text while it streams: thoughts dim, the answer plain.

use std::mem;

use crate::output::{Look, Output};

/// The mark before the answer of a model in text mode.
const ANSWER_MARK: &str = "Final Answer:";

/// An answer of a model while it streams.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// All text so far, without thinking.
    text: String,
    /// The start of the answer in `text` in bytes, once it is known.
    answer_from: Option<usize>,
    /// The number of bytes of `text` that were written or skipped.
    written: usize,
    /// True if the cursor is after an unfinished line.
    open_line: bool,
    /// True if any text was written.
    pub(super) began: bool,
}

impl Stream {
    /// Creates the stream of a model with native tool calls. Its text turns out to be a thought only when a
    /// tool call follows.
    pub(super) fn native() -> Self {
        Self { answer_from: Some(0), ..Self::default() }
    }

    /// Creates the stream of a model in text mode, whose text is thoughts until the mark of the answer.
    pub(super) fn text_mode() -> Self {
        Self::default()
    }

    pub(super) fn text(&mut self, text: &str, output: &Output) {
        self.text.push_str(text);
        if self.answer_from.is_none() {
            let mark = self.text.find(ANSWER_MARK);
            self.thoughts_until(mark.unwrap_or(self.text.len() - begun_mark(&self.text)), output);
            let Some(mark) = mark else { return };
            self.answer_from = Some(mark + ANSWER_MARK.len());
            self.written = mark + ANSWER_MARK.len();
        }
        self.answer(output);
    }

    /// Ends the answer. Returns its shown part.
    pub(super) fn end(&mut self, output: &Output) -> String {
        if self.answer_from.is_none() {
            self.thoughts_until(self.text.len(), output);
        }
        self.close_line(output);
        let stream = mem::take(self);
        stream.answer_from.map(|from| stream.text[from..].trim().to_owned()).unwrap_or_default()
    }

    /// Ends an unfinished line, so that other text can be written.
    pub(super) fn close_line(&mut self, output: &Output) {
        if mem::take(&mut self.open_line) {
            output.note(Look::Plain, "");
        }
    }

    fn answer(&mut self, output: &Output) {
        let nothing_yet = self.answer_from == Some(self.written);
        let mut new = &self.text[self.written..];
        if nothing_yet {
            new = new.trim_start();
            if new.is_empty() {
                return;
            }
        }
        let new = new.to_owned();
        if nothing_yet {
            self.close_line(output);
        }
        self.written = self.text.len();
        self.wrote(&new);
        output.piece(&new);
    }

    fn thoughts_until(&mut self, end: usize, output: &Output) {
        if end > self.written {
            let new = self.text[self.written..end].to_owned();
            self.written = end;
            self.thought(&new, output);
        }
    }

    pub(super) fn thought(&mut self, text: &str, output: &Output) {
        if !text.is_empty() {
            self.wrote(text);
            output.note_piece(Look::Dim, text);
        }
    }

    fn wrote(&mut self, text: &str) {
        self.began = true;
        self.open_line = !text.ends_with('\n');
    }
}

/// Returns the number of bytes at the end of `text` that may be the start of the mark.
fn begun_mark(text: &str) -> usize {
    (1..ANSWER_MARK.len()).rev().find(|n| text.ends_with(&ANSWER_MARK[..*n])).unwrap_or(0)
}
