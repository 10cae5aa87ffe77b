//! A page of a list of runs, from an index that knows roughly when each was written.
//!
//! An index notes a run when it is begun or taken up, when it ends or waits, and once in [`SLACK`] while it is worked
//! on, so that an append costs nothing more most of the time. Of a run that rests the note says all; of any other the
//! log tells when it was written last, which is at most [`SLACK`] after the note.

/// How many records from the start of a log are looked at for the prompt.
pub(crate) const FIRST: usize = 8;

#[cfg(any(feature = "jsonl", feature = "sqlite"))]
pub(crate) use page::{Note, Notes, page, under_lock};

#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod page {
    use std::{collections::HashSet, time::Duration};

    use archon_types::{JournalError, Record, RunFilter, RunHead, RunId, RunPlace, RunStatus, Timestamp};

    /// How far the last record of a run may be behind its note.
    const SLACK: Duration = Duration::from_secs(5);

    /// What an index notes of a run.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Note {
        pub(crate) run: RunId,
        /// When its last record was written, when this was noted.
        pub(crate) at: Timestamp,
        /// How it ended or that it waits; `None` while it may be written to.
        pub(crate) rests: Option<RunStatus>,
        /// Whether no other run called it.
        pub(crate) top_level: bool,
    }

    /// Which notes a writer has made.
    #[derive(Debug, Default)]
    pub(crate) struct Notes {
        /// The last one: when, and how the run rests.
        last: Option<(Timestamp, Option<RunStatus>)>,
    }

    impl Notes {
        /// What is to be noted with an append that ends with this record, if anything.
        pub(crate) fn due(&mut self, last: &Record) -> Option<(Timestamp, Option<RunStatus>)> {
            let status = RunHead::status_after(&last.body);
            let rests = Some(status).filter(|status| status.has_ended() || *status == RunStatus::Suspended);
            let note = (last.at, rests);
            let is_noted = |(at, before): (Timestamp, Option<RunStatus>)| {
                rests.is_none() && before.is_none() && last.at <= at + SLACK
            };
            if self.last.is_some_and(is_noted) {
                return None;
            }
            self.last = Some(note);
            Some(note)
        }
    }

    /// The head of a run that may end while it is looked at. A log that is under way and that nobody holds is read
    /// again: its writer may have ended it, and let go, after it was read.
    pub(crate) fn under_lock(
        read: impl Fn() -> Result<RunHead, JournalError>,
        is_held: impl Fn() -> bool,
    ) -> Result<RunHead, JournalError> {
        let head = read()?;
        if head.status != RunStatus::Running || is_held() {
            return Ok(head);
        }
        let again = read()?;
        Ok(if again == head { head.not_worked_on() } else { again })
    }

    /// The page that a filter with a limit asks for. Notes come as pairs with the latest time of any note that is
    /// still to come, that note's included; of a run's notes the newest comes first.
    pub(crate) fn page(
        filter: &RunFilter,
        notes: impl Iterator<Item = Result<(Note, Timestamp), JournalError>>,
        mut head: impl FnMut(&RunId) -> Result<Option<RunHead>, JournalError>,
    ) -> Result<Vec<RunHead>, JournalError> {
        let limit = filter.limit.unwrap_or(usize::MAX);
        let (mut seen, mut found) = (HashSet::new(), Vec::<RunHead>::new());
        for note in notes {
            let (note, latest) = note?;
            let last = found.get(limit.wrapping_sub(1)).map(RunHead::place);
            if limit == 0 || last.as_ref().is_some_and(|last| last.updated_at > latest + SLACK) {
                break;
            }
            if !seen.insert(note.run.clone()) || !may_be_in(filter, &note, last.as_ref()) {
                continue;
            }
            if let Some(head) = head(&note.run)?.filter(|head| filter.admits(head)) {
                let at = found.partition_point(|other| other.place() > head.place());
                found.insert(at, head);
                found.truncate(limit);
            }
        }
        Ok(found)
    }

    /// Whether a run may be on the page, by its note alone. `last` is the last of a full page.
    fn may_be_in(filter: &RunFilter, note: &Note, last: Option<&RunPlace>) -> bool {
        if filter.top_level && !note.top_level {
            return false;
        }
        let Some(status) = note.rests else { return true };
        let place = RunPlace { updated_at: note.at, run: note.run.clone() };
        let is_wanted = filter.status.is_empty()
            || filter.status.contains(&status)
            // Damage is in no note.
            || filter.status.contains(&RunStatus::Unreadable);
        is_wanted
            && last.is_none_or(|last| place > *last)
            && filter.after.as_ref().is_none_or(|after| place < *after)
    }

    #[cfg(test)]
    mod tests {
        use std::cell::RefCell;

        use super::*;

        #[test]
        fn head_of_a_run_that_ends_before_its_lock_is_looked_at_is_not_interrupted() {
            let status = |read: &[RunStatus], is_held| {
                let read = RefCell::new(read.iter());
                let next = || {
                    let mut head = RunHead::unreadable(RunId::new("r"), "");
                    head.status = *read.borrow_mut().next().expect("one look more than expected");
                    Ok(head)
                };
                under_lock(next, || is_held).expect("a head").status
            };
            let (running, interrupted) = (RunStatus::Running, RunStatus::Interrupted);
            assert_eq!(status(&[running, RunStatus::Cancelled], false), RunStatus::Cancelled);
            assert_eq!(status(&[running, running], false), interrupted);
            assert_eq!(status(&[running], true), running);
            assert_eq!(status(&[RunStatus::Finished], false), RunStatus::Finished);
        }
    }
}
