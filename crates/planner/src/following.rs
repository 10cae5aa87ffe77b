//! The state of a plan's run that is being driven: machine, log, open questions and running work.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use archon_run::{Heard, Mailbox, Reports};
use archon_types::{
    Answer, ApprovalRequest, Approver, BoxFuture, CallId, CancellationToken, CommandId, Context, Decision,
    InboxEntry, InboxRequest, Journal, JournalError, LogAppender, PlanError, PlanRecord, QuestionKind,
    RecordBody, Spending, Task, Timestamp, ToolDefinition,
};
use futures_util::{FutureExt, stream::FuturesUnordered};

use crate::{Conclusion, PlanControl, PlanMachine, parts::Parts};

/// A plan's run that is being driven.
pub(crate) struct Following {
    pub(crate) parts: Arc<Parts>,
    pub(crate) machine: PlanMachine,
    pub(crate) log: LogAppender,
    pub(crate) context: Context,
    pub(crate) control: PlanControl,
    /// Questions that were asked; the machine knows which of them are still open.
    pub(crate) open: Vec<(CallId, ApprovalRequest)>,
    /// Questions that an approver of this process is looking at and may answer at once.
    pub(crate) deciding: Vec<Deciding>,
    /// The messages for the run.
    pub(crate) mailbox: Option<Arc<Mailbox>>,
    pub(crate) in_flight: FuturesUnordered<BoxFuture<'static, Happened>>,
    /// Reports of the processes and child runs that calls have started.
    pub(crate) reports: Reports,
    /// Stops running work. A child of the run's own token.
    pub(crate) stop: CancellationToken,
}

/// A question that an approver is looking at.
pub(crate) struct Deciding {
    pub(crate) call: CallId,
    /// Id and binding of the question.
    pub(crate) question: (String, String),
    pub(crate) work: BoxFuture<'static, Decision>,
}

/// The state with which a run begins, or is resumed.
pub(crate) struct Said {
    /// Questions that were asked before.
    pub(crate) open: Vec<(CallId, ApprovalRequest)>,
    /// What others want of the run.
    pub(crate) mailbox: Option<Arc<Mailbox>>,
}

/// The end of something that was running.
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
    pub(crate) fn new(
        parts: Arc<Parts>,
        machine: PlanMachine,
        log: LogAppender,
        context: Context,
        control: PlanControl,
        Said { open, mailbox }: Said,
    ) -> Self {
        let stop = context.cancel.child_token();
        let (in_flight, reports, deciding) = (FuturesUnordered::new(), Reports::default(), Vec::new());
        Self { parts, machine, log, context, control, open, deciding, mailbox, in_flight, reports, stop }
    }

    /// Appends records and applies them to the machine.
    pub(crate) async fn record(&mut self, bodies: Vec<RecordBody>) -> Result<(), JournalError> {
        self.log.step(bodies, |record| self.machine.apply(record)).await
    }

    /// Asks a person. A question of a child run expires in the child run.
    pub(crate) async fn ask(
        &mut self,
        call: CallId,
        mut request: Box<ApprovalRequest>,
    ) -> Result<(), JournalError> {
        if request.agent_name.is_empty() {
            request.agent_name.clone_from(&self.parts.options.name);
        }
        // The question about a call in doubt never expires, because the run cannot go on without an answer.
        if request.path.is_empty() && request.kind != QuestionKind::InDoubt {
            let wait = request.timeout_ms.unwrap_or(self.machine.settings().answer_within_ms);
            request
                .expires_at
                .get_or_insert(self.context.clock.now_for_others() + Duration::from_millis(wait));
        }
        // Answered questions are dropped; a question that is asked again replaces itself.
        let machine = &self.machine;
        self.open.retain(|(asked, other)| {
            other.request_id != request.request_id && machine.is_waiting_for(*asked)
        });
        self.open.push((call, ApprovalRequest::clone(&request)));
        self.record(vec![RecordBody::ToolAsked { call, request }]).await
    }

    /// Asks about a tool call, and also asks the approver of this process, who may answer at once.
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

    /// Returns the plan's own open question of this id and binding.
    fn question(&self, (request_id, binding): (&str, &str)) -> Option<&(CallId, ApprovalRequest)> {
        self.open.iter().find(|(call, request)| {
            let is_own = request.path.is_empty() && self.machine.is_waiting_for(*call);
            is_own && request.is_meant(request_id, binding)
        })
    }

    /// Returns the time when the first of the plan's own open questions expires.
    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        let mine = |(call, request): &&(CallId, ApprovalRequest)| {
            request.path.is_empty() && self.machine.is_waiting_for(*call)
        };
        self.open.iter().filter(mine).filter_map(|(_, request)| request.expires_at).min()
    }

    /// Returns the effect of a message on a plan: it takes a cancel, and answers to its own questions.
    pub(crate) fn meaning(&self, entry: InboxEntry) -> Heard {
        let follows = match entry.request {
            InboxRequest::Cancel { reason } => {
                (!self.machine.is_stopping()).then_some(RecordBody::CancelRequested { reason })
            }
            InboxRequest::Answer { request_id, binding, answer } => {
                self.hear_answer((&request_id, &binding), answer, entry.at)
            }
            _ => return Heard::NotMeant,
        };
        follows.map_or(Heard::Nothing, Heard::Record)
    }

    /// Returns the record that follows from an answer given at `at`. An answer that is not acceptable leaves
    /// the question open; the reason is added to it.
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

    /// Records the expiry of questions that nobody answered in time. Reads the inbox first, since an answer
    /// may have been given in time.
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

    /// Returns the answers that child runs have received while this run was working.
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

    /// Appends one record of the plan, like [`record`](Self::record).
    pub(crate) async fn plan_record(&mut self, record: PlanRecord) -> Result<(), JournalError> {
        self.record(vec![RecordBody::Plan(Box::new(record))]).await
    }

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
