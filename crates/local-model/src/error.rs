//! Errors of local models: each has the step that failed, the file or server, the reason, and the remedy.

use std::path::{Path, PathBuf};

use archon_types::ProviderError;

/// An error while a local model was downloaded, loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalModelError {
    /// There is no model file at this path.
    #[error("there is no model file at {}", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The model file could not be read.
    #[error("cannot read the model file {}: {source}", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The model file is not in the GGUF format.
    #[error("{} is not a GGUF file: it begins with {found:?}", path.display())]
    NotGguf {
        /// The file.
        path: PathBuf,
        /// The first bytes of the file, as text.
        found: String,
    },
    /// The model file is cut off or damaged, or the engine does not know the model's architecture.
    #[error("the engine cannot load {}: the file is cut off or damaged, or its architecture is unknown", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
    },
    /// The engine was not downloaded.
    #[error("the engine is missing: there is no {}", path.display())]
    EngineMissing {
        /// The path that was searched.
        path: PathBuf,
    },
    /// A file of the engine cannot be used, for instance because its hash is not the expected one.
    #[error("the engine at {} is not used: {why}", path.display())]
    EngineAltered {
        /// The path of the file or folder.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The engine cannot run on this machine.
    #[error("the engine cannot run on this machine: {why}")]
    EngineUnfit {
        /// The missing part of the system.
        why: String,
    },
    /// The engine has no kernel with this name, or the kernel does not run on this processor.
    #[error("the engine has no kernel {kernel} for this processor; its kernels are: {there}")]
    NoSuchKernel {
        /// The requested kernel.
        kernel: String,
        /// The names of the engine's kernels, separated by commas.
        there: String,
    },
    /// The prompt does not fit into the context.
    #[error("the prompt of {tokens} tokens does not fit into the context of {context} tokens")]
    PromptTooLarge {
        /// The number of tokens of the prompt.
        tokens: usize,
        /// The size of the context in tokens, including the answer.
        context: usize,
    },
    /// The engine reported an error, or its thread has ended.
    #[error("the engine failed while {doing}: {why}")]
    Engine {
        /// The step that failed, for instance `choosing a token`.
        doing: &'static str,
        /// The error message.
        why: String,
    },
    /// No model in the catalogue has this name.
    #[error("there is no model called {name:?}")]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// The server could not be reached, or the connection broke.
    #[error("cannot download from {from}: {why}")]
    Network {
        /// The host name of the server, or a description such as `the package index`.
        from: String,
        /// The cause.
        why: String,
    },
    /// The server refused to send a file or the list of files.
    #[error("the server {host} refused the download: it answered with the HTTP status {status}")]
    Refused {
        /// The host name of the server.
        host: String,
        /// Its HTTP status.
        status: u16,
    },
    /// The server or the downloaded package does not have the file.
    #[error("{by} does not have {file}")]
    NotOffered {
        /// The file.
        file: String,
        /// The server, or the file name of the package.
        by: String,
    },
    /// The address of a server cannot be used.
    #[error("the address of the package index or the registry cannot be used: {why}")]
    Address {
        /// The problem with the address.
        why: String,
    },
    /// The hash of the download differs from the pinned hash.
    #[error("{file} has the wrong SHA-256: {found} instead of {expected}")]
    Checksum {
        /// The file.
        file: String,
        /// The pinned hash.
        expected: String,
        /// The hash of the download.
        found: String,
    },
    /// The download is larger than the maximum size of the file.
    #[error("{file} exceeds its maximum size of {most} bytes")]
    TooLarge {
        /// The file.
        file: String,
        /// The maximum size of the file in bytes.
        most: u64,
    },
    /// The disk is full.
    #[error("the disk is full: cannot write {}{}", path.display(), stored_text(kept.as_deref()))]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// The path of the downloaded part; the next pull continues from it.
        kept: Option<PathBuf>,
    },
    /// Another process is downloading the same model or the same engine.
    #[error("another program is downloading {what}")]
    Busy {
        /// The name of the model or of the engine.
        what: String,
    },
    /// A file could not be read or written.
    #[error("cannot read or write {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

fn stored_text(kept: Option<&Path>) -> String {
    kept.map(|path| format!(" (the downloaded part is kept in {})", path.display())).unwrap_or_default()
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

    /// Creates an error of the network. `from` names the server without its address, which may contain a
    /// password.
    #[cfg(feature = "pull")]
    pub(crate) fn network(from: &str, e: &reqwest::Error) -> Self {
        let mut why = match e {
            e if e.is_connect() => "no connection".to_owned(),
            e if e.is_timeout() => "no data came before the timeout".to_owned(),
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

    /// Returns advice for a person on how to deal with the error, as one line.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "fetch a model with `archon model pull`, or give the path of a GGUF file",
            Self::Unreadable { .. } => "check that the file may be read by this user",
            Self::NotGguf { .. } => "give the path of a model in the GGUF format",
            Self::Broken { .. } => "remove the file and fetch it again with `archon model pull`",
            Self::EngineMissing { .. } | Self::EngineAltered { .. } => {
                "download the engine with `archon model pull`"
            }
            Self::EngineUnfit { .. } => {
                "the engine needs Linux with glibc 2.34 and libstdc++ of GCC 11, or newer; without it, name a server: `--base-url \
                 http://127.0.0.1:8080/v1 --model NAME`"
            }
            Self::NoSuchKernel { .. } => {
                "unset `local_kernel` (or `ARCHON_LOCAL_KERNEL`), so that the best kernel is used; or name one that this \
                 processor can run"
            }
            Self::PromptTooLarge { .. } => {
                "shorten the conversation, offer fewer tools, or raise the context size"
            }
            Self::Unknown { .. } => "`archon model list` shows the models",
            Self::Network { .. } => {
                "check the connection and run the same command again: the download continues where it stopped; PIP_INDEX_URL \
                 and NPM_CONFIG_REGISTRY set other servers"
            }
            Self::Refused { .. } => {
                "run the same command again later; if the server refuses again, set another server in PIP_INDEX_URL for a \
                 model, or in NPM_CONFIG_REGISTRY for the engine"
            }
            Self::NotOffered { .. } | Self::Address { .. } => {
                "set another server in PIP_INDEX_URL or NPM_CONFIG_REGISTRY, or download another model"
            }
            Self::Checksum { .. } | Self::TooLarge { .. } => {
                "the file was removed; run the same command again, or use another server"
            }
            Self::DiskFull { .. } => {
                "make room and run the same command again: the download continues where it stopped"
            }
            Self::Busy { .. } => "wait until the other program has finished, then run the same command again",
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
