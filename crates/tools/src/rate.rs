//! Rate limits of tools: calls beyond the limit wait in a queue.

use std::{
    collections::{BTreeMap, HashMap},
    pin::pin,
    sync::Arc,
};

use archon_types::{CancellationToken, Clock, TokenBucket};
use futures_util::future::{Either, select};
use tokio::sync::Mutex;

use crate::CallRate;

/// The rate-limited tools. Clones share their queues.
#[derive(Clone, Default)]
pub(crate) struct Rates(Arc<HashMap<String, Limited>>);

struct Limited {
    rate: CallRate,
    /// The token bucket, created at the first call. The first call in the queue holds the lock while it
    /// waits; the lock is passed on in order of arrival.
    tokens: Mutex<Option<TokenBucket>>,
}

impl Rates {
    pub(crate) fn new(rates: &BTreeMap<String, CallRate>) -> Self {
        let limited = |(tool, rate): (&String, &CallRate)| {
            (tool.clone(), Limited { rate: *rate, tokens: Mutex::default() })
        };
        Self(Arc::new(rates.iter().map(limited).collect()))
    }

    /// Returns whether the tool has a rate limit.
    pub(crate) fn limits(&self, tool: &str) -> bool {
        self.0.contains_key(tool)
    }

    /// Waits until the tool may be called. Returns `false` if the call was cancelled meanwhile; such a call
    /// does not count against the limit.
    pub(crate) async fn may_begin(&self, tool: &str, clock: &dyn Clock, cancel: &CancellationToken) -> bool {
        let Some(limited) = self.0.get(tool) else { return true };
        matches!(select(pin!(cancel.cancelled()), pin!(limited.take(clock))).await, Either::Right(_))
    }
}

impl Limited {
    async fn take(&self, clock: &dyn Clock) {
        let mut tokens = self.tokens.lock().await;
        let bucket =
            tokens.get_or_insert_with(|| TokenBucket::new(self.rate.calls, self.rate.period, clock.now()));
        while let Err(due) = bucket.take(clock.now()) {
            clock.sleep_until(due).await;
        }
    }
}
