//! Records the processes and child runs that running calls start, before these begin to work. After a crash,
//! the process that resumes the run can end the processes and knows which child runs have a log.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context as Task, Poll},
};

use archon_types::{
    BoxFuture, CallId, CallerLog, CancellationToken, ProcessGroup, ProcessLog, Record, RecordBody, RunId,
};
use futures_util::task::AtomicWaker;

/// A queue of reports from running calls to the driver of their batch, which alone writes the log.
#[derive(Default)]
pub(crate) struct Spawns {
    state: Mutex<State>,
    driver: AtomicWaker,
}

#[derive(Default)]
struct State {
    reported: VecDeque<Spawned>,
    is_over: bool,
}

/// A record that a call waits to have in the log.
pub(crate) struct Spawned {
    pub(crate) record: Box<RecordBody>,
    answer: Arc<Answer>,
}

/// The answer to one report; `known` fires once it is decided whether the record is in the log.
#[derive(Default)]
struct Answer {
    is_logged: Mutex<bool>,
    known: CancellationToken,
}

impl Spawns {
    /// Polls for the next report.
    pub(crate) fn poll(&self, task: &Task<'_>) -> Poll<Spawned> {
        self.driver.register(task.waker());
        match self.state().reported.pop_front() {
            Some(spawned) => Poll::Ready(spawned),
            None => Poll::Pending,
        }
    }

    /// Ends the batch: nothing is appended from now on, and calls that wait learn that.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.reported.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spawns {
    /// Waits until the driver has appended the record; returns false if it did not.
    async fn report(&self, record: RecordBody) -> bool {
        let answer = Arc::new(Answer::default());
        {
            let mut state = self.state();
            if state.is_over {
                return false;
            }
            state.reported.push_back(Spawned { record: Box::new(record), answer: answer.clone() });
        }
        self.driver.wake();
        answer.known.cancelled().await;
        *answer.is_logged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessLog for Spawns {
    fn spawned<'a>(&'a self, call: CallId, group: ProcessGroup) -> BoxFuture<'a, bool> {
        Box::pin(self.report(RecordBody::ToolSpawned { call, group }))
    }
}

impl CallerLog for Spawns {
    fn child_begun<'a>(&'a self, call: CallId, child: &'a RunId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.report(RecordBody::ChildBegun { call, child: child.clone() }).await;
        })
    }
}

impl Spawned {
    /// Tells the call that its record is in the log.
    pub(crate) fn logged(self) {
        *self.answer.is_logged.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.answer.known.cancel();
    }
}

/// Returns the process groups of calls that were running when the log ended. Their processes may still run.
pub(crate) fn left_behind(records: &[Arc<Record>]) -> Vec<ProcessGroup> {
    let mut left: Vec<(CallId, ProcessGroup)> = Vec::new();
    for record in records {
        match &record.body {
            RecordBody::ToolSpawned { call, group } => left.push((*call, group.clone())),
            RecordBody::ToolFailed { call, .. } | RecordBody::ToolFinished { call, .. } => {
                left.retain(|(of, _)| of != call)
            }
            _ => {}
        }
    }
    left.into_iter().map(|(_, group)| group).collect()
}
