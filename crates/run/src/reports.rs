//! Records the processes and child runs that calls start, before these processes and child runs work. After a
//! crash, the process that resumes the run can end the processes, and knows which child runs have a log.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context as Task, Poll},
};

use archon_types::{
    BoxFuture, CallId, CallerLog, CancellationToken, ProcessGroup, ProcessLog, Record, RecordBody, RunId,
};
use futures_util::task::AtomicWaker;

/// A queue of reports from running calls to the driver, which alone writes the log. After the queue is
/// dropped, nothing is appended, and waiting calls learn that their records were not appended.
#[derive(Debug, Default)]
pub(crate) struct Reports(Arc<Reporter>);

/// Sends records of running calls to the driver, which alone writes the log.
#[derive(Default)]
pub struct Reporter {
    state: Mutex<State>,
    driver: AtomicWaker,
}

#[derive(Default)]
struct State {
    reported: VecDeque<Report>,
    is_over: bool,
}

/// A record that a call reports. The call waits until the record is in the log.
pub(crate) struct Report {
    /// The record to append.
    pub(crate) record: Box<RecordBody>,
    answer: Arc<Answer>,
}

/// The answer to one report. `known` is cancelled once it is known whether the record is in the log.
#[derive(Default)]
struct Answer {
    is_logged: AtomicBool,
    known: CancellationToken,
}

impl Reports {
    /// Returns the side of the queue that calls use.
    pub(crate) fn reporter(&self) -> Arc<Reporter> {
        self.0.clone()
    }

    /// Returns the next report; `None` if there is none.
    pub(crate) fn next(&self) -> Option<Report> {
        self.0.state().reported.pop_front()
    }

    /// Polls for the next report.
    pub(crate) fn poll(&self, task: &Task<'_>) -> Poll<Report> {
        self.0.driver.register(task.waker());
        self.next().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_over = true;
        state.reported.clear();
    }
}

impl Reporter {
    /// Sends a record to the driver, and waits until it is in the log. Returns false if it was not appended.
    pub async fn report(&self, record: RecordBody) -> bool {
        let answer = Arc::new(Answer::default());
        {
            let mut state = self.state();
            if state.is_over {
                return false;
            }
            state.reported.push_back(Report { record: Box::new(record), answer: answer.clone() });
        }
        self.driver.wake();
        answer.known.cancelled().await;
        answer.is_logged.load(Ordering::Acquire)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessLog for Reporter {
    fn spawned<'a>(&'a self, call: CallId, group: ProcessGroup) -> BoxFuture<'a, bool> {
        Box::pin(self.report(RecordBody::ProcessStarted { call, process_group: group }))
    }
}

impl CallerLog for Reporter {
    fn child_run_created<'a>(&'a self, call: CallId, child: &'a RunId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.report(RecordBody::ChildRunCreated { call, child_run: child.clone() }).await;
        })
    }
}

impl Report {
    /// Tells the call that its record is in the log.
    pub(crate) fn logged(self) {
        self.answer.is_logged.store(true, Ordering::Release);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.answer.known.cancel();
    }
}

archon_types::debug_fields!(Reporter);

archon_types::debug_fields!(Report: record);

/// Returns the process groups of the calls that were still running at the end of the log. Their processes may still
/// run.
pub fn surviving_groups(records: &[Arc<Record>]) -> Vec<ProcessGroup> {
    let mut running: Vec<(CallId, &ProcessGroup)> = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::ProcessStarted { call, process_group: group } => running.push((*call, group)),
            RecordBody::ToolCallFailed { call, .. } | RecordBody::ToolCallFinished { call, .. } => {
                running.retain(|(of, _)| of != call)
            }
            _ => {}
        }
    }
    running.into_iter().map(|(_, group)| group.clone()).collect()
}
