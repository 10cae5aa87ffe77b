//! The bytes of every token of a model, in one table.
//!
//! A grammar is asked about thousands of tokens in a row when it refuses the first choice; asking the
//! engine for each one's text would cost more than the check.

use std::collections::HashMap;

/// A token's number in the model's vocabulary.
pub(crate) type Token = i32;

/// Tokens that write more bytes than this cannot be looked up.
pub(crate) const LONGEST_FOUND: usize = 24;

/// What each token writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    bytes: Vec<u8>,
    /// Where each token's bytes end; they begin where the one before ends.
    ends: Vec<u32>,
    ends_text: Vec<bool>,
    /// Short tokens by what they write.
    by_bytes: HashMap<Box<[u8]>, Token>,
}

impl Vocabulary {
    /// Adds the next token: its bytes (none for a control token) and whether it ends the text.
    pub(crate) fn push(&mut self, bytes: &[u8], ends_text: bool) {
        let token = Token::try_from(self.ends.len()).unwrap_or(Token::MAX);
        if (1..=LONGEST_FOUND).contains(&bytes.len()) {
            self.by_bytes.insert(bytes.into(), token);
        }
        self.bytes.extend_from_slice(bytes);
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        self.ends_text.push(ends_text);
    }

    /// The token that writes exactly this, if it is not longer than [`LONGEST_FOUND`].
    pub(crate) fn find(&self, bytes: &[u8]) -> Option<Token> {
        self.by_bytes.get(bytes).copied()
    }

    /// What the token writes; nothing for a control token or an unknown one.
    pub(crate) fn bytes(&self, token: Token) -> &[u8] {
        let Ok(at) = usize::try_from(token) else { return &[] };
        let start = match at {
            0 => 0,
            at => self.ends.get(at - 1).copied().unwrap_or(0),
        };
        let end = self.ends.get(at).copied().unwrap_or(start);
        &self.bytes[start as usize..end as usize]
    }

    /// Whether the token says that the text is over.
    pub(crate) fn ends_text(&self, token: Token) -> bool {
        usize::try_from(token).ok().and_then(|at| self.ends_text.get(at)).copied().unwrap_or(false)
    }
}
