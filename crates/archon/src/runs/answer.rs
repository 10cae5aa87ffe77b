//! Steering, cancelling and answering.

use archon_types::{
    AgentMessage, Answer, AnswerRuns, BoxFuture, InboxRequest, JournalError, MoreLimits, PendingApproval,
    RunError, RunFilter, RunId, RunRefused, RunStatus, StartedRun, TenantId, pending_approvals,
};

use super::Runs;

impl AnswerRuns for Runs {
    fn steer<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async move {
            let message = message.dated(self.archon().clock.now());
            self.post(run, InboxRequest::Steer { message }).await
        })
    }

    fn follow_up<'a>(&'a self, run: &'a RunId, message: AgentMessage) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(self.post_follow_up(run, message))
    }

    fn cancel<'a>(&'a self, run: &'a RunId, reason: &'a str) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async move {
            self.post(run, InboxRequest::Cancel { reason: reason.to_owned() }).await?;
            // Who works on it, here or elsewhere, reads its inbox.
            self.go_on(run).await
        })
    }

    fn questions<'a>(
        &'a self,
        tenant: Option<&'a TenantId>,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, RunError>> {
        Box::pin(async move { self.archon().approvals(tenant).await })
    }

    fn answer<'a>(&'a self, request_id: &'a str, answer: Answer) -> BoxFuture<'a, Result<bool, RunError>> {
        Box::pin(async move {
            let open = self.archon().approvals(None).await?;
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
                // Who changes arguments is told at once whether they fit.
                (Err(error), Answer::Edit { .. }) => return Err(error),
                // The answer is kept, and the run resumed when its agent can be built.
                (Err(error), _) => Err(error),
            };
            if !self.archon().pending().answer(&pending, answer).await? {
                return Ok(false);
            }
            went_on(self.resume_by(agent?, root, &records, &MoreLimits::default()).await)?;
            Ok(true)
        })
    }

    fn sweep<'a>(&'a self) -> BoxFuture<'a, Result<Vec<RunId>, RunError>> {
        Box::pin(async move {
            let now = self.archon().clock.now();
            let waiting = RunFilter::all().status([RunStatus::Suspended]).top_level();
            let mut swept = Vec::new();
            for head in self.archon().journal.list(&waiting).await? {
                let Ok(records) = self.archon().journal.read(&head.run_id).await else { continue };
                if pending_approvals(&records).iter().any(|open| open.request.is_expired(now)) {
                    self.go_on(&head.run_id).await?;
                    swept.push(head.run_id);
                }
            }
            Ok(swept)
        })
    }
}

impl Runs {
    pub(super) async fn post_follow_up(&self, run: &RunId, message: AgentMessage) -> Result<(), RunError> {
        let message = message.dated(self.archon().clock.now());
        self.post(run, InboxRequest::FollowUp { message }).await
    }

    async fn post(&self, run: &RunId, request: InboxRequest) -> Result<(), RunError> {
        match self.archon().post(run, request).await {
            Err(RunError::Journal(JournalError::UnknownRun { .. })) => Err(self.unknown(run).await),
            posted => posted,
        }
    }

    /// Resumes a run for what its inbox has, unless somebody works on it and reads it anyway, or it has ended by now:
    /// a run that was just cancelled is not begun again.
    async fn go_on(&self, run: &RunId) -> Result<(), RunError> {
        let status = self.head(&self.root(run).await?).await?.status;
        match status.has_ended() || status == RunStatus::Running {
            true => Ok(()),
            false => went_on(self.resume_run(run, &MoreLimits::default()).await),
        }
    }
}

/// Somebody works on the run, or it has ended: then what its inbox has is not read by a resume.
fn went_on(resumed: Result<StartedRun, RunError>) -> Result<(), RunError> {
    match resumed {
        Err(RunError::Journal(JournalError::Locked { .. }) | RunError::Refused(RunRefused::Ended { .. })) => {
            Ok(())
        }
        resumed => resumed.map(drop),
    }
}
