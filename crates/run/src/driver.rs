//! A run that is being driven, with a machine of any kind.

use std::{panic::AssertUnwindSafe, sync::Arc};

use archon_types::{BoxFuture, CallsUnderWay, CancellationToken, Context, JournalError, RecordBody};
use futures_util::{FutureExt, stream::FuturesUnordered};

use crate::{InterruptWatch, Machine, Reporter, RunLog, reports::Reports};

/// The result of a step that appends records. An error means that the journal could not store the records.
pub type Recorded = Result<(), JournalError>;

/// A run that is being driven: its machine, its log, its inbox and its tasks in flight (started and not ended).
pub struct RunDriver<M, D> {
    /// The state of the run.
    pub machine: M,
    /// Ends waits when the run is cancelled or its deadline has passed. A new driver has no deadline.
    pub watch: InterruptWatch,
    pub(crate) log: RunLog,
    pub(crate) context: Context,
    pub(crate) tasks: FuturesUnordered<BoxFuture<'static, D>>,
    pub(crate) reports: Reports,
    /// The number of tasks in flight, for tools.
    pub(crate) under_way: CallsUnderWay,
    pub(crate) stop: CancellationToken,
}

impl<M: Machine, D: Send + 'static> RunDriver<M, D> {
    /// Creates the driver of a machine that has applied all records of `log`.
    pub fn new(machine: M, log: RunLog) -> Self {
        let (context, tasks, reports) = (log.context().clone(), FuturesUnordered::new(), Reports::default());
        let (watch, stop) = (InterruptWatch::new(&context, None), context.cancel.child_token());
        Self { machine, watch, log, context, tasks, reports, under_way: CallsUnderWay::default(), stop }
    }

    /// Returns the context of the run. Its cancellation token belongs to this run alone.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the token that cancels all tasks under way; it is a child of the run's own token.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Returns true if tasks are in flight.
    pub fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Returns the reporter: running calls use it to record the processes and child runs that they start.
    pub fn reporter(&self) -> Arc<Reporter> {
        self.reports.reporter()
    }

    /// Returns the shared counter of tasks in flight. Tools see the counter in
    /// [`Context::under_way`](archon_types::Context::under_way).
    pub fn under_way(&self) -> CallsUnderWay {
        self.under_way.clone()
    }

    /// Appends records in one write, and applies them to the machine.
    ///
    /// # Errors
    /// The journal could not store the records; nothing that depends on them may happen.
    pub async fn record(&mut self, bodies: Vec<RecordBody>) -> Recorded {
        self.log.step(bodies, |record| self.machine.apply(record)).await
    }

    /// Closes the log, so that other processes can open it. Nothing can be recorded after that.
    pub fn close(&mut self) {
        self.log.close();
    }

    /// Starts a task. The result of the task goes to [`Executor::done`](crate::Executor::done). If the task panics,
    /// the value of `panicked` is its result.
    pub fn spawn(
        &mut self,
        work: impl Future<Output = D> + Send + 'static,
        panicked: impl FnOnce() -> D + Send + 'static,
    ) {
        let work = AssertUnwindSafe(work).catch_unwind();
        self.tasks.push(Box::pin(work.map(|done| done.unwrap_or_else(|_| panicked()))));
    }
}

impl<M, D> Drop for RunDriver<M, D> {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

archon_types::debug_fields!(RunDriver<M, D>: run = context.run);
