//! Entries that an extractor has not read yet. The mark is stored with the entry and removed in the same
//! change that writes the facts. After a failure or a crash the entry is read later, and facts are never
//! stored in part.

use archon_types::{
    Json, Listing, MemoryChange, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder, MemoryPage,
};

use super::{Compared, Knowledge, Learnt, extract_facts, outdated};
use crate::{KnowledgeExtractor, Passage, memory::Tries};

impl Knowledge {
    /// Marks an entry as not yet read by this extractor.
    pub fn mark_unread(mut entry: MemoryEntry, extractor: &dyn KnowledgeExtractor) -> MemoryEntry {
        entry.metadata.insert(mark(extractor), Json::Bool(true));
        entry
    }

    /// Returns at most `limit` of the turns that this extractor has not read yet, oldest first. With `after`, the page
    /// begins after the entry with this [`position`](MemoryEntry::position).
    ///
    /// # Errors
    /// Errors of the store.
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

    /// Learns the facts that an extractor finds in a marked entry, with `speaker` as the author of its
    /// words, and removes the mark in the same change. The facts go into the entry's collection. Nothing is
    /// learnt from an entry that was deleted, or read by another process, meanwhile.
    ///
    /// # Errors
    /// Errors of the extractor and of the store. After an error the mark stays.
    pub async fn read(
        &self,
        extractor: &dyn KnowledgeExtractor,
        speaker: &str,
        entry: &MemoryEntry,
    ) -> Result<Vec<Learnt>, MemoryError> {
        let mut passage = Passage::new(&entry.content, speaker, entry.timestamp).trusted(entry.trust);
        passage.run = entry.run.clone();
        let facts = extract_facts(extractor, &passage.of_entry(&entry.id)).await?;
        let mut filter = MemoryFilter::all().exactly(match entry.collection.is_root() {
            true => self.memory.store().scope(),
            false => &entry.collection,
        });
        filter.ids = vec![entry.id.clone()];
        let _one_at_a_time = self.memory.parts.facts.lock().await;
        let mut tries = Tries::default();
        loop {
            let (mut stored, as_read) = self.memory.expected(filter.clone()).await?;
            let Some(mut stored) = stored.pop() else { return Ok(Vec::new()) };
            if stored.metadata.remove(&mark(extractor)).is_none() {
                return Ok(Vec::new());
            }
            let Compared { learnt, stated, entries, mut expected } =
                self.compared(&facts, &stored.collection).await?;
            outdated::note(&mut stored, stated);
            expected.extend([as_read, MemoryChange::put(stored)]);
            if self.memory.attempt(entries, expected, &mut tries).await?.is_some() {
                return Ok(learnt);
            }
        }
    }
}

fn mark(extractor: &dyn KnowledgeExtractor) -> String {
    format!("unread_by:{}", extractor.id())
}
