//! What was said in a session, in order.

use archon_types::{
    BoxFuture, Episodic, Json, Listing, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder,
};

use crate::Memory;

/// The turns of one session, in whichever store.
#[derive(Clone)]
pub struct Conversation {
    memory: Memory,
    session: String,
}

impl Conversation {
    pub(crate) fn new(memory: Memory, session: String) -> Self {
        Self { memory, session }
    }

    /// The session.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The turns, oldest first; of these the last `limit`.
    async fn last(&self, limit: usize) -> Result<Vec<MemoryEntry>, MemoryError> {
        let listing = Listing::new(self.filter(), MemoryOrder::Latest, limit);
        let mut entries = self.memory.store().list(&listing).await?.entries;
        entries.reverse();
        Ok(entries)
    }

    /// The turns of the memory's own collection: a session of the same name in one within it is another.
    fn filter(&self) -> MemoryFilter {
        let mut filter = MemoryFilter::all().of(&[MemoryKind::Turn]).exactly(self.memory.store().scope());
        filter.metadata.insert(SESSION.to_owned(), Json::String(self.session.clone()));
        filter
    }
}

/// The metadata that names the session of a turn, of a summary, and of a value that a summary came with.
pub(crate) const SESSION: &str = "session";

impl Episodic for Conversation {
    fn append(&self, mut entry: MemoryEntry) -> BoxFuture<'_, Result<(), MemoryError>> {
        Box::pin(async move {
            entry.kind = MemoryKind::Turn;
            entry.metadata.insert(SESSION.to_owned(), Json::String(self.session.clone()));
            self.memory.keep(vec![entry]).await.map(drop)
        })
    }

    fn get_messages(
        &self,
        limit: Option<usize>,
        since: usize,
    ) -> BoxFuture<'_, Result<Vec<MemoryEntry>, MemoryError>> {
        Box::pin(async move {
            if let (0, Some(limit)) = (since, limit) {
                return self.last(limit).await;
            }
            let mut entries = self.memory.all(self.filter()).await?;
            entries.drain(..since.min(entries.len()));
            entries.drain(..entries.len() - limit.unwrap_or(usize::MAX).min(entries.len()));
            Ok(entries)
        })
    }

    fn clear(&self) -> BoxFuture<'_, Result<(), MemoryError>> {
        Box::pin(async move {
            // The summaries and the key facts of what was said say it again.
            let kinds = [MemoryKind::Turn, MemoryKind::Summary, MemoryKind::Value];
            self.memory.forget_all(self.filter().of(&kinds)).await.map(drop)
        })
    }
}
