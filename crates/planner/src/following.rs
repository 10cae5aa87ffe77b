//! The state of a plan's run that is being driven: machine, log, open questions and running work.

use std::sync::Arc;

use archon_run::RunDriver;
use archon_types::{
    ApprovalRequest, BoxFuture, CallId, CommandId, Context, Decision, Journal, PlanError, PlanRecord,
    RecordBody, Spending, Task, ToolDefinition,
};

use crate::{Conclusion, PlanControl, PlanMachine, parts::Parts};

/// The state of the executor of a plan.
pub(crate) struct Following {
    pub(crate) parts: Arc<Parts>,
    pub(crate) control: PlanControl,
    pub(crate) context: Context,
    /// Questions that were asked; the machine knows which of them are still open.
    pub(crate) open: Vec<(CallId, ApprovalRequest)>,
    /// Questions that an approver of this process is looking at and may answer at once.
    pub(crate) deciding: Vec<Deciding>,
}

pub(crate) type Run = RunDriver<PlanMachine, Happened>;

/// A question that an approver is looking at.
pub(crate) struct Deciding {
    pub(crate) call: CallId,
    /// Id and binding of the question.
    pub(crate) question: (String, String),
    pub(crate) work: BoxFuture<'static, Decision>,
}

/// The result of something that was under way.
pub(crate) enum Happened {
    /// A call ended; the records to append.
    Ended(Vec<RecordBody>),
    /// A call waits for a person.
    Asked(CallId, Vec<ApprovalRequest>),
    /// An approver answered a question, or left it to somebody else.
    Decided((String, String), Decision),
    /// A call was stopped with the run, and goes on when the run is resumed.
    LeftOpen,
    /// The planner answered or failed; the last value is the spending of its own model calls.
    Planned(CommandId, Result<Task, PlanError>, Spending),
    /// The conclusion is made or has failed.
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

/// Makes a record of kind `plan`, to be appended.
pub(crate) fn plan(record: PlanRecord) -> Vec<RecordBody> {
    vec![RecordBody::Plan(Box::new(record))]
}
