//! Retries after a failure that may pass, for callers without a loop.

use std::sync::Arc;

use archon_types::{
    BoxStream, CancellationToken, Capabilities, Clock, ModelEvent, Provider, ProviderError, Request,
    RetryConfig, provider_methods_of,
};

use crate::attempts::{Attempts, at_once};

/// The number of time-outs after which a request is sent again: a caller that waited that long twice should
/// not wait longer.
const MOST_TIMEOUTS: u32 = 1;

/// A provider that retries.
///
/// Rate limits, overload, broken connections and one time-out are retried as a [`RetryConfig`] says, unless
/// the model has begun to answer. A wait that the service asks for wins over the configured delay. Inside a
/// run the loop retries and records each attempt; it sees from the [capabilities](Capabilities::retries)
/// that the provider does it already, and so does a second wrapper of this kind.
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
    /// Creates a provider that retries as [`RetryConfig::default`] says, and waits on this clock. Without
    /// [`with_jitter`](Self::with_jitter) delays are exact.
    pub fn new(inner: Arc<dyn Provider>, clock: Arc<dyn Clock>) -> Self {
        Self { inner, clock, config: RetryConfig::default(), jitter: Arc::new(|| 0.0) }
    }

    /// Sets the delays.
    pub fn with_config(mut self, config: RetryConfig) -> Self {
        self.config = config;
        self
    }

    /// Spreads the delays, so that clients that failed together do not retry together. `draw` returns a
    /// random number from -1.0 to 1.0 for each delay.
    pub fn with_jitter(mut self, draw: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.jitter = Arc::new(draw);
        self
    }
}

impl Provider for RetryProvider {
    provider_methods_of!(inner: id, secrets);

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
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
