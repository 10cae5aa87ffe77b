//! Asks people on behalf of a plan, and handles their answers and the expiry of questions.

use std::{panic::AssertUnwindSafe, time::Duration};

use archon_run::Recorded;
use archon_types::{
    Answer, ApprovalRequest, Approver, CallId, Decision, InboxRequest, JournalError, QuestionKind,
    RecordBody, Timestamp,
};
use futures_util::FutureExt;

use crate::{
    PlanMachine,
    following::{Deciding, Following, Run},
};

impl Following {
    /// Asks a person. A question of a child run expires in the child run.
    pub(crate) async fn ask(
        &mut self,
        run: &mut Run,
        call: CallId,
        mut request: Box<ApprovalRequest>,
    ) -> Recorded {
        if request.agent_name.is_empty() {
            request.agent_name.clone_from(&self.parts.options.name);
        }
        // The question about a call in doubt never expires, because the run cannot continue without an
        // answer.
        if request.call_path.is_empty() && request.kind != QuestionKind::InDoubt {
            let wait = request.timeout_ms.unwrap_or(run.machine.settings().question_timeout_ms);
            request
                .expires_at
                .get_or_insert(run.context().clock.now_for_others() + Duration::from_millis(wait));
        }
        // Answered questions are dropped. A question that is asked again replaces the earlier one.
        let machine = &run.machine;
        self.open.retain(|(asked, other)| {
            other.request_id != request.request_id && machine.is_waiting_for(*asked)
        });
        self.open.push((call, ApprovalRequest::clone(&request)));
        run.record(vec![RecordBody::ApprovalRequested { call, request }]).await
    }

    /// Asks a person about a tool call, and also the approver of this process, who may answer at once.
    pub(crate) async fn ask_about(
        &mut self,
        run: &mut Run,
        call: CallId,
        request: Box<ApprovalRequest>,
    ) -> Recorded {
        let shown = ApprovalRequest::clone(&request);
        self.ask(run, call, request).await?;
        if let Some(approver) = self.parts.approver.clone() {
            let question = (shown.request_id.clone(), shown.binding.clone());
            let work = async move { approver.decide(&shown).await };
            let work = AssertUnwindSafe(work).catch_unwind().map(|said| said.unwrap_or(Decision::Later));
            self.deciding.push(Deciding { call, question, work: Box::pin(work) });
        }
        Ok(())
    }

    /// Returns the open questions of the plan and of its child runs.
    fn open_questions(&self, machine: &PlanMachine) -> impl Iterator<Item = &(CallId, ApprovalRequest)> {
        self.open.iter().filter(|(call, _)| machine.is_waiting_for(*call))
    }

    /// Returns the plan's own open questions.
    fn own_questions(&self, machine: &PlanMachine) -> impl Iterator<Item = &(CallId, ApprovalRequest)> {
        self.open_questions(machine).filter(|(_, request)| request.call_path.is_empty())
    }

    /// Returns the earliest time at which one of the plan's own open questions expires.
    pub(crate) fn next_expiry(&self, machine: &PlanMachine) -> Option<Timestamp> {
        self.own_questions(machine).filter_map(|(_, request)| request.expires_at).min()
    }

    /// Returns the record of an answer that was given at `at`. If the answer is not acceptable, the
    /// question is asked again with the reason.
    pub(crate) fn record_of_answer(
        &self,
        machine: &PlanMachine,
        (id, binding): (&str, &str),
        answer: Answer,
        at: Timestamp,
    ) -> Option<RecordBody> {
        let (call, request) =
            self.own_questions(machine).find(|(_, request)| request.is_meant(id, binding))?;
        if request.is_expired(at) {
            return Some(RecordBody::ApprovalAnswered { call: *call, answer: Answer::Expired });
        }
        Some(match self.parts.take(machine, *call, &answer, &self.context) {
            Ok(()) => RecordBody::ApprovalAnswered { call: *call, answer },
            Err(error) => {
                let mut again = request.clone();
                again.action_summary =
                    format!("The last answer cannot be taken: {error}. {}", again.action_summary);
                RecordBody::ApprovalRequested { call: *call, request: Box::new(again) }
            }
        })
    }

    /// Records the expiry of questions. Reads the inbox first, because an answer may have been given in
    /// time.
    pub(crate) async fn expire(&mut self, run: &mut Run) -> Recorded {
        let now = run.context().clock.now();
        if run.machine.is_stopping() || self.next_expiry(&run.machine).is_none_or(|end| end > now) {
            return Ok(());
        }
        run.receive(self).await?;
        let expired = self.own_questions(&run.machine).filter(|(_, request)| request.is_expired(now));
        let expired: Vec<CallId> = expired.map(|(call, _)| *call).collect();
        for call in expired {
            run.record(vec![RecordBody::ApprovalAnswered { call, answer: Answer::Expired }]).await?;
        }
        Ok(())
    }

    /// Returns records of the answers that wait in the inboxes of child runs that asked a question.
    pub(crate) async fn answered_below(&mut self, run: &mut Run) -> Result<Vec<RecordBody>, JournalError> {
        let Some(inbox) = self.journal().inbox() else { return Ok(Vec::new()) };
        let mut answered: Vec<RecordBody> = Vec::new();
        let open: Vec<_> = self.open_questions(&run.machine).cloned().collect();
        for (call, request) in &open {
            let Some(asker) = request.asker() else { continue };
            for entry in inbox.waiting(&asker.run).await? {
                let InboxRequest::Answer { request_id, binding, answer } = entry.request else { continue };
                if request.is_meant(&request_id, &binding) {
                    answered.push(RecordBody::ApprovalAnswered { call: *call, answer });
                }
            }
        }
        Ok(answered)
    }
}
