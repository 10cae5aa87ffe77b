//! Forks, deletes, prunes and erases runs.

use archon_types::{
    AnswerRuns, BoxFuture, Fork, ForkOptions, JournalError, ManageRuns, Removed, RunError, RunFilter,
    RunHead, RunId, RunKind, RunRefused, RunStarted, RunStatus, Salvaged, TenantId, Timestamp,
};

use super::{Runs, start::is_empty};

impl ManageRuns for Runs {
    fn fork<'a>(&'a self, run: &'a RunId, options: ForkOptions) -> BoxFuture<'a, Result<Fork, RunError>> {
        Box::pin(self.fork_run(run, options))
    }

    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), RunError>> {
        Box::pin(async move { self.with_similar_ids(run, self.archon().journal.delete(run).await).await })
    }

    fn prune<'a>(&'a self, before: Timestamp) -> BoxFuture<'a, Result<Removed, RunError>> {
        Box::pin(self.prune_of(RunFilter::all(), before))
    }

    fn erase<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Removed, RunError>> {
        Box::pin(async move {
            let all = RunFilter::all().tenant(tenant.clone());
            for head in self.archon().journal.list(&all).await? {
                let is_here = self.works_on(&head.run_id);
                if is_here || head.status == RunStatus::Running {
                    match self.cancel(&head.run_id, "the tenant is erased").await {
                        // The run has ended by itself.
                        Ok(()) | Err(RunError::Refused(RunRefused::Ended { .. })) => {}
                        Err(error) => return Err(error),
                    }
                }
                if is_here {
                    // After the reply the run no longer works, whatever the reply is.
                    let _ = archon_types::StartRuns::reply(self, &head.run_id).await;
                }
            }
            let heads = self.archon().journal.list(&all).await?;
            self.remove(heads.into_iter().map(|head| head.run_id).collect()).await
        })
    }
}

impl Runs {
    async fn fork_run(&self, run: &RunId, options: ForkOptions) -> Result<Fork, RunError> {
        let head = self.head(run).await?;
        if let Some(kind) = head.kind.filter(|kind| *kind != RunKind::Loop) {
            return Err(RunError::Unsupported {
                run: run.clone(),
                kind,
                action: "be forked",
                instead: "fork one of the loops that the run called, or start the run again",
            });
        }
        if options.message.is_none() && options.agent.is_none() {
            // The log is enough, also for a run without a registered agent.
            return self.archon().fork(run, options).await;
        }
        if options.message.as_ref().is_some_and(is_empty) {
            return Err(RunError::EmptyPrompt);
        }
        // Records before damage are enough for a fork before it.
        let Salvaged { records, damage, .. } = self.archon().journal.salvage(run).await?;
        if let (true, Some(damage)) = (records.is_empty(), damage) {
            return Err(damage.into());
        }
        let own = RunStarted::of(&records).map(|started| &started.agent);
        let agent = match &options.agent {
            Some(id) if own != Some(id) => self.agent(RunKind::Loop, id)?,
            _ => self.agent_of(run, &records).await?,
        };
        let id = RunId::new(self.archon().ids.fresh("run"));
        let context = self.archon().context_after(id, &records);
        agent.fork(run, options, &context).await
    }

    /// Deletes those runs of a filter that have ended and were last written before `before`.
    pub(super) async fn prune_of(&self, of: RunFilter, before: Timestamp) -> Result<Removed, RunError> {
        let heads = self.archon().journal.list(&of).await?;
        let old = |head: &RunHead| head.status.has_ended() && head.updated_at < before;
        self.remove(heads.into_iter().filter(old).map(|head| head.run_id).collect()).await
    }

    /// Deletes runs in the necessary order: if a run needs another one, the run that needs it is deleted first.
    pub(super) async fn remove(&self, mut runs: Vec<RunId>) -> Result<Removed, RunError> {
        let mut removed = Removed::default();
        loop {
            let mut failed = Vec::new();
            let tried = runs.len();
            for run in runs {
                match self.archon().journal.delete(&run).await {
                    Ok(()) | Err(JournalError::UnknownRun { .. }) => removed.runs.push(run),
                    Err(error @ JournalError::Unsupported { .. }) => return Err(error.into()),
                    Err(error) => failed.push((run, error)),
                }
            }
            let is_needed = |(_, error): &(RunId, JournalError)| matches!(error, JournalError::Needed { .. });
            if failed.len() == tried || !failed.iter().any(is_needed) {
                removed.failures = failed.into_iter().map(|(run, error)| (run, error.into())).collect();
                return Ok(removed);
            }
            runs = failed.into_iter().map(|(run, _)| run).collect();
        }
    }
}
