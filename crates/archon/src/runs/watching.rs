//! A watcher of a run. It first gets the records of the run's log, in pages, so that a long log is never completely
//! in memory. Then it gets the events of the run.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use archon_types::{Event, Record, RecordBody, RunError, RunId, RunStatus, Watch};
use futures_util::{StreamExt, stream};

use super::{Runs, live::Live};
use crate::watch::EventStream;

/// The interval in which the log of another process's run is read again.
pub(super) const POLL: Duration = Duration::from_millis(250);
/// The maximum number of records that a watcher reads at once.
const PAGE: usize = 2_000;

impl Runs {
    /// Watches a run. `after` is the sequence number of the last record that the watcher has; `None` to get all
    /// records.
    pub(super) async fn watch_run(&self, run: &RunId, after: Option<u64>) -> Result<Watch, RunError> {
        // Subscribes before it reads the log, so that no record is missed.
        let watched = self.watched(run);
        let live = watched.as_ref().and_then(|live| live.subscribe());
        // The later records come with the events, each at its place.
        let until = match live.as_ref().and_then(|(_, from)| *from) {
            Some(from) => from,
            None => self.log_length(run).await?,
        };
        let mut watching = Watching {
            runs: self.clone(),
            run: run.clone(),
            wanted: after.map_or(0, |after| after.saturating_add(1)),
            until,
            live: live.map(|(events, _)| events),
            watched,
            ready: VecDeque::new(),
            is_at_rest: false,
            has_failed: false,
        };
        // A log that cannot be read is refused here, and not in the stream.
        if watching.wanted < until {
            watching.read_page().await?;
        }
        let events = stream::unfold(watching, |mut watching| async move {
            if watching.has_failed {
                return None;
            }
            let event = watching.next().await?;
            watching.has_failed = event.is_err();
            Some((event, watching))
        });
        Ok(events.boxed())
    }

    /// Returns the records of a run from the sequence number `wanted` on.
    pub(super) async fn records_from(&self, run: &RunId, wanted: u64) -> Result<Vec<Arc<Record>>, RunError> {
        let mut records = self.with_similar_ids(run, self.archon().journal.read(run).await).await?;
        records.retain(|record| record.seq >= wanted);
        Ok(records)
    }

    /// Returns the records of a run from the sequence number `wanted` on, at most [`PAGE`]. If one of them is missing,
    /// reads the log from `wanted` to its end instead, because only the whole log shows the damage.
    async fn page_from(&self, run: &RunId, wanted: u64) -> Result<Vec<Arc<Record>>, RunError> {
        let end = wanted.saturating_add(PAGE as u64);
        let read = self.archon().journal.read_before(run, Some(end), PAGE).await;
        let mut page = self.with_similar_ids(run, read).await?.whole()?;
        page.retain(|record| record.seq >= wanted);
        let has_gap = page.iter().zip(wanted..).any(|(record, seq)| record.seq != seq);
        match has_gap {
            // A page does not show what is damaged; the whole log does.
            true => self.records_from(run, wanted).await,
            false => Ok(page),
        }
    }

    /// Returns the number of records of a log.
    async fn log_length(&self, run: &RunId) -> Result<u64, RunError> {
        let read = self.archon().journal.read_before(run, None, 1).await;
        let last = self.with_similar_ids(run, read).await?.whole()?;
        Ok(last.last().map_or(0, |record| record.seq.saturating_add(1)))
    }
}

/// The state of one watcher.
struct Watching {
    runs: Runs,
    run: RunId,
    /// The sequence number of the next record for the watcher.
    wanted: u64,
    /// Records with a lower sequence number come from the log. Later records come with the events, so that no delta
    /// comes after the record that contains the delta's text.
    until: u64,
    live: Option<EventStream>,
    /// The state of the run in this process, with the error if the run stops without an outcome; `None` if this
    /// process does not know the run.
    watched: Option<Arc<Live>>,
    ready: VecDeque<Arc<Record>>,
    /// True if the last record that the watcher got ended or suspended the run.
    is_at_rest: bool,
    /// True once an error was sent. An error is the last item of the stream.
    has_failed: bool,
}

impl Watching {
    async fn next(&mut self) -> Option<Result<Event, RunError>> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Some(Ok(self.pass(record)));
            }
            if self.wanted < self.until {
                if let Err(error) = self.read_page().await {
                    return Some(Err(error));
                }
                continue;
            }
            let Some(events) = &mut self.live else {
                match self.elsewhere().await {
                    Ok(None) => continue,
                    // Another process may have ended the run since.
                    Ok(Some(RunStatus::Interrupted)) => return self.failure().map(Err),
                    Ok(Some(_)) => return None,
                    Err(error) => return Some(Err(error)),
                }
            };
            match events.next().await {
                Some(Event::Record { run, record }) if run == self.run => {
                    if record.seq >= self.wanted {
                        return Some(Ok(self.pass(record)));
                    }
                }
                Some(event) => return Some(Ok(event)),
                None => {
                    self.live = None;
                    if let Some(error) = self.failure() {
                        return Some(Err(error));
                    }
                    // The run may have been resumed since: a new watch then has its events, and not only records.
                    if self.is_at_rest {
                        return None;
                    }
                }
            }
        }
    }

    fn pass(&mut self, record: Arc<Record>) -> Event {
        self.wanted = record.seq.saturating_add(1);
        self.is_at_rest = matches!(record.body, RecordBody::Suspended { .. } | RecordBody::RunFinished(_));
        Event::Record { run: self.run.clone(), record }
    }

    /// Returns the reason why the run stopped in this process; `None` if it did not.
    fn failure(&self) -> Option<RunError> {
        self.watched.as_ref()?.failure()
    }

    /// Reads the next page of records from the log into `ready`.
    async fn read_page(&mut self) -> Result<(), RunError> {
        let mut page = self.runs.page_from(&self.run, self.wanted).await?;
        if page.is_empty() {
            page = self.runs.records_from(&self.run, self.wanted).await?;
        }
        page.retain(|record| record.seq < self.until);
        if page.is_empty() {
            // The log is shorter than it was.
            self.until = self.wanted;
        }
        self.ready = page.into();
        Ok(())
    }

    /// Waits until a run that this process does not work on has new records, and puts them into `ready`. Returns the
    /// status of the run if there are no new records and no process works on the run.
    async fn elsewhere(&mut self) -> Result<Option<RunStatus>, RunError> {
        loop {
            let head = self.runs.head(&self.run).await?;
            let records = match head.status {
                // Only the whole log shows the damage.
                RunStatus::Unreadable => self.runs.records_from(&self.run, self.wanted).await?,
                _ => self.runs.page_from(&self.run, self.wanted).await?,
            };
            self.ready = records.into();
            if !self.ready.is_empty() {
                return Ok(None);
            }
            if head.status != RunStatus::Running {
                return Ok(Some(head.status));
            }
            let clock = &self.runs.archon().clock;
            clock.sleep_until(clock.now() + POLL).await;
        }
    }
}
