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

use std::sync::OnceLock;

#[cfg(not(feature = "openapi"))]
pub(crate) use absent::{findings, missing, tools};
#[cfg(feature = "openapi")]
pub(crate) use loaded::{all, findings, missing, tools};
#[cfg(all(feature = "openapi", feature = "setup"))]
pub(crate) use {
    copy::{keep, remove},
    credentials::placeholder,
    entry::{config, filter, unusable, wrong},
};

/// The APIs of a command, read at their first use.
#[derive(Default)]
pub(crate) struct Loaded {
    #[cfg(feature = "openapi")]
    apis: OnceLock<Vec<loaded::Api>>,
    /// Set once the warnings were written.
    warned: OnceLock<()>,
}
