//! The conversations of tenants as runs of the run service, and their open questions.

use std::io;

use archon::{
    RunError, Runs,
    orchestrator::{Conversations, NextTurn, Source, conversation_of},
    types::{
        AgentMessage, AnswerRuns as _, BoxFuture, JournalError, Message, MoreLimits, PendingApproval,
        PoolFilter, PoolIndex, Reply, RunId, RunRefused, Speaker, StartRun, StartRuns as _, TenantId,
        Timestamp,
    },
};

/// Starts and resumes the runs of conversations in the run service, so that all its clients see them.
pub(super) struct ServedConversations(pub(super) Runs);

impl Conversations for ServedConversations {
    fn begin<'a>(&'a self, turn: &'a NextTurn) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(async move {
            let by = match turn.source {
                Source::Person => Speaker::Person,
                _ => Speaker::Program,
            };
            let message = Message::user(turn.message.as_str(), Timestamp::default());
            let prompt = AgentMessage::from(message).with_speaker(by);
            let request = StartRun::with_messages(vec![prompt])
                .session(turn.session.clone())
                .system(turn.system.as_str());
            let runs = self.0.for_tenant(turn.tenant.clone());
            let started = runs.start(request).await?;
            runs.reply(&started.run).await
        })
    }

    fn resume<'a>(&'a self, run: &'a RunId, tenant: &'a TenantId) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(async move {
            let runs = self.0.for_tenant(tenant.clone());
            match runs.resume(run, &MoreLimits::default()).await {
                // The server looks for answered questions, too, and may have been faster.
                Ok(_)
                | Err(
                    RunError::Journal(JournalError::Locked { .. })
                    | RunError::Refused(RunRefused::Ended { .. }),
                ) => {}
                Err(error) => return Err(error),
            }
            runs.reply(run).await
        })
    }
}

/// Reads the open questions of the conversations from the logs. The questions of other runs are left out: the
/// conversation did not show them, so a message must not answer them.
pub(super) struct OpenQuestions(pub(super) Runs);

impl PoolIndex for OpenQuestions {
    fn put<'a>(&'a self, _: &'a RunId, _: Vec<PendingApproval>) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn find<'a>(
        &'a self,
        filter: &'a PoolFilter,
    ) -> BoxFuture<'a, Result<Vec<PendingApproval>, JournalError>> {
        Box::pin(async move {
            let mut open = self.0.questions(filter.tenant.as_ref()).await.map_err(of_journal)?;
            open.retain(|entry| entry.session == conversation_of(&entry.tenant) && filter.fits(entry));
            Ok(open)
        })
    }
}

fn of_journal(error: RunError) -> JournalError {
    match error {
        RunError::Journal(error) => error,
        error => {
            let place = "the questions of runs".to_owned();
            JournalError::Storage { action: "read", place, source: io::Error::other(error.to_string()) }
        }
    }
}
