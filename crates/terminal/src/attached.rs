//! Files that a message carries: a text block for each, behind the message's own text.

use archon_types::Content;

const BEGIN: &str = "<file path=\"";
const BEHIND_PATH: &str = "\">\n";
const END: &str = "\n</file>";

/// A file in a message. The model reads it with its path; the screen shows only the path.
///
/// ```
/// use archon_terminal::AttachedFile;
/// use archon_types::Content;
///
/// let file = AttachedFile::new("src/main.rs", "fn main() {}\n");
/// let content = [Content::text("What is in @src/main.rs?"), file.content()];
/// assert_eq!(AttachedFile::split(&content), ("What is in @src/main.rs?".to_owned(), vec![file]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttachedFile<'a> {
    /// The path, as the message names it. A path with a quotation mark or a line end cannot be attached.
    pub path: &'a str,
    /// The whole text of the file.
    pub text: &'a str,
}

impl<'a> AttachedFile<'a> {
    /// Creates a file.
    pub const fn new(path: &'a str, text: &'a str) -> Self {
        Self { path, text }
    }

    /// Returns the block for a message.
    pub fn content(&self) -> Content {
        Content::text(format!("{BEGIN}{}{BEHIND_PATH}{}{END}", self.path, self.text))
    }

    /// Splits the blocks of a message into its own text and the files behind it.
    pub fn split(content: &'a [Content]) -> (String, Vec<Self>) {
        let own =
            content.iter().enumerate().filter(|(number, block)| *number == 0 || Self::of(block).is_none());
        let texts: Vec<&str> = own.filter_map(|(_, block)| block.as_text()).collect();
        (texts.join("\n"), content.iter().skip(1).filter_map(Self::of).collect())
    }

    fn of(block: &'a Content) -> Option<Self> {
        let (path, rest) = block.as_text()?.strip_prefix(BEGIN)?.split_once(BEHIND_PATH)?;
        Some(Self { path, text: rest.strip_suffix(END)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_takes_no_file_from_the_own_text() {
        let typed = AttachedFile::new("a", "x").content();
        let file = AttachedFile::new("b", "\">\n</file>\n");
        let content = [typed.clone(), Content::text("more"), file.content()];
        let own = format!("{}\nmore", typed.as_text().unwrap());
        assert_eq!(AttachedFile::split(&content), (own, vec![file]));
        assert_eq!(AttachedFile::split(&[]), (String::new(), Vec::new()));
    }
}
