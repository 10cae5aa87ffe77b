//! A count of a run's calls that are under way. A team uses the count to drop a run that only waits for other
//! members.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The number of a run's calls under way, set by the loop that executes them. Clones share the count.
///
/// While every call waits for other members of a team, the run can be dropped without losing work. The run is
/// later resumed from its log.
#[derive(Clone, Debug)]
pub struct CallsUnderWay(Arc<AtomicUsize>);

impl CallsUnderWay {
    /// Creates the count with `calls` calls under way.
    pub fn new(calls: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(calls)))
    }

    /// Sets the number of calls under way. Call this only while the run's driver does nothing but wait for these
    /// calls; otherwise call [`set_busy`](Self::set_busy).
    pub fn set(&self, calls: usize) {
        self.0.store(calls, Ordering::Release);
    }

    /// Sets the number to the maximum of `usize`: the loop itself works, so the run must not be dropped.
    pub fn set_busy(&self) {
        self.set(usize::MAX);
    }

    /// Returns the number of calls under way; the maximum of `usize` after [`set_busy`](Self::set_busy).
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// Creates a count with the maximum number, as after [`set_busy`](CallsUnderWay::set_busy).
impl Default for CallsUnderWay {
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}
