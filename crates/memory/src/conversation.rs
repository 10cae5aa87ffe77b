//! The turns of a session, in order.

use archon_types::{
    BoxFuture, Episodic, Json, Listing, MemoryEntry, MemoryError, MemoryFilter, MemoryKind, MemoryOrder,
    SessionId,
};

use crate::{Memory, rank::SESSION};

/// A handle to the turns of one session: adds turns, and returns them in order. A turn is one message.
#[derive(Clone)]
pub struct ConversationMemory {
    memory: Memory,
    session: SessionId,
}

impl Memory {
    /// Returns a handle to the turns of a session. Nothing is read yet.
    pub fn conversation(&self, session: impl Into<SessionId>) -> ConversationMemory {
        ConversationMemory { memory: self.clone(), session: session.into() }
    }
}

impl ConversationMemory {
    /// Returns the session's id.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the last `limit` turns, oldest first.
    async fn last(&self, limit: usize) -> Result<Vec<MemoryEntry>, MemoryError> {
        let listing = Listing::new(self.filter(), MemoryOrder::Latest, limit);
        let mut entries = self.memory.store().list(&listing).await?.entries;
        entries.reverse();
        Ok(entries)
    }

    /// Returns a filter for the turns of this session in the memory's own collection only: nested collections
    /// may have sessions with the same name.
    pub(crate) fn filter(&self) -> MemoryFilter {
        let mut filter = MemoryFilter::all().of(&[MemoryKind::Turn]).exactly(self.memory.store().scope());
        filter.metadata.insert(SESSION.to_owned(), Json::from(self.session.as_str()));
        filter
    }
}

impl Episodic for ConversationMemory {
    fn append(&self, mut entry: MemoryEntry) -> BoxFuture<'_, Result<(), MemoryError>> {
        Box::pin(async move {
            entry.kind = MemoryKind::Turn;
            entry.metadata.insert(SESSION.to_owned(), Json::from(self.session.as_str()));
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
            // The summaries and key facts repeat what the turns said, so they go too.
            let kinds = [MemoryKind::Turn, MemoryKind::Summary, MemoryKind::Value];
            self.memory.forget_all(self.filter().of(&kinds)).await.map(drop)
        })
    }
}
