//! Switches to the next key when a service refuses one, for callers without a loop.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use archon_types::{
    ApiErrorKind, CancellationToken, Capabilities, Provider, ProviderError, Redactor, Request,
};

use crate::{
    Events,
    attempts::{Attempts, at_once},
};

/// A provider for one service with several keys.
///
/// When the service refuses a key, or the key has no credit or has reached a rate limit, the call and later
/// calls use the next key. After the last key comes the first one. A call tries each key once at most. Clones
/// share the current key.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_providers::KeyRotationProvider;
/// use archon_types::Provider;
///
/// /// The same service with each of two keys.
/// fn rotation(first: Arc<dyn Provider>, second: Arc<dyn Provider>) -> KeyRotationProvider {
///     KeyRotationProvider::new(first, vec![second])
/// }
/// ```
#[derive(Clone)]
pub struct KeyRotationProvider {
    /// The same service with each key; never empty.
    keys: Arc<[Arc<dyn Provider>]>,
    /// The number of switches; modulo the number of keys it is the index of the current key.
    current: Arc<AtomicUsize>,
}

impl KeyRotationProvider {
    /// Creates a provider. `first` is the service with the first key; each entry of `further` is the same
    /// service with another key.
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

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let begun = self.current.load(Ordering::Relaxed);
        let first = self.of(begun).stream(request.clone(), cancel.clone());
        let (this, mut turn) = (self.clone(), begun);
        let (asked, token) = (request.clone(), cancel.clone());
        let next = move |error: ProviderError| {
            if !is_about_the_key(&error) || turn + 1 - begun >= this.keys.len() {
                return Err(error);
            }
            turn += 1;
            // Another call may have switched already; then its choice stays.
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
