//! Steers, cancels, answers and sweeps runs.

use std::{collections::BTreeSet, sync::Arc};

use archon_types::{
    AgentMessage, Answer, AnswerRuns, BoxFuture, InboxEntry, InboxRequest, JournalError, MoreLimits,
    PendingApproval, ResumedRuns, RunError, RunFilter, RunId, RunRefused, RunStatus, StartedRun, TenantId,
    Timestamp, pending_approvals,
};

use super::{Runs, live::Live};

impl AnswerRuns for Runs {
    fn steer<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async move {
            let message = message.dated(self.archon().clock.now());
            self.post(run, InboxRequest::Steer { message }).await
        })
    }

    fn follow_up<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async move {
            let message = message.dated(self.archon().clock.now());
            self.post(run, InboxRequest::FollowUp { message }).await
        })
    }

    fn cancel<'a>(&'a self, run: &'a RunId, reason: &'a str) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async move {
            self.check_folder(run).await?;
            self.post(run, InboxRequest::Cancel { reason: reason.to_owned() }).await?;
            // The process that works on the run reads its inbox.
            self.resume_for_inbox(run).await
        })
    }

    fn questions<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, RunError>> {
        Box::pin(async move { self.archon().approvals(tenant).await })
    }

    fn answer<'a>(&'a self, request_id: &'a str, answer: Answer) -> BoxFuture<'a, Result<bool, RunError>> {
        Box::pin(self.answer_of(None, request_id, answer))
    }

    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<ResumedRuns, RunError>> {
        Box::pin(self.sweep_of(None))
    }
}

impl Runs {
    /// Answers a question of any tenant, or of one tenant.
    pub(super) async fn answer_of(
        &self,
        tenant: Option<&TenantId>,
        request_id: &str,
        answer: Answer,
    ) -> Result<bool, RunError> {
        let open = self.archon().approvals(tenant).await?;
        let Some(pending) = open.into_iter().find(|open| open.request.request_id == request_id) else {
            return Ok(false);
        };
        let root = self.root(&pending.run).await?;
        let records = self.archon().journal.read(&root).await?;
        let agent = match (self.agent_of(&root, &records).await, &answer) {
            (Ok(agent), _) => {
                let context = self.archon().context_after(root.clone(), &records);
                agent.check_answer(&pending, &answer, &context).await?;
                Ok(agent)
            }
            // The question stays open for an answer in the folder of the run.
            (Err(error @ RunError::OtherFolder { .. }), _) => return Err(error),
            // A person who changes arguments learns at once whether they fit.
            (Err(error), Answer::Edit { .. }) => return Err(error),
            // The answer is stored, and the run is resumed when its agent can be built.
            (Err(error), _) => Err(error),
        };
        // In a task of its own, so that the run does not keep waiting if the caller is dropped after the
        // answer is stored.
        let runs = self.clone();
        let answered = tokio::spawn(async move {
            if !runs.archon().pending().answer(&pending, answer).await? {
                return Ok(false);
            }
            let at_work = runs.live().get(&root).cloned();
            match at_work {
                None => {
                    ignore_if_under_way(runs.resume_by(agent?, root, &records, &MoreLimits::default()).await)?
                }
                Some(live) => drop(tokio::spawn(runs.resume_after(live))),
            }
            Ok(true)
        });
        answered.await.unwrap_or_else(|error| Err(RunError::agent(error, "answer the question again")))
    }

    /// Waits until this process no longer works on the run, and then resumes the run, since the process may
    /// not have read the latest inbox message.
    async fn resume_after(self, live: Arc<Live>) {
        live.ended().await;
        if let Err(error) = self.resume_for_inbox(live.run()).await {
            tracing::warn!(run = %live.run(), %error, "a run that was answered is not resumed");
        }
    }

    /// Returns true if one of the questions has expired, or has an answer that no process has used to resume
    /// the run.
    async fn has_answer(&self, open: &[PendingApproval], now: Timestamp) -> bool {
        for open in open {
            if open.request.is_expired(now) {
                return true;
            }
            let Some(inbox) = self.archon().journal.inbox() else { continue };
            let is_answer = |entry: &InboxEntry| matches!(entry.request, InboxRequest::Answer { .. });
            if inbox.waiting(open.asker()).await.is_ok_and(|entries| entries.iter().any(is_answer)) {
                return true;
            }
        }
        false
    }

    /// Resumes the suspended runs of all tenants, or of one, that have an answer or an expired question. A
    /// run that cannot be resumed does not stop the others.
    pub(super) async fn sweep_of(&self, tenant: Option<&TenantId>) -> Result<ResumedRuns, RunError> {
        let now = self.archon().clock.now();
        let mut waiting = RunFilter::all().status([RunStatus::Suspended]).top_level();
        waiting.tenant = tenant.cloned();
        // Branches of one parallel loop are resumed together.
        let mut roots = BTreeSet::new();
        for head in self.archon().journal.list(&waiting).await? {
            let Ok(records) = self.archon().journal.read(&head.run_id).await else { continue };
            if self.has_answer(&pending_approvals(&records), now).await
                && let Ok(root) = self.root(&head.run_id).await
                && self.can_be_swept(&root).await
            {
                roots.insert(root);
            }
        }
        let mut swept = Vec::new();
        for root in roots {
            match self.resume_run(&root, &MoreLimits::default()).await {
                // Another process was faster.
                Err(RunError::Journal(JournalError::Locked { .. })) => {}
                resumed => swept.push((root, resumed)),
            }
        }
        Ok(swept.into_iter().collect())
    }

    /// Returns true if the run is suspended or interrupted. A cancelled run stays cancelled.
    async fn can_be_swept(&self, root: &RunId) -> bool {
        let status = self.head(root).await.map(|head| head.status);
        matches!(status, Ok(RunStatus::Suspended | RunStatus::Interrupted))
    }

    async fn post(&self, run: &RunId, request: InboxRequest) -> Result<(), RunError> {
        match self.archon().post(run, request).await {
            Err(RunError::Journal(JournalError::UnknownRun { .. })) => Err(self.unknown(run).await),
            posted => posted,
        }
    }

    /// Refuses a run of another folder that no process works on, before anything is stored for it.
    async fn check_folder(&self, run: &RunId) -> Result<(), RunError> {
        let root = match self.root(run).await {
            Err(RunError::Journal(JournalError::UnknownRun { .. })) => return Err(self.unknown(run).await),
            root => root?,
        };
        let status = self.head(&root).await?.status;
        if status.has_ended() || status == RunStatus::Running {
            return Ok(());
        }
        let records = self.archon().journal.read(&root).await?;
        match self.agent_of(&root, &records).await {
            Err(error @ RunError::OtherFolder { .. }) => Err(error),
            _ => Ok(()),
        }
    }

    /// Resumes a run because of its inbox, unless a process works on the run and reads the inbox anyway, or
    /// the run has ended: a run that was just cancelled must not start again.
    pub(super) async fn resume_for_inbox(&self, run: &RunId) -> Result<(), RunError> {
        let status = self.head(&self.root(run).await?).await?.status;
        match status.has_ended() || status == RunStatus::Running {
            true => Ok(()),
            false => ignore_if_under_way(self.resume_run(run, &MoreLimits::default()).await),
        }
    }
}

/// Converts the error that another process works on the run, or that the run has ended, into a success: then
/// no resume is needed.
fn ignore_if_under_way(resumed: Result<StartedRun, RunError>) -> Result<(), RunError> {
    match resumed {
        Err(RunError::Journal(JournalError::Locked { .. }) | RunError::Refused(RunRefused::Ended { .. })) => {
            Ok(())
        }
        resumed => resumed.map(drop),
    }
}
