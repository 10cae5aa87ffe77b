//! Lets a program control a plan that is being followed: pause the plan, continue it, or request a
//! replan.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use archon_types::{PlanRecord, SubTaskId};

/// A handle that controls the run of a [`PlanningAgent`](crate::PlanningAgent). Clones control the same
/// run.
#[derive(Clone, Debug, Default)]
pub struct PlanControl(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    requests: Vec<PlanRecord>,
    driver: Option<Waker>,
}

impl PlanControl {
    /// Creates a control that has not requested a pause or a replan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Pauses the plan: no new subtask starts, running subtasks end normally, and then the run is
    /// suspended.
    pub fn pause(&self, reason: impl Into<String>) {
        self.send(PlanRecord::Paused { reason: reason.into() });
    }

    /// Ends a pause. A run that is already suspended must also be resumed.
    pub fn go_on(&self) {
        self.send(PlanRecord::Unpaused);
    }

    /// Requests a replan. The `targets` and all subtasks that depend on them may change.
    pub fn replan(&self, reason: impl Into<String>, targets: Vec<SubTaskId>) {
        self.send(PlanRecord::ReplanRequested { reason: reason.into(), targets });
    }

    fn send(&self, record: PlanRecord) {
        let mut state = self.state();
        state.requests.push(record);
        if let Some(driver) = state.driver.take() {
            driver.wake();
        }
    }

    pub(crate) fn take(&self) -> Vec<PlanRecord> {
        std::mem::take(&mut self.state().requests)
    }

    /// Returns `Ready` when the program has made a request.
    pub(crate) fn poll(&self, task: &mut std::task::Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.requests.is_empty() {
            state.driver = Some(task.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
