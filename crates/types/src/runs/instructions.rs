//! The instructions of a project for the agents that work in it. They are read again before each request, so
//! an edit takes effect in the next turn.

use futures_core::future::BoxFuture;

/// A source of a project's instructions, for instance a file.
///
/// ```
/// use archon_types::{BoxFuture, Instructions};
///
/// /// The same rules for every run.
/// struct Rules(String);
///
/// impl Instructions for Rules {
///     fn read(&self) -> BoxFuture<'_, Result<Option<String>, String>> {
///         Box::pin(std::future::ready(Ok(Some(self.0.clone()))))
///     }
/// }
/// ```
pub trait Instructions: Send + Sync {
    /// Returns the current text of the instructions; `None` if there are none.
    ///
    /// # Errors
    /// The reason why the instructions cannot be read, to show to people. The instructions that were read
    /// before stay in effect.
    fn read(&self) -> BoxFuture<'_, Result<Option<String>, String>>;

    /// Returns the absolute paths of the files to look for. Each run logs them, so that another process can
    /// resume the run with the same files. Default: none.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }
}
