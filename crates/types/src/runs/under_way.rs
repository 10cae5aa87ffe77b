//! A count of the calls of a run that are under way, for a team that lets one of them wait.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The calls of a run that are under way, counted by the loop that runs them. Clones share the count.
///
/// While every one of them waits for other members of a team, the run can be dropped and nothing is cut off.
/// It is resumed from its log.
#[derive(Clone, Debug)]
pub struct CallsUnderWay(Arc<AtomicUsize>);

impl CallsUnderWay {
    /// A count of so many calls.
    pub fn new(calls: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(calls)))
    }

    /// Sets the number of calls. The loop does nothing else while they run.
    pub fn set(&self, calls: usize) {
        self.0.store(calls, Ordering::Release);
    }

    /// Sets the largest number: the loop itself is at work and must not be cut off.
    pub fn set_busy(&self) {
        self.set(usize::MAX);
    }

    /// Returns the number of calls.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

/// The largest number, as [`set_busy`](CallsUnderWay::set_busy).
impl Default for CallsUnderWay {
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}
