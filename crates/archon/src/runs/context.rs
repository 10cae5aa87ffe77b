//! The report about the context window of a session.

use archon_react_loop::{ContextReport, context_report, continuation_point};
use archon_types::{Origin, RunError, SessionId, TenantId};

use super::Runs;

impl Runs {
    /// Returns the tokens that each part of the next request of a session takes: instructions, tools, memories,
    /// messages and tool results. If a run of the session is under way, this is the next request of that run.
    /// With `None` as `tenant`, the session may belong to any tenant.
    ///
    /// ```no_run
    /// use archon::{RunError, Runs, SessionId};
    ///
    /// async fn show(runs: &Runs, session: &SessionId) -> Result<(), RunError> {
    ///     let report = runs.context_report(session, None).await?;
    ///     println!("{} tokens, {} of them for tools; free: {:?}", report.used(), report.tools, report.free());
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// The session has no run, its newest run is a plan or a team, or a log cannot be read.
    pub async fn context_report(
        &self,
        session: &SessionId,
        tenant: Option<&TenantId>,
    ) -> Result<ContextReport, RunError> {
        let journal = &*self.archon().journal;
        let head = self.archon().newest_of(session, tenant).await?.ok_or(RunError::NothingToContinue)?;
        let records = journal.read(&head.run_id).await?;
        // After a parallel loop this is the chosen branch.
        match continuation_point(journal, &head.run_id, &records).await? {
            Origin::Continues { run, .. } => Ok(context_report(journal, &run).await?),
            _ => Err(RunError::NothingToContinue),
        }
    }
}
