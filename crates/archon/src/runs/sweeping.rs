//! Sweeps repeatedly while a service runs.

use std::time::Duration;

use archon_types::AnswerRuns;
use tokio::task::JoinHandle;

use super::Runs;

/// An async task that repeatedly resumes suspended runs that have an answer or an expired question; see
/// [`Runs::keep_sweeping`]. Dropping this value ends the async task.
#[derive(Debug)]
#[must_use = "the sweeping ends when this value is dropped"]
pub struct Sweeping(JoinHandle<()>);

impl Runs {
    /// [Sweeps](AnswerRuns::sweep) now and after each `period`, until the returned value is dropped: resumes
    /// suspended runs that have an answer or an expired question. The error of a run that cannot be resumed
    /// is logged (`tracing`, at `warn`), and the run is tried again.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn serve(runs: archon::Runs) {
    /// let sweeping = runs.keep_sweeping(Duration::from_secs(60));
    /// // … the service listens, until it is told to end …
    /// drop(sweeping);
    /// # }
    /// ```
    pub fn keep_sweeping(&self, period: Duration) -> Sweeping {
        let runs = self.clone();
        Sweeping(tokio::spawn(async move {
            loop {
                runs.sweep_and_log().await;
                let clock = &runs.archon().clock;
                clock.sleep_until(clock.now() + period).await;
            }
        }))
    }

    async fn sweep_and_log(&self) {
        match self.sweep().await {
            Ok(swept) => swept.failures().for_each(
                |(run, error)| tracing::warn!(%run, %error, "a run whose question has expired cannot go on"),
            ),
            Err(error) => tracing::warn!(%error, "cannot look for runs whose questions have expired"),
        }
    }
}

impl Drop for Sweeping {
    fn drop(&mut self) {
        // Resumed runs have their own tasks and go on.
        self.0.abort();
    }
}
