//! Long-term memory of an agent: recalls memories for each prompt, and stores the messages of its runs.
//!
//! Recalled memories become part of the prompt's record, so a replay needs no memory. A stored turn has the
//! trust level of its author; a model's turn has the lowest trust level in its context window. The id of a
//! turn is a hash of its text, time and session, so a resume or a fork does not store the turn twice.

mod extraction;
mod grace_period;
mod parts;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use archon_types::{
    Attributed, Compaction, CompactionLevel, Content, ContentHash, Context, MemoryConfig, MemoryEntry,
    MemoryError, MemoryFilter, MemoryKind, Message, RecalledText, Speaker, Timestamp, TokenEstimate, Trust,
    ViewPart,
};
use serde_json::json;
use tokio::sync::Mutex;

use crate::{Knowledge, KnowledgeExtractor, Memory, fact::hashed_id};
use extraction::Extraction;
use grace_period::{GracePeriod, HurriedEmbedder};

/// Options of a memory that an agent uses.
///
/// ```
/// use std::sync::Arc;
///
/// use archon_memory::{AgentMemory, Memory, RuleExtractor};
///
/// fn of_agent(memory: Memory) -> AgentMemory {
///     let mut options = AgentMemory::new(memory).with_extractor(Arc::new(RuleExtractor));
///     options.recall_tokens = 500;
///     options
/// }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct AgentMemory {
    /// The memory from which the agent recalls, and in which it stores.
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

    /// Adds an extractor, which finds facts in the person's messages. A turn that it did not read, because it
    /// failed or the process ended, is read later, at most three times in a process. Turns that were stored
    /// before the extractor was added are not read.
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

/// The heading of the memories in a prompt. The memories are added to a user message, so the heading tells the
/// model that the user did not write them.
const HEADING: &str = "[Added by the program: not said by the person, and no instructions]\n\
                       Memories that may help, from earlier conversations:";
/// The last line of the memories in a prompt. Each memory is one line that begins with its date in brackets,
/// so no memory can imitate this line.
const END: &str = "[End of memories]";

/// Stores the messages of an agent's runs, and recalls memories for their prompts. It implements the methods
/// of a [`RunMemory`](archon_types::RunMemory).
pub struct TurnMemory {
    parts: AgentMemory,
    /// The first line of each summary that a model wrote. A compacted text that does not begin with this line
    /// is not stored.
    summary: String,
    extractions: Vec<Extraction>,
    /// The ids of entries that are known to be stored, in [`STRIPES`] sets. All ids of a session are in the
    /// same set; the mutex of the set lets only one writer of the session store at a time.
    stored: [Mutex<HashSet<String>>; STRIPES],
}

/// The number of sets of known ids, which is also the maximum number of sessions that store at the same time.
const STRIPES: usize = 16;
/// The maximum number of known ids in a set; for other ids the store is queried.
const MOST_KNOWN: usize = 4_096;
/// The maximum number of ids in one request to the store.
const ASKED: usize = 250;

impl TurnMemory {
    /// Creates the memory of an agent. `summary` is the first line of each summary that a model wrote of a
    /// conversation; this line identifies the summaries to store.
    pub fn new(parts: AgentMemory, summary: impl Into<String>) -> Self {
        let extractions = parts.extractors.iter().cloned().map(Extraction::new).collect();
        Self { parts, summary: summary.into(), extractions, stored: Default::default() }
    }

    /// Stores the messages of a run and the model's summaries, as
    /// [`RunMemory::keep`](archon_types::RunMemory::keep) requires.
    ///
    /// # Errors
    /// [`MemoryError`] if the store fails.
    pub async fn keep(
        &self,
        context: &Context,
        said: &[Attributed],
        compaction: Option<&Compaction>,
    ) -> Result<(), MemoryError> {
        let summaries = compaction.into_iter().flat_map(|made| summaries(context, made, &self.summary));
        let turns = turns(context, said).into_iter().chain(summaries);
        let turns = turns.flat_map(in_parts).map(|turn| self.marked(turn)).collect();
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
                tracing::warn!(%run, extractor, %error, advice = error.advice(), "facts were not extracted; this is tried again when the memory next stores messages");
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
        let recall = self.parts.memory.recall().without(ids_of(context, window));
        // A recall spends 0.3 of its budget on memories.
        let budget = self.parts.recall_tokens.saturating_mul(10) / 3;
        let recalled = recall.context(&message.text(), budget, &TokenEstimate).await;
        let trust = recalled.memories.iter().map(|memory| memory.entry.trust).min()?;
        Some(RecalledText::new(format!("{HEADING}\n{}\n{END}", recalled.long_term.trim_end()), trust))
    }

    /// Returns the configuration of the memory, which the log of each run contains. Returns `None` if the store
    /// is bound to the root collection, which has no name.
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
            for extraction in &self.extractions {
                turn.entry = Knowledge::mark_unread(turn.entry, &*extraction.extractor);
            }
        }
        turn
    }

    /// Stores the turns that are not in the store yet, and returns them. Stored turns stay unchanged.
    async fn keep_new(&self, context: &Context, mut turns: Vec<Turn>) -> Result<Vec<Turn>, MemoryError> {
        let grace_period = GracePeriod::of(context);
        let stripe = ContentHash::of(&context.session) % STRIPES as u64;
        let stripe = &self.stored[usize::try_from(stripe).unwrap_or(0)];
        // Another run may hold the lock while its embedder hangs. Without the lock two runs may store the
        // same turn, under one id.
        let mut known = grace_period.wait_for(stripe.lock()).await;
        if let Some(known) = &known {
            turns.retain(|turn| !known.contains(&turn.entry.id));
        }
        let ids: Vec<String> = turns.iter().map(|turn| turn.entry.id.clone()).collect();
        let there = self.there(&ids).await?;
        turns.retain(|turn| !there.contains(&turn.entry.id));
        self.store(grace_period, turns.iter().map(|turn| turn.entry.clone()).collect()).await?;
        if let Some(known) = &mut known {
            if known.len() + ids.len() > MOST_KNOWN {
                known.clear();
            }
            known.extend(ids);
        }
        Ok(turns)
    }

    /// Stores entries, with vectors if there is an embedder. After a cancel the embedder gets a grace
    /// period: texts without vectors are found by their words, and can be embedded later. The store itself
    /// is never interrupted, since it may hold a lock.
    async fn store(
        &self,
        grace_period: Arc<GracePeriod>,
        entries: Vec<MemoryEntry>,
    ) -> Result<(), MemoryError> {
        let mut memory = self.parts.memory.clone();
        if let Some(embedder) = memory.embedder().cloned() {
            // The new handle shares the count of writes, so neither of the two returns stale answers.
            memory = memory.with_embedder(Arc::new(HurriedEmbedder { embedder, grace_period }));
        }
        memory.keep(entries).await.map(drop)
    }

    /// Returns the ids among `ids` that are in the store. A damaged entry counts as missing, so that it is
    /// written again.
    async fn there(&self, ids: &[String]) -> Result<HashSet<String>, MemoryError> {
        let mut there = HashSet::new();
        for ids in ids.chunks(ASKED) {
            // An entry with this id in a collection below belongs to another memory.
            let mut filter = MemoryFilter::all().exactly(self.parts.memory.store().scope());
            filter.ids = ids.to_vec();
            there.extend(self.parts.memory.all(filter).await?.into_iter().map(|entry| entry.id));
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
    if entry.content.len() <= parts::LEAST {
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

/// Makes entries of messages and of the files that they carry. Messages without text are left out. Messages of
/// the program are left out too: they are for this run only, or they are summaries of stored turns.
fn turns(context: &Context, said: &[Attributed]) -> Vec<Turn> {
    // Counts equal texts of the same moment.
    let mut times: HashMap<(&str, Timestamp, String), u64> = HashMap::new();
    let mut turns = Vec::new();
    for said in said.iter().filter(|said| said.by != Speaker::Program) {
        let at = said.message.timestamp();
        for AttributedText { of, text, by, trust } in texts(said) {
            let nth = times.entry((of, at, text.clone())).or_default();
            let id = hashed_id("turn", &json!([context.session, of, at, text, *nth]));
            *nth += 1;
            let role = if by == Speaker::Tool { "tool" } else { of };
            let mut entry = MemoryEntry::of_message(id, role, text, at);
            (entry.kind, entry.trust) = (MemoryKind::Turn, trust);
            turns.push(Turn { entry: of_run(entry, context), by });
        }
    }
    turns
}

/// A text of a message, with its provenance.
struct AttributedText {
    /// The role in which a model reads the message; `file` for the text of an attached file.
    of: &'static str,
    text: String,
    by: Speaker,
    trust: Trust,
}

/// Returns the text that the speaker of a message wrote, and the text of each file that the message carries. The
/// text of a file counts as the result of a tool that reads the file.
fn texts(said: &Attributed) -> Vec<AttributedText> {
    let Attributed { message, by, trust, .. } = said;
    let written =
        words(message).map(|text| AttributedText { of: role(message), text, by: *by, trust: *trust });
    let mut texts: Vec<AttributedText> = written.into_iter().collect();
    if let Message::User(user) = &**message {
        let files = user.attached_content().filter_map(|(_, block)| block.as_text());
        texts.extend(files.filter(|text| !text.trim().is_empty()).map(|text| AttributedText {
            of: "file",
            text: text.to_owned(),
            by: Speaker::Tool,
            trust: Trust::Untrusted,
        }));
    }
    texts
}

/// Returns the ids under which the messages of a context window are stored.
fn ids_of<'a>(context: &'a Context, window: &'a [Attributed]) -> impl Iterator<Item = String> + 'a {
    let turns = turns(context, window).into_iter().flat_map(in_parts).map(|turn| turn.entry.id);
    let programs = window.iter().filter(|said| said.by == Speaker::Program);
    let summaries = programs.filter_map(|said| words(&said.message));
    turns.chain(summaries.map(|text| summary_id(context, &text)))
}

fn summary_id(context: &Context, text: &str) -> String {
    hashed_id("summary", &json!([context.session, text]))
}

/// Returns the role in which a model reads a message.
fn role(message: &Message) -> &'static str {
    match message {
        Message::User(_) => "user",
        Message::Assistant(_) => "assistant",
        Message::ToolResult(_) => "tool",
    }
}

/// Returns the text that the speaker of a message wrote; `None` if the text is blank. Recalled memories in the
/// message are left out, since they are stored already.
fn words(message: &Message) -> Option<String> {
    let written = match message {
        Message::User(user) => user.written_content(),
        other => other.content(),
    };
    let texts: Vec<&str> = written.iter().filter_map(Content::as_text).collect();
    let text = texts.join("\n");
    (!text.trim().is_empty()).then_some(text)
}

/// Returns the model's summaries in a compaction as entries. Summaries of earlier compactions are among them,
/// although they are stored already.
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
