//! What running calls start, processes and runs: each is in the log before it works, so that whoever takes the run up
//! after a crash can end the processes, and knows which runs had a log.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context as Task, Poll},
};

use archon_types::{
    BoxFuture, CallId, CallerLog, CancellationToken, ProcessGroup, ProcessLog, Record, RecordBody, RunId,
};
use futures_util::task::AtomicWaker;

/// Takes what running calls report to the driver of their batch, which has the log.
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

/// Fires once it is clear whether the record is in the log.
#[derive(Default)]
struct Answer {
    is_logged: Mutex<bool>,
    known: CancellationToken,
}

impl Spawns {
    /// The next report, or whoever polls is woken when there is one.
    pub(crate) fn poll(&self, task: &Task<'_>) -> Poll<Spawned> {
        self.driver.register(task.waker());
        match self.state().reported.pop_front() {
            Some(spawned) => Poll::Ready(spawned),
            None => Poll::Pending,
        }
    }

    /// The batch is over: nothing is appended any more, and who waits is told so.
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
    /// Waits until the driver has appended a record, and says whether it did.
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
    /// The record is in the log.
    pub(crate) fn logged(self) {
        *self.answer.is_logged.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        self.answer.known.cancel();
    }
}

/// The groups of calls that were under way when the log ended: their processes may still be at work.
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
