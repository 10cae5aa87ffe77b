//! llama.cpp built from source and linked with this program, for machines without a prebuilt engine.

use std::sync::OnceLock;

use super::functions::Functions;
use super::{silent, text};
use crate::engine_options::LocalEngineOptions;
use crate::error::LocalModelError;

/// The started library of llama.cpp.
pub(crate) struct Library {
    functions: Functions,
    version: String,
}

impl Library {
    /// Starts the library, once per process. The folder and the kernel of the options are not used.
    #[allow(clippy::unnecessary_wraps, reason = "the prebuilt library can fail to open")]
    pub(crate) fn open(_: &LocalEngineOptions) -> Result<&'static Self, LocalModelError> {
        static STARTED: OnceLock<Library> = OnceLock::new();
        Ok(STARTED.get_or_init(|| {
            let functions = Functions::linked();
            // SAFETY: started once; the callback keeps nothing of its arguments; the version is a text that
            // is part of the library.
            let version = unsafe {
                (functions.llama_log_set)(Some(silent), std::ptr::null_mut());
                (functions.ggml_log_set)(Some(silent), std::ptr::null_mut());
                (functions.llama_backend_init)();
                format!("{} ({})", text((functions.llama_version)()), text((functions.ggml_commit)()))
            };
            Self { functions, version }
        }))
    }

    pub(super) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Returns the version of llama.cpp.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the name of the only kernel.
    #[allow(clippy::unused_self, reason = "the prebuilt library has several")]
    pub(crate) fn kernel(&self) -> &'static str {
        "built from source"
    }

    /// Returns the system's libraries that the engine uses.
    #[allow(clippy::unused_self, reason = "the prebuilt library tells them")]
    pub(crate) fn system(&self) -> String {
        "linked with this program".to_owned()
    }
}
