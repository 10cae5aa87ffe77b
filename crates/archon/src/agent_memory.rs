//! Memories of an agent: what fits a question is told to the model with it, and what was said is kept.
//!
//! What is recalled becomes part of the prompt's own record, so a replay needs no memory. What is kept is kept under
//! ids that follow from the session and the place of each message, so that a run that is taken up keeps nothing twice.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use archon_memory::{KnowledgeExtractor, Memory, Passage};
use archon_types::{
    BoxFuture, Compaction, CompactionLevel, Content, Context, MemoryEntry, MemoryError, MemoryKind, Message,
    RunMemory, Said, SessionId, Speaker, TokenEstimate, Trust, ViewPart,
};

/// How a memory and an agent work together.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentMemory {
    /// What is remembered, and where.
    pub memory: Memory,
    /// Most tokens of what the model is told from memory with a question. Default 1,000.
    pub recall_tokens: u64,
    /// Finds facts in what the person says; none are looked for by default.
    pub extractor: Option<Arc<dyn KnowledgeExtractor>>,
}

impl AgentMemory {
    /// Recalls up to 1,000 tokens for each question, and keeps what is said.
    pub fn new(memory: Memory) -> Self {
        Self { memory, recall_tokens: 1_000, extractor: None }
    }

    /// The same, with facts learnt from what the person says.
    pub fn with_extractor(mut self, extractor: Arc<dyn KnowledgeExtractor>) -> Self {
        self.extractor = Some(extractor);
        self
    }
}

impl From<Memory> for AgentMemory {
    fn from(memory: Memory) -> Self {
        Self::new(memory)
    }
}

/// What stands before memories in a prompt, and tells them from what the person said.
const HEADING: &str = "Memories that may help, from earlier conversations:";

pub(crate) struct Remembering {
    parts: AgentMemory,
    /// How many messages of a session are kept.
    kept: Mutex<HashMap<SessionId, usize>>,
}

impl Remembering {
    pub(crate) fn new(parts: AgentMemory) -> Self {
        Self { parts, kept: Mutex::default() }
    }

    async fn keep_all(
        &self,
        context: &Context,
        messages: &[Said],
        compaction: Option<&Compaction>,
    ) -> Result<(), MemoryError> {
        let before = self.kept(&context.session).min(messages.len());
        let (mut entries, mut passages) = (Vec::new(), Vec::new());
        for (place, said) in messages.iter().enumerate().skip(before) {
            let Some(entry) = turn(context, place, said) else { continue };
            // What a tool says of the person, or the program to the model, teaches nothing.
            if said.by == Speaker::Person {
                let passage = Passage::new(&entry.content, "user", entry.timestamp).trusted(entry.trust);
                passages.push(passage.of_run(context.run.clone()));
            }
            entries.push(entry);
        }
        entries.extend(compaction.and_then(|compaction| summary(context, compaction)));
        // A memory keeps texts of up to a mebibyte; a longer one is in the run's log.
        entries.retain(|entry| entry.check().is_ok());
        self.parts.memory.keep(entries).await?;
        self.kept_now(&context.session, messages.len());
        if let Some(extractor) = &self.parts.extractor {
            for passage in passages {
                self.parts.memory.knowledge().learn_from(&**extractor, &passage).await?;
            }
        }
        Ok(())
    }

    fn kept(&self, session: &SessionId) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(session).copied().unwrap_or(0)
    }

    fn kept_now(&self, session: &SessionId, count: usize) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(session.clone(), count);
    }
}

/// A message as a turn; `None` for one without words, and for what the program tells the model: it is of this run only,
/// or stands for what is kept already.
fn turn(context: &Context, place: usize, said: &Said) -> Option<MemoryEntry> {
    let Said { message, by, .. } = said;
    let (role, trust) = match (by, &**message) {
        (Speaker::Program, _) => return None,
        (Speaker::Tool, _) | (_, Message::ToolResult(_)) => ("tool", Trust::Untrusted),
        (_, Message::User(_)) => ("user", by.trust()),
        (_, Message::Assistant(_)) => ("assistant", by.trust().min(Trust::Model)),
    };
    // What was told from memory is there already.
    let own = |content: &&Content| content.as_text().is_some_and(|text| !text.starts_with(HEADING));
    let texts: Vec<&str> = message.content().iter().filter(own).filter_map(Content::as_text).collect();
    let text = texts.join("\n");
    if text.trim().is_empty() {
        return None;
    }
    let id = format!("{}:{}:{place}", context.session, role);
    let mut entry = MemoryEntry::said(id, role, text, context.clock.now());
    (entry.kind, entry.trust, entry.run) = (MemoryKind::Turn, trust, Some(context.run.clone()));
    entry.metadata.insert("session".to_owned(), context.session.as_str().into());
    Some(entry)
}

/// A model's summary of what is dropped.
fn summary(context: &Context, compaction: &Compaction) -> Option<MemoryEntry> {
    if compaction.level != CompactionLevel::Summarize {
        return None;
    }
    let mut digests = compaction.view.iter().filter_map(|part| match part {
        ViewPart::Digest { from, to, text } => Some((from, to, text)),
        _ => None,
    });
    let (from, to, text) = digests.next()?;
    let id = format!("{}:summary:{from}-{to}", context.session);
    let mut entry = MemoryEntry::new(id, text, context.clock.now());
    // It sums up what tools said, too.
    (entry.kind, entry.trust, entry.run) = (MemoryKind::Summary, Trust::Untrusted, Some(context.run.clone()));
    entry.metadata.insert("session".to_owned(), context.session.as_str().into());
    Some(entry)
}

impl RunMemory for Remembering {
    fn keep<'a>(
        &'a self,
        context: &'a Context,
        said: Vec<Said>,
        compaction: Option<&'a Compaction>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = self.keep_all(context, &said, compaction).await {
                tracing::warn!(run = %context.run, %error, advice = error.advice(), "what was said is not remembered");
            }
        })
    }

    /// What fits, but for what was said in the run's own session: that is in the window already.
    fn recall<'a>(&'a self, context: &'a Context, message: &'a Message) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let Message::User(_) = message else { return None };
            let recall = self.parts.memory.recall().beside_session(context.session.as_str());
            // Of a recall's budget 0.3 are for what is remembered.
            let budget = self.parts.recall_tokens.saturating_mul(10) / 3;
            let recalled = recall.context(&message.text(), budget, &TokenEstimate).await;
            match recalled.long_term.trim_end() {
                "" => None,
                lines => Some(format!("{HEADING}\n{lines}")),
            }
        })
    }
}
