//! The open questions to people: lists them, and answers them from any process.

use std::sync::Arc;

use archon_types::{
    Answer, Clock, Journal, Json, PendingApproval, Prepared, RunFilter, RunStatus, TenantId, ToolCall,
    pending_approvals,
};

use crate::{Archon, RunError, RunOptions, SystemClock};

/// Lists and answers the open questions of all runs in a journal, for instance calls that wait for an approval. This
/// type needs no model and no tools.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), archon::RunError> {
/// use std::sync::Arc;
///
/// use archon::{Approvals, store::InMemoryJournal};
///
/// let approvals = Approvals::new(Arc::new(InMemoryJournal::new()));
/// for question in approvals.list(None).await? {
///     println!("{} of {}", question.request.action_summary, question.run);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Approvals {
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
}

impl Approvals {
    /// Creates a value that reads the questions in `journal`. The journal is read only when you call
    /// [`list`](Self::list) or [`answer`](Self::answer).
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, clock: Arc::new(SystemClock) }
    }

    /// Lists the open questions, oldest first, of all runs or of one tenant. A question of a child run is
    /// listed with its top-level run. Questions that were answered or have expired are left out.
    ///
    /// # Errors
    /// The journal cannot be listed.
    pub async fn list(&self, tenant: Option<&TenantId>) -> Result<Vec<PendingApproval>, RunError> {
        let now = self.clock.now();
        let mut open = Vec::new();
        let mut waiting = RunFilter::all().status([RunStatus::Suspended]).top_level();
        waiting.tenant = tenant.cloned();
        // The list has the newest run first: of questions of the same millisecond, the older one is first too.
        for head in self.journal.list(&waiting).await?.into_iter().rev() {
            let Ok(records) = self.journal.read(&head.run_id).await else { continue };
            for pending in pending_approvals(&records) {
                let is_theirs = tenant.is_none_or(|tenant| pending.tenant == *tenant);
                let is_open = is_theirs && !pending.request.is_expired(now);
                if is_open && !pending.is_answered(&*self.journal).await? {
                    open.push(pending);
                }
            }
        }
        open.sort_by_key(|pending| pending.created_at);
        Ok(open)
    }

    /// Answers a question. The answer waits in the inbox until the run is resumed, or until the process that
    /// works on the run reads it.
    ///
    /// Returns false and changes nothing if the question was already answered or has expired.
    ///
    /// # Errors
    /// [`RunError::RuleNotOffered`] if the answer trusts a permission rule that is not in the question's `rules`.
    /// Another error if the journal failed or has no inbox.
    pub async fn answer(&self, pending: &PendingApproval, answer: Answer) -> Result<bool, RunError> {
        let now = self.clock.now();
        if pending.request.is_expired(now) || pending.is_answered(&*self.journal).await? {
            return Ok(false);
        }
        // An answer may come from far away, and a rule that is trusted goes before the rules that ask.
        if let Some(rule) = pending.request.rule_not_offered(&answer) {
            let (request, rule) = (pending.request.request_id.clone(), rule.to_owned());
            return Err(RunError::RuleNotOffered { request, rule });
        }
        Ok(pending.answer(answer, now, &*self.journal).await?)
    }
}

archon_types::debug_fields!(Approvals);

impl Archon {
    pub(crate) fn pending(&self) -> Approvals {
        Approvals { journal: self.journal.clone(), clock: self.clock.clone() }
    }

    /// Lists the open questions; see [`Approvals::list`]. Expired questions are left out; a question expires
    /// by default after 30 minutes. [`resume`](Self::resume) the runs of expired questions, which then go on
    /// without the call.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon) -> Result<(), archon::RunError> {
    /// for question in agent.approvals(None).await? {
    ///     println!("{}: {}", question.request.request_id, question.request.action_summary);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The journal cannot be listed.
    pub async fn approvals(&self, tenant: Option<&TenantId>) -> Result<Vec<PendingApproval>, RunError> {
        self.pending().list(tenant).await
    }

    /// Answers a question, from any process; then [`resume`](Self::resume) its run. Returns false and changes
    /// nothing if there is no such question, or if it was already answered or has expired.
    ///
    /// ```
    /// # async fn example(agent: archon::Archon, question: archon::types::PendingApproval) -> Result<(), archon::RunError> {
    /// use archon::types::Answer;
    ///
    /// if agent.answer(&question.request.request_id, Answer::Approve).await? {
    ///     println!("{}", agent.resume(question.run).await?.text().await?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The journal failed or has no inbox, changed arguments do not fit the tool, or the answer trusts a permission
    /// rule that is not in the question's `rules`.
    pub async fn answer(&self, request_id: &str, answer: Answer) -> Result<bool, RunError> {
        let open = self.approvals(None).await?;
        match open.into_iter().find(|p| p.request.request_id == request_id) {
            Some(pending) => self.answer_pending(&pending, answer).await,
            None => Ok(false),
        }
    }

    /// Answers a question from [`approvals`](Self::approvals), like [`answer`](Self::answer).
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub async fn answer_pending(&self, pending: &PendingApproval, answer: Answer) -> Result<bool, RunError> {
        self.check_edit(pending, &answer).await?;
        self.pending().answer(pending, answer).await
    }

    /// Checks changed arguments with the guards before the answer is stored, if the tool belongs to this
    /// agent.
    pub(crate) async fn check_edit(
        &self,
        pending: &PendingApproval,
        answer: &Answer,
    ) -> Result<(), RunError> {
        let Answer::Edit { arguments } = answer else { return Ok(()) };
        // The values are for the tool that asks, which checks them; they are not the arguments of its call.
        if pending.request.is_of_tool() {
            return Ok(());
        }
        let name = pending.request.details.get("tool").and_then(Json::as_str).unwrap_or_default();
        let is_known = self.toolbox.specs().iter().any(|spec| spec.name == name)
            || self.toolbox.sourced_spec(name).is_some();
        if !pending.request.call_path.is_empty() || !is_known {
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
