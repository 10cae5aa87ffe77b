//! Moves blocking file operations off the threads that run futures.

use archon_types::JournalError;
use tokio::runtime::Handle;

/// Runs `work` on a thread that may block; without a Tokio runtime, on the current thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    let Ok(runtime) = Handle::try_current() else { return work() };
    match runtime.spawn_blocking(work).await {
        Ok(result) => result,
        Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
        Err(e) => Err(JournalError::Storage {
            action: "finish",
            place: "a file operation while the runtime shuts down".to_owned(),
            source: std::io::Error::other(e),
        }),
    }
}
