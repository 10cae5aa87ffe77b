//! The HTTP APIs of a command, as its other parts see them.

use std::sync::OnceLock;

#[cfg(feature = "openapi")]
use crate::{failure::Failure, servers::Tools};

/// An API of the settings, as a run uses it.
#[cfg(feature = "openapi")]
pub(crate) struct Api {
    pub(crate) name: String,
    /// The tools, or the reason why the API is not used; `None` if the settings disable the API.
    pub(crate) tools: Option<Result<Tools, Failure>>,
    /// The operations of the document that become no tools, one line each.
    pub(crate) left_out: Vec<String>,
}

/// The APIs of a command, read at their first use.
#[derive(Default)]
pub(crate) struct LoadedApis {
    #[cfg(feature = "openapi")]
    pub(crate) apis: OnceLock<Vec<Api>>,
    /// Set once the warnings were written.
    pub(crate) warned: OnceLock<()>,
}
