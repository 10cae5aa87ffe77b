//! The parts of the window that a program can replace: token counter and compaction strategy.

use std::sync::Arc;

use archon_types::{CompactionStrategy, ContextConfig, TokenCounter, TokenEstimate, Tokenizer};

use super::tiers;

/// The program's own token counter and compaction strategy. A part that is `None` is replaced by the
/// built-in one that the [`ContextConfig`] names.
///
/// Neither part is stored with a run: a process that resumes the run must set them again. Their decisions
/// are in the log.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_react_loop::{ContextParts, Tiered};
/// use archon_types::TokenEstimate;
///
/// let mut parts = ContextParts::default();
/// parts.counter = Some(Arc::new(TokenEstimate)); // or your own `TokenCounter`
/// parts.strategy = Some(Arc::new(Tiered)); // or your own `CompactionStrategy`
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ContextParts {
    /// The token counter. `None` for the one that [`ContextConfig::tokenizer`] names.
    pub counter: Option<Arc<dyn TokenCounter>>,
    /// The compaction strategy, which removes or shortens messages. `None` for the one that
    /// [`ContextConfig::policy`] names.
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

archon_types::debug_fields!(ContextParts);

/// Returns the built-in counter for a tokenizer. Without the feature `tokens`, this is always
/// [`TokenEstimate`].
pub fn token_counter(tokenizer: Tokenizer) -> &'static dyn TokenCounter {
    match tokenizer {
        #[cfg(feature = "tokens")]
        Tokenizer::Cl100k => &super::bpe::Bpe::Cl100k,
        #[cfg(feature = "tokens")]
        Tokenizer::O200k => &super::bpe::Bpe::O200k,
        _ => &TokenEstimate,
    }
}
