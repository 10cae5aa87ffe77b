//! Records the processes and child runs that calls start, before these begin to work. After a crash, the
//! process that resumes the run can end the processes and knows which child runs have a log.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use archon_types::{
    BoxFuture, CallId, CallerLog, CancellationToken, ProcessGroup, ProcessLog, Record, RecordBody, RunId,
};

/// A queue of reports from calls to the driver, which alone writes the log. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Reports(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Report>,
    driver: Option<Waker>,
    /// True once nothing is written any more.
    is_closed: bool,
}

/// A record of something that a call has started, which waits until the record is in the log.
pub(crate) struct Report {
    pub(crate) record: RecordBody,
    answer: Arc<Mutex<bool>>,
    /// Fires when the answer is known, and when the report is dropped.
    known: CancellationToken,
}

impl Reports {
    /// Takes the reports since the last look.
    pub(crate) fn take(&self) -> Vec<Report> {
        self.state().waiting.drain(..).collect()
    }

    /// Ready when there is a report.
    pub(crate) fn poll(&self, task: &mut std::task::Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.waiting.is_empty() {
            state.driver = Some(task.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Closes the queue: waiting and later reports learn that nothing was written.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.waiting.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reports {
    /// Waits until the driver has appended the record; returns false if it did not.
    fn report(&self, record: RecordBody) -> BoxFuture<'static, bool> {
        let (answer, known) = (Arc::new(Mutex::new(false)), CancellationToken::new());
        let mut state = self.state();
        if !state.is_closed {
            let report = Report { record, answer: answer.clone(), known: known.clone() };
            state.waiting.push_back(report);
            if let Some(driver) = state.driver.take() {
                driver.wake();
            }
        } else {
            known.cancel();
        }
        drop(state);
        Box::pin(async move {
            known.cancelled().await;
            *answer.lock().unwrap_or_else(PoisonError::into_inner)
        })
    }
}

impl ProcessLog for Reports {
    fn spawned<'a>(&'a self, call: CallId, group: ProcessGroup) -> BoxFuture<'a, bool> {
        self.report(RecordBody::ToolSpawned { call, group })
    }
}

impl CallerLog for Reports {
    fn child_begun<'a>(&'a self, call: CallId, child: &'a RunId) -> BoxFuture<'a, ()> {
        let reported = self.report(RecordBody::ChildBegun { call, child: child.clone() });
        Box::pin(async move {
            reported.await;
        })
    }
}

impl Report {
    /// Tells the call that its record is in the log.
    pub(crate) fn written(self) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.known.cancel();
    }
}

/// Returns the process groups of calls that were running when the log ended. Their processes may still run.
pub(crate) fn left_behind(records: &[Arc<Record>]) -> Vec<ProcessGroup> {
    let mut left: Vec<(CallId, &ProcessGroup)> = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::ToolSpawned { call, group } => left.push((*call, group)),
            RecordBody::ToolFinished { call, .. } => left.retain(|(of, _)| of != call),
            _ => {}
        }
    }
    left.into_iter().map(|(_, group)| group.clone()).collect()
}
