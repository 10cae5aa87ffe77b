//! The time that a call of a server waited for a person.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use archon_types::Timestamp;

/// Time that a call waited for a person, which does not count for the call's time limit.
#[derive(Debug, Default)]
pub(crate) struct PersonTime(Mutex<(Option<Timestamp>, Duration)>);

impl PersonTime {
    /// Returns the time for which the call has waited for a person until `now`.
    pub(crate) fn total(&self, now: Timestamp) -> Duration {
        let (since, before) = *self.lock();
        before + since.map_or(Duration::ZERO, |since| now.since(since))
    }

    pub(crate) fn begin(&self, now: Timestamp) {
        self.lock().0.get_or_insert(now);
    }

    pub(crate) fn end(&self, now: Timestamp) {
        let mut time = self.lock();
        if let Some(since) = time.0.take() {
            time.1 += now.since(since);
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Option<Timestamp>, Duration)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
