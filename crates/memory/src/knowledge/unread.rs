//! Entries that an extractor has yet to read. The mark is kept with the entry and goes in the change that brings the
//! facts, so that a failure or a death in between leaves it for later, and nothing is learnt by halves.

use archon_types::{
    Json, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder, MemoryPage,
};

use super::{Compared, Knowledge, Learnt, found_in};
use crate::{KnowledgeExtractor, Passage, memory::Tries};

impl Knowledge {
    /// An entry with the mark that this extractor has yet to read it.
    pub fn left_unread(mut entry: MemoryEntry, extractor: &dyn KnowledgeExtractor) -> MemoryEntry {
        entry.metadata.insert(mark(extractor), Json::Bool(true));
        entry
    }

    /// A page of the turns that this extractor has yet to read, first ones first, from a position on.
    ///
    /// # Errors
    /// The store's.
    pub async fn unread(
        &self,
        extractor: &dyn KnowledgeExtractor,
        after: Option<u64>,
        limit: usize,
    ) -> Result<MemoryPage, MemoryError> {
        let mut filter = MemoryFilter::all().of(&[MemoryKind::Turn]);
        filter.metadata.insert(mark(extractor), Json::Bool(true));
        let mut listing = Listing::new(filter, MemoryOrder::First, limit);
        listing.after = after;
        self.memory.store().list(&listing).await
    }

    /// Learns what an extractor finds in an entry that it has yet to read, as the words of `speaker`, and takes the mark
    /// off, in one change. The facts are of the entry's collection. Nothing is learnt from an entry that is gone, or that
    /// somebody else read meanwhile.
    ///
    /// # Errors
    /// The extractor's and the store's. The mark stays then.
    pub async fn read(
        &self,
        extractor: &dyn KnowledgeExtractor,
        speaker: &str,
        entry: &MemoryEntry,
    ) -> Result<Vec<Learnt>, MemoryError> {
        let mut passage = Passage::new(&entry.content, speaker, entry.timestamp).trusted(entry.trust);
        passage.run = entry.run.clone();
        let facts = found_in(extractor, &passage.of_entry(&entry.id)).await?;
        let mut filter = MemoryFilter::all().exactly(match entry.collection.is_root() {
            true => self.memory.store().scope(),
            false => &entry.collection,
        });
        filter.ids = vec![entry.id.clone()];
        let _one_at_a_time = self.memory.parts.facts.lock().await;
        let mut tries = Tries::default();
        loop {
            let (mut kept, as_read) = self.memory.expected(filter.clone()).await?;
            let Some(mut kept) = kept.pop() else { return Ok(Vec::new()) };
            if kept.metadata.remove(&mark(extractor)).is_none() {
                return Ok(Vec::new());
            }
            let Compared { learnt, entries, mut expected } = self.compared(&facts, &kept.collection).await?;
            expected.extend([as_read, MemoryChange::put(kept)]);
            if self.memory.attempt(entries, expected, &mut tries).await?.is_some() {
                return Ok(learnt);
            }
        }
    }
}

fn mark(extractor: &dyn KnowledgeExtractor) -> String {
    format!("unread_by:{}", extractor.id())
}
