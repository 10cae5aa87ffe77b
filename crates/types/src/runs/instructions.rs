//! Instructions of a project for the agents that work in it. They are read again before each request, so an
//! edit takes effect with the next turn.

use futures_core::future::BoxFuture;

/// A source of a project's instructions, for instance a file.
pub trait Instructions: Send + Sync {
    /// Returns the current text; `None` if there is none.
    ///
    /// # Errors
    /// The reason why it cannot be read, for people. The text that was read before stays in force.
    fn read(&self) -> BoxFuture<'_, Result<Option<String>, String>>;

    /// Returns the absolute paths of the files to look for. They are logged with each run, so that another
    /// process can resume it with the same files. Default: none.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }
}
