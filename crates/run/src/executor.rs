//! Executors: they do the tasks of one kind of machine.

use std::{
    task::{Context as Task, Poll},
    time::Duration,
};

use archon_types::{InboxEntry, InboxRequest, JournalError, RecordBody};

use crate::{InboxEffect, Machine, Recorded, RunDriver};

/// Does the tasks of a machine, and defines what is special about runs of its kind.
///
/// Each method has access to the run's driver, and through it to the machine and the log.
pub trait Executor<M: Machine>: Send + Sized {
    /// The result of a task in flight.
    type Done: Send + 'static;

    /// Time that tasks in flight have to end when the run stops; then they are dropped. Without it the driver
    /// waits until they end.
    const GRACE: Option<Duration>;

    /// True if the driver also watches the inbox while a task is started or handled. A cancel then fires the
    /// run's token at once, which ends what [`start`](Self::start) waits for.
    const LISTENS: bool = false;

    /// Does a task, or starts it with [`RunDriver::spawn`].
    fn start(
        &mut self,
        task: M::Task,
        run: &mut RunDriver<M, Self::Done>,
    ) -> impl Future<Output = Recorded> + Send;

    /// Handles the result of a task in flight. While the run stops, an interrupted task has no result.
    fn done(
        &mut self,
        done: Self::Done,
        run: &mut RunDriver<M, Self::Done>,
    ) -> impl Future<Output = Recorded> + Send;

    /// Restarts the tasks that were in flight when the log ended, before the first step. By default there are
    /// none, and the inbox is read.
    fn attach(&mut self, run: &mut RunDriver<M, Self::Done>) -> impl Future<Output = Recorded> + Send {
        run.receive(self)
    }

    /// Appends records of what the machine cannot know, such as a question that has expired. Called before
    /// each step.
    fn before_step(&mut self, run: &mut RunDriver<M, Self::Done>) -> impl Future<Output = Recorded> + Send {
        let _ = run;
        std::future::ready(Ok(()))
    }

    /// Appends a record that the machine derived.
    fn append(
        &mut self,
        body: RecordBody,
        run: &mut RunDriver<M, Self::Done>,
    ) -> impl Future<Output = Recorded> + Send {
        run.record(vec![body])
    }

    /// Returns whether the run may wait, after the inbox was read. If not, the machine decides again.
    fn may_wait(
        &mut self,
        run: &mut RunDriver<M, Self::Done>,
    ) -> impl Future<Output = Result<bool, JournalError>> + Send {
        let _ = run;
        std::future::ready(Ok(true))
    }

    /// Handles the end of a wait for a time.
    fn tick(&mut self, run: &mut RunDriver<M, Self::Done>) -> impl Future<Output = Recorded> + Send {
        run.record(vec![RecordBody::ClockRead])
    }

    /// Returns the effect of a message on the run. By default it takes only a cancel.
    fn meaning(&mut self, entry: InboxEntry, machine: &M) -> InboxEffect {
        match entry.request {
            InboxRequest::Cancel { .. } if machine.is_stopping() => InboxEffect::Nothing,
            InboxRequest::Cancel { reason } => InboxEffect::Record(RecordBody::CancelRequested { reason }),
            _ => InboxEffect::NotMeant,
        }
    }

    /// Returns the record of a cancel by the caller, which is not in the inbox.
    fn cancelled(&self) -> Option<RecordBody> {
        Some(RecordBody::CancelRequested { reason: "cancelled by the caller".to_owned() })
    }

    /// Polls other sources of events while the run waits. It is ready with a result, or with none if the
    /// machine is to decide again.
    fn poll(&mut self, task: &mut Task<'_>) -> Poll<Option<Self::Done>> {
        let _ = task;
        Poll::Pending
    }

    /// Returns the number of events that [`poll`](Self::poll) waits for and that must not be cut off.
    fn polled(&self) -> usize {
        0
    }

    /// Called when the run stops: only tasks in flight are waited for.
    fn stopped(&mut self) {}

    /// Called when the run has ended or is suspended.
    fn rested(&mut self, run: &mut RunDriver<M, Self::Done>) -> impl Future<Output = ()> + Send {
        let _ = run;
        std::future::ready(())
    }
}
