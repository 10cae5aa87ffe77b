//! llama.cpp as it was built with this program, for machines that no prebuilt one is for.

use std::sync::OnceLock;

use super::functions::Functions;
use super::{silent, text};
use crate::engine::EngineOptions;
use crate::error::LocalModelError;

/// llama.cpp, started.
pub(crate) struct Library {
    functions: Functions,
    version: String,
}

impl Library {
    /// Starts the library, once for the process. Folder and kernel of the options are not used.
    #[allow(clippy::unnecessary_wraps, reason = "the prebuilt library can fail to open")]
    pub(crate) fn open(_: &EngineOptions) -> Result<&'static Self, LocalModelError> {
        static STARTED: OnceLock<Library> = OnceLock::new();
        Ok(STARTED.get_or_init(|| {
            let functions = Functions::linked();
            // SAFETY: started once; the function given takes what llama.cpp hands it and keeps nothing; the version is
            // a text that is part of the library.
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

    /// The version of llama.cpp.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The kernel that computes: there is one.
    #[allow(clippy::unused_self, reason = "the prebuilt library has several")]
    pub(crate) fn kernel(&self) -> &'static str {
        "built from source"
    }

    /// The system's libraries that it uses.
    #[allow(clippy::unused_self, reason = "the prebuilt library tells them")]
    pub(crate) fn system(&self) -> String {
        "linked with this program".to_owned()
    }
}
