//! The logs in which the sources of a call's arguments are searched: the log of the run that asks a person about the
//! call, and the logs of the runs before it.

use std::sync::Arc;

use archon_types::{CallId, Origin, Record, RecordBody, RunId, RunStarted};

use crate::text_sources::TextSources;

/// No earlier run is read once the logs have this number of records.
const ENOUGH: usize = 2_000;

/// Collects the logs whose texts may be the sources of a call's arguments: the log of the run that asks about the call,
/// and the logs of the runs before it. The caller reads the logs, from a journal or a run service: while
/// [`missing`](Self::missing) returns a run, pass the log of that run to [`add`](Self::add).
///
/// ```
/// use std::sync::Arc;
///
/// use archon_types::{Record, RunId};
/// use archon_views::{SourceLogs, TextSources};
///
/// fn sources(log: Vec<Arc<Record>>, read: impl Fn(&RunId) -> Vec<Arc<Record>>) -> TextSources {
///     let mut logs = SourceLogs::new(log);
///     while let Some(run) = logs.missing().cloned() {
///         logs.add(read(&run));
///     }
///     logs.into_sources()
/// }
///
/// assert_eq!(sources(Vec::new(), |_| Vec::new()).find("notes/today.md"), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SourceLogs {
    /// The logs, the newest first.
    logs: Vec<Vec<Arc<Record>>>,
    missing: Option<(RunId, End)>,
    count: usize,
}

/// The end of the part of an earlier run's log that counts.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The number of records after which the next run continues this run.
    Records(u64),
    /// The call that started the next run.
    Call(CallId),
}

impl SourceLogs {
    /// Creates a collection with the log of the run that asks a person. If the agent that asks has no log, the log of
    /// its caller has the question: pass that log.
    pub fn new(log: Vec<Arc<Record>>) -> Self {
        let mut logs = Self::default();
        logs.push(log);
        logs
    }

    /// Returns the earlier run whose log the caller adds next. Returns `None` if the logs have enough records for the
    /// search, or if there is no earlier run.
    pub fn missing(&self) -> Option<&RunId> {
        self.missing.as_ref().map(|(run, _)| run)
    }

    /// Adds the log of the run that [`missing`](Self::missing) returned. After an empty log, no further run is wanted.
    pub fn add(&mut self, mut log: Vec<Arc<Record>>) {
        let Some((_, end)) = self.missing.take() else { return };
        let count = match end {
            End::Records(count) => usize::try_from(count).unwrap_or(usize::MAX),
            End::Call(call) => log.iter().take_while(|record| !begins(&record.body, call)).count(),
        };
        log.truncate(count);
        self.push(log);
    }

    /// Returns the texts of all logs, the oldest first.
    pub fn into_sources(self) -> TextSources {
        let mut sources = TextSources::default();
        for log in self.logs.iter().rev() {
            if let Some(started) = RunStarted::of(log) {
                log.iter().for_each(|record| sources.apply(&started.run, record));
            }
        }
        sources
    }

    fn push(&mut self, log: Vec<Arc<Record>>) {
        self.count += log.len();
        if self.count < ENOUGH {
            self.missing = RunStarted::of(&log).and_then(|started| before(&started.origin));
        }
        self.logs.push(log);
    }
}

/// Returns the run before a run, and the end of the part of its log that counts. The run before is the run that this
/// one continues, or the run that called it.
fn before(origin: &Origin) -> Option<(RunId, End)> {
    match origin {
        Origin::Continues { run, records, .. } => Some((run.clone(), End::Records(*records))),
        Origin::CalledBy { run, call } => Some((run.clone(), End::Call(*call))),
        _ => None,
    }
}

fn begins(body: &RecordBody, call: CallId) -> bool {
    matches!(body, RecordBody::ToolCallStarted { call: started, .. } if *started == call)
}
