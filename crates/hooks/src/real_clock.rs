//! A clock with real time for tests, because processes end in their own time. A test can skip ahead.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use archon_types::{BoxFuture, Clock, Timestamp};

/// Interval at which a sleeper looks whether the test skipped ahead.
const LOOK: Duration = Duration::from_millis(2);

#[derive(Clone)]
pub(crate) struct RealClock {
    since: Instant,
    /// Milliseconds that were skipped.
    skipped: Arc<AtomicU64>,
}

impl RealClock {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), skipped: Arc::default() }
    }

    pub(crate) fn skip(&self, seconds: u64) {
        self.skipped.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }
}

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let real = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        Timestamp::from_millis(real + self.skipped.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        Box::pin(async move {
            while clock.now() < deadline {
                tokio::time::sleep(LOOK.min(deadline.since(clock.now()))).await;
            }
        })
    }
}
