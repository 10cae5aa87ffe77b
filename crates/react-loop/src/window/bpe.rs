//! Exact token counts for OpenAI's models. For other models the counts are estimates.

use archon_types::TokenCounter;

/// A byte-pair encoding. Its vocabulary is unpacked at the first count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bpe {
    /// `cl100k_base`.
    Cl100k,
    /// `o200k_base`.
    O200k,
}

impl TokenCounter for Bpe {
    fn count(&self, text: &str) -> u64 {
        let tokenizer = match self {
            Self::Cl100k => bpe_openai::cl100k_base(),
            Self::O200k => bpe_openai::o200k_base(),
        };
        (tokenizer.count(text) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: C-09, P-38
    #[test]
    fn the_encodings_count_as_openai_does() {
        // The examples of OpenAI's cookbook on counting tokens.
        let table = [
            ("antidisestablishmentarianism", 6, 6),
            ("2 + 2 = 4", 7, 7),
            ("お誕生日おめでとう", 9, 8),
            ("", 1, 1),
        ];
        for (text, cl100k, o200k) in table {
            assert_eq!((Bpe::Cl100k.count(text), Bpe::O200k.count(text)), (cl100k, o200k), "{text}");
            assert_eq!(crate::token_counter(archon_types::Tokenizer::O200k).count(text), o200k, "{text}");
            assert_eq!(crate::token_counter(archon_types::Tokenizer::Cl100k).count(text), cl100k, "{text}");
        }
    }
}
