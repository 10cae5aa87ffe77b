//! Checks the interpreter's time, memory and depth against the meter.

use std::rc::Rc;

use monty_types::{ResourceError, ResourceTracker};

use crate::meter::{Meter, Stopped};

/// The resource tracker of one program.
#[derive(Debug)]
pub(super) struct Tracker {
    meter: Rc<Meter>,
    recursion: usize,
}

impl Tracker {
    pub(super) fn new(meter: Rc<Meter>, recursion: usize) -> Self {
        Self { meter, recursion }
    }

    /// Makes the interpreter's error, which the program cannot catch. Its numbers are not shown: the outcome
    /// is made from the meter.
    fn error(&self, stopped: Stopped) -> ResourceError {
        match stopped {
            Stopped::Memory => ResourceError::Memory { limit: 0, used: 0 },
            Stopped::Time | Stopped::Cancelled => {
                let elapsed = self.meter.processor_time();
                ResourceError::Time { limit: elapsed, elapsed }
            }
        }
    }
}

impl ResourceTracker for Tracker {
    fn on_free(&self, size: impl FnOnce() -> usize) {
        self.meter.shrink(size());
    }

    fn check_time(&self) -> Result<(), ResourceError> {
        self.meter.step().map_err(|stopped| self.error(stopped))
    }

    fn check_recursion_depth(&self, depth: usize) -> Result<(), ResourceError> {
        match depth >= self.recursion {
            true => Err(ResourceError::Recursion { limit: self.recursion, depth: depth + 1 }),
            false => Ok(()),
        }
    }

    fn check_large_result(&self, bytes: usize) -> Result<(), ResourceError> {
        self.meter.fits(bytes).map_err(|stopped| self.error(stopped))
    }

    fn on_grow(&self, bytes: impl FnOnce() -> usize) -> Result<(), ResourceError> {
        self.meter.grow(bytes()).map_err(|stopped| self.error(stopped))
    }

    fn gc_interval(&self) -> Option<usize> {
        None
    }
}
