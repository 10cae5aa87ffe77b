//! Drafts: what was typed, and what it is meant for.

use std::ops::Range;

use super::piece::Piece;

/// A finished draft. Two drafts are equal if they have the same text and the same kind, no matter which parts were
/// pasted.
///
/// ```
/// use archon_terminal::{Draft, DraftKind};
///
/// let draft = Draft::typed("!ls -l");
/// assert_eq!((draft.kind, draft.body()), (DraftKind::Shell, "ls -l"));
/// assert_eq!(Draft::typed("/usr/bin/env is missing").kind, DraftKind::Message);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Draft {
    /// The text as it was typed and pasted, with the sign of its kind. Line ends are `\n`.
    pub text: String,
    /// The kind of the draft.
    pub kind: DraftKind,
    /// The byte ranges of the text that were pasted, or otherwise not typed.
    pub pasted: Vec<Range<usize>>,
}

impl PartialEq for Draft {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.kind) == (&other.text, other.kind)
    }
}

impl Eq for Draft {}

/// The kind of a draft. It depends on the first character, if that character was typed and not pasted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DraftKind {
    /// A message to the agent.
    #[default]
    Message,
    /// A command of the program: `/` and its name. A draft whose first word has a second `/` is a message that begins
    /// with a path.
    Command,
    /// A line for the shell: `!` and the line.
    Shell,
    /// A text to remember: `#` and the text.
    Memory,
}

impl Draft {
    /// Creates a draft of a typed text; its kind follows from the first character.
    pub fn typed(text: impl Into<String>) -> Self {
        let text = text.into();
        let kind = DraftKind::of_typed(&text);
        Self { text, kind, pasted: Vec::new() }
    }

    /// Creates a message of any text, such as a pasted one.
    pub fn message(text: impl Into<String>) -> Self {
        let text = text.into();
        let whole = 0..text.len();
        Self { text, kind: DraftKind::Message, pasted: vec![whole] }
    }

    /// Returns the text without the sign of its kind and without surrounding spaces; for a message, the whole text.
    pub fn body(&self) -> &str {
        let mut rest = self.text.chars();
        if self.kind == DraftKind::Message {
            return &self.text;
        }
        rest.next();
        rest.as_str().trim()
    }

    /// Converts the draft into a text that the composer can edit and that has the same kind.
    pub(crate) fn into_piece(self) -> Piece {
        let mut pasted = self.pasted;
        if self.kind == DraftKind::Message && DraftKind::of_typed(&self.text) != DraftKind::Message {
            // A sign that was pasted stays a part of the message.
            pasted.push(0..1);
        }
        Piece::of(self.text, &pasted)
    }
}

impl DraftKind {
    /// Returns the kind of a typed text.
    fn of_typed(text: &str) -> Self {
        match text.chars().next() {
            Some('/') if !is_path(text) => Self::Command,
            Some('!') => Self::Shell,
            Some('#') => Self::Memory,
            _ => Self::Message,
        }
    }

    /// Returns the kind of a draft with this text.
    pub(crate) fn of(piece: &Piece) -> Self {
        match piece.begins_typed() {
            true => Self::of_typed(piece.text()),
            false => Self::Message,
        }
    }

    /// Returns the sign that is shown before the draft. If the sign is the first character of the draft, that
    /// character is not shown again.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Message | Self::Command => "› ",
            Self::Shell => "! ",
            Self::Memory => "# ",
        }
    }

    /// Returns true if the sign before the draft is the first character of the draft.
    pub(crate) fn has_own_sign(self) -> bool {
        matches!(self, Self::Shell | Self::Memory)
    }

    /// Returns the purpose of the draft in a few words, for kinds that a person may not expect.
    pub(crate) fn hint(self) -> Option<&'static str> {
        match self {
            Self::Shell => Some("a line for the shell"),
            Self::Memory => Some("a text to remember"),
            Self::Message | Self::Command => None,
        }
    }
}

fn is_path(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.chars().filter(|c| *c == '/').count() > 1
}
