//! One conversation: kept in a memory, asked about, and compared with what holds the answers.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use anyhow::Result;
use archon_memory::{
    InMemoryStore, Memory, MemoryOptions,
    rank::{SESSION, Weights},
};
use archon_store::SqliteMemory;
use archon_testkit::{SeededIds, VirtualClock};
use archon_types::{
    Collection, Embedder, LongTerm as _, MemoryEntry, MemoryKind, MemoryQuery, MemoryStore, Timestamp,
};

use crate::locomo::{Conversation, Question, Turn};

/// How a memory is set.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    pub(crate) embeds: bool,
    change: fn(&mut Weights),
}

/// What one question brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) category: u8,
    /// The share of the evidence among the first ten, and five.
    pub(crate) recall_10: f64,
    pub(crate) recall_5: f64,
    /// Whether a session with evidence is among the first five.
    pub(crate) session: bool,
}

impl Setting {
    /// As it ships, with MiniLM.
    pub(crate) fn full() -> Self {
        Self { name: "as it ships", embeds: true, change: |_| {} }
    }

    /// The same without one part each, and what is usually done.
    pub(crate) fn ablations() -> Vec<Self> {
        let set = |name, embeds, change| Self { name, embeds, change };
        vec![
            set("without meaning (no embedder)", false, |_| {}),
            set("without words", true, |weights| weights.words = 0.0),
            set("without neighbours", true, |weights| (weights.before, weights.after) = (0.0, 0.0)),
            set("without sessions", true, |weights| weights.session = 0.0),
            set("without times", true, |weights| weights.time = 0.0),
            set("without speakers", true, |weights| weights.speaker = 0.0),
            set("without telling questions apart", true, |weights| weights.asks = 0.0),
            set("without recency", true, |weights| weights.recency = 0.0),
            set("words alone (stemmed BM25)", false, |weights| alone(weights, 1.0, 0.0)),
            set("meaning alone (MiniLM)", true, |weights| alone(weights, 0.0, 1.0)),
            set("words and meaning, nothing else", true, |weights| alone(weights, 0.8, 0.5)),
        ]
    }
}

fn alone(weights: &mut Weights, words: f32, meaning: f32) {
    (weights.words, weights.meaning) = (words, meaning);
    (weights.before, weights.after, weights.session, weights.time) = (0.0, 0.0, 0.0, 0.0);
    (weights.speaker, weights.asks, weights.recency, weights.importance) = (0.0, 0.0, 0.0, 0.0);
}

/// Answers to all questions about a conversation. They are asked a day after it ended.
pub(crate) async fn conversation(
    conversation: &Conversation,
    setting: &Setting,
    embedder: Option<Arc<dyn Embedder>>,
    database: Option<&SqliteMemory>,
) -> Result<Vec<Answer>> {
    let end = conversation.turns.iter().map(|turn| turn.at).max().unwrap_or(Timestamp::from_millis(0));
    let clock = VirtualClock::starting_at(end + Duration::from_secs(86_400));
    let mut options = MemoryOptions::default();
    (setting.change)(&mut options.weights);
    let store: Arc<dyn MemoryStore> = match database {
        Some(all) => Arc::new(all.collection(Collection::new(format!("user:{}", conversation.name))?)?),
        None => Arc::new(InMemoryStore::default()),
    };
    let mut memory = Memory::new(store, Arc::new(clock), Arc::new(SeededIds::new(1))).with_options(options);
    if let Some(embedder) = embedder {
        memory = memory.with_embedder(embedder);
    }
    memory.keep(conversation.turns.iter().map(entry).collect()).await?;
    let mut answers = Vec::new();
    for question in &conversation.questions {
        answers.push(ask(&memory, question).await?);
    }
    Ok(answers)
}

fn entry(turn: &Turn) -> MemoryEntry {
    let mut entry = MemoryEntry::of_message(&turn.id, &turn.speaker, &turn.text, turn.at);
    entry.kind = MemoryKind::Turn;
    entry.metadata.insert(SESSION.to_owned(), turn.session.clone().into());
    entry
}

async fn ask(memory: &Memory, question: &Question) -> Result<Answer> {
    let mut query = MemoryQuery::new(&question.text);
    query.limit = 10;
    let found = memory.long_term().query(&query).await?;
    let recall = |count: usize| {
        let found = found.iter().take(count).filter(|hit| question.evidence.contains(&hit.entry.id));
        found.count() as f64 / question.evidence.len() as f64
    };
    query.limit = 5;
    let sessions = memory.long_term().sessions(&query).await?;
    let right: BTreeSet<String> = question.evidence.iter().filter_map(|id| session_of(id)).collect();
    Ok(Answer {
        category: question.category,
        recall_10: recall(10),
        recall_5: recall(5),
        session: sessions.iter().any(|session| right.contains(session)),
    })
}

/// `session_3` of `D3:7`.
fn session_of(id: &str) -> Option<String> {
    Some(format!("session_{}", id.strip_prefix('D')?.split(':').next()?))
}
