//! A clock with real time for tests, because the system ends processes in its own time. The testkit has the same
//! one, but this crate is on its layer.

use std::time::Instant;

use archon_types::{BoxFuture, Clock, Timestamp};

pub(crate) struct RealClock(Instant);

impl RealClock {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(deadline.since(self.now())))
    }
}
