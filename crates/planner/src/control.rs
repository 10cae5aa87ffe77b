//! How a program speaks into a plan that is being followed: pause it, let it go on, ask for another plan.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

use archon_types::{PlanRecord, SubTaskId};

/// Speaks into the run of a [`PlanningAgent`](crate::PlanningAgent). Clones speak into the same one.
#[derive(Clone, Debug, Default)]
pub struct PlanControl(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    said: VecDeque<PlanRecord>,
    driver: Option<Waker>,
}

impl PlanControl {
    /// A control that said nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing new begins; what is under way ends in peace, and then the run is suspended.
    pub fn pause(&self, reason: impl Into<String>) {
        self.say(PlanRecord::Paused { reason: reason.into() });
    }

    /// What was paused goes on. A run that is suspended already has to be resumed, too.
    pub fn go_on(&self) {
        self.say(PlanRecord::Unpaused);
    }

    /// Asks for another plan for the rest; `targets`, and what depends on them, may change.
    pub fn replan(&self, reason: impl Into<String>, targets: Vec<SubTaskId>) {
        self.say(PlanRecord::ReplanRequested { reason: reason.into(), targets });
    }

    fn say(&self, record: PlanRecord) {
        let mut state = self.state();
        state.said.push_back(record);
        if let Some(driver) = state.driver.take() {
            driver.wake();
        }
    }

    pub(crate) fn take(&self) -> Vec<PlanRecord> {
        self.state().said.drain(..).collect()
    }

    /// Ready when something was said.
    pub(crate) fn poll(&self, task: &mut std::task::Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.said.is_empty() {
            state.driver = Some(task.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
