//! The driver of all machines. It does what the machine decides, and records results before they are used.

use std::{
    future::poll_fn,
    pin::pin,
    task::{Context as Task, Poll},
};

use archon_types::{BoxFuture, FailureKind, JournalError, Outcome, RecordBody, Timestamp};
use futures_util::{
    StreamExt,
    future::{Either, select},
    stream::FuturesUnordered,
};
use tracing::Instrument as _;

use crate::{Executor, InterruptWatch, Machine, Next, Recorded, RunDriver, reports::Report};

/// The event that ended a wait.
enum Woken<D> {
    Done(D),
    Reported(Report),
    Notified,
    Time,
}

impl<M: Machine, D: Send + 'static> RunDriver<M, D> {
    /// Drives the run to its outcome, or until it is suspended. The future is boxed: a child run is polled
    /// within its parent's future, and each level takes stack space.
    ///
    /// # Errors
    /// The journal failed.
    pub fn drive<'a, X: Executor<M, Done = D>>(
        mut self,
        executor: &'a mut X,
    ) -> BoxFuture<'a, Result<Outcome, JournalError>>
    where
        M: 'a,
    {
        Box::pin(async move {
            // A span, so that every log line from here on names the run.
            let span = tracing::info_span!("run", run = %self.context.run, session = %self.context.session);
            let mailbox = self.log.mailbox().filter(|_| X::LISTENS);
            let work = self.work(executor).instrument(span);
            let Some(mailbox) = mailbox else { return work.await };
            match select(pin!(work), pin!(mailbox.pump())).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right((never, _)) => match never {},
            }
        })
    }

    async fn work(&mut self, executor: &mut impl Executor<M, Done = D>) -> Result<Outcome, JournalError> {
        executor.attach(self).await?;
        loop {
            self.record_cancel(executor).await?;
            executor.before_step(self).await?;
            if self.machine.is_stopping() && !self.tasks.is_empty() {
                self.drain(executor).await?;
            }
            let outcome = match self.machine.next() {
                Next::Append(body) => {
                    executor.append(body, self).await?;
                    continue;
                }
                Next::Do(task) => {
                    executor.start(task, self).await?;
                    continue;
                }
                Next::Wait(until) => {
                    self.wait(until, executor).await?;
                    continue;
                }
                Next::Suspend => self.machine.outcome_of_suspension(self.context.run.clone()),
                // A run without a prompt is never driven.
                Next::AwaitPrompt => {
                    Outcome::failed(self.context.run.clone(), FailureKind::Refused, "nothing was asked")
                }
                Next::Done(outcome) => outcome,
            };
            executor.rested(self).await;
            return Ok(outcome);
        }
    }

    /// Moves the messages of the run's inbox into its log.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn receive(&mut self, executor: &mut impl Executor<M, Done = D>) -> Recorded {
        let Some(mailbox) = self.log.mailbox() else { return Ok(()) };
        mailbox.read_inbox().await;
        while let Some(bodies) = mailbox.take(|entry| executor.meaning(entry, &self.machine)) {
            self.record(bodies).await?;
        }
        mailbox.clear().await;
        Ok(())
    }

    /// Records that the run was cancelled, unless its log already has the cancel. If the cancel came through
    /// the inbox, the reason is that of the inbox message.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn record_cancel(&mut self, executor: &mut impl Executor<M, Done = D>) -> Recorded {
        let is_new = self.context.cancel.is_cancelled() && !self.machine.is_stopping();
        if !is_new || matches!(self.machine.next(), Next::Done(_)) {
            return Ok(());
        }
        let Some(cancelled) = executor.cancelled() else { return Ok(()) };
        self.receive(executor).await?;
        if self.machine.is_stopping() { Ok(()) } else { self.record(vec![cancelled]).await }
    }

    /// Waits for the next event of the run, and handles the event.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn wait(
        &mut self,
        until: Option<Timestamp>,
        executor: &mut impl Executor<M, Done = D>,
    ) -> Recorded {
        let mailbox = self.log.mailbox();
        // Subscribes before it reads the inbox, so that no message is missed.
        let posted = mailbox.as_ref().map(|mailbox| mailbox.changed());
        self.receive(executor).await?;
        if self.machine.is_stopping() || !executor.may_wait(self).await? {
            return Ok(());
        }
        match self.woken(until, posted, executor).await {
            Woken::Done(done) => {
                // The cancel comes first, so that a call which it stopped does not count as failed.
                self.record_cancel(executor).await?;
                executor.done(done, self).await
            }
            Woken::Reported(report) => self.write_down(report).await,
            Woken::Notified => Ok(()),
            Woken::Time => executor.tick(self).await,
        }
    }

    async fn woken(
        &mut self,
        until: Option<Timestamp>,
        mut posted: Option<BoxFuture<'_, ()>>,
        executor: &mut impl Executor<M, Done = D>,
    ) -> Woken<D> {
        let mut timer = until.map(|until| self.context.clock.sleep_until(until));
        let is_known = self.context.cancel.is_cancelled();
        let mut cancelled = Box::pin(self.context.cancel.cancelled());
        let (tasks, reports) = (&mut self.tasks, &self.reports);
        self.under_way.set(tasks.len() + executor.polled());
        let woken = poll_fn(|task| {
            if let Poll::Ready(Some(done)) = tasks.poll_next_unpin(task) {
                return Poll::Ready(Woken::Done(done));
            }
            if let Poll::Ready(came) = executor.poll(task) {
                return Poll::Ready(came.map_or(Woken::Notified, Woken::Done));
            }
            if let Poll::Ready(report) = reports.poll(task) {
                return Poll::Ready(Woken::Reported(report));
            }
            let is_notified = (!is_known && cancelled.as_mut().poll(task).is_ready())
                || posted.as_mut().is_some_and(|posted| posted.as_mut().poll(task).is_ready());
            if is_notified {
                return Poll::Ready(Woken::Notified);
            }
            match &mut timer {
                Some(timer) => timer.as_mut().poll(task).map(|()| Woken::Time),
                None => Poll::Pending,
            }
        })
        .await;
        self.under_way.set_busy();
        woken
    }

    /// Stops the tasks in flight: waits for their end during the grace period, then drops them.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn drain<X: Executor<M, Done = D>>(&mut self, executor: &mut X) -> Recorded {
        self.stop.cancel();
        executor.stopped();
        let clock = self.context.clock.clone();
        let mut over = X::GRACE.map(|grace| clock.sleep_until(clock.now() + grace));
        let in_time = |task: &mut Task<'_>, _: &mut InterruptWatch| match &mut over {
            Some(over) => over.as_mut().poll(task),
            None => Poll::Pending,
        };
        self.settle(executor, in_time).await?;
        Ok(())
    }

    /// Waits until all tasks in flight have ended, and handles their results. When `over` is ready, the
    /// remaining tasks are dropped and the value of `over` is returned.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub async fn settle<X: Executor<M, Done = D>, W: Send>(
        &mut self,
        executor: &mut X,
        mut over: impl FnMut(&mut Task<'_>, &mut InterruptWatch) -> Poll<W> + Send,
    ) -> Result<Option<W>, JournalError> {
        while !self.tasks.is_empty() {
            self.under_way.set(self.tasks.len());
            let (tasks, reports, watch) = (&mut self.tasks, &self.reports, &mut self.watch);
            let next = poll_fn(|task| {
                if let Poll::Ready(Some(done)) = tasks.poll_next_unpin(task) {
                    return Poll::Ready(Ok(Woken::Done(done)));
                }
                if let Poll::Ready(report) = reports.poll(task) {
                    return Poll::Ready(Ok(Woken::Reported(report)));
                }
                // Timers come last: a clock of tests moves on when one is polled.
                over(task, watch).map(Err)
            })
            .await;
            self.under_way.set_busy();
            match next {
                Ok(Woken::Done(done)) => executor.done(done, self).await?,
                Ok(Woken::Reported(report)) => self.write_down(report).await?,
                Ok(Woken::Notified | Woken::Time) => {}
                Err(why) => {
                    self.tasks = FuturesUnordered::new();
                    return Ok(Some(why));
                }
            }
        }
        Ok(None)
    }

    /// Records a process or child run that a call has started, and tells the call, which waits for this record.
    async fn write_down(&mut self, report: Report) -> Recorded {
        if !self.machine.knows(&report.record) {
            self.record(vec![RecordBody::clone(&report.record)]).await?;
        }
        report.logged();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
