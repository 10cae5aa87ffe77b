//! A plan's run under way: its machine, its log, and what it waits for.

use std::sync::Arc;

use archon_types::{
    ApprovalRequest, BoxFuture, CallId, CancellationToken, CommandId, Context, JournalError, LogAppender,
    PlanError, PlanRecord, RecordBody, Spending, Task, ToolDefinition,
};
use futures_util::stream::FuturesUnordered;

use crate::{Conclusion, PlanControl, PlanMachine, parts::Parts, processes::Reports};

/// One run under way.
pub(crate) struct Following {
    pub(crate) parts: Arc<Parts>,
    pub(crate) machine: PlanMachine,
    pub(crate) log: LogAppender,
    pub(crate) context: Context,
    pub(crate) control: PlanControl,
    pub(crate) in_flight: FuturesUnordered<BoxFuture<'static, Happened>>,
    /// Processes that calls have started.
    pub(crate) reports: Reports,
    /// Stops what is under way; fires with the run's own token.
    pub(crate) stop: CancellationToken,
}

/// What came of something that was under way.
pub(crate) enum Happened {
    /// A call has a result, and the records that come with it.
    Ended(Vec<RecordBody>),
    /// A call waits for a person.
    Asked(CallId, Box<ApprovalRequest>),
    /// A call was stopped with the run; it goes on with it.
    LeftOpen,
    /// The planner answered, and this is what its own questions took.
    Planned(CommandId, Result<Task, PlanError>, Spending),
    /// The answer is put together.
    Concluded(CommandId, Result<Conclusion, PlanError>),
}

impl Following {
    pub(crate) fn new(
        parts: Arc<Parts>,
        machine: PlanMachine,
        log: LogAppender,
        context: Context,
        control: PlanControl,
    ) -> Self {
        let stop = context.cancel.child_token();
        let (in_flight, reports) = (FuturesUnordered::new(), Reports::default());
        Self { parts, machine, log, context, control, in_flight, reports, stop }
    }

    /// Appends, and lets the machine know.
    pub(crate) async fn record(&mut self, bodies: Vec<RecordBody>) -> Result<(), JournalError> {
        self.log.step(bodies, |record| self.machine.apply(record)).await
    }

    /// As [`record`](Self::record), for one of the plan's own.
    pub(crate) async fn plan_record(&mut self, record: PlanRecord) -> Result<(), JournalError> {
        self.record(vec![RecordBody::Plan(Box::new(record))]).await
    }

    /// What a tool's schema is, for arguments that have to fit.
    pub(crate) fn tool(&self, name: &str) -> Option<ToolDefinition> {
        let specs = self.parts.toolbox.as_ref()?.specs();
        specs.iter().find(|spec| spec.name == name).map(archon_types::ToolSpec::definition)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.reports.close();
    }
}
