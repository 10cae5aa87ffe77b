//! Hooks on events of runs: the person's `hooks.json` beside the settings, and those of a project, each after a person
//! agreed to its file.
//!
//! Without the feature `hooks` no file is read.

#[cfg(not(feature = "hooks"))]
mod absent;
#[cfg(feature = "hooks")]
mod files;

#[cfg(not(feature = "hooks"))]
pub(crate) use absent::{findings, waiting, with_hooks};
#[cfg(feature = "hooks")]
pub(crate) use files::{findings, waiting, with_hooks};
