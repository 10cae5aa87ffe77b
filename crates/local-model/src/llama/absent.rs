//! No engine: none is built for this platform, and this program was built without one from source.

use std::env::consts::{ARCH, OS};

use super::functions::Functions;
use crate::engine::EngineOptions;
use crate::error::LocalModelError;

/// llama.cpp: there is none.
pub(crate) enum Library {}

impl Library {
    /// Says that there is none.
    pub(crate) fn open(_: &EngineOptions) -> Result<&'static Self, LocalModelError> {
        Err(LocalModelError::EngineUnfit {
            why: format!("none is built for {OS} on {ARCH} with this C library"),
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
