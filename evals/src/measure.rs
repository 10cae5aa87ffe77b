//! One conversation: kept in a memory, asked about, and compared with what holds the answers.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use archon_memory::{
    InMemoryStore, Memory, MemoryOptions,
    rank::{SESSION, Weights},
};
use archon_store::SqliteMemory;
use archon_testkit::{SeededIds, VirtualClock};
use archon_types::{
    Collection, Embedder, LongTerm as _, MemoryEntry, MemoryKind, MemoryQuery, MemoryStore, Timestamp,
    TokenCounter as _, TokenEstimate, Trust,
};

use crate::talk::{Conversation, Question, Turn};

/// How a memory is set.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    change: fn(&mut Weights),
}

/// What one question brought.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) kind: String,
    /// The share of the evidence among the first five and the first ten.
    pub(crate) recall: [f64; 2],
    pub(crate) told: Told,
}

/// The lines of memories in the prompt of a model.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// The share of the evidence that is told, as a whole or in part.
    pub(crate) share: f64,
    /// The share of the evidence that is told as a whole.
    pub(crate) whole: f64,
    pub(crate) memories: usize,
    pub(crate) tokens: u64,
}

impl Setting {
    /// As it ships.
    pub(crate) fn full() -> Self {
        Self { name: "as it ships", change: |_| {} }
    }

    /// The same without one part each.
    pub(crate) fn ablations() -> Vec<Self> {
        let set = |name, change| Self { name, change };
        vec![
            set("without meaning", |weights| weights.meaning = 0.0),
            set("without neighbours", |weights| weights.neighbours = 0.0),
            set("without times", |weights| weights.time = 0.0),
            set("without speakers", |weights| weights.speaker = 0.0),
            set("without recency", |weights| weights.recency = 0.0),
        ]
    }
}

/// A conversation that was kept, a day after it ended.
pub(crate) struct Kept<'a> {
    conversation: &'a Conversation,
    memory: Memory,
}

/// The number of tokens of memories that an agent adds to a prompt by default.
pub(crate) const ROOM: u64 = 1_000;

impl<'a> Kept<'a> {
    pub(crate) async fn new(
        conversation: &'a Conversation,
        setting: &Setting,
        embedder: Option<&Arc<dyn Embedder>>,
        database: Option<&SqliteMemory>,
    ) -> Result<Self> {
        let end = conversation.turns.iter().map(|turn| turn.at).max().unwrap_or(Timestamp::from_millis(0));
        let clock = VirtualClock::starting_at(end + Duration::from_secs(86_400));
        let mut options = MemoryOptions::default();
        (setting.change)(&mut options.weights);
        let store: Arc<dyn MemoryStore> = match database {
            Some(all) => {
                let owner = format!("user:{}", conversation.name.replace(' ', "-"));
                Arc::new(all.collection(Collection::new(owner)?)?)
            }
            None => Arc::new(InMemoryStore::default()),
        };
        let mut memory =
            Memory::new(store, Arc::new(clock), Arc::new(SeededIds::new(1))).with_options(options);
        if let Some(embedder) = embedder {
            memory = memory.with_embedder(embedder.clone());
        }
        memory.keep(conversation.turns.iter().map(entry).collect()).await?;
        Ok(Self { conversation, memory })
    }

    /// Asks all questions of the conversation.
    pub(crate) async fn answers(&self) -> Result<Vec<Answer>> {
        let mut answers = Vec::new();
        for question in &self.conversation.questions {
            let mut query = MemoryQuery::new(&question.text);
            query.limit = 10;
            let found = self.memory.long_term().query(&query).await?;
            let ids: Vec<&str> = found.iter().map(|hit| hit.entry.id.as_str()).collect();
            answers.push(Answer {
                kind: question.kind.clone(),
                recall: [5, 10].map(|count| question.share_of(ids.iter().take(count).copied())),
                told: self.prompt_for(question).await,
            });
        }
        Ok(answers)
    }

    /// Recalls memories for a prompt, as an agent does.
    pub(crate) async fn prompt_for(&self, question: &Question) -> Told {
        // An agent asks with this budget, of which `Recall` spends 0.3 on memories.
        let told = self.memory.recall().context(&question.text, ROOM * 10 / 3, &TokenEstimate).await;
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_whole = |entry: &MemoryEntry| told.long_term.contains(&one_line(&entry.content));
        let ids = told.memories.iter().map(|hit| hit.entry.id.as_str());
        let whole = told.memories.iter().filter(|hit| is_whole(&hit.entry));
        Told {
            share: question.share_of(ids),
            whole: question.share_of(whole.map(|hit| hit.entry.id.as_str())),
            memories: told.memories.len(),
            tokens: if told.memories.is_empty() { 0 } else { TokenEstimate.count(&told.long_term) },
        }
    }
}

impl Question {
    /// The share of the evidence among `ids`.
    pub(crate) fn share_of<'a>(&self, ids: impl Iterator<Item = &'a str>) -> f64 {
        ids.filter(|id| self.evidence.contains(*id)).count() as f64 / self.evidence.len() as f64
    }
}

/// An entry as an agent keeps it: a person is believed more than an assistant.
fn entry(turn: &Turn) -> MemoryEntry {
    let mut entry = MemoryEntry::of_message(&turn.id, &turn.speaker, &turn.text, turn.at);
    entry.kind = MemoryKind::Turn;
    entry.trust = if turn.speaker == "assistant" { Trust::Model } else { Trust::Trusted };
    entry.metadata.insert(SESSION.to_owned(), turn.session.clone().into());
    entry
}
