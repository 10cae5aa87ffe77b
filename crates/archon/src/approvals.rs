//! Questions that wait for people: which there are, and how they are answered from anywhere.

use archon_types::{
    Answer, InboxRequest, Json, PendingApproval, Prepared, TenantId, ToolCall, pending_approvals,
};

use crate::{Archon, Error, RunOptions};

impl Archon {
    /// The questions that wait for an answer, oldest first: of all runs, or of one tenant's. What agents ask that others
    /// called stands with the run that a person started. Questions that nobody answered in time are left out.
    ///
    /// # Errors
    /// The journal cannot be listed.
    pub async fn approvals(&self, tenant: Option<&TenantId>) -> Result<Vec<PendingApproval>, Error> {
        let now = self.clock.now();
        let mut all = Vec::new();
        for head in self.journal.list().await? {
            if head.status != "suspended" || head.called_by.is_some() {
                continue;
            }
            let Ok(records) = self.journal.read(&head.run_id).await else { continue };
            let waits = |p: &PendingApproval| {
                tenant.is_none_or(|tenant| p.tenant == *tenant) && !p.request.is_expired(now)
            };
            all.extend(pending_approvals(&records).into_iter().filter(waits));
        }
        let mut open = Vec::new();
        for pending in all {
            if !self.is_answered(&pending).await? {
                open.push(pending);
            }
        }
        open.sort_by_key(|pending| pending.created_at);
        Ok(open)
    }

    /// Answers a question, from whatever process. The answer is kept until the run is next taken up, with
    /// [`resume`](Self::resume) of the run that the question stands with, or until whoever works on the run hears it.
    ///
    /// False if the question is not there, was answered before or has expired: then nothing changes.
    ///
    /// # Errors
    /// The journal failed or takes no messages, or arguments that were changed do not fit the tool.
    pub async fn answer(&self, request_id: &str, answer: Answer) -> Result<bool, Error> {
        let open = self.approvals(None).await?;
        let Some(pending) = open.into_iter().find(|p| p.request.request_id == request_id) else {
            return Ok(false);
        };
        self.answer_pending(&pending, answer).await
    }

    /// As [`answer`](Self::answer), to a question at hand.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn answer_pending(&self, pending: &PendingApproval, answer: Answer) -> Result<bool, Error> {
        if pending.request.is_expired(self.clock.now()) || self.is_answered(pending).await? {
            return Ok(false);
        }
        if let Answer::Edit { arguments } = &answer {
            self.check_edit(pending, arguments).await?;
        }
        let request_id = pending.request.request_id.clone();
        self.post(pending.asker(), InboxRequest::Answer { request_id, answer }).await?;
        Ok(true)
    }

    /// Whether an answer is on its way, or has arrived in the run below that asked.
    async fn is_answered(&self, pending: &PendingApproval) -> Result<bool, Error> {
        let asker = pending.asker();
        let is_open = |open: &PendingApproval| open.request.request_id == pending.request.request_id;
        if *asker != pending.run && !pending_approvals(&self.journal.read(asker).await?).iter().any(is_open) {
            return Ok(true);
        }
        let Some(inbox) = self.journal.inbox() else { return Ok(false) };
        let answers = |request: &InboxRequest| matches!(request, InboxRequest::Answer { request_id, .. } if *request_id == pending.request.request_id);
        Ok(inbox.waiting(asker).await?.iter().any(|entry| answers(&entry.request)))
    }

    /// Arguments that were changed meet the guards before anything is kept, where the tool is one of this agent's.
    async fn check_edit(&self, pending: &PendingApproval, arguments: &Json) -> Result<(), Error> {
        let name = pending.request.details.get("tool").and_then(Json::as_str).unwrap_or_default();
        if !pending.request.path.is_empty() || !self.toolbox.specs().iter().any(|spec| spec.name == name) {
            return Ok(());
        }
        let call = ToolCall::new("edit", name, arguments.clone());
        let context = self.context(pending.run.clone(), pending.session.clone(), RunOptions::default());
        match self.toolbox.prepare(pending.call, &call, &context).await {
            Prepared::Refused(result) => Err(Error::Edit { problem: result.text() }),
            _ => Ok(()),
        }
    }
}
