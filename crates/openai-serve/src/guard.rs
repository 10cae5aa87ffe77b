//! Cancels a run whose client has gone away.

use std::sync::Arc;

use archon_types::{CancellationToken, RunId, RunService};

/// The reason for the cancel, for the log of the run.
const GONE: &str = "the client closed the connection";

/// Cancels a run when the guard is dropped, unless the guard was disarmed or the server ends.
pub(crate) struct Guard {
    runs: Arc<dyn RunService>,
    run: RunId,
    end: CancellationToken,
    is_armed: bool,
}

impl Guard {
    pub(crate) fn new(runs: Arc<dyn RunService>, run: RunId, end: CancellationToken, is_armed: bool) -> Self {
        Self { runs, run, end, is_armed }
    }

    /// Disarms the guard: the run continues when the guard is dropped.
    pub(crate) fn disarm(&mut self) {
        self.is_armed = false;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.is_armed || self.end.is_cancelled() {
            return;
        }
        // Without a runtime the process ends, and leaves its runs to the next.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (runs, run) = (self.runs.clone(), self.run.clone());
        runtime.spawn(async move {
            if let Err(error) = runs.cancel(&run, GONE).await {
                tracing::debug!(%run, %error, "a run whose client has gone away was not cancelled");
            }
        });
    }
}
