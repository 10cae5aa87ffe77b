//! Access tokens: each has a name, a role, a scope and limits.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use archon_http_access::TokenHash;
use archon_types::{
    AgentId, Clock, MemoryStore, RunService, Secret, TaskService, TenantId, Timestamp, TokenBucket,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    cookie::hex,
    counted::CountedRuns,
    live::LiveChannel,
    problem::{Problem, Rule},
    role::Role,
    serve::ServeError,
};

/// The runs, memories, tasks and notifications that a token reaches.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_server::Scope;
/// use archon_types::{MemoryStore, RunService};
///
/// /// The scope of a customer: the service and the store have nothing of others.
/// fn scope(runs: Arc<dyn RunService>, memories: Arc<dyn MemoryStore>) -> Scope {
///     Scope::new(runs).with_memories(memories).with_description("desk", "Answers questions about orders.")
/// }
/// ```
#[derive(Clone)]
pub struct Scope {
    pub(crate) runs: Arc<dyn RunService>,
    pub(crate) memories: Option<Arc<dyn MemoryStore>>,
    pub(crate) tasks: Option<Arc<dyn TaskService>>,
    pub(crate) notifications: Option<(LiveChannel, TenantId)>,
    pub(crate) descriptions: BTreeMap<AgentId, String>,
}

impl Scope {
    /// Creates a scope with all runs of a service. For the token of a customer, pass a service that has only
    /// the runs of this customer.
    pub fn new(runs: Arc<dyn RunService>) -> Self {
        Self { runs, memories: None, tasks: None, notifications: None, descriptions: BTreeMap::new() }
    }

    /// Adds all memories of a store. For the token of a customer, pass a store that is bound to the customer's
    /// collection.
    pub fn with_memories(mut self, memories: Arc<dyn MemoryStore>) -> Self {
        self.memories = Some(memories);
        self
    }

    /// Adds all tasks of a service. For the token of a customer, pass a service that has only the tasks of this customer.
    pub fn with_tasks(mut self, tasks: Arc<dyn TaskService>) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Adds the notifications of a tenant that a channel sends. A notification of the tenant counts as sent when one
    /// listener has it: give the same tenant only to tokens of people who may answer for each other.
    pub fn with_notifications(mut self, channel: &LiveChannel, tenant: impl Into<TenantId>) -> Self {
        self.notifications = Some((channel.clone(), tenant.into()));
        self
    }

    /// Adds a description of an agent, which helps people to choose an agent. The list of agents itself comes
    /// from the run service.
    pub fn with_description(mut self, agent: impl Into<AgentId>, description: impl Into<String>) -> Self {
        self.descriptions.insert(agent.into(), description.into());
        self
    }

    /// Returns the run service whose runs the token reaches.
    pub fn runs(&self) -> &Arc<dyn RunService> {
        &self.runs
    }

    /// Returns the store of the memories, if the scope has one.
    pub fn memories(&self) -> Option<&Arc<dyn MemoryStore>> {
        self.memories.as_ref()
    }
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scope").field("memories", &self.memories.is_some()).finish_non_exhaustive()
    }
}

/// The limits of one token.
///
/// ```
/// use archon_server::TokenLimits;
///
/// let limits = TokenLimits::default()
///     .with_requests_per_minute(120)
///     .with_starts_per_hour(30)
///     .with_watchers(4);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TokenLimits {
    /// Maximum number of requests in a minute. Default 600.
    pub requests_per_minute: u32,
    /// Maximum number of requests in an hour to start or fork a run. Refused and repeated requests count too,
    /// and so do starts by a mounted router ([`Server::guarded`](crate::Server::guarded)) in the scope of its
    /// caller. Default 600.
    pub starts_per_hour: u32,
    /// Maximum number of streams of events that are open at the same time. A request to a mounted router
    /// ([`Server::guarded`](crate::Server::guarded)) counts as a stream until its response has ended. Default
    /// 64.
    pub watchers: usize,
}

impl Default for TokenLimits {
    fn default() -> Self {
        Self { requests_per_minute: 600, starts_per_hour: 600, watchers: 64 }
    }
}

archon_types::setters! {
impl TokenLimits {
    /// Sets the maximum number of requests in a minute. Default 600.
    pub fn with_requests_per_minute(self, requests: u32) -> Self { self.requests_per_minute = requests }

    /// Sets the maximum number of requests in an hour to start or fork a run. Default 600.
    pub fn with_starts_per_hour(self, starts: u32) -> Self { self.starts_per_hour = starts }

    /// Sets the maximum number of streams of events and requests to mounted routers that are open at a time. Default
    /// 64.
    pub fn with_watchers(self, watchers: usize) -> Self { self.watchers = watchers }
}
}

/// An access token. A program sends it as `Authorization: Bearer TOKEN`. A browser opens a one-time link and
/// gets a cookie, which it sends instead of the token.
///
/// ```
/// use archon_server::{AccessToken, Role, Scope, ServeError, TokenLimits};
///
/// fn token(scope: Scope) -> Result<AccessToken, ServeError> {
///     let token = AccessToken::random("ann", Role::Operator, scope)?;
///     Ok(token.with_limits(TokenLimits::default().with_starts_per_hour(30)))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct AccessToken {
    name: String,
    secret: Secret,
    role: Role,
    scope: Scope,
    limits: TokenLimits,
}

impl AccessToken {
    /// Creates a token. The name is for people: it appears in the log of the server, and in the reason if the
    /// holder cancels a run. Take a random secret of at least 16 bytes: whoever guesses it has the role.
    ///
    /// # Errors
    /// The secret is blank, for instance because its environment variable is empty.
    pub fn new(
        name: impl Into<String>,
        secret: impl Into<Secret>,
        role: Role,
        scope: Scope,
    ) -> Result<Self, ServeError> {
        let (name, secret) = (name.into(), secret.into());
        if secret.expose().trim().is_empty() {
            return Err(ServeError::BlankToken(name));
        }
        Ok(Self { name, secret, role, scope, limits: TokenLimits::default() })
    }

    /// Creates a token with a random secret. To send the token with requests, read the secret with
    /// [`secret`](Self::secret). For one-time links nobody needs to know the secret.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn random(name: impl Into<String>, role: Role, scope: Scope) -> Result<Self, ServeError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(ServeError::Random)?;
        Self::new(name, hex(&bytes), role, scope)
    }

    /// Returns the secret text of the token.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Sets the limits of the token; see [`TokenLimits`] for the defaults.
    pub fn with_limits(mut self, limits: TokenLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// A token in use, with counters for its limits.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) scope: Scope,
    pub(crate) hash: TokenHash,
    requests: Mutex<TokenBucket>,
    watchers: Arc<Semaphore>,
}

impl Token {
    pub(crate) fn new(token: AccessToken, clock: &Arc<dyn Clock>) -> Self {
        let AccessToken { name, secret, role, mut scope, limits } = token;
        let requests = TokenBucket::new(limits.requests_per_minute, Duration::from_secs(60), clock.now());
        scope.runs = Arc::new(CountedRuns::new(scope.runs, clock.clone(), limits.starts_per_hour));
        let watchers = Arc::new(Semaphore::new(limits.watchers.min(Semaphore::MAX_PERMITS)));
        Self { name, role, scope, hash: TokenHash::of(&secret), requests: Mutex::new(requests), watchers }
    }

    /// Counts a request. Fails if the token has sent too many.
    pub(crate) fn count_request(&self, now: Timestamp) -> Result<(), Problem> {
        // A panic cannot leave the bucket half-changed: every change is one call.
        let taken = self.requests.lock().unwrap_or_else(PoisonError::into_inner).take(now);
        taken.map_err(|next| {
            Problem::new(Rule::RequestLimit, "this token has sent too many requests")
                .advise("wait, and send the request again")
                .after(next.since(now))
        })
    }

    /// Counts a stream of events or a request to a mounted router, until the permit is dropped. Fails if too
    /// many are open.
    pub(crate) fn open_stream(&self) -> Result<OwnedSemaphorePermit, Problem> {
        self.watchers.clone().try_acquire_owned().map_err(|_| {
            let detail = "this token has too many open streams of events and requests to mounted routers";
            Problem::new(Rule::WatcherLimit, detail).advise("close one, or wait until one has ended")
        })
    }
}
