//! Splits thinking between `<think>` or `<thinking>` tags from the text of a model while it streams.
//!
//! The result does not depend on the boundaries of the deltas. Tags may be in upper or lower case. A tag
//! right after a backtick or a quotation mark is text, so that an answer about the tags keeps them. White
//! space next to the tags is dropped.

/// The opening tags; either closing tag ends the thinking.
const OPEN: [&str; 2] = ["<think>", "<thinking>"];
const CLOSE: [&str; 2] = ["</think>", "</thinking>"];

/// A part of a model's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Thinking(String),
    /// The end of a thinking block.
    ThinkingEnd,
}

/// Splits a stream of text: [`push`](Self::push) adds text, [`finish`](Self::finish) ends the stream.
#[derive(Debug, Default)]
pub(crate) struct ThinkSplitter {
    /// Text that is not classified yet: the beginning of a tag, or white space before a closing tag.
    held: String,
    inside: bool,
    /// True directly after a tag: white space that follows it is dropped.
    at_tag: bool,
    /// True if the last character of the text was a quote: a tag after a quote counts as text.
    quoted: bool,
}

impl ThinkSplitter {
    /// Adds text and emits everything that can be classified.
    pub(crate) fn push(&mut self, text: String, mut emit: impl FnMut(Piece)) {
        // Almost every delta ends here, and is emitted without a copy.
        if self.held.is_empty() && !self.inside && !self.at_tag && !text.contains('<') {
            self.note_last(&text);
            if !text.is_empty() {
                emit(Piece::Text(text));
            }
            return;
        }
        self.held.push_str(&text);
        while self.advance(&mut emit) {}
    }

    /// Ends the stream: unclassified text is emitted as thinking inside of a block, and as text outside.
    pub(crate) fn finish(&mut self, mut emit: impl FnMut(Piece)) {
        let held = std::mem::take(&mut self.held);
        if self.inside {
            emit_part(held.trim_end(), Piece::Thinking, &mut emit);
            emit(Piece::ThinkingEnd);
            self.inside = false;
        } else {
            emit_part(&held, Piece::Text, &mut emit);
        }
    }

    /// Classifies the beginning of the held text. Returns false if more text is needed.
    fn advance(&mut self, emit: &mut impl FnMut(Piece)) -> bool {
        if self.at_tag {
            let start = self.held.len() - self.held.trim_start().len();
            self.held.drain(..start);
            if self.held.is_empty() {
                return false;
            }
            self.at_tag = false;
        }
        let tags = if self.inside { CLOSE } else { OPEN };
        let mut from = 0;
        loop {
            let Some(at) = self.held[from..].find('<').map(|at| from + at) else {
                self.let_go(self.held.len(), emit);
                return false;
            };
            match tag_at(&self.held[at..], tags) {
                Tag::No => from = at + 1,
                _ if !self.inside && self.is_quoted(at) => from = at + 1,
                Tag::Maybe => {
                    self.let_go(at, emit);
                    return false;
                }
                Tag::Yes(length) => {
                    self.cross(at, length, emit);
                    return true;
                }
            }
        }
    }

    /// Emits the text before a tag, and removes the tag.
    fn cross(&mut self, at: usize, length: usize, emit: &mut impl FnMut(Piece)) {
        if self.inside {
            emit_part(self.held[..at].trim_end(), Piece::Thinking, emit);
            emit(Piece::ThinkingEnd);
        } else {
            emit_part(&self.held[..at], Piece::Text, emit);
        }
        self.held.drain(..at + length);
        self.inside = !self.inside;
        self.at_tag = true;
        self.quoted = false;
    }

    /// Emits the first `end` held bytes; white space that ends thinking stays held, since a tag may follow.
    fn let_go(&mut self, end: usize, emit: &mut impl FnMut(Piece)) {
        let (end, piece): (_, fn(String) -> Piece) = if self.inside {
            (self.held[..end].trim_end().len(), Piece::Thinking)
        } else {
            (end, Piece::Text)
        };
        let rest = self.held.split_off(end);
        let part = std::mem::replace(&mut self.held, rest);
        self.note_last(&part);
        if !part.is_empty() {
            emit(piece(part));
        }
    }

    fn is_quoted(&self, at: usize) -> bool {
        self.held[..at].chars().next_back().map_or(self.quoted, is_quote)
    }

    fn note_last(&mut self, text: &str) {
        if let Some(last) = text.chars().next_back() {
            self.quoted = is_quote(last);
        }
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '`' | '"' | '\'')
}

fn emit_part(text: &str, piece: fn(String) -> Piece, emit: &mut impl FnMut(Piece)) {
    if !text.is_empty() {
        emit(piece(text.to_owned()));
    }
}

enum Tag {
    /// A complete tag of this length in bytes.
    Yes(usize),
    /// More text is needed.
    Maybe,
    No,
}

fn tag_at(text: &str, tags: [&str; 2]) -> Tag {
    let text = text.as_bytes();
    let mut answer = Tag::No;
    for tag in tags.map(str::as_bytes) {
        let length = text.len().min(tag.len());
        if text[..length].eq_ignore_ascii_case(&tag[..length]) {
            if length == tag.len() {
                return Tag::Yes(length);
            }
            answer = Tag::Maybe;
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns text and thinking of a stream of parts.
    fn split<'a>(parts: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let (mut text, mut thinking) = (String::new(), String::new());
        let mut splitter = ThinkSplitter::default();
        let mut emit = |piece| match piece {
            Piece::Text(t) => text.push_str(&t),
            Piece::Thinking(t) => thinking.push_str(&t),
            Piece::ThinkingEnd => thinking.push('|'),
        };
        for part in parts {
            splitter.push(part.to_owned(), &mut emit);
        }
        splitter.finish(&mut emit);
        (text, thinking)
    }

    // spec: P-36
    #[test]
    fn tags_are_split_off() {
        for (whole, text, thinking) in [
            ("no tags", "no tags", ""),
            ("<think>a</think>b", "b", "a|"),
            ("<think>\n a \n</think>\n\n b ", "b ", "a|"),
            ("<THINKING>a\nb</Thinking>c", "c", "a\nb|"),
            ("x <think>a</think> y", "x y", "a|"),
            ("<think>a</think><think>b</think>c", "c", "a|b|"),
            ("<think>a < b </thin</think>c", "c", "a < b </thin|"),
            ("<think>never closed ", "", "never closed|"),
            ("<think></think>a", "a", "|"),
            ("a <b> < <th", "a <b> < <th", ""),
            (
                "the `<think>` tag, '<think>' and \"<thinking>\"",
                "the `<think>` tag, '<think>' and \"<thinking>\"",
                "",
            ),
            ("a</think>b", "a</think>b", ""),
            ("<think>ä — ö</think>ü", "ü", "ä — ö|"),
            ("", "", ""),
        ] {
            assert_eq!(split([whole]), (text.to_owned(), thinking.to_owned()), "{whole:?}");
            for (at, _) in whole.char_indices() {
                let (a, b) = whole.split_at(at);
                assert_eq!(split([a, b]), (text.to_owned(), thinking.to_owned()), "{a:?} {b:?}");
            }
        }
    }

    proptest! {
        // spec: P-36
        #[test]
        fn any_split_gives_the_same_result(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "<think>", "</think>", "<Thinking>", "</THINKING>", "<", "</", "think", ">", "`", "\"", " ",
                    "\n", "ü", "word", "<thin", "king>",
                ]),
                0..24,
            ),
        ) {
            let whole: String = words.concat();
            let expected = split([whole.as_str()]);
            prop_assert_eq!(split(words.iter().copied()), expected.clone());
            let chars: Vec<String> = whole.chars().map(String::from).collect();
            prop_assert_eq!(split(chars.iter().map(String::as_str)), expected);
        }
    }
}
