//! The options of the engine.

use std::path::PathBuf;

/// Options of the engine that runs a model.
///
/// ```
/// use archon_local_model::LocalEngineOptions;
///
/// let options = LocalEngineOptions::default()
///     .with_folder("engines/llama")
///     .with_cache("data/prompts")
///     .with_kernel("haswell")
///     .with_threads(2)
///     .with_context(4_096); // tokens
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LocalEngineOptions {
    /// The number of threads that compute. Default 1: several threads spin while they wait for each other,
    /// which on busy cores is much slower than one thread.
    pub threads: u32,
    /// The size of the context in tokens; at most the size that the model was trained for. Default 8192.
    pub context: u32,
    /// The number of prompt tokens that are processed at once; a cancel takes effect between two batches.
    /// Default 128.
    pub batch: u32,
    /// The folder with the engine, which `pull_engine` returns. It is needed unless the engine was built from source.
    pub folder: PathBuf,
    /// The kernel, which is the library with the computing code for one generation of processors, such as
    /// `haswell`. Default: the kernel that suits the processor best. A process can use only one kernel. The
    /// results of two kernels differ in the last digits, so set this if results must be repeatable.
    pub kernel: Option<String>,
    /// The folder of a cache for the beginnings of prompts that stay the same (instructions, tools,
    /// examples), so that the next process need not compute them again. The cache needs about 20 kB per token
    /// and keeps at most eight beginnings. Default: no cache.
    pub cache: Option<PathBuf>,
}

impl Default for LocalEngineOptions {
    fn default() -> Self {
        Self { threads: 1, context: 8192, batch: 128, folder: PathBuf::new(), kernel: None, cache: None }
    }
}

impl LocalEngineOptions {
    /// Sets the folder with the engine, which `pull_engine` returns.
    pub fn with_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Turns on the cache for the beginnings of prompts, in this folder. Default: no cache.
    pub fn with_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Sets the kernel by name, such as `haswell`. Default: the kernel that suits the processor best.
    pub fn with_kernel(mut self, kernel: impl Into<String>) -> Self {
        self.kernel = Some(kernel.into());
        self
    }

    /// Sets the number of threads that compute. Default 1.
    pub fn with_threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the size of the context in tokens. Default 8192.
    pub fn with_context(mut self, tokens: u32) -> Self {
        self.context = tokens;
        self
    }
}
