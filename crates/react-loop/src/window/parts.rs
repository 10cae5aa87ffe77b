//! What a program may put in place of the window's own parts.

use std::sync::Arc;

use archon_types::{CompactionStrategy, ContextConfig, TokenCounter, TokenEstimate, Tokenizer};

use super::tiers;

/// A counter and a strategy of the program's own. What is left out is built in and named by the
/// [`ContextConfig`].
///
/// Neither is stored with a run: whoever takes a run up again brings them along. What they decided
/// stands in the log.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ContextParts {
    /// Counts tokens.
    pub counter: Option<Arc<dyn TokenCounter>>,
    /// Decides what gives way.
    pub strategy: Option<Arc<dyn CompactionStrategy>>,
}

impl ContextParts {
    pub(crate) fn counter(&self, tokenizer: Tokenizer) -> &dyn TokenCounter {
        self.counter.as_deref().unwrap_or_else(|| token_counter(tokenizer))
    }

    pub(crate) fn strategy(&self, config: &ContextConfig) -> &dyn CompactionStrategy {
        self.strategy.as_deref().unwrap_or_else(|| tiers::of(config.policy))
    }
}

impl std::fmt::Debug for ContextParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContextParts")
            .field("counter", &self.counter.is_some())
            .field("strategy", &self.strategy.is_some())
            .finish()
    }
}

/// The built-in counter of a name; the estimate where the program was built without it.
pub fn token_counter(tokenizer: Tokenizer) -> &'static dyn TokenCounter {
    match tokenizer {
        #[cfg(feature = "tokens")]
        Tokenizer::Cl100k => &super::bpe::Bpe::Cl100k,
        #[cfg(feature = "tokens")]
        Tokenizer::O200k => &super::bpe::Bpe::O200k,
        _ => &TokenEstimate,
    }
}
