//! The journal of the agent that runs lines. Its runs leave messages of people in their inboxes, because no model could
//! read them: the messages begin the next run of the session.

use std::sync::Arc;

use archon::types::{
    BoxFuture, Inbox, InboxEntry, InboxRequest, Journal, JournalError, OpenMode, OpenRun, Record, RunFilter,
    RunHead, RunId, Salvaged,
};

/// A journal whose runs read no messages of people.
pub(super) struct LineJournal(Arc<dyn Journal>);

impl LineJournal {
    pub(super) fn new(journal: Arc<dyn Journal>) -> Self {
        Self(journal)
    }
}

impl Journal for LineJournal {
    fn open<'a>(&'a self, run: &'a RunId, mode: OpenMode) -> BoxFuture<'a, Result<OpenRun, JournalError>> {
        self.0.open(run, mode)
    }

    fn read<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        self.0.read(run)
    }

    fn salvage<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        self.0.salvage(run)
    }

    fn read_before<'a>(
        &'a self,
        run: &'a RunId,
        before: Option<u64>,
        most: usize,
    ) -> BoxFuture<'a, Result<Salvaged, JournalError>> {
        self.0.read_before(run, before, most)
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> BoxFuture<'a, Result<Vec<RunHead>, JournalError>> {
        self.0.list(filter)
    }

    fn head<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<RunHead, JournalError>> {
        self.0.head(run)
    }

    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), JournalError>> {
        self.0.delete(run)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        Some(Arc::new(LineInbox(self.0.inbox()?)))
    }
}

/// An inbox that shows no messages of people, only cancels and other requests.
struct LineInbox(Arc<dyn Inbox>);

impl Inbox for LineInbox {
    fn post<'a>(&'a self, run: &'a RunId, entry: InboxEntry) -> BoxFuture<'a, Result<(), JournalError>> {
        self.0.post(run, entry)
    }

    fn waiting<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Vec<InboxEntry>, JournalError>> {
        Box::pin(async move {
            let mut entries = self.0.waiting(run).await?;
            let is_message = |request: &InboxRequest| {
                matches!(request, InboxRequest::Steer { .. } | InboxRequest::FollowUp { .. })
            };
            entries.retain(|entry| !is_message(&entry.request));
            Ok(entries)
        })
    }

    fn remove<'a>(&'a self, run: &'a RunId, ids: &'a [String]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.0.remove(run, ids)
    }

    fn changed<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, ()> {
        self.0.changed(run)
    }
}
