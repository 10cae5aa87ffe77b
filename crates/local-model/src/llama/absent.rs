//! The library on platforms without a prebuilt engine, if the program was not built with an engine from
//! source.

use std::env::consts::{ARCH, OS};

use super::functions::Functions;
use crate::engine_options::LocalEngineOptions;
use crate::error::LocalModelError;

/// A library that never exists.
pub(crate) enum Library {}

impl Library {
    /// Returns the error that no engine is built for this platform.
    pub(crate) fn open(_: &LocalEngineOptions) -> Result<&'static Self, LocalModelError> {
        Err(LocalModelError::EngineUnfit {
            why: format!("no engine is built for {OS} on {ARCH} with this C library"),
        })
    }

    pub(super) fn functions(&self) -> &Functions {
        match *self {}
    }

    pub(crate) fn version(&self) -> &str {
        match *self {}
    }

    pub(crate) fn kernel(&self) -> &str {
        match *self {}
    }

    pub(crate) fn system(&self) -> String {
        match *self {}
    }
}
