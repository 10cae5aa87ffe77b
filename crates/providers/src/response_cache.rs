//! Gives the same answer to the same question without asking again.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{
    BoxStream, CancellationToken, Capabilities, Message, ModelEvent, Provider, ProviderError, Redactor,
    Request, StopReason, Usage,
};

use crate::tap::{Heard, Tap, played};

/// Answers that are kept unless said otherwise.
const CAPACITY: usize = 256;

/// A provider that remembers answers, in memory.
///
/// Two requests are the same when the model is told the same: times and ids of messages do not count.
/// Only answers that are complete are kept. What comes from the cache reports no tokens, because none
/// were paid for. When the cache is full, the answer goes that was not wanted for the longest time.
/// Clones share the cache.
#[derive(Clone)]
pub struct CachingProvider {
    inner: Arc<dyn Provider>,
    capacity: usize,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    answers: HashMap<String, Answer>,
    /// Counts the questions; tells which answer was wanted last.
    turn: u64,
}

struct Answer {
    /// The hash is short, so the question itself is compared too.
    request: Request,
    events: Heard,
    wanted: u64,
}

impl CachingProvider {
    /// Remembers 256 answers of `inner`.
    pub fn new(inner: Arc<dyn Provider>) -> Self {
        Self { inner, capacity: CAPACITY, kept: Arc::default() }
    }

    /// The same with room for this many answers.
    pub fn with_capacity(mut self, answers: usize) -> Self {
        self.capacity = answers;
        self
    }

    /// How many answers are kept.
    pub fn len(&self) -> usize {
        self.kept().answers.len()
    }

    /// Whether no answer is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets every answer.
    pub fn clear(&self) {
        self.kept().answers.clear();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, hash: &str, request: &Request) -> Option<Heard> {
        let mut kept = self.kept();
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
        let mut kept = self.kept();
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
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn secrets(&self) -> Vec<Redactor> {
        self.inner.secrets()
    }

    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
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

    fn capabilities(&self, model: &str) -> Capabilities {
        self.inner.capabilities(model)
    }
}

/// Whether a model is told the same by both.
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
