//! Delays calls to keep a service's rate limit: a token bucket with a queue.

use std::{sync::Arc, time::Duration};

use archon_types::{CancellationToken, Clock, Provider, Request, TokenBucket, provider_methods_of};
use tokio::sync::Mutex;

use crate::{
    Events,
    attempts::{Attempt, Attempts},
};

/// A rate limit as a token bucket: each call takes one token, and the bucket refills evenly. Clones share the
/// bucket, so that several providers can keep the rate limit of one account together.
///
/// When the bucket is empty, calls wait in their order of arrival. A call that is cancelled or dropped while
/// it waits takes no token.
#[derive(Clone)]
pub struct RateLimiter(Arc<Bucket>);

struct Bucket {
    clock: Arc<dyn Clock>,
    /// The lock is held by the first call of the queue while it waits, and then passed on in order.
    tokens: Mutex<TokenBucket>,
}

impl RateLimiter {
    /// Creates a limiter. Up to `calls` calls can begin at once; after that, `calls` further calls can begin
    /// in each `period`, evenly spread. 0 calls count as 1.
    pub fn new(calls: u32, period: Duration, clock: Arc<dyn Clock>) -> Self {
        let tokens = Mutex::new(TokenBucket::new(calls, period, clock.now()));
        Self(Arc::new(Bucket { clock, tokens }))
    }

    /// Creates a limiter for `calls` calls per minute.
    pub fn per_minute(calls: u32, clock: Arc<dyn Clock>) -> Self {
        Self::new(calls, Duration::from_secs(60), clock)
    }

    /// Waits for a token and takes it.
    async fn take(&self) {
        let bucket = &*self.0;
        let mut tokens = bucket.tokens.lock().await;
        while let Err(due) = tokens.take(bucket.clock.now()) {
            bucket.clock.sleep_until(due).await;
        }
    }
}

archon_types::debug_fields!(RateLimiter: tokens = 0.tokens);

/// A provider whose calls wait for a [`RateLimiter`].
///
/// ```
/// use std::sync::Arc;
///
/// use archon_providers::{RateLimitProvider, RateLimiter, ScriptedProvider};
/// use archon_testkit::VirtualClock;
///
/// let limiter = RateLimiter::per_minute(60, Arc::new(VirtualClock::new()));
/// let provider = RateLimitProvider::new(Arc::new(ScriptedProvider::texts(["Hello."])), limiter);
/// ```
#[derive(Clone, Debug)]
pub struct RateLimitProvider {
    inner: Arc<dyn Provider>,
    limiter: RateLimiter,
}

impl RateLimitProvider {
    /// Wraps `inner` so that its calls wait for `limiter`.
    pub fn new(inner: Arc<dyn Provider>, limiter: RateLimiter) -> Self {
        Self { inner, limiter }
    }
}

impl Provider for RateLimitProvider {
    provider_methods_of!(inner: id, secrets, capabilities);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let (inner, limiter) = (self.inner.clone(), self.limiter.clone());
        let (asked, token) = (request.clone(), cancel.clone());
        let first: Attempt = Box::pin(async move {
            limiter.take().await;
            inner.stream(asked, token)
        });
        Box::pin(Attempts::new(first, self.id(), &request, cancel, Err))
    }
}
