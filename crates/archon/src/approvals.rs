//! Questions that wait for people: which there are, and how they are answered from anywhere.

use std::sync::Arc;

use archon_types::{
    Answer, Clock, Ids, InboxEntry, InboxRequest, Journal, Json, PendingApproval, Prepared, RunFilter,
    RunStatus, TenantId, ToolCall, pending_approvals,
};

use crate::{Archon, RandomIds, RunError, RunOptions, SystemClock};

/// The questions of all runs in a journal, for whoever answers them: no model and no tools are needed.
#[derive(Clone)]
pub struct Approvals {
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
}

impl Approvals {
    /// Those of a journal.
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, clock: Arc::new(SystemClock), ids: Arc::new(RandomIds) }
    }

    /// What waits for an answer, oldest first: of all runs, or of one tenant's. What agents ask that others called
    /// stands with the run that a person started. Questions that were answered, or that nobody answered in time, are
    /// left out.
    ///
    /// # Errors
    /// The journal cannot be listed.
    pub async fn list(&self, tenant: Option<&TenantId>) -> Result<Vec<PendingApproval>, RunError> {
        let now = self.clock.now();
        let mut open = Vec::new();
        let mut waiting = RunFilter::all().status([RunStatus::Suspended]).top_level();
        waiting.tenant = tenant.cloned();
        for head in self.journal.list(&waiting).await? {
            let Ok(records) = self.journal.read(&head.run_id).await else { continue };
            for pending in pending_approvals(&records) {
                let is_theirs = tenant.is_none_or(|tenant| pending.tenant == *tenant);
                if is_theirs && !pending.request.is_expired(now) && !self.is_answered(&pending).await? {
                    open.push(pending);
                }
            }
        }
        open.sort_by_key(|pending| pending.created_at);
        Ok(open)
    }

    /// Answers a question. The answer is kept until the run that the question stands with is next taken up, or until
    /// whoever works on it hears it.
    ///
    /// False if the question was answered before or has expired: then nothing changes.
    ///
    /// # Errors
    /// The journal failed or takes no messages.
    pub async fn answer(&self, pending: &PendingApproval, answer: Answer) -> Result<bool, RunError> {
        if pending.request.is_expired(self.clock.now()) || self.is_answered(pending).await? {
            return Ok(false);
        }
        let entry = InboxEntry::new(self.ids.fresh("in"), self.clock.now(), pending.request.answered(answer));
        archon_react_loop::post(&*self.journal, pending.asker(), entry).await?;
        Ok(true)
    }

    /// Whether an answer is on its way, or has arrived in the run that asked.
    async fn is_answered(&self, pending: &PendingApproval) -> Result<bool, RunError> {
        let asker = pending.asker();
        let is_open = |open: &PendingApproval| open.request.request_id == pending.request.request_id;
        if !pending_approvals(&self.journal.read(asker).await?).iter().any(is_open) {
            return Ok(true);
        }
        let Some(inbox) = self.journal.inbox() else { return Ok(false) };
        let answers = |request: &InboxRequest| matches!(request, InboxRequest::Answer { request_id, binding, .. } if pending.request.is_meant(request_id, binding));
        Ok(inbox.waiting(asker).await?.iter().any(|entry| answers(&entry.request)))
    }
}

impl std::fmt::Debug for Approvals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approvals").finish_non_exhaustive()
    }
}

impl Archon {
    pub(crate) fn pending(&self) -> Approvals {
        Approvals { journal: self.journal.clone(), clock: self.clock.clone(), ids: self.ids.clone() }
    }

    /// The questions that wait for an answer; see [`Approvals::list`]. Those that nobody answered in time, by default in
    /// 30 minutes, are not among them; [`resume`](Self::resume) their runs, which go on without the call.
    ///
    /// # Errors
    /// The journal cannot be listed.
    pub async fn approvals(&self, tenant: Option<&TenantId>) -> Result<Vec<PendingApproval>, RunError> {
        self.pending().list(tenant).await
    }

    /// Answers a question, from whatever process; [`resume`](Self::resume) then the run that it stands with. False if
    /// the question is not there, was answered before or has expired: then nothing changes.
    ///
    /// # Errors
    /// The journal failed or takes no messages, or arguments that were changed do not fit the tool.
    pub async fn answer(&self, request_id: &str, answer: Answer) -> Result<bool, RunError> {
        let open = self.approvals(None).await?;
        match open.into_iter().find(|p| p.request.request_id == request_id) {
            Some(pending) => self.answer_pending(&pending, answer).await,
            None => Ok(false),
        }
    }

    /// As [`answer`](Self::answer), to a question at hand.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn answer_pending(&self, pending: &PendingApproval, answer: Answer) -> Result<bool, RunError> {
        self.check_edit(pending, &answer).await?;
        self.pending().answer(pending, answer).await
    }

    /// Arguments that were changed meet the guards before anything is kept, where the tool is one of this agent's.
    pub(crate) async fn check_edit(
        &self,
        pending: &PendingApproval,
        answer: &Answer,
    ) -> Result<(), RunError> {
        let Answer::Edit { arguments } = answer else { return Ok(()) };
        let name = pending.request.details.get("tool").and_then(Json::as_str).unwrap_or_default();
        if !pending.request.path.is_empty() || !self.toolbox.specs().iter().any(|spec| spec.name == name) {
            return Ok(());
        }
        let call = ToolCall::new("edit", name, arguments.clone());
        let options = RunOptions { tenant: Some(pending.tenant.clone()), ..RunOptions::default() };
        let mut context = self.context(pending.run.clone(), pending.session.clone(), options);
        context.can_ask = true;
        match self.toolbox.prepare(pending.call, &call, &context).await {
            Prepared::Refused(result) => Err(RunError::Edit { problem: result.text() }),
            _ => Ok(()),
        }
    }
}
