//! A plan's run under way: its machine, its log, and what it waits for.

use std::{sync::Arc, time::Duration};

use archon_types::{
    Answer, ApprovalRequest, BoxFuture, CallId, CancellationToken, CommandId, Context, Decision,
    JournalError, LogAppender, PlanError, PlanRecord, RecordBody, Spending, Task, ToolDefinition,
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
    /// Questions that were asked; which of them are open the machine knows.
    pub(crate) open: Vec<(CallId, ApprovalRequest)>,
    /// Questions that somebody is looking at who may answer at once.
    pub(crate) deciding: usize,
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
    Asked(CallId, Vec<ApprovalRequest>),
    /// Somebody was asked about a call who could answer at once.
    Decided(CallId, String, Decision),
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
        open: Vec<(CallId, ApprovalRequest)>,
    ) -> Self {
        let stop = context.cancel.child_token();
        let (in_flight, reports, deciding) = (FuturesUnordered::new(), Reports::default(), 0);
        Self { parts, machine, log, context, control, open, deciding, in_flight, reports, stop }
    }

    /// Appends, and lets the machine know.
    pub(crate) async fn record(&mut self, bodies: Vec<RecordBody>) -> Result<(), JournalError> {
        self.log.step(bodies, |record| self.machine.apply(record)).await
    }

    /// Asks a person. One that comes from a run below expires there.
    pub(crate) async fn ask(
        &mut self,
        call: CallId,
        mut request: Box<ApprovalRequest>,
    ) -> Result<(), JournalError> {
        if request.path.is_empty() {
            let wait = request.timeout_ms.unwrap_or(self.machine.settings().answer_within_ms);
            request.expires_at.get_or_insert(self.context.clock.now() + Duration::from_millis(wait));
        }
        self.open.retain(|(asked, other)| *asked != call || !other.path.is_empty());
        self.open.push((call, ApprovalRequest::clone(&request)));
        self.record(vec![RecordBody::ToolAsked { call, request }]).await
    }

    /// Asks about a call of a tool: whoever can answer at once, too.
    pub(crate) async fn ask_about(
        &mut self,
        call: CallId,
        request: Box<ApprovalRequest>,
    ) -> Result<(), JournalError> {
        let shown = ApprovalRequest::clone(&request);
        self.ask(call, request).await?;
        if let Some(approver) = self.parts.approver.clone() {
            self.deciding += 1;
            self.in_flight.push(Box::pin(async move {
                let decision = approver.decide(&shown).await;
                Happened::Decided(call, shown.request_id, decision)
            }));
        }
        Ok(())
    }

    /// What an answer from elsewhere leads to. One that cannot be taken leaves its question open, with the reason.
    pub(crate) fn hear_answer(&self, request_id: &str, answer: Answer) -> Option<RecordBody> {
        let is_open = |(call, request): &&(CallId, ApprovalRequest)| {
            request.request_id == request_id && request.path.is_empty() && self.machine.is_waiting_for(*call)
        };
        let (call, request) = self.open.iter().find(is_open)?;
        if request.is_expired(self.context.clock.now()) {
            return Some(RecordBody::ToolAnswered { call: *call, answer: Answer::Expired });
        }
        Some(match self.parts.take(&self.machine, *call, &answer, &self.context) {
            Ok(()) => RecordBody::ToolAnswered { call: *call, answer },
            Err(error) => {
                let mut again = request.clone();
                again.action_summary =
                    format!("The last answer cannot be taken: {error}. {}", again.action_summary);
                RecordBody::ToolAsked { call: *call, request: Box::new(again) }
            }
        })
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
