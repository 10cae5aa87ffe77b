//! What extractors learn from turns that are kept. A turn is kept with a mark for each of them, which goes with the facts
//! that it brought: what fails, or dies in between, is read at a later keep, by this process or the next.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_memory::{Knowledge, KnowledgeExtractor};
use archon_types::{MemoryEntry, MemoryError};

/// What one extractor has to read.
pub(super) struct Lessons {
    pub(super) extractor: Arc<dyn KnowledgeExtractor>,
    state: Mutex<State>,
}

struct State {
    /// Whether something may be left that was kept before; so it is when the process begins.
    left: bool,
    /// Whether something of this round through the store is to be read in the next one.
    again: bool,
    /// Up to where this round has come.
    after: Option<u64>,
    /// Turns that are being read.
    open: HashSet<String>,
    /// How often reading failed here.
    failures: HashMap<String, u32>,
}

/// Turns of earlier that are read at a time: whoever waits for the end of a run waits for this too.
const EARLIER: usize = 32;
/// How often a process tries to read a turn; the next process begins anew.
const TRIES: u32 = 3;
/// Turns whose failures are counted.
const MOST_COUNTED: usize = 4_096;

impl Lessons {
    pub(super) fn new(extractor: Arc<dyn KnowledgeExtractor>) -> Self {
        let state =
            State { left: true, again: false, after: None, open: HashSet::new(), failures: HashMap::new() };
        Self { extractor, state: Mutex::new(state) }
    }

    /// Turns may be kept with a mark from now on. Unless they are read too, there is something left.
    pub(super) fn begin(&self) -> Begun<'_> {
        Begun { lessons: self, read: false }
    }

    /// Reads these turns, and some of those that were left before. Returns the first failure; the others are read all
    /// the same.
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
            state.left.then_some(state.after)
        };
        if let Some(after) = earlier {
            let page = knowledge.unread(&*self.extractor, after, EARLIER).await?;
            // What failed just now is tried later.
            for turn in page.entries.iter().filter(|turn| new.iter().all(|new| new.id != turn.id)) {
                done = done.and(self.read_one(knowledge, turn).await);
            }
            let mut state = self.state();
            state.after = page.next;
            if page.next.is_none() {
                state.left = std::mem::take(&mut state.again);
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

    /// `None` if the turn is being read already: whoever does it says what comes of it.
    fn open(&self, turn: &str) -> Option<Open<'_>> {
        let is_new = self.state().open.insert(turn.to_owned());
        is_new.then(|| Open { lessons: self, turn: turn.to_owned(), end: End::Cut })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns that may be in the store with a mark by now. Whoever is cut off leaves them for later.
pub(super) struct Begun<'a> {
    lessons: &'a Lessons,
    read: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.read {
            let mut state = self.lessons.state();
            (state.left, state.again) = (true, true);
        }
    }
}

/// A turn that is being read. If that fails or is cut off, it is left for later.
struct Open<'a> {
    lessons: &'a Lessons,
    turn: String,
    end: End,
}

/// How the reading of a turn ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Read,
    Failed,
    /// Somebody dropped it, as a cancel does, which says nothing about the turn; or the extractor panicked.
    Cut,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let mut state = self.lessons.state();
        state.open.remove(&self.turn);
        if self.end == End::Read {
            state.failures.remove(&self.turn);
            return;
        }
        (state.left, state.again) = (true, true);
        if self.end == End::Cut && !std::thread::panicking() {
            return;
        }
        if state.failures.len() >= MOST_COUNTED {
            state.failures.clear();
        }
        *state.failures.entry(std::mem::take(&mut self.turn)).or_default() += 1;
    }
}
