//! How a run ended, for tests that look at runs that failed and at others alike.

use archon_types::{Outcome, Reply, RunError};

/// Takes what a log says of a run's end from what its starter got.
pub trait Ended {
    /// The outcome of the run, failed or not.
    ///
    /// # Panics
    /// If there is an error that is not about how the run ended.
    fn ended(self) -> Outcome;
}

impl Ended for Result<Reply, RunError> {
    fn ended(self) -> Outcome {
        Outcome::of_result(self).unwrap_or_else(|error| panic!("a run that ended: {error:?}"))
    }
}
