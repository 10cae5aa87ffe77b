//! HTTP APIs of the settings, `[openapi.NAME]`: the operations of their OpenAPI documents are tools of this command's agents.
//!
//! Without the feature `openapi` the program only explains that it must be built with the feature.

#[cfg(not(feature = "openapi"))]
mod absent;
#[cfg(feature = "openapi")]
mod copy;
#[cfg(feature = "openapi")]
mod credentials;
#[cfg(feature = "openapi")]
mod entry;
#[cfg(feature = "openapi")]
mod loaded;

use std::sync::{Once, OnceLock};

#[cfg(not(feature = "openapi"))]
pub(crate) use absent::{findings, missing, tools};
#[cfg(feature = "openapi")]
pub(crate) use loaded::{findings, missing, tools};
#[cfg(all(feature = "openapi", feature = "setup"))]
pub(crate) use {copy::keep, copy::remove, credentials::placeholder, entry::config, entry::filter};
#[cfg(feature = "openapi")]
pub(crate) use {entry::wrong, loaded::all};

use crate::{failure::Failure, servers::Tools};

/// An API of the settings, as a run uses it.
pub(crate) struct Api {
    pub(crate) name: String,
    /// The tools, or the reason for which the API is not used. `None` if the settings leave it out.
    pub(crate) tools: Option<Result<Tools, Failure>>,
    /// The operations that are no tools, one line each.
    pub(crate) left_out: Vec<String>,
}

/// The APIs of a command, read at their first use.
#[derive(Default)]
pub(crate) struct Loaded {
    #[cfg_attr(not(feature = "openapi"), allow(dead_code, reason = "there are no APIs"))]
    apis: OnceLock<Vec<Api>>,
    warned: Once,
}
