//! Holds calls back so that a service's limit on requests is kept: a token bucket with a queue.

use std::{fmt, sync::Arc, time::Duration};

use archon_types::{
    BoxStream, CancellationToken, Capabilities, Clock, ModelEvent, Provider, ProviderError, Request,
    Timestamp,
};
use tokio::sync::Mutex;

use crate::attempts::{Attempt, Attempts};

/// A bucket of tokens, one for each call. Clones share it, so that several providers can keep the limit
/// of one account together.
///
/// An empty bucket makes calls wait in the order in which they came. A call that is cancelled or
/// dropped while it waits takes no token.
#[derive(Clone)]
pub struct RateLimiter(Arc<Bucket>);

struct Bucket {
    clock: Arc<dyn Clock>,
    capacity: u32,
    /// How long one token takes to come back.
    refill: Duration,
    /// Held by the first in the queue while it waits; the lock is handed on in the order of asking.
    tokens: Mutex<Tokens>,
}

struct Tokens {
    count: u32,
    /// Since when the next token is on its way; counts only while the bucket is not full.
    since: Timestamp,
}

impl RateLimiter {
    /// At most `calls` at once, and no more than that in each period thereafter. No calls count as one.
    pub fn new(calls: u32, period: Duration, clock: Arc<dyn Clock>) -> Self {
        let capacity = calls.max(1);
        let tokens = Mutex::new(Tokens { count: capacity, since: clock.now() });
        Self(Arc::new(Bucket { clock, capacity, refill: period / capacity, tokens }))
    }

    /// So many calls in a minute.
    pub fn per_minute(calls: u32, clock: Arc<dyn Clock>) -> Self {
        Self::new(calls, Duration::from_secs(60), clock)
    }

    /// Waits for a token and takes it.
    async fn take(&self) {
        let bucket = &*self.0;
        let mut tokens = bucket.tokens.lock().await;
        loop {
            bucket.pour(&mut tokens);
            if tokens.count > 0 {
                tokens.count -= 1;
                return;
            }
            bucket.clock.sleep_until(tokens.since + bucket.refill.max(Duration::from_millis(1))).await;
        }
    }
}

impl Bucket {
    /// Puts in what has come back since.
    fn pour(&self, tokens: &mut Tokens) {
        let now = self.clock.now();
        let passed = now.since(tokens.since);
        let came = match self.refill.as_nanos() {
            0 => u128::from(self.capacity),
            refill => passed.as_nanos() / refill,
        };
        let missing = self.capacity - tokens.count;
        if came >= u128::from(missing) {
            (tokens.count, tokens.since) = (self.capacity, now);
        } else {
            let came = u32::try_from(came).unwrap_or(missing);
            tokens.count += came;
            tokens.since = tokens.since + self.refill * came;
        }
    }
}

impl fmt::Debug for RateLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter")
            .field("capacity", &self.0.capacity)
            .field("refill", &self.0.refill)
            .finish_non_exhaustive()
    }
}

/// A provider whose calls wait for a [`RateLimiter`].
#[derive(Clone)]
pub struct RateLimitProvider {
    inner: Arc<dyn Provider>,
    limiter: RateLimiter,
}

impl RateLimitProvider {
    /// Asks `inner` no faster than the limiter lets it.
    pub fn new(inner: Arc<dyn Provider>, limiter: RateLimiter) -> Self {
        Self { inner, limiter }
    }
}

impl Provider for RateLimitProvider {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let (inner, limiter) = (self.inner.clone(), self.limiter.clone());
        let (asked, token) = (request.clone(), cancel.clone());
        let first: Attempt = Box::pin(async move {
            limiter.take().await;
            inner.stream(asked, token)
        });
        Box::pin(Attempts::new(first, self.id(), &request, cancel, Err))
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        self.inner.capabilities(model)
    }
}

impl fmt::Debug for RateLimitProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitProvider")
            .field("inner", &self.inner.id())
            .field("limiter", &self.limiter)
            .finish()
    }
}
