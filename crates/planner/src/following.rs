//! The state of the driver of a plan's run: parts, open questions and running work.

use std::sync::Arc;

use archon_run::RunDriver;
use archon_types::{
    ApprovalRequest, BoxFuture, CallId, CommandId, Context, Decision, Journal, PlanError, PlanRecord,
    RecordBody, Spending, Task, ToolDefinition,
};

use crate::{Conclusion, PlanControl, PlanMachine, parts::Parts};

/// The driver of a plan's run: its components and its open questions.
pub(crate) struct Following {
    pub(crate) parts: Arc<Parts>,
    pub(crate) control: PlanControl,
    pub(crate) context: Context,
    /// Questions that were asked. The machine knows which of them are still open.
    pub(crate) open: Vec<(CallId, ApprovalRequest)>,
    /// Questions for which an approver of this process is deciding. It may answer at once.
    pub(crate) deciding: Vec<Deciding>,
}

pub(crate) type Run = RunDriver<PlanMachine, Happened>;

/// A question for which an approver of this process is deciding.
pub(crate) struct Deciding {
    pub(crate) call: CallId,
    /// Id and binding of the question.
    pub(crate) question: (String, String),
    pub(crate) work: BoxFuture<'static, Decision>,
}

/// The result of a [`PlanTask`](crate::PlanTask), or of an approver that was asked.
pub(crate) enum Happened {
    /// A call ended. Contains the records to append.
    Ended(Vec<RecordBody>),
    /// A call waits for a person.
    Asked(CallId, Vec<ApprovalRequest>),
    /// An approver answered a question, or left the answer to another person.
    Decided((String, String), Decision),
    /// A call was stopped with the run, and continues when the run is resumed.
    Interrupted,
    /// The planner answered or failed. The last value is the spending of the planner's own model calls.
    Planned(CommandId, Result<Task, PlanError>, Spending),
    /// The answer of the plan is made, or could not be made.
    Concluded(CommandId, Result<Conclusion, PlanError>),
}

impl Following {
    /// Returns the journal of this run and its child runs.
    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        self.context.journal(&self.parts.journal)
    }

    /// Returns the definition of a tool, to check arguments against its schema.
    pub(crate) fn tool(&self, name: &str) -> Option<ToolDefinition> {
        let specs = self.parts.toolbox.as_ref()?.specs();
        specs.iter().find(|spec| spec.name == name).map(archon_types::ToolSpec::definition)
    }
}

/// Wraps a plan record as a record body to append.
pub(crate) fn plan(record: PlanRecord) -> Vec<RecordBody> {
    vec![RecordBody::Plan(Box::new(record))]
}
