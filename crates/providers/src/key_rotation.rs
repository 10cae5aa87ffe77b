//! Goes on with the next key when a service refuses one, for callers without a loop.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use archon_types::{
    ApiErrorKind, BoxStream, CancellationToken, Capabilities, ModelEvent, Provider, ProviderError, Redactor,
    Request,
};

use crate::attempts::{Attempts, at_once};

/// One service with several keys.
///
/// A key that is refused, spent or limited makes room for the next, which stays in use, also for later
/// calls; after the last comes the first again. A call tries each key once. Clones share the place.
#[derive(Clone)]
pub struct KeyRotationProvider {
    /// The same service once with each key; never empty.
    keys: Arc<[Arc<dyn Provider>]>,
    /// Counts on for ever; its remainder is the place.
    current: Arc<AtomicUsize>,
}

impl KeyRotationProvider {
    /// The service with its first key, and with each further one.
    pub fn new(first: Arc<dyn Provider>, further: Vec<Arc<dyn Provider>>) -> Self {
        let keys = std::iter::once(first).chain(further).collect();
        Self { keys, current: Arc::default() }
    }

    fn of(&self, turn: usize) -> &Arc<dyn Provider> {
        &self.keys[turn % self.keys.len()]
    }
}

impl Provider for KeyRotationProvider {
    fn id(&self) -> &str {
        self.keys[0].id()
    }

    fn secrets(&self) -> Vec<Redactor> {
        self.keys.iter().flat_map(|provider| provider.secrets()).collect()
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let begun = self.current.load(Ordering::Relaxed);
        let first = self.of(begun).stream(request.clone(), cancel.clone());
        let (this, mut turn) = (self.clone(), begun);
        let (asked, token) = (request.clone(), cancel.clone());
        let next = move |error: ProviderError| {
            if !is_about_the_key(&error) || turn + 1 - begun >= this.keys.len() {
                return Err(error);
            }
            turn += 1;
            // Another call may have moved on already; then its choice stands.
            let _ = this.current.compare_exchange(turn - 1, turn, Ordering::Relaxed, Ordering::Relaxed);
            Ok(at_once(this.of(turn).stream(asked.clone(), token.clone())))
        };
        Box::pin(Attempts::new(at_once(first), self.id(), &request, cancel, next))
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        self.keys[0].capabilities(model)
    }
}

fn is_about_the_key(error: &ProviderError) -> bool {
    matches!(
        error,
        ProviderError::RateLimited { .. }
            | ProviderError::Auth(_)
            | ProviderError::Api { kind: ApiErrorKind::Quota, .. }
    )
}

impl fmt::Debug for KeyRotationProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRotationProvider")
            .field("service", &self.id())
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}
