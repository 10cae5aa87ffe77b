//! A cache of the texts of records that streams sent last. If many streams send the same record, it is written
//! as text only once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use archon_types::Record;

/// The number of texts that are kept.
const MOST: usize = 32;
/// The size of the largest text that is kept, in bytes.
const LARGEST: usize = 64 * 1_024;

/// The newest records that streams sent, with their texts.
#[derive(Default)]
pub(crate) struct Frames(Mutex<VecDeque<(Arc<Record>, Arc<str>)>>);

impl Frames {
    /// Returns the text of a record: the cached text, or else the result of `write`, which is cached unless it
    /// is too large.
    pub(crate) fn text(&self, record: &Arc<Record>, write: impl FnOnce() -> String) -> String {
        let known = self.lock().iter().rev().find(|(known, _)| Arc::ptr_eq(known, record)).cloned();
        if let Some((_, text)) = known {
            return text.to_string();
        }
        let text = write();
        if text.len() <= LARGEST {
            let mut kept = self.lock();
            if kept.len() == MOST {
                kept.pop_front();
            }
            kept.push_back((record.clone(), text.as_str().into()));
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Arc<Record>, Arc<str>)>> {
        // A panic cannot leave the texts half-changed: every change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use archon_types::{RecordBody, Timestamp};

    use super::*;

    fn record(seq: u64) -> Arc<Record> {
        Arc::new(Record { seq, at: Timestamp::default(), body: RecordBody::Resumed })
    }

    #[test]
    fn text_of_a_record_is_written_once_while_it_is_new() {
        let frames = Frames::default();
        let first = record(0);
        assert_eq!(frames.text(&first, || "first".to_owned()), "first");
        assert_eq!(frames.text(&first.clone(), || unreachable!()), "first");
        // A record of another run may be equal.
        assert_eq!(frames.text(&record(0), || "other".to_owned()), "other");
        for seq in 0..MOST as u64 {
            frames.text(&record(seq), || "newer".to_owned());
        }
        assert_eq!(frames.text(&first, || "again".to_owned()), "again");
        assert_eq!(frames.lock().len(), MOST);
    }

    #[test]
    fn large_text_is_not_kept() {
        let (frames, large) = (Frames::default(), record(0));
        let text = "x".repeat(LARGEST + 1);
        assert_eq!(frames.text(&large, || text.clone()), text);
        assert_eq!(frames.lock().len(), 0);
    }
}
