//! Captures a program's output: keeps its beginning and counts the rest.

/// Text of at most a given number of bytes, never cut within a character.
#[derive(Debug)]
pub(crate) struct Output {
    text: String,
    room: usize,
    lost: usize,
}

impl Output {
    pub(crate) fn new(room: usize) -> Self {
        Self { text: String::new(), room, lost: 0 }
    }

    pub(crate) fn write(&mut self, text: &str) {
        // After the first loss nothing is kept, so that the text has no gap.
        let kept = if self.lost > 0 { "" } else { cut(text, self.room) };
        self.text.push_str(kept);
        self.room -= kept.len();
        self.lost = self.lost.saturating_add(text.len() - kept.len());
    }

    /// Returns the kept text with a note about how much is missing, and the number of missing bytes.
    pub(crate) fn into_text(self) -> (String, usize) {
        (with_note(self.text, self.lost), self.lost)
    }
}

/// Returns the beginning of a text of at most `bytes` bytes, cut at a character.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Shortens a text to at most `bytes` bytes and notes how much is missing.
pub(crate) fn shortened(text: &str, bytes: usize) -> String {
    let kept = cut(text, bytes);
    with_note(kept.to_owned(), text.len() - kept.len())
}

fn with_note(mut text: String, lost: usize) -> String {
    if lost > 0 {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text.push_str(&format!("{gap}[{lost} bytes more are left out]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_over_the_limit_keeps_its_beginning_and_counts_the_rest() {
        let mut output = Output::new(5);
        output.write("ab");
        output.write("äöü");
        output.write("c");
        assert_eq!(output.into_text(), ("abä\n[5 bytes more are left out]".to_owned(), 5));
        let mut whole = Output::new(3);
        whole.write("abc");
        assert_eq!(whole.into_text(), ("abc".to_owned(), 0));
        assert_eq!(shortened("ä", 1), "[2 bytes more are left out]");
    }
}
