//! Replaceable steps before and after the agent's work: context, checks, post-processing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use archon_types::{BoxFuture, Clock, LongTerm, MemoryQuery, TenantId, Timestamp, TokenBucket};
use jiff::tz::TimeZone;
use serde_json::{Map, json};

use super::{AssistantReply, Incoming};

/// An application's steps before and after the agent's work. The default methods do nothing.
///
/// ```
/// use archon_assistant::{Incoming, StepVerdict, Steps};
/// use archon_types::BoxFuture;
///
/// /// Refuses long messages.
/// struct Short;
///
/// impl Steps for Short {
///     fn should_process<'a>(&'a self, message: &'a Incoming) -> BoxFuture<'a, StepVerdict> {
///         let verdict = match message.text.len() {
///             0..=2_000 => StepVerdict::Process,
///             _ => StepVerdict::Refuse("Please write a shorter message.".to_owned()),
///         };
///         Box::pin(std::future::ready(verdict))
///     }
/// }
/// ```
pub trait Steps: Send + Sync {
    /// Returns the context of the message's tenant: persona, time zone and memories. The default context is empty, with
    /// the zone UTC.
    fn prepare_context<'a>(&'a self, _message: &'a Incoming) -> BoxFuture<'a, TenantContext> {
        Box::pin(std::future::ready(TenantContext::default()))
    }

    /// Returns whether the assistant handles a message: for checks of safety, rate limit or price tier.
    fn should_process<'a>(&'a self, _message: &'a Incoming) -> BoxFuture<'a, StepVerdict> {
        Box::pin(std::future::ready(StepVerdict::Process))
    }

    /// Receives the message and the reply, after the agent's work.
    fn post_process<'a>(&'a self, _message: &'a Incoming, _reply: &'a AssistantReply) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Context of a tenant, made before the agent works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TenantContext {
    /// Persona for this tenant. `None` takes the assistant's persona.
    pub persona: Option<String>,
    /// Time zone of the tenant.
    pub zone: Zone,
    /// Memories for the system prompt, most relevant first.
    pub memories: Vec<String>,
}

/// Decision whether a message is handled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepVerdict {
    /// Handle the message.
    Process,
    /// Refuse the message with this reply.
    Refuse(String),
}

/// A time zone with its rules for summer time. UTC by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// The system's time zone database is missing, or has no zone of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the time zone `{name}` cannot be loaded: {reason}; write an IANA name such as `Europe/Berlin`, and install the system's package \
     `tzdata` if no name is found"
)]
pub struct UnknownZone {
    /// Name of the zone, as given.
    pub name: String,
    reason: String,
}

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl Zone {
    /// Returns the time zone of an IANA name, for instance `Asia/Shanghai`, from the system's database.
    ///
    /// # Errors
    /// The database is missing, or has no such zone.
    pub fn named(name: &str) -> Result<Self, UnknownZone> {
        let unknown = |error: jiff::Error| UnknownZone { name: name.to_owned(), reason: error.to_string() };
        TimeZone::get(name).map(Self).map_err(unknown)
    }

    /// Returns the IANA name of the zone; `UTC` if the zone has none.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// Returns the local time at `at`, for instance `2026-01-31T16:00:00.000+08:00 (Asia/Shanghai)`.
    pub fn local(&self, at: Timestamp) -> String {
        let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
        // A time after the last year of the calendar is shown as that year.
        let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
        let shown = moment.to_zoned(self.0.clone());
        format!("{} ({})", shown.strftime("%Y-%m-%dT%H:%M:%S.%3f%:z"), self.name())
    }
}

/// Steps that do nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainSteps;

impl Steps for PlainSteps {}

/// Limits the number of messages of each tenant in a period. Further messages are refused with a reply that tells the
/// time to wait. Everything else is left to the inner steps `within`.
pub struct RateLimited<S> {
    within: S,
    messages: u32,
    period: Duration,
    clock: Arc<dyn Clock>,
    buckets: Mutex<HashMap<TenantId, TokenBucket>>,
}

impl<S: Steps> RateLimited<S> {
    /// Allows `messages` messages of each tenant in each `period`.
    pub fn new(within: S, messages: u32, period: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { within, messages, period, clock, buckets: Mutex::default() }
    }

    fn take(&self, tenant: &TenantId, now: Timestamp) -> Result<(), Timestamp> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = || TokenBucket::new(self.messages, self.period, now);
        buckets.entry(tenant.clone()).or_insert_with(bucket).take(now)
    }
}

impl<S: Steps> Steps for RateLimited<S> {
    fn prepare_context<'a>(&'a self, message: &'a Incoming) -> BoxFuture<'a, TenantContext> {
        self.within.prepare_context(message)
    }

    fn should_process<'a>(&'a self, message: &'a Incoming) -> BoxFuture<'a, StepVerdict> {
        let now = self.clock.now();
        let Err(at) = self.take(&message.tenant, now) else { return self.within.should_process(message) };
        let text = format!("Too many messages. Try again in {} s.", at.since(now).as_secs().max(1));
        Box::pin(std::future::ready(StepVerdict::Refuse(text)))
    }

    fn post_process<'a>(&'a self, message: &'a Incoming, reply: &'a AssistantReply) -> BoxFuture<'a, ()> {
        self.within.post_process(message, reply)
    }
}

/// Returns the memory of a tenant.
type MemoryOf = dyn Fn(&TenantId) -> Arc<dyn LongTerm> + Send + Sync;

/// Recalls memories for a message, and stores the conversation in the tenant's memory. Everything else is
/// left to the inner steps `within`. A failure of the memory is only logged.
pub struct LongTermSteps<S> {
    within: S,
    memory_of: Box<MemoryOf>,
}

impl<S: Steps> LongTermSteps<S> {
    /// Creates the steps. `memory_of` must return a different memory for each tenant.
    pub fn new(
        within: S,
        memory_of: impl Fn(&TenantId) -> Arc<dyn LongTerm> + Send + Sync + 'static,
    ) -> Self {
        Self { within, memory_of: Box::new(memory_of) }
    }
}

impl<S: Steps> Steps for LongTermSteps<S> {
    fn prepare_context<'a>(&'a self, message: &'a Incoming) -> BoxFuture<'a, TenantContext> {
        Box::pin(async move {
            let mut background = self.within.prepare_context(message).await;
            let memory = (self.memory_of)(&message.tenant);
            match memory.query(&MemoryQuery::new(message.text.as_str())).await {
                Ok(found) => background.memories.extend(found.iter().map(archon_types::Recalled::line)),
                Err(error) => tracing::warn!(tenant = %message.tenant, %error, "nothing is recalled"),
            }
            background
        })
    }

    fn should_process<'a>(&'a self, message: &'a Incoming) -> BoxFuture<'a, StepVerdict> {
        self.within.should_process(message)
    }

    fn post_process<'a>(&'a self, message: &'a Incoming, reply: &'a AssistantReply) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if matches!(reply.run, Some(archon_types::Reply::Finished(_))) {
                let said = format!("User: {}\nAssistant: {}", message.text, reply.text);
                let metadata = Map::from_iter([("tenant".to_owned(), json!(message.tenant))]);
                if let Err(error) = (self.memory_of)(&message.tenant).store(&said, metadata).await {
                    tracing::warn!(tenant = %message.tenant, %error, "what was said is not remembered");
                }
            }
            self.within.post_process(message, reply).await;
        })
    }
}
