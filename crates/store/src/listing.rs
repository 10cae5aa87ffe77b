//! Makes one page of a list of runs from an index that knows approximately when each run was last written.
//!
//! An index notes a run when it begins, is resumed, is suspended or ends, and once per [`SLACK`] while it
//! works, so that most appends cost nothing more. The note of a suspended or ended run is exact. The last
//! record of any other run is at most [`SLACK`] newer than its note.

/// The number of records at the start of a log that are searched for the prompt.
pub(crate) const FIRST: usize = 8;

#[cfg(any(feature = "jsonl", feature = "sqlite"))]
pub(crate) use page::{Note, Notes, page, under_lock};

#[cfg(any(feature = "jsonl", feature = "sqlite"))]
mod page {
    use std::{collections::HashSet, time::Duration};

    use archon_types::{JournalError, Record, RunFilter, RunHead, RunId, RunPlace, RunStatus, Timestamp};

    /// The maximum time between a run's newest note and its last record.
    const SLACK: Duration = Duration::from_secs(5);

    /// An index entry about a run.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Note {
        pub(crate) run: RunId,
        /// The time of the run's last record when the note was made.
        pub(crate) at: Timestamp,
        /// The status of a run that has ended or is suspended; `None` while records may be appended.
        pub(crate) rests: Option<RunStatus>,
        /// True if no other run called this run.
        pub(crate) top_level: bool,
    }

    /// The state that decides when a writer's next note is due.
    #[derive(Debug, Default)]
    pub(crate) struct Notes {
        /// The last note: its time, and the status of a suspended or ended run.
        last: Option<(Timestamp, Option<RunStatus>)>,
    }

    impl Notes {
        /// Returns the note to write with an append that ends with record `last`; `None` if no note is due.
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

    /// Reads the head of a run, although its writer may end the run at the same time. If the log shows a
    /// running run, but no process holds the run's lock, the log is read again: the writer may have ended the
    /// run and released the lock after the first read.
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

    /// Returns the runs that the filter admits, last written first, at most as many as its limit. Each item of
    /// `notes` is a note, and the latest time in this note and all notes that follow. The newest note of a run
    /// must come before its older notes.
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

    /// Returns false if the note alone shows that the run is not on the page. `last` is the last run of a
    /// full page.
    fn may_be_in(filter: &RunFilter, note: &Note, last: Option<&RunPlace>) -> bool {
        if filter.top_level && !note.top_level {
            return false;
        }
        let Some(status) = note.rests else { return true };
        let place = RunPlace { updated_at: note.at, run: note.run.clone() };
        let is_wanted = filter.status.is_empty()
            || filter.status.contains(&status)
            // Notes do not know of damage.
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
