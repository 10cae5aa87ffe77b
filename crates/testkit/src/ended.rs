//! The outcome of a run from the result of starting it, for tests that treat failed and other runs alike.

use archon_types::{Outcome, Reply, RunError};

/// Converts the result of starting a run into the outcome in the run's log. The result is an error if the run failed.
///
/// ```
/// use archon_testkit::Ended;
/// use archon_types::{FailureKind, Outcome, Reply, RunError};
///
/// let failed = Outcome::failed("run_1".into(), FailureKind::Model, "no answer");
/// let result: Result<Reply, RunError> = Err(RunError::Failed { outcome: Box::new(failed) });
/// assert_eq!(result.ended().error.as_deref(), Some("no answer"));
/// ```
pub trait Ended {
    /// Returns the outcome of the run, failed or not.
    ///
    /// # Panics
    /// If the error does not contain the outcome of the run.
    fn ended(self) -> Outcome;
}

impl Ended for Result<Reply, RunError> {
    fn ended(self) -> Outcome {
        Outcome::of_result(self).unwrap_or_else(|error| panic!("a run that ended: {error:?}"))
    }
}
