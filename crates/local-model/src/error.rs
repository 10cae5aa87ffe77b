//! Errors of local models: each says what failed, on what, why, and what to do.

use std::path::{Path, PathBuf};

use archon_types::ProviderError;

/// Why a local model could not be fetched, loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalModelError {
    /// There is no file at this path.
    #[error("no model file at {}", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("cannot read the model file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
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
    /// The engine was not fetched.
    #[error("the engine is not there: no {}", path.display())]
    EngineMissing {
        /// The name that was looked for.
        path: PathBuf,
    },
    /// A file of the engine is not the one that was pinned.
    #[error("the engine's {} was not opened: {why}", path.display())]
    EngineAltered {
        /// The file or the folder.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// The engine cannot run on this machine.
    #[error("the engine cannot run on this machine: {why}")]
    EngineUnfit {
        /// The missing part.
        why: String,
    },
    /// The engine has no such kernel, or none that runs on this processor.
    #[error("no kernel {kernel} for this processor; there is: {there}")]
    NoSuchKernel {
        /// The kernel that was named.
        kernel: String,
        /// The kernels that the engine has.
        there: String,
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
        /// The step that failed.
        doing: &'static str,
        /// Its message.
        why: String,
    },
    /// No model is called that.
    #[error("there is no model called {name:?}")]
    Unknown {
        /// The request.
        name: String,
    },
    /// A server was not reached, or the connection broke.
    #[error("cannot fetch from {from}: {why}")]
    Network {
        /// The server.
        from: String,
        /// The cause.
        why: String,
    },
    /// A server said no.
    #[error("{host} refused with status {status}")]
    Refused {
        /// The server.
        host: String,
        /// Its HTTP status.
        status: u16,
    },
    /// A server does not have the file.
    #[error("{by} does not offer {file}")]
    NotOffered {
        /// The file.
        file: String,
        /// The server.
        by: String,
    },
    /// An address cannot be used.
    #[error("the address of the package index or the registry cannot be used: {why}")]
    Address {
        /// The fault.
        why: String,
    },
    /// The download differs from what was expected.
    #[error("{file} has the wrong SHA-256: {found} instead of {expected}")]
    Checksum {
        /// The file.
        file: String,
        /// The hash that it must have.
        expected: String,
        /// The hash that it has.
        found: String,
    },
    /// More came than the file has.
    #[error("{file} is larger than the {most} bytes that it should have at the most")]
    TooLarge {
        /// The file.
        file: String,
        /// The most bytes that it can have.
        most: u64,
    },
    /// There is no room left.
    #[error("the disk is full: cannot write {}{}", path.display(), kept_text(kept.as_deref()))]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// The part that has come, from which the next pull goes on.
        kept: Option<PathBuf>,
    },
    /// Another pull of the same model, or of the engine, is under way.
    #[error("{what} is being fetched by another program")]
    Busy {
        /// The model or the engine.
        what: String,
    },
    /// A file could not be read or written.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

fn kept_text(kept: Option<&Path>) -> String {
    kept.map(|path| format!(" (what came so far is kept in {})", path.display())).unwrap_or_default()
}

impl LocalModelError {
    #[cfg(feature = "pull")]
    pub(crate) fn write(path: &Path, kept: Option<&Path>, source: std::io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path, kept: kept.map(Path::to_owned) }
            }
            _ => Self::Io { path, source },
        }
    }

    /// `from` names the server: an address may hold a password.
    #[cfg(feature = "pull")]
    pub(crate) fn network(from: &str, e: &reqwest::Error) -> Self {
        let mut why = match e {
            e if e.is_connect() => "no connection".to_owned(),
            e if e.is_timeout() => "nothing came for too long".to_owned(),
            _ => "the connection broke".to_owned(),
        };
        let mut source = std::error::Error::source(e);
        while let Some(cause) = source {
            if cause.source().is_none() {
                why = format!("{why} ({cause})");
            }
            source = cause.source();
        }
        Self::Network { from: from.to_owned(), why }
    }

    #[cfg(feature = "engine")]
    pub(crate) fn engine(doing: &'static str, why: impl ToString) -> Self {
        Self::Engine { doing, why: why.to_string() }
    }

    /// The remedy, in one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "fetch a model with `archon model pull`, or give the path of a GGUF file",
            Self::Unreadable { .. } => "check that the file may be read by this user",
            Self::NotGguf { .. } => "give the path of a model in the GGUF format",
            Self::Broken { .. } => "remove the file and fetch it again with `archon model pull`",
            Self::EngineMissing { .. } | Self::EngineAltered { .. } => "fetch it with `archon model pull`",
            Self::EngineUnfit { .. } => {
                "it needs Linux with glibc 2.34 and libstdc++ of GCC 11, or newer; without it, name a server: `--base-url \
                 http://127.0.0.1:8080/v1 --model NAME`"
            }
            Self::NoSuchKernel { .. } => {
                "unset `local_kernel` (or `ARCHON_LOCAL_KERNEL`), and the best one is taken; or name one that this \
                 processor can run"
            }
            Self::PromptTooLarge { .. } => {
                "shorten the conversation, offer fewer tools, or raise the context size"
            }
            Self::Unknown { .. } => "see what there is with `archon model list`",
            Self::Network { .. } => {
                "check the connection and run the same command again: it goes on where it stopped; PIP_INDEX_URL \
                 and NPM_CONFIG_REGISTRY name other servers"
            }
            Self::Refused { .. } | Self::NotOffered { .. } | Self::Address { .. } => {
                "name another server in PIP_INDEX_URL or NPM_CONFIG_REGISTRY, or fetch another model"
            }
            Self::Checksum { .. } | Self::TooLarge { .. } => {
                "the file was removed; run the same command again, or use another server"
            }
            Self::DiskFull { .. } => "make room and run the same command again: it goes on where it stopped",
            Self::Busy { .. } => "wait until that is done, then run the same command again",
            Self::Io { .. } => "check the folder and its permissions, then run the same command again",
            Self::Engine { .. } => "try again; if it happens again, use a smaller context or another model",
        }
    }
}

impl From<LocalModelError> for ProviderError {
    fn from(e: LocalModelError) -> Self {
        match e {
            LocalModelError::PromptTooLarge { .. } => Self::ContextOverflow(e.to_string().into()),
            e => Self::Other(format!("{e}; {}", e.advice()).into()),
        }
    }
}
