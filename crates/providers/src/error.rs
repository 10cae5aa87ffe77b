//! What can be wrong with a provider before it is asked anything.

use std::path::{Path, PathBuf};

/// A provider that cannot be built from what it was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The base URL is not an `http` or `https` URL with a host.
    #[error("base URL {url:?}: {reason}")]
    BaseUrl {
        /// As it was given, a password and the query left out.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A model was not written as `PROFILE:MODEL` or `PROFILE@URL:MODEL`.
    #[error("model {model:?}: {reason}")]
    Model {
        /// As it was given.
        model: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No profile has this name.
    #[error("no provider is called {name:?}; {}", did_you_mean(.nearest))]
    UnknownProfile {
        /// As it was given.
        name: String,
        /// The names that look most like it, best first.
        nearest: Vec<&'static str>,
    },
    /// The service needs a key and none was found.
    #[error("{profile} needs a key: set {variable}")]
    MissingKey {
        /// The profile's name.
        profile: &'static str,
        /// The environment variable that would hold the key.
        variable: &'static str,
    },
    /// The service needs more than a key, and it was not said.
    #[error("{protocol} needs {what}: set {variable}")]
    MissingVariable {
        /// The protocol's name.
        protocol: &'static str,
        /// What is missing.
        what: &'static str,
        /// The environment variable that would say it.
        variable: &'static str,
    },
    /// The protocol is not in this build.
    #[error("{protocol} is not in this build: turn on the cargo feature `{feature}`")]
    MissingFeature {
        /// The protocol's name.
        protocol: &'static str,
        /// The feature of `archon-providers`, and of `archon`.
        feature: &'static str,
    },
    /// A header, a key or a proxy that cannot be sent or used. The value is not shown.
    #[error("{what}: {reason}")]
    Setting {
        /// Which setting.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A catalogue of models that cannot be understood.
    #[error("catalogue: {reason}")]
    Catalogue {
        /// What is wrong with it, and in which line.
        reason: String,
    },
    /// A cassette that cannot be written, read or understood.
    #[error("cassette {}: {reason}", path.display())]
    Cassette {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl SetupError {
    pub(crate) fn cassette(path: &Path, reason: String) -> Self {
        Self::Cassette { path: path.to_owned(), reason }
    }
}

fn did_you_mean(names: &[&str]) -> String {
    format!("did you mean {}?", names.join(", "))
}
