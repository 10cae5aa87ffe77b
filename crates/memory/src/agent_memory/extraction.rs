//! The queue of stored turns that one extractor has not read. Unread turns have a mark in the store. The change
//! that stores the facts of a turn also removes its mark. So if an extraction fails or is interrupted, this or
//! another process reads the turn later.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::{MemoryEntry, MemoryError};

use crate::{Knowledge, KnowledgeExtractor};

/// The queue of one extractor.
pub(super) struct Extraction {
    pub(super) extractor: Arc<dyn KnowledgeExtractor>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// True if the store may contain earlier marked turns; initially true.
    has_unread: bool,
    /// True if this pass over the store skipped a turn or failed at one, so that another pass must follow.
    again: bool,
    /// The position in the store that this pass has reached.
    after: Option<u64>,
    /// The ids of the turns that are being read.
    open: HashSet<String>,
    /// Number of failures per turn in this process.
    failures: HashMap<String, u32>,
}

/// The maximum number of earlier turns in one call of [`Extraction::read`], since the end of a run waits for
/// them.
const EARLIER: usize = 32;
/// The maximum number of attempts per turn in a process; the next process starts again.
const TRIES: u32 = 3;
/// The maximum number of turns whose failures are counted.
const MOST_COUNTED: usize = 4_096;

impl Extraction {
    pub(super) fn new(extractor: Arc<dyn KnowledgeExtractor>) -> Self {
        let state = State { has_unread: true, ..State::default() };
        Self { extractor, state: Mutex::new(state) }
    }

    /// Announces that the caller is about to store marked turns. If the caller then does not complete
    /// [`read`](Self::read), a later call reads these turns.
    pub(super) fn begin(&self) -> Begun<'_> {
        Begun { extraction: self, read: false }
    }

    /// Extracts facts from the new turns, and from some earlier unread turns. Tries all of them, and then
    /// returns the first failure.
    pub(super) async fn read(
        &self,
        knowledge: &Knowledge,
        new: &[MemoryEntry],
        mut begun: Begun<'_>,
    ) -> Result<(), MemoryError> {
        let mut done = Ok(());
        for turn in new {
            done = done.and(self.read_one(knowledge, turn).await);
        }
        let earlier = {
            let state = self.state();
            state.has_unread.then_some(state.after)
        };
        if let Some(after) = earlier {
            let page = knowledge.unread(&*self.extractor, after, EARLIER).await?;
            // A new turn that failed just now is tried later.
            for turn in page.entries.iter().filter(|turn| new.iter().all(|new| new.id != turn.id)) {
                done = done.and(self.read_one(knowledge, turn).await);
            }
            let mut state = self.state();
            state.after = page.next;
            if page.next.is_none() {
                state.has_unread = std::mem::take(&mut state.again);
            }
        }
        begun.read = true;
        done
    }

    async fn read_one(&self, knowledge: &Knowledge, turn: &MemoryEntry) -> Result<(), MemoryError> {
        if self.state().failures.get(&turn.id).is_some_and(|times| *times >= TRIES) {
            return Ok(());
        }
        let Some(mut open) = self.open(&turn.id) else { return Ok(()) };
        let learnt = knowledge.read(&*self.extractor, "user", turn).await;
        open.end = if learnt.is_ok() { End::Read } else { End::Failed };
        learnt.map(drop)
    }

    /// Reserves a turn for reading. Returns `None` if another caller is reading the turn; that caller handles
    /// the result.
    fn open(&self, turn: &str) -> Option<Open<'_>> {
        let is_new = self.state().open.insert(turn.to_owned());
        is_new.then(|| Open { extraction: self, turn: turn.to_owned(), end: End::Cut })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard for marked turns that are being stored. If the guard is dropped before the turns are read, a later
/// call reads them.
pub(super) struct Begun<'a> {
    extraction: &'a Extraction,
    read: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.read {
            let mut state = self.extraction.state();
            (state.has_unread, state.again) = (true, true);
        }
    }
}

/// A turn that is being read. If reading fails or is interrupted, the turn is read later.
struct Open<'a> {
    extraction: &'a Extraction,
    turn: String,
    end: End,
}

/// Result of reading a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Read,
    Failed,
    /// The read was dropped, for instance by a cancel, or the extractor panicked. This does not count as a
    /// failure of the turn.
    Cut,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.extraction.state();
        state.open.remove(&self.turn);
        if self.end == End::Read {
            state.failures.remove(&self.turn);
            return;
        }
        (state.has_unread, state.again) = (true, true);
        if self.end == End::Cut && !std::thread::panicking() {
            return;
        }
        if state.failures.len() >= MOST_COUNTED {
            state.failures.clear();
        }
        *state.failures.entry(std::mem::take(&mut self.turn)).or_default() += 1;
    }
}
