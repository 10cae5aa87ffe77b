//! How often a tool is called: calls beyond its rate wait in a queue.

use std::{
    collections::{BTreeMap, HashMap},
    pin::pin,
    sync::Arc,
};

use archon_types::{CancellationToken, Clock, TokenBucket};
use futures_util::future::{Either, select};
use tokio::sync::Mutex;

use crate::CallRate;

/// The limited tools. Clones share their queues.
#[derive(Clone, Default)]
pub(crate) struct Rates(Arc<HashMap<String, Limited>>);

struct Limited {
    rate: CallRate,
    /// There once the first call came. Held by the first in the queue while it waits, and handed on in the order of
    /// asking.
    tokens: Mutex<Option<TokenBucket>>,
}

impl Rates {
    pub(crate) fn new(rates: &BTreeMap<String, CallRate>) -> Self {
        let limited = |(tool, rate): (&String, &CallRate)| {
            (tool.clone(), Limited { rate: *rate, tokens: Mutex::default() })
        };
        Self(Arc::new(rates.iter().map(limited).collect()))
    }

    /// Whether calls of the tool are counted.
    pub(crate) fn limits(&self, tool: &str) -> bool {
        self.0.contains_key(tool)
    }

    /// Waits until the tool may be called; false if the call was cancelled meanwhile, which takes nothing from
    /// those behind it.
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
