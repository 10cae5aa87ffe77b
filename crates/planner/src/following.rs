//! A plan's run under way: its machine, its log, and what it waits for.

use std::{collections::HashSet, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use archon_types::{
    Answer, ApprovalRequest, Approver, BoxFuture, CallId, CancellationToken, CommandId, Context, Decision,
    InboxRequest, Journal, JournalError, LogAppender, PlanError, PlanRecord, QuestionKind, RecordBody,
    Spending, Task, Timestamp, ToolDefinition,
};
use futures_util::{FutureExt, stream::FuturesUnordered};

use crate::{Conclusion, PlanControl, PlanMachine, parts::Parts, processes::Reports};

/// One run under way.
pub(crate) struct Following {
    pub(crate) parts: Arc<Parts>,
    pub(crate) machine: PlanMachine,
    pub(crate) log: LogAppender,
    pub(crate) context: Context,
    pub(crate) control: PlanControl,
    /// Questions that were asked; which of them are still open the machine knows.
    pub(crate) open: Vec<(CallId, ApprovalRequest)>,
    /// Questions that somebody is looking at who may answer at once.
    pub(crate) deciding: Vec<Deciding>,
    /// Messages that the log has already.
    pub(crate) received: HashSet<String>,
    pub(crate) in_flight: FuturesUnordered<BoxFuture<'static, Happened>>,
    /// Processes and runs that calls have started.
    pub(crate) reports: Reports,
    /// Stops what is under way; fires with the run's own token.
    pub(crate) stop: CancellationToken,
}

/// Somebody looks at a question.
pub(crate) struct Deciding {
    pub(crate) call: CallId,
    /// Its id and its binding.
    pub(crate) question: (String, String),
    pub(crate) work: BoxFuture<'static, Decision>,
}

/// What a run begins with, or is taken up with.
#[derive(Default)]
pub(crate) struct Said {
    /// Questions that were asked before.
    pub(crate) open: Vec<(CallId, ApprovalRequest)>,
    /// Messages that the log has already.
    pub(crate) received: HashSet<String>,
}

/// What came of something that was under way.
pub(crate) enum Happened {
    /// A call has a result, and the records that come with it.
    Ended(Vec<RecordBody>),
    /// A call waits for a person.
    Asked(CallId, Vec<ApprovalRequest>),
    /// Somebody who could answer a question at once did, or did not.
    Decided((String, String), Decision),
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
        Said { open, received }: Said,
    ) -> Self {
        let stop = context.cancel.child_token();
        let (in_flight, reports, deciding) = (FuturesUnordered::new(), Reports::default(), Vec::new());
        Self { parts, machine, log, context, control, open, deciding, received, in_flight, reports, stop }
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
        if request.agent_name.is_empty() {
            request.agent_name.clone_from(&self.parts.options.name);
        }
        // A call in doubt waits for as long as it takes: without an answer the run could not go on.
        if request.path.is_empty() && request.kind != QuestionKind::InDoubt {
            let wait = request.timeout_ms.unwrap_or(self.machine.settings().answer_within_ms);
            request
                .expires_at
                .get_or_insert(self.context.clock.now_for_others() + Duration::from_millis(wait));
        }
        // Those that have their answers are over; one that is put again replaces itself.
        let machine = &self.machine;
        self.open.retain(|(asked, other)| {
            other.request_id != request.request_id && machine.is_waiting_for(*asked)
        });
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
            let question = (shown.request_id.clone(), shown.binding.clone());
            let work = async move { approver.decide(&shown).await };
            let work = AssertUnwindSafe(work).catch_unwind().map(|said| said.unwrap_or(Decision::Later));
            self.deciding.push(Deciding { call, question, work: Box::pin(work) });
        }
        Ok(())
    }

    /// The plan's own question of this id and binding, while nobody has answered it.
    fn question(&self, (request_id, binding): (&str, &str)) -> Option<&(CallId, ApprovalRequest)> {
        self.open.iter().find(|(call, request)| {
            let is_own = request.path.is_empty() && self.machine.is_waiting_for(*call);
            is_own && request.is_meant(request_id, binding)
        })
    }

    /// When the first of the plan's own questions expires that are open.
    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        let mine = |(call, request): &&(CallId, ApprovalRequest)| {
            request.path.is_empty() && self.machine.is_waiting_for(*call)
        };
        self.open.iter().filter(mine).filter_map(|(_, request)| request.expires_at).min()
    }

    /// What an answer that was given at some time leads to. One that cannot be taken leaves its question open, with the
    /// reason.
    pub(crate) fn hear_answer(
        &self,
        meant: (&str, &str),
        answer: Answer,
        at: Timestamp,
    ) -> Option<RecordBody> {
        let (call, request) = self.question(meant)?;
        if request.is_expired(at) {
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

    /// Nobody's answer in time is one, too; those that were given in time and are still on their way go before.
    pub(crate) async fn expire(&mut self) -> Result<(), JournalError> {
        let now = self.context.clock.now();
        if self.machine.is_stopping() || self.next_expiry().is_none_or(|end| end > now) {
            return Ok(());
        }
        self.receive().await?;
        let is_over = |(call, request): &&(CallId, ApprovalRequest)| {
            request.path.is_empty() && request.is_expired(now) && self.machine.is_waiting_for(*call)
        };
        let over: Vec<CallId> = self.open.iter().filter(is_over).map(|(call, _)| *call).collect();
        for call in over {
            self.record(vec![RecordBody::ToolAnswered { call, answer: Answer::Expired }]).await?;
        }
        Ok(())
    }

    /// The answers that runs below have got while this one was at work: they are looked at again.
    pub(crate) async fn answered_below(&mut self) -> Result<Vec<RecordBody>, JournalError> {
        let Some(inbox) = self.context.journal(&self.parts.journal).inbox() else { return Ok(Vec::new()) };
        let mut answered: Vec<RecordBody> = Vec::new();
        let is_open = |(call, _): &&(CallId, ApprovalRequest)| self.machine.is_waiting_for(*call);
        let open: Vec<_> = self.open.iter().filter(is_open).cloned().collect();
        for (call, request) in &open {
            let Some(asker) = request.asker() else { continue };
            for entry in inbox.waiting(&asker.run).await? {
                let InboxRequest::Answer { request_id, answer, .. } = entry.request else { continue };
                if request_id == request.request_id {
                    answered.push(RecordBody::ToolAnswered { call: *call, answer });
                }
            }
        }
        Ok(answered)
    }

    /// As [`record`](Self::record), for one of the plan's own.
    pub(crate) async fn plan_record(&mut self, record: PlanRecord) -> Result<(), JournalError> {
        self.record(vec![RecordBody::Plan(Box::new(record))]).await
    }

    /// Where the run is kept, and those below it.
    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        self.context.journal(&self.parts.journal)
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
