//! Errors of a document as a whole, and warnings about parts of it.

use std::fmt;

/// The reason why no tools can be made of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenApiError {
    /// The file or the address cannot be read.
    #[error("the OpenAPI document {place} cannot be read: {problem}")]
    Unreadable {
        /// The file or the address.
        place: String,
        /// The cause.
        problem: String,
    },
    /// The text is neither JSON nor YAML.
    #[error("{place}:{line}:{column}: the OpenAPI document is not {format}: {problem}")]
    Syntax {
        /// The file or the address.
        place: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// `JSON` or `YAML`.
        format: &'static str,
        /// The cause.
        problem: String,
    },
    /// The document is not an OpenAPI document of version 3 or 2.0.
    #[error("{place} is not an OpenAPI document of version 3 or 2.0: {problem}")]
    NotOpenApi {
        /// The file or the address.
        place: String,
        /// The cause.
        problem: String,
    },
    /// The credentials would go to several servers, although a person may know only one of them.
    #[error(
        "the operations of {place} would send the credentials to several servers, {}; set the base address \
         (`OpenApiConfig::with_base_url`), or choose the operations of one server",
        servers.join(", ")
    )]
    SeveralServers {
        /// The file or the address of the document.
        place: String,
        /// The servers, such as `https://api.example.com`, in the order of their names.
        servers: Vec<String>,
    },
    /// A setting cannot be used.
    #[error("{0}")]
    Setting(String),
    /// The sign-in of a person failed.
    #[error("the sign-in at '{service}' failed: {problem}")]
    SignIn {
        /// The service in the credential store.
        service: String,
        /// The cause, without secrets.
        problem: String,
    },
}

/// A warning about a part of a document that did not become a tool, or only partly. The other operations work.
///
/// It is shown as `petstore.yaml:12: #/paths/~1pets/get: …`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenApiWarning {
    /// The file or the address of the document.
    pub place: String,
    /// The line of the operation in the document, counted from 1; `None` if it was not found.
    pub line: Option<usize>,
    /// The JSON pointer to the part.
    pub pointer: String,
    /// The problem, and its effect.
    pub problem: String,
}

impl fmt::Display for OpenApiWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}: {}", self.pointer, self.problem)
    }
}

/// A problem with a part of a document: the pointer to the part, and a text about the part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) pointer: String,
    pub(crate) text: String,
}

impl Problem {
    pub(crate) fn new(pointer: impl Into<String>, text: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), text: text.into() }
    }
}
