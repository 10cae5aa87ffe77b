//! Caches answers, so that a repeated request is not sent again.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    CancellationToken, Message, ModelEvent, Provider, Request, StopReason, Usage, provider_methods_of,
};

use crate::{
    Events,
    tap::{Heard, Tap, played},
};

/// The default number of cached answers.
const CAPACITY: usize = 256;

/// A provider that caches answers in memory.
///
/// A repeated request gets the cached answer. Two requests are equal if both send the same to the model; times and ids
/// of messages are ignored. Only complete answers are cached. A cached answer reports no tokens, because nothing was
/// paid for it. When the cache is full, the least recently used answer is removed. Clones share the cache.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_providers::{CachingProvider, ScriptedProvider};
///
/// let model = Arc::new(ScriptedProvider::texts(["Hello."]));
/// let provider = CachingProvider::new(model).with_capacity(1_000); // answers
/// ```
#[derive(Clone)]
pub struct CachingProvider {
    inner: Arc<dyn Provider>,
    capacity: usize,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    answers: HashMap<String, Answer>,
    /// The number of requests so far. It serves as the time of the last use of an answer.
    turn: u64,
}

struct Answer {
    /// The whole request, which is compared as well, since the hash is short.
    request: Request,
    events: Heard,
    wanted: u64,
}

impl CachingProvider {
    /// Creates a cache for at most 256 answers of `inner`.
    pub fn new(inner: Arc<dyn Provider>) -> Self {
        Self { inner, capacity: CAPACITY, kept: Arc::default() }
    }

    /// Sets the maximum number of cached answers. Default 256; 0 caches nothing.
    pub fn with_capacity(mut self, answers: usize) -> Self {
        self.capacity = answers;
        self
    }

    /// Returns the number of cached answers.
    pub fn len(&self) -> usize {
        self.lock().answers.len()
    }

    /// Returns true if no answer is cached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all cached answers.
    pub fn clear(&self) {
        self.lock().answers.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, hash: &str, request: &Request) -> Option<Heard> {
        let mut kept = self.lock();
        kept.turn += 1;
        let turn = kept.turn;
        let answer = kept.answers.get_mut(hash).filter(|answer| is_same(&answer.request, request))?;
        answer.wanted = turn;
        Some(answer.events.clone())
    }

    fn keep(&self, hash: String, request: Request, mut heard: Heard) {
        let Some(Ok(ModelEvent::Done(message))) = heard.last_mut() else { return };
        if !matches!(message.stop_reason, StopReason::Stop | StopReason::ToolUse) || self.capacity == 0 {
            return;
        }
        message.usage = Usage::default();
        let mut kept = self.lock();
        while kept.answers.len() >= self.capacity && !kept.answers.contains_key(&hash) {
            let oldest = kept.answers.iter().min_by_key(|(_, answer)| answer.wanted);
            let Some(oldest) = oldest.map(|(hash, _)| hash.clone()) else { break };
            kept.answers.remove(&oldest);
        }
        let wanted = kept.turn;
        kept.answers.insert(hash, Answer { request, events: heard, wanted });
    }
}

impl Provider for CachingProvider {
    provider_methods_of!(inner: id, secrets, capabilities);

    fn stream(&self, request: Request, cancel: CancellationToken) -> Events {
        let hash = request.content_hash();
        if let Some(events) = self.find(&hash, &request).filter(|_| !cancel.is_cancelled()) {
            return played(events);
        }
        let (this, asked) = (self.clone(), request.clone());
        let keep = move |heard| {
            this.keep(hash, asked, heard);
            Ok(())
        };
        Box::pin(Tap::new(self.inner.stream(request, cancel), keep))
    }
}

/// Returns true if both requests send the same to the model.
fn is_same(a: &Request, b: &Request) -> bool {
    let same_message = |a: &Message, b: &Message| match (a, b) {
        (Message::ToolResult(a), Message::ToolResult(b)) => {
            (&a.tool_call_id, &a.tool_name, a.is_error) == (&b.tool_call_id, &b.tool_name, b.is_error)
                && a.content == b.content
        }
        _ => std::mem::discriminant(a) == std::mem::discriminant(b) && a.content() == b.content(),
    };
    a.model == b.model
        && a.system == b.system
        && a.tools == b.tools
        && a.options == b.options
        && a.messages.len() == b.messages.len()
        && a.messages.iter().zip(b.messages.iter()).all(|(a, b)| same_message(a, b))
}

impl fmt::Debug for CachingProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachingProvider")
            .field("inner", &self.inner.id())
            .field("answers", &self.len())
            .field("capacity", &self.capacity)
            .finish()
    }
}
