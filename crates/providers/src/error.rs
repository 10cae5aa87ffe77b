//! Errors of creating a provider, before any request is sent.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::cassette::HOW_TO_RECORD;

/// An error that prevents the creation of a provider.
///
/// The [`Debug`](fmt::Debug) form, which a program prints if `main` or a test returns this error, is the same
/// sentence as the `Display` form. For a cassette, it also has advice in brackets.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The base URL is not an `http` or `https` URL with a host.
    #[error("base URL {url:?}: {reason}")]
    BaseUrl {
        /// The URL without password and query.
        url: String,
        /// The problem, as text for people.
        reason: String,
    },
    /// The model is not written as `PROVIDER:MODEL` or `PROVIDER@URL:MODEL`.
    #[error("model {model:?}: {reason}")]
    Model {
        /// The text as it was given.
        model: String,
        /// The problem, as text for people.
        reason: String,
    },
    /// No profile and no protocol has this name.
    #[error("no provider is called {name:?}; {}", did_you_mean(.nearest))]
    UnknownProfile {
        /// The name as it was given.
        name: String,
        /// The most similar names of profiles and protocols, the most similar first.
        nearest: Vec<&'static str>,
    },
    /// The service needs a key and none was found.
    #[error("{profile} needs a key: set {variable}")]
    MissingKey {
        /// The name of the profile or of the protocol.
        profile: &'static str,
        /// The environment variable for the key.
        variable: &'static str,
    },
    /// The service needs another setting, which is missing.
    #[error("{protocol} needs {what}: set {variable}")]
    MissingVariable {
        /// The name of the protocol.
        protocol: &'static str,
        /// A description of the missing setting.
        what: &'static str,
        /// The environment variable for the setting.
        variable: &'static str,
    },
    /// The protocol's cargo feature is off, so the protocol is not in this build.
    #[error("{protocol} is not in this build: turn on the cargo feature `{feature}`")]
    MissingFeature {
        /// The name of the protocol.
        protocol: &'static str,
        /// The cargo feature, which has the same name in `archon-providers` and in `archon`.
        feature: &'static str,
    },
    /// A setting cannot be used, for instance a header, a key, a proxy or a region. Secret values are not
    /// shown.
    #[error("{what}: {reason}")]
    Setting {
        /// The name of the setting.
        what: String,
        /// The problem, as text for people.
        reason: String,
    },
    /// A line or a file of a catalogue of models is not valid.
    #[error("the catalogue of models cannot be read: {reason}")]
    Catalogue {
        /// The problem; for an invalid line, with its line number.
        reason: String,
    },
    /// A cassette (a file with recorded calls) cannot be written or read.
    #[error("cassette {}: {reason}", path.display())]
    Cassette {
        /// The path of the file.
        path: PathBuf,
        /// The problem, as text for people.
        reason: String,
    },
}

impl SetupError {
    pub(crate) fn cassette(path: &Path, reason: String) -> Self {
        Self::Cassette { path: path.to_owned(), reason }
    }
}

impl fmt::Debug for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cassette { .. } => {
                write!(f, "{self} (check the path, or record the cassette: {HOW_TO_RECORD})")
            }
            _ => write!(f, "{self}"),
        }
    }
}

fn did_you_mean(names: &[&str]) -> String {
    format!("did you mean {}?", names.join(", "))
}
