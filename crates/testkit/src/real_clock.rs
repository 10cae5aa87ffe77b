//! A clock with real time, for tests of processes and servers, which end in their own time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use archon_types::{BoxFuture, Clock, Timestamp};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

/// A clock that reads the time since it was created, in milliseconds. Clones share one time.
///
/// It follows the clock of tokio, so a test with `start_paused` waits for nothing. Sleepers need a tokio runtime
/// with timers.
///
/// ```
/// use std::time::Duration;
///
/// use archon_testkit::RealClock;
/// use archon_types::Clock;
///
/// let clock = RealClock::new();
/// let before = clock.now();
/// clock.skip(Duration::from_secs(60));
/// assert!(clock.now().since(before) >= Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct RealClock {
    since: Instant,
    skipped: Arc<Skipped>,
}

#[derive(Debug, Default)]
struct Skipped {
    millis: AtomicU64,
    changed: Notify,
}

impl RealClock {
    /// Creates a clock that reads zero now.
    pub fn new() -> Self {
        Self { since: Instant::now(), skipped: Arc::default() }
    }

    /// Moves the time forward, in whole milliseconds, and wakes the sleepers whose deadline has come.
    pub fn skip(&self, by: Duration) {
        self.skipped.millis.fetch_add(millis(by), Ordering::SeqCst);
        self.skipped.changed.notify_waiters();
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(millis(self.since.elapsed()) + self.skipped.millis.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        Box::pin(async move {
            loop {
                // Before the time is read, so that no skip is missed.
                let skipped = clock.skipped.changed.notified();
                let rest = deadline.since(clock.now());
                if rest.is_zero() {
                    return;
                }
                let _ = timeout(rest, skipped).await;
            }
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn sleep_until_skipped_deadline_ends_and_a_later_one_does_not() {
        let clock = RealClock::new();
        let start = clock.now();
        let (near, far) = (clock.sleep_until(start + HOUR), clock.sleep_until(start + HOUR * 9));
        let (near, far) = (tokio::spawn(near), tokio::spawn(far));
        tokio::task::yield_now().await;
        clock.skip(HOUR);
        near.await.unwrap();
        assert!(!far.is_finished());
        far.abort();
    }
}
