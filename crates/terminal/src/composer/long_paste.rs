//! Long pastes, which are shown by their size.

use std::sync::Arc;

/// The maximum number of lines of a paste that is shown whole.
const MOST_LINES: usize = 8;
/// The maximum number of characters of a paste that is shown whole.
const MOST_CHARACTERS: usize = 1_000;

/// A long paste, and what is shown in its place.
#[derive(Clone, Debug)]
pub(crate) struct LongPaste {
    text: Arc<str>,
    label: String,
}

impl LongPaste {
    /// Creates the long paste of a text; `None` if the text is short enough to be shown.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let (lines, characters) = (text.lines().count(), text.chars().count());
        let size = match lines > MOST_LINES {
            true => Some(format!("{lines} lines")),
            false => (characters > MOST_CHARACTERS).then(|| format!("{characters} characters")),
        };
        size.map(|size| Self { text: text.into(), label: format!("[pasted {size}]") })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_of_a_long_paste_is_its_size() {
        for (text, label) in [
            ("line\n".repeat(8), None),
            ("line\n".repeat(9), Some("[pasted 9 lines]")),
            ("é".repeat(1_000), None),
            ("é".repeat(1_001), Some("[pasted 1001 characters]")),
        ] {
            assert_eq!(LongPaste::of(&text).as_ref().map(LongPaste::label), label);
        }
    }
}
