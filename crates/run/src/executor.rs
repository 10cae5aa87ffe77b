//! Executors, which do the tasks of one kind of machine.

use std::{
    task::{Context as Task, Poll},
    time::Duration,
};

use archon_types::{Answer, InboxEntry, InboxRequest, JournalError, RecordBody, Timestamp};

use crate::{InboxEffect, Machine, Recorded, RunDriver};

/// Does the tasks of a machine, and defines the behaviour that is special to runs of its kind.
///
/// Each method has access to the run's driver, and through it to the machine and the log. The page of the
/// [crate] has an example.
pub trait Executor<M: Machine>: Send + Sized {
    /// The result of a task that [`RunDriver::spawn`] started (a task in flight).
    type Done: Send + 'static;

    /// The grace period in which tasks in flight may end when the run stops. Then the driver drops these tasks.
    /// `None`: the driver waits until they end.
    const GRACE: Option<Duration>;

    /// True if the driver also watches the inbox while it starts a task or handles a result. A cancel then
    /// cancels the run's token at once, which ends a wait inside [`start`](Self::start).
    const LISTENS: bool = false;

    /// Does a task, or starts it with [`RunDriver::spawn`].
    fn start(
        &mut self,
        task: M::Task,
        run: &mut RunDriver<M, Self::Done>,
    ) -> impl Future<Output = Recorded> + Send;

    /// Handles the result of a task in flight. While the run stops, the failure of a task that the stop
    /// interrupted must not be recorded as its result.
    fn done(
        &mut self,
        done: Self::Done,
        run: &mut RunDriver<M, Self::Done>,
    ) -> impl Future<Output = Recorded> + Send;

    /// Called before the first step. Restarts the tasks that were in flight at the end of the log. Default: restarts
    /// no task and reads the inbox.
    fn attach(&mut self, run: &mut RunDriver<M, Self::Done>) -> impl Future<Output = Recorded> + Send {
        run.receive(self)
    }

    /// Called before each step, to append records of outside events such as the expiry of a question. Default: none.
    fn before_step(&mut self, run: &mut RunDriver<M, Self::Done>) -> impl Future<Output = Recorded> + Send {
        let _ = run;
        std::future::ready(Ok(()))
    }

    /// Appends a record that the machine derived ([`Next::Append`](crate::Next::Append)).
    fn append(
        &mut self,
        body: RecordBody,
        run: &mut RunDriver<M, Self::Done>,
    ) -> impl Future<Output = Recorded> + Send {
        run.record(vec![body])
    }

    /// Called before the run waits, after the inbox was read. Returns true (the default) if the run may wait. After
    /// false, the machine decides again.
    fn may_wait(
        &mut self,
        run: &mut RunDriver<M, Self::Done>,
    ) -> impl Future<Output = Result<bool, JournalError>> + Send {
        let _ = run;
        std::future::ready(Ok(true))
    }

    /// Called when a wait until a time ([`Next::Wait`](crate::Next::Wait)) is over. Default: appends
    /// `ClockRead`.
    fn tick(&mut self, run: &mut RunDriver<M, Self::Done>) -> impl Future<Output = Recorded> + Send {
        run.record(vec![RecordBody::ClockRead])
    }

    /// Returns the effect of an inbox message on the run. By default only a cancel and an
    /// [answer](Self::meaning_of_answer) have an effect.
    fn meaning(&mut self, entry: InboxEntry, machine: &M) -> InboxEffect {
        match entry.request {
            InboxRequest::Cancel { .. } if machine.is_stopping() => InboxEffect::Nothing,
            InboxRequest::Cancel { reason } => InboxEffect::Record(RecordBody::CancelRequested { reason }),
            InboxRequest::Answer { request_id, binding, answer } => {
                self.meaning_of_answer((&request_id, &binding), answer, entry.at, machine)
            }
            _ => InboxEffect::NotMeant,
        }
    }

    /// Returns the effect of an answer that was given at `at`. `question` has the id and the binding of the question.
    /// Default: the run asks nothing, so the answer stays in the inbox.
    fn meaning_of_answer(
        &mut self,
        question: (&str, &str),
        answer: Answer,
        at: Timestamp,
        machine: &M,
    ) -> InboxEffect {
        let _ = (question, answer, at, machine);
        InboxEffect::NotMeant
    }

    /// Returns the record of a cancel by the caller, which does not come through the inbox; `None` if such a cancel
    /// is not recorded.
    fn cancelled(&self) -> Option<RecordBody> {
        Some(RecordBody::CancelRequested { reason: "cancelled by the caller".to_owned() })
    }

    /// Polls for the executor's own events while the run waits. Ready with the result of a task, or with `None` if the
    /// machine must decide again. Default: there are no such events.
    fn poll(&mut self, task: &mut Task<'_>) -> Poll<Option<Self::Done>> {
        let _ = task;
        Poll::Pending
    }

    /// Returns the number of events that [`poll`](Self::poll) waits for and that must not be interrupted. Default 0.
    /// `RunDriver::under_way` counts these events like tasks in flight.
    fn polled(&self) -> usize {
        0
    }

    /// Called when the run begins to stop. From then on the driver only waits for tasks in flight. Default: nothing.
    fn stopped(&mut self) {}

    /// Called when the run has ended or is suspended.
    fn rested(&mut self, run: &mut RunDriver<M, Self::Done>) -> impl Future<Output = ()> + Send {
        let _ = run;
        std::future::ready(())
    }
}
