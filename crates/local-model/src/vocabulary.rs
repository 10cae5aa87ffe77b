//! The bytes of every token of a model in one table.
//!
//! When the grammar refuses the model's first choice, thousands of other tokens are checked in a row. Asking
//! the engine for the text of each token would cost more than the check.

use std::collections::HashMap;

/// The id of a token in the vocabulary of the model.
pub(crate) type Token = i32;

/// The maximum number of bytes of a token that can be found by its text.
pub(crate) const LONGEST_FOUND: usize = 24;

/// The text of each token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    bytes: Vec<u8>,
    /// The end of each token's bytes; they begin at the end of the previous token.
    ends: Vec<u32>,
    ends_text: Vec<bool>,
    /// The tokens of at most [`LONGEST_FOUND`] bytes, by their bytes.
    by_bytes: HashMap<Box<[u8]>, Token>,
}

impl Vocabulary {
    /// Adds the next token: its bytes (empty for a control token), and true if it ends the text.
    pub(crate) fn push(&mut self, bytes: &[u8], ends_text: bool) {
        let token = Token::try_from(self.ends.len()).unwrap_or(Token::MAX);
        if (1..=LONGEST_FOUND).contains(&bytes.len()) {
            self.by_bytes.insert(bytes.into(), token);
        }
        self.bytes.extend_from_slice(bytes);
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        self.ends_text.push(ends_text);
    }

    /// Returns the token with exactly these bytes; `None` if there is none, or if the bytes are longer than
    /// [`LONGEST_FOUND`].
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<Token> {
        self.by_bytes.get(bytes).copied()
    }

    /// Returns the bytes of a token; empty for a control token or an unknown one.
    pub(crate) fn bytes(&self, token: Token) -> &[u8] {
        let Ok(at) = usize::try_from(token) else { return &[] };
        let start = match at {
            0 => 0,
            at => self.ends.get(at - 1).copied().unwrap_or(0),
        };
        let end = self.ends.get(at).copied().unwrap_or(start);
        &self.bytes[start as usize..end as usize]
    }

    /// Returns true if the token ends the text.
    pub(crate) fn ends_text(&self, token: Token) -> bool {
        usize::try_from(token).ok().and_then(|at| self.ends_text.get(at)).copied().unwrap_or(false)
    }
}
