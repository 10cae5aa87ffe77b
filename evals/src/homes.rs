//! The homes of 20 people who moved twice, in prompts, with the facts that the rules read.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use archon_memory::{InMemoryStore, Knowledge, Memory, RuleExtractor};
use archon_testkit::{SeededIds, VirtualClock};
use archon_types::{Clock as _, Embedder, MemoryEntry, MemoryKind, TokenEstimate, Trust};

use crate::{
    measure::ROOM,
    moves::{HOME, HOME_QUESTION, QUESTIONS, RETRACTIONS, sentences_of, tells, tells_end_of_home},
};

const PEOPLE: usize = 20;

/// The number of questions, and of those for which the newest home is told, and an earlier one as if it held; and the
/// number of sentences after which a home is told with the mark of what has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Homes {
    pub(crate) asked: usize,
    pub(crate) newest: usize,
    pub(crate) stale: usize,
    pub(crate) ended: usize,
}

/// Asks each person's memory for the home.
pub(crate) async fn homes(embedder: Option<&Arc<dyn Embedder>>) -> Result<Homes> {
    let mut counts = Homes::default();
    for person in 0..PEOPLE {
        let (said, homes) = sentences_of(person);
        let memory = memory_of(&said, embedder).await?;
        for question in QUESTIONS {
            let told = memory.recall().context(question, ROOM * 10 / 3, &TokenEstimate).await.long_term;
            counts.asked += 1;
            counts.newest += usize::from(tells(&told, &homes[2..]));
            counts.stale += usize::from(tells(&told, &homes[..2]));
        }
    }
    for text in RETRACTIONS {
        let memory = memory_of(&[HOME.to_owned(), text.to_owned()], embedder).await?;
        let told = memory.recall().context(HOME_QUESTION, ROOM * 10 / 3, &TokenEstimate).await.long_term;
        counts.ended += usize::from(tells_end_of_home(&told));
    }
    Ok(counts)
}

/// Returns the memory of a person who says a sentence a day.
async fn memory_of(said: &[String], embedder: Option<&Arc<dyn Embedder>>) -> Result<Memory> {
    let clock = VirtualClock::new();
    let store = Arc::new(InMemoryStore::default());
    let mut memory = Memory::new(store, Arc::new(clock.clone()), Arc::new(SeededIds::new(1)));
    if let Some(embedder) = embedder {
        memory = memory.with_embedder(embedder.clone());
    }
    for text in said {
        clock.advance(Duration::from_secs(86_400));
        let mut turn = MemoryEntry::of_message(text.as_str(), "user", text.as_str(), clock.now());
        (turn.kind, turn.trust) = (MemoryKind::Turn, Trust::Trusted);
        let turn = Knowledge::mark_unread(turn, &RuleExtractor);
        memory.keep(vec![turn.clone()]).await?;
        memory.knowledge().read(&RuleExtractor, "user", &turn).await?;
    }
    Ok(memory)
}
