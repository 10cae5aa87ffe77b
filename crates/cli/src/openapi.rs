//! HTTP APIs of the settings, `[openapi.NAME]`: the operations of their OpenAPI documents are tools of this command's agents.
//!
//! Without the feature `openapi` the program only explains that it must be built with the feature.

#[cfg(not(feature = "openapi"))]
mod absent;
#[cfg(feature = "openapi")]
mod agreement;
#[cfg(feature = "openapi")]
mod copy;
#[cfg(feature = "openapi")]
mod credentials;
#[cfg(feature = "openapi")]
mod entry;
#[cfg(feature = "openapi")]
mod loaded;

#[cfg(not(feature = "openapi"))]
pub(crate) use absent::{agreement_lines, findings, missing, tools};
#[cfg(feature = "openapi")]
pub(crate) use agreement::agreement_lines;
#[cfg(all(feature = "openapi", feature = "setup"))]
pub(crate) use {
    agreement::servers,
    copy::{keep, remove},
    credentials::placeholders,
    entry::{config, filter, unusable},
};
#[cfg(feature = "openapi")]
pub(crate) use {
    credentials::with_secrets,
    entry::{person_tokens, wrong},
    loaded::{all, findings, missing, tools},
};
