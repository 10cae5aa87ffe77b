//! What can go wrong with a local model: each error says what failed, on what, why, and what to do.

use std::path::PathBuf;

use archon_types::ProviderError;

/// Why a local model could not be fetched, loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalModelError {
    /// There is no file at this path.
    #[error("no model file at {}", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("cannot read the model file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is something else.
    #[error("{} is not a GGUF file: it begins with {found:?}", path.display())]
    NotGguf {
        /// The file.
        path: PathBuf,
        /// Its first bytes, as text.
        found: String,
    },
    /// The file is cut off or damaged, or holds an architecture that the engine does not know.
    #[error("the engine cannot load {}: the file is cut off or damaged, or its architecture is unknown", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// The conversation does not fit.
    #[error("the prompt has {tokens} tokens and the context holds {context}")]
    PromptTooLarge {
        /// Tokens of the prompt.
        tokens: usize,
        /// Tokens that the context holds, the answer included.
        context: usize,
    },
    /// The engine failed.
    #[error("the engine failed while {doing}: {why}")]
    Engine {
        /// What it was doing.
        doing: &'static str,
        /// What it said.
        why: String,
    },
}

impl LocalModelError {
    #[cfg(feature = "engine")]
    pub(crate) fn engine(doing: &'static str, why: impl ToString) -> Self {
        Self::Engine { doing, why: why.to_string() }
    }

    /// What to do about it, in one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "fetch a model with `archon model pull`, or give the path of a GGUF file",
            Self::Unreadable { .. } => "check that the file may be read by this user",
            Self::NotGguf { .. } => "give the path of a model in the GGUF format",
            Self::Broken { .. } => "remove the file and fetch it again with `archon model pull`",
            Self::PromptTooLarge { .. } => {
                "shorten the conversation, offer fewer tools, or raise the context size"
            }
            Self::Engine { .. } => "try again; if it happens again, use a smaller context or another model",
        }
    }
}

impl From<LocalModelError> for ProviderError {
    fn from(e: LocalModelError) -> Self {
        match e {
            LocalModelError::PromptTooLarge { .. } => Self::ContextOverflow(e.to_string()),
            e => Self::Other(format!("{e}; {}", e.advice())),
        }
    }
}
