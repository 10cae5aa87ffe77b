//! Time and identity from the system: what an agent is given outside tests.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use archon_types::{BoxFuture, Clock, Ids, Timestamp};

/// The system's clock and tokio's timers.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, deadline: Timestamp) -> BoxFuture<'static, ()> {
        let wait = deadline.since(self.now()).min(LONGEST_SLEEP);
        Box::pin(async move { tokio::time::sleep(wait).await })
    }
}

/// Timers have an end; whoever waits longer than this looks at the clock again.
const LONGEST_SLEEP: Duration = Duration::from_secs(30 * 24 * 3600);

/// Random ids that sort by time: version 7 UUIDs.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn fresh(&self, prefix: &str) -> String {
        format!("{prefix}_{}", uuid::Uuid::now_v7().simple())
    }
}
