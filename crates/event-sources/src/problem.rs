//! The problems of a source after its first look, for the program.

use std::{fmt, sync::Arc};

type Note = dyn Fn(&str) + Send + Sync;

/// Gets each problem. Without a function of the program, problems are only in the log.
#[derive(Clone, Default)]
pub(crate) struct OnProblem(Option<Arc<Note>>);

impl OnProblem {
    pub(crate) fn new(note: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(note)))
    }

    /// Writes a problem into the log, and gives it to the program.
    pub(crate) fn note(&self, problem: &str) {
        tracing::warn!("{problem}");
        if let Some(note) = &self.0 {
            note(problem);
        }
    }
}

impl fmt::Debug for OnProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnProblem").field(&self.0.is_some()).finish()
    }
}
