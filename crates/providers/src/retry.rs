//! Sends a request again after a failure that may pass, for callers without an agent loop.

use std::sync::Arc;

use archon_types::{
    CancellationToken, Capabilities, Clock, Provider, ProviderError, Request, RetryConfig,
    provider_methods_of,
};

use crate::{
    Events,
    attempts::{Attempts, at_once},
};

/// The maximum number of retries after a timeout: a caller that waited for two timeouts should not wait
/// longer.
const MOST_TIMEOUTS: u32 = 1;

/// A provider that sends a request again after a failure that may pass.
///
/// The provider retries after rate limits, overload, broken connections and one timeout, but not after the
/// model has begun to answer. [`RetryConfig`] sets the delays. If the service asks for a wait, that wait is
/// used instead. Within a run the loop retries and records each attempt. The
/// [capabilities](Capabilities::retries) of this provider tell the loop, and an outer `RetryProvider`, not to
/// retry as well.
///
/// ```
/// # use std::sync::Arc;
/// # use archon_providers::{RetryProvider, ScriptedProvider};
/// # use archon_types::{Provider, RetryConfig};
/// # fn with(clock: Arc<dyn archon_types::Clock>) {
/// let model = Arc::new(ScriptedProvider::texts(["hi"]));
/// let patient = RetryProvider::new(model, clock).with_config(RetryConfig::default());
/// assert!(patient.capabilities("m").retries);
/// # }
/// ```
#[derive(Clone)]
pub struct RetryProvider {
    inner: Arc<dyn Provider>,
    clock: Arc<dyn Clock>,
    config: RetryConfig,
    jitter: Arc<dyn Fn() -> f64 + Send + Sync>,
}

impl RetryProvider {
    /// Creates a provider that retries `inner` with [`RetryConfig::default`] and waits on this clock. Unless
    /// [`with_jitter`](Self::with_jitter) is called, delays have no random part.
    pub fn new(inner: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Self {
        Self { inner, clock, config: RetryConfig::default(), jitter: Arc::new(|| 0.0) }
    }

    /// Sets the number of retries and their delays.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use archon_providers::{RetryProvider, ScriptedProvider};
    /// # let model = Arc::new(ScriptedProvider::texts(["hi"]));
    /// # let clock = Arc::new(archon_testkit::VirtualClock::new());
    /// use archon_types::RetryConfig;
    /// let provider = RetryProvider::new(model, clock).with_config(RetryConfig::none());
    /// ```
    pub fn with_config(mut self, config: RetryConfig) -> Self {
        self.config = config;
        self
    }

    /// Makes each delay of the [`RetryConfig`] up to 20 % longer or shorter, so that clients that failed together do
    /// not retry together; a wait that the service asks for stays as it is. `draw` returns a random number from -1.0
    /// (20 % shorter) to 1.0 (20 % longer) for each delay.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use archon_providers::{RetryProvider, ScriptedProvider};
    /// # let model = Arc::new(ScriptedProvider::texts(["hi"]));
    /// # let clock = Arc::new(archon_testkit::VirtualClock::new());
    /// // A program draws a random number here.
    /// let provider = RetryProvider::new(model, clock).with_jitter(|| 0.25);
    /// ```
    pub fn with_jitter(mut self, draw: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.jitter = Arc::new(draw);
        self
    }
}

impl Provider for RetryProvider {
    provider_methods_of!(inner: id, secrets);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let first = self.inner.stream(request.clone(), cancel.clone());
        if self.inner.capabilities(&request.model).retries {
            return first;
        }
        let Self { inner, clock, config, jitter } = self.clone();
        let (mut attempt, mut timeouts) = (0, 0);
        let (asked, token) = (request.clone(), cancel.clone());
        let next = move |error: ProviderError| {
            let is_timeout = matches!(error, ProviderError::Timeout(_));
            timeouts += u32::from(is_timeout);
            let patient = attempt < config.max_retries && !(is_timeout && timeouts > MOST_TIMEOUTS);
            if !patient || !error.is_retryable() || token.is_cancelled() {
                return Err(error);
            }
            let delay = error.retry_after().unwrap_or_else(|| config.delay_for_attempt(attempt, jitter()));
            attempt += 1;
            let asleep = clock.sleep_until(clock.now() + delay);
            let (inner, request, cancel) = (inner.clone(), asked.clone(), token.clone());
            let again: crate::attempts::Attempt = Box::pin(async move {
                asleep.await;
                inner.stream(request, cancel)
            });
            Ok(again)
        };
        Box::pin(Attempts::new(at_once(first), self.id(), &request, cancel, next))
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        let mut capabilities = self.inner.capabilities(model);
        capabilities.retries = true;
        capabilities
    }
}

archon_types::debug_fields!(RetryProvider: inner, config);
