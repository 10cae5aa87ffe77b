//! Settings of the tools of a document, and the choice of its operations.

use std::collections::BTreeMap;

use archon_types::Secret;

use crate::{OpenApiAuth, OpenApiError};

/// Maximum length of a name prefix. It leaves room for the rest of a tool's name.
const LONGEST_PREFIX: usize = 32;

/// Settings of the tools that are made of an OpenAPI document.
///
/// ```
/// use archon_openapi::{OpenApiAuth, OpenApiConfig};
///
/// let config = OpenApiConfig::default()
///     .with_base_url("https://api.example.com/v2")
///     .with_name_prefix("shop")
///     .with_auth(OpenApiAuth::Bearer("secret-token".into()))
///     .with_header("X-Client", "archon");
/// assert!(!format!("{config:?}").contains("secret-token"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenApiConfig {
    /// The address that the paths of the operations are appended to, in place of the servers of the document. A slash
    /// at its end is ignored. Default: the first server of the operation, else of its path, else of the document.
    pub base_url: Option<String>,
    /// The credentials that calls send. Default: none.
    pub auth: OpenApiAuth,
    /// Headers of every request, by name. They replace headers of the same name that the request would have. Values
    /// are printed as `****`. Default: none.
    pub custom_headers: BTreeMap<String, Secret>,
    /// Maximum number of bytes of a response's body that a model reads; the rest is cut off. Default 65,536.
    pub max_response_bytes: usize,
    /// Time limit of a request in seconds. Default 30.
    pub timeout_secs: u64,
    /// The prefix of each tool's name: with `shop`, a tool is called `shop__operationId`. The search for tools uses
    /// the prefix to name all tools of the document at once. At most 32 letters, digits, `_` and `-`, beginning with
    /// a letter, without `__`, and without `_` at the end. Default: none, so the name of a tool is the `operationId`
    /// alone.
    pub name_prefix: Option<String>,
    /// True if an operation without an `operationId` is named by its method and its path, such as `get_pets_petId`.
    /// Default false: such an operation is left out with a warning.
    pub name_by_path: bool,
    /// True if each field of a body that is an object becomes an argument of its own. A body stays the one argument
    /// `body` if it is not one plain object, or if one of its fields has the name of a parameter. Default false.
    pub hoist_body: bool,
}

impl Default for OpenApiConfig {
    fn default() -> Self {
        Self {
            base_url: None,
            auth: OpenApiAuth::None,
            custom_headers: BTreeMap::new(),
            max_response_bytes: 65_536,
            timeout_secs: 30,
            name_prefix: None,
            name_by_path: false,
            hoist_body: false,
        }
    }
}

archon_types::setters! {
impl OpenApiConfig {
    /// Sets the address that the paths of the operations are appended to. Default: the servers of the document.
    pub fn with_base_url(self, url: impl Into<String>) -> Self { self.base_url = Some(url.into()) }

    /// Sets the credentials that calls send. Default: none.
    pub fn with_auth(self, auth: OpenApiAuth) -> Self { self.auth = auth }

    /// Sets the prefix of each tool's name: with `shop`, a tool is called `shop__operationId`. Default: none.
    pub fn with_name_prefix(self, prefix: impl Into<String>) -> Self { self.name_prefix = Some(prefix.into()) }
}
}

impl OpenApiConfig {
    /// Adds a header to every request. It replaces a header of the same name. The value is a secret.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.custom_headers.insert(name.into(), value.into());
        self
    }

    /// Checks the settings that do not depend on a document.
    pub(crate) fn check(&self) -> Result<(), OpenApiError> {
        let Some(prefix) = &self.name_prefix else { return Ok(()) };
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_legal = (1..=LONGEST_PREFIX).contains(&prefix.len())
            && prefix.chars().all(is_allowed)
            && prefix.starts_with(|c: char| c.is_ascii_alphabetic())
            && !prefix.contains("__")
            && !prefix.ends_with('_');
        match is_legal {
            true => Ok(()),
            false => Err(OpenApiError::Setting(format!(
                "the name prefix '{prefix}' cannot be used: take at most {LONGEST_PREFIX} letters, digits, '_' and '-', \
                 beginning with a letter, without '__' and without '_' at the end"
            ))),
        }
    }
}

/// The operations of a document that become tools.
///
/// ```
/// use archon_openapi::OperationFilter;
///
/// let pets = OperationFilter::ByTag(vec!["pets".to_owned()]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationFilter {
    /// All operations.
    #[default]
    All,
    /// The operations with one of these values of `operationId`.
    ByOperationId(Vec<String>),
    /// The operations with one of these tags.
    ByTag(Vec<String>),
    /// The operations whose path begins with this text.
    ByPathPrefix(String),
}

impl OperationFilter {
    /// Returns whether an operation becomes a tool.
    pub(crate) fn takes(&self, path: &str, id: Option<&str>, tags: &[String]) -> bool {
        match self {
            Self::All => true,
            Self::ByOperationId(ids) => ids.iter().any(|one| Some(one.as_str()) == id),
            Self::ByTag(wanted) => wanted.iter().any(|tag| tags.contains(tag)),
            Self::ByPathPrefix(prefix) => path.starts_with(prefix.as_str()),
        }
    }
}
