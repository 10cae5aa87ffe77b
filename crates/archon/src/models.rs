//! The models of an agent for single requests outside of a loop.

use std::sync::Arc;

use archon_providers::{FallbackProvider, KeyRotationProvider, RetryProvider};
use archon_react_loop::Fallback;
use archon_types::{Clock, FallbackModel, Ids, Provider, RetryConfig};

/// The models of an agent for single requests outside of a loop.
#[derive(Clone)]
pub(crate) struct Models {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) fallbacks: Vec<FallbackModel>,
}

impl Models {
    /// Wraps each model with its retries, its further keys and the fallback models. A loop does not use these
    /// wrapped models: it retries and falls back by itself, and records both.
    pub(crate) fn new(
        (provider, keys): (&Arc<dyn Provider>, &[Arc<dyn Provider>]),
        fallbacks: &[Fallback],
        retry: &RetryConfig,
        (clock, ids): (&Arc<dyn Clock>, &Arc<dyn Ids>),
    ) -> Self {
        let retrying = |provider: &Arc<dyn Provider>, keys: &[Arc<dyn Provider>]| -> Arc<dyn Provider> {
            let keyed: Arc<dyn Provider> = match keys {
                [] => provider.clone(),
                keys => Arc::new(KeyRotationProvider::new(provider.clone(), keys.to_vec())),
            };
            let ids = ids.clone();
            let retrying = RetryProvider::new(keyed, clock.clone()).with_config(retry.clone());
            Arc::new(retrying.with_jitter(move || RetryConfig::draw_jitter(&*ids)))
        };
        let first = retrying(provider, keys);
        let others: Vec<_> =
            fallbacks.iter().map(|f| (retrying(&f.provider, &f.keys), f.model.clone())).collect();
        let provider = match others.is_empty() {
            true => first,
            false => Arc::new(FallbackProvider::new(first, others)),
        };
        let recorded = |f: &Fallback| {
            let mut model = FallbackModel::new(f.provider.id(), f.model.clone());
            model.price = f.price.or_else(|| f.provider.capabilities(&f.model).price);
            model
        };
        Self { provider, fallbacks: fallbacks.iter().map(recorded).collect() }
    }
}
