//! What a project says to the agents that work in it: read anew before each question, so that an edit counts
//! from the next turn on.

use futures_core::future::BoxFuture;

/// A place where a project keeps its instructions, for instance a file.
pub trait Instructions: Send + Sync {
    /// What it says now; `None` where there is nothing.
    ///
    /// # Errors
    /// Why it cannot be read, for people. What was read before stays in force.
    fn read(&self) -> BoxFuture<'_, Result<Option<String>, String>>;

    /// The files that are looked for, with their whole paths, for the log of each run: whoever resumes it elsewhere reads
    /// the same. None by default.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }
}
