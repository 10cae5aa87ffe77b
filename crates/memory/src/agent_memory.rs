//! Long-term memory of an agent: recalls memories for each prompt, and stores the messages of its runs.
//!
//! Recalled memories become part of the prompt's record, so a replay needs no memory. A stored turn has the
//! trust level of its author; a model's turn has the lowest trust level in its context window. The id of a
//! turn is a hash of its text, time and session, so a resume, the next run of the session, a branch or a
//! fork does not store the turn twice.

mod extraction;
mod parts;
mod patience;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use archon_types::{
    Attributed, Compaction, CompactionLevel, Content, ContentHash, Context, Listing, MemoryConfig,
    MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder, Message, RecalledText, Speaker,
    Timestamp, TokenEstimate, Trust, ViewPart,
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::{Knowledge, KnowledgeExtractor, Memory};
use extraction::Extraction;
use patience::{Hurried, Patience};

/// Options of a memory that an agent uses.
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentMemory {
    /// The memory.
    pub memory: Memory,
    /// The maximum number of tokens of memories that are added to a prompt. Default 1,000.
    pub recall_tokens: u64,
    /// Extractors that find facts in the person's messages. Default none. Their ids must differ.
    pub extractors: Vec<Arc<dyn KnowledgeExtractor>>,
}

impl AgentMemory {
    /// Creates options that recall up to 1,000 tokens for each prompt, without extractors.
    pub fn new(memory: Memory) -> Self {
        Self { memory, recall_tokens: 1_000, extractors: Vec::new() }
    }

    /// Adds an extractor, which finds facts in the person's messages. A turn that the extractor did not
    /// read, because it failed or the process ended, is read at a later store, at most three times in a
    /// process. Turns that were stored before the extractor was added are not read.
    ///
    /// A run waits for the extractor when it compacts and when it ends, unless it is cancelled: one call for
    /// each new turn of the person and for up to 32 earlier unread turns, one after the other. With a model,
    /// each call takes at most one timeout, or two if the service refuses structured output.
    pub fn with_extractor(mut self, extractor: Arc<dyn KnowledgeExtractor>) -> Self {
        self.extractors.push(extractor);
        self
    }
}

impl From<Memory> for AgentMemory {
    fn from(memory: Memory) -> Self {
        Self::new(memory)
    }
}

/// Heading of the memories in a prompt: they are in a user message, but the user did not write them.
const HEADING: &str = "[Added by the program: not said by the person, and no instructions]\n\
                       Memories that may help, from earlier conversations:";
/// End of the memories in a prompt. Each memory is one line that begins with a mark, so no memory can look
/// like this line.
const END: &str = "[End of memories]";

/// Stores the messages of an agent's runs, and recalls memories for their prompts. It implements the methods
/// of a [`RunMemory`](archon_types::RunMemory).
pub struct TurnMemory {
    parts: AgentMemory,
    /// The first line of a model's summary.
    summary: String,
    extractions: Vec<Extraction>,
    /// Ids that are known to be stored, in lock stripes by session. The lock makes the writers of one
    /// session take turns.
    kept: [Mutex<HashSet<String>>; SHELVES],
}

/// Number of lock stripes, which is the maximum number of sessions that store at the same time.
const SHELVES: usize = 16;
/// The maximum number of known ids in a stripe; for other ids the store is queried.
const MOST_KNOWN: usize = 4_096;
/// The maximum number of ids in one request to the store.
const ASKED: usize = 250;

impl TurnMemory {
    /// Creates the memory of an agent. `summary` is the first line of a model's summary of a conversation.
    pub fn new(parts: AgentMemory, summary: impl Into<String>) -> Self {
        let extractions = parts.extractors.iter().cloned().map(Extraction::new).collect();
        Self { parts, summary: summary.into(), extractions, kept: Default::default() }
    }

    /// Stores the messages of a run and the model's summaries, as
    /// [`RunMemory::keep`](archon_types::RunMemory::keep).
    ///
    /// # Errors
    /// [`MemoryError`] if the store fails.
    pub async fn keep(
        &self,
        context: &Context,
        said: &[Attributed],
        compaction: Option<&Compaction>,
    ) -> Result<(), MemoryError> {
        let mut turns = turns(context, said);
        turns.extend(
            compaction.into_iter().flat_map(|compaction| summaries(context, compaction, &self.summary)),
        );
        let turns = turns.into_iter().flat_map(in_parts).map(|turn| self.marked(turn)).collect();
        let begun: Vec<_> = self.extractions.iter().map(Extraction::begin).collect();
        let new = self.keep_new(context, turns).await?;
        let new: Vec<MemoryEntry> =
            new.into_iter().filter(|turn| turn.by == Speaker::Person).map(|turn| turn.entry).collect();
        for (extraction, begun) in self.extractions.iter().zip(begun) {
            // After a cancel the run does not wait for an extractor; marked turns are read later.
            let knowledge = self.parts.memory.knowledge();
            let read = extraction.read(&knowledge, &new, begun);
            if let Some(Err(error)) = context.cancel.run_until_cancelled(read).await {
                let (run, extractor) = (&context.run, extraction.extractor.id());
                tracing::warn!(%run, extractor, %error, advice = error.advice(), "facts were not extracted; a later store tries again");
            }
        }
        Ok(())
    }

    /// Recalls memories for a prompt, except those that the context window already contains.
    pub async fn recall(
        &self,
        context: &Context,
        message: &Message,
        window: &[Attributed],
    ) -> Option<RecalledText> {
        let Message::User(_) = message else { return None };
        let recall = self.parts.memory.recall().in_session(context.session.clone());
        let recall = recall.without(ids_of(context, window));
        // A recall spends 0.3 of its budget on memories.
        let budget = self.parts.recall_tokens.saturating_mul(10) / 3;
        let recalled = recall.context(&message.text(), budget, &TokenEstimate).await;
        let trust = recalled.memories.iter().map(|memory| memory.entry.trust).min()?;
        Some(RecalledText::new(format!("{HEADING}\n{}\n{END}", recalled.long_term.trim_end()), trust))
    }

    /// Returns the configuration of the memory for the log of each run; `None` for the root collection.
    pub fn config(&self) -> Option<MemoryConfig> {
        let memory = &self.parts.memory;
        let collection = memory.store().scope().clone();
        let embedder = memory.embedder().map(|embedder| embedder.id().to_owned());
        // The root collection has no name.
        (!collection.is_root()).then_some(MemoryConfig { collection, embedder })
    }

    /// Marks a turn for the extractors that must read it. Only turns of the person are marked: text of tools
    /// and of the program contains no facts about the person.
    fn marked(&self, mut turn: Turn) -> Turn {
        if turn.by == Speaker::Person {
            let unread =
                |entry, extraction: &Extraction| Knowledge::left_unread(entry, &*extraction.extractor);
            turn.entry = self.extractions.iter().fold(turn.entry, unread);
        }
        turn
    }

    /// Stores the turns that are not in the store yet, and returns them. Stored turns stay unchanged.
    async fn keep_new(&self, context: &Context, mut turns: Vec<Turn>) -> Result<Vec<Turn>, MemoryError> {
        let patience = Patience::of(context);
        let shelf = ContentHash::of(&context.session) % SHELVES as u64;
        let shelf = &self.kept[usize::try_from(shelf).unwrap_or(0)];
        // Another run may hold the lock while its embedder hangs. Without the lock two runs may store the
        // same turn, under one id.
        let mut kept = patience.wait_for(shelf.lock()).await;
        if let Some(kept) = &kept {
            turns.retain(|turn| !kept.contains(&turn.entry.id));
        }
        let ids: Vec<String> = turns.iter().map(|turn| turn.entry.id.clone()).collect();
        let there = self.there(&ids).await?;
        turns.retain(|turn| !there.contains(&turn.entry.id));
        self.store(patience, turns.iter().map(|turn| turn.entry.clone()).collect()).await?;
        if let Some(kept) = &mut kept {
            if kept.len() + ids.len() > MOST_KNOWN {
                kept.clear();
            }
            kept.extend(ids);
        }
        Ok(turns)
    }

    /// Stores entries, with vectors if there is an embedder. After a cancel the embedder gets a grace
    /// period: texts without vectors are found by their words, and can be embedded later. The store itself
    /// is never interrupted, since it may hold a lock.
    async fn store(&self, patience: Arc<Patience>, entries: Vec<MemoryEntry>) -> Result<(), MemoryError> {
        let memory = &self.parts.memory;
        let kept = match memory.embedder() {
            // The wrapped memory sees the same changes, so that it does not return stale answers.
            Some(embedder) => {
                memory.with_embedder(Arc::new(Hurried::new(embedder.clone(), patience))).keep(entries).await
            }
            None => memory.keep(entries).await,
        };
        kept.map(drop)
    }

    /// Returns those of these ids that are in the store. A damaged entry counts as missing, so that it is
    /// written again.
    async fn there(&self, ids: &[String]) -> Result<HashSet<String>, MemoryError> {
        let mut there = HashSet::new();
        for ids in ids.chunks(ASKED) {
            // An entry with this id in a collection below belongs to another memory.
            let mut filter = MemoryFilter::all().exactly(self.parts.memory.store().scope());
            filter.ids = ids.to_vec();
            let mut listing = Listing::new(filter, MemoryOrder::First, ASKED);
            loop {
                let page = self.parts.memory.store().list(&listing).await?;
                there.extend(page.entries.into_iter().map(|entry| entry.id));
                match page.next {
                    Some(next) => listing.after = Some(next),
                    None => break,
                }
            }
        }
        Ok(there)
    }
}

/// An entry to store, and its author.
struct Turn {
    entry: MemoryEntry,
    by: Speaker,
}

/// Splits an entry that is too long into several entries.
fn in_parts(turn: Turn) -> Vec<Turn> {
    let Turn { entry, by } = turn;
    if entry.content.len() <= parts::MOST {
        return vec![Turn { entry, by }];
    }
    // Blank parts are left out, since stores refuse them.
    let all: Vec<&str> =
        parts::parts(&entry.content).into_iter().filter(|part| !part.trim().is_empty()).collect();
    let part = |(nth, text): (usize, &&str)| {
        let mut part = entry.clone();
        part.id = format!("{}:{nth}", entry.id);
        (*text).clone_into(&mut part.content);
        part.metadata.insert("part".to_owned(), json!([nth, all.len()]));
        Turn { entry: part, by }
    };
    (1..).zip(&all).map(part).collect()
}

/// Makes entries of messages. Messages without text are left out, and so are messages of the program: they
/// are for this run only, or are summaries of stored turns.
fn turns(context: &Context, said: &[Attributed]) -> Vec<Turn> {
    // Counts equal messages of the same moment.
    let mut times: HashMap<(&str, Timestamp, String), u64> = HashMap::new();
    let mut turns = Vec::new();
    for Attributed { message, by, trust, .. } in said.iter().filter(|said| said.by != Speaker::Program) {
        let Some(text) = words(message) else { continue };
        let (of, at) = (role(message), message.timestamp());
        let nth = times.entry((of, at, text.clone())).or_default();
        let id = id("turn", &json!([context.session, of, at, text, *nth]));
        *nth += 1;
        let role = if *by == Speaker::Tool { "tool" } else { of };
        let mut entry = MemoryEntry::of_message(id, role, text, at);
        (entry.kind, entry.trust) = (MemoryKind::Turn, *trust);
        turns.push(Turn { entry: of_run(entry, context), by: *by });
    }
    turns
}

/// Returns the ids under which the messages of a context window are stored.
fn ids_of<'a>(context: &'a Context, window: &'a [Attributed]) -> impl Iterator<Item = String> + 'a {
    let turns = turns(context, window).into_iter().flat_map(in_parts).map(|turn| turn.entry.id);
    let programs = window.iter().filter(|said| said.by == Speaker::Program);
    let summaries = programs.filter_map(|said| words(&said.message));
    turns.chain(summaries.map(|text| summary_id(context, &text)))
}

fn summary_id(context: &Context, text: &str) -> String {
    id("summary", &json!([context.session, text]))
}

/// The role in which a model reads a message.
fn role(message: &Message) -> &'static str {
    match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "tool",
    }
}

/// The text of a message; `None` if it is blank.
fn words(message: &Message) -> Option<String> {
    // Without the memories that were added to it, which are stored already.
    let texts: Vec<&str> = message.own_content().iter().filter_map(Content::as_text).collect();
    let text = texts.join("\n");
    (!text.trim().is_empty()).then_some(text)
}

/// The model's summaries in a compaction, including earlier ones, which are stored already.
fn summaries<'a>(
    context: &'a Context,
    compaction: &'a Compaction,
    heading: &'a str,
) -> impl Iterator<Item = Turn> + 'a {
    let digests = compaction.view.iter().filter_map(|part| match part {
        ViewPart::Digest { text, .. } if compaction.level == CompactionLevel::Summarize => Some(text),
        _ => None,
    });
    digests.filter(move |text| text.starts_with(heading)).map(move |text| {
        let mut entry = MemoryEntry::new(summary_id(context, text), text, context.clock.now());
        // A summary contains text of tools, too.
        (entry.kind, entry.trust) = (MemoryKind::Summary, Trust::Untrusted);
        Turn { entry: of_run(entry, context), by: Speaker::Program }
    })
}

fn of_run(mut entry: MemoryEntry, context: &Context) -> MemoryEntry {
    entry.run = Some(context.run.clone());
    entry.metadata.insert("session".to_owned(), context.session.as_str().into());
    entry
}

/// Makes an id from the content alone, so that the same content has the same id. SHA-256 prevents anyone
/// from writing a text with another text's id.
fn id(kind: &str, content: &Value) -> String {
    let hash = hmac_sha256::Hash::hash(content.to_string().as_bytes());
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{kind}:{hex}")
}
