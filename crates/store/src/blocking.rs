//! Moves blocking file operations off the threads that run futures.

#[cfg(any(feature = "jsonl", feature = "sqlite"))]
use archon_types::JournalError;
use tokio::{runtime::Handle, task::JoinError};

/// Runs `work` on a thread that may block; without a Tokio runtime, on the current thread.
#[cfg(any(feature = "jsonl", feature = "sqlite"))]
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    blocking_or(work, |e| JournalError::Storage {
        action: "finish",
        place: "a file operation while the runtime shuts down".to_owned(),
        source: std::io::Error::other(e),
    })
    .await
}

/// Does the same as [`blocking`] for `work` with any type of error. `stopped` creates the error for a runtime
/// that shuts down.
pub(crate) async fn blocking_or<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    stopped: impl FnOnce(JoinError) -> E,
) -> Result<T, E> {
    let Ok(runtime) = Handle::try_current() else { return work() };
    match runtime.spawn_blocking(work).await {
        Ok(result) => result,
        Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
        Err(e) => Err(stopped(e)),
    }
}
