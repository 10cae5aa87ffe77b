//! The conversations of an assistant: this agent answers each message, in the session of the message's
//! tenant.

use std::sync::Arc;

use archon_assistant::{AgentPool, Conversations, NextTurn, Source};
use archon_react_loop::ReactAgent;
use archon_types::{
    AgentMessage, BoxFuture, Message, PoolIndex, Reply, RunId, RunStarted, Speaker, TenantId,
};

use crate::{Archon, RunError, RunOptions};

impl Archon {
    /// Returns a pool for an [`Assistant`](archon_assistant::Assistant). The pool finds the runs in this agent's
    /// journal that wait for people, and answers their questions. `index` stores which runs wait. If the index is
    /// empty after a restart, [`AgentPool::restore`] fills it from the logs.
    ///
    /// ```
    /// # fn example(agent: archon::Archon) {
    /// use archon::orchestrator::InMemoryPoolIndex;
    /// let pool = agent.pool(std::sync::Arc::new(InMemoryPoolIndex::default()));
    /// # }
    /// ```
    pub fn pool(&self, index: Arc<dyn PoolIndex>) -> AgentPool {
        AgentPool::new(index, self.journal.clone(), self.clock.clone(), self.ids.clone())
    }

    /// Returns the agent without its memory, because all tenants would share that memory.
    fn without_memory(&self) -> ReactAgent {
        self.agent.clone().without_memory()
    }

    async fn answer_turn(&self, turn: &NextTurn) -> Result<Reply, RunError> {
        self.admit()?;
        let start = self.claim_ended(&turn.session, &turn.tenant).await?;
        let run = RunId::new(self.ids.fresh("run"));
        let options = RunOptions { tenant: Some(turn.tenant.clone()), ..RunOptions::default() };
        let mut context = self.context(run, turn.session.clone(), options);
        let origin = start.release_at_first_record(&mut context);
        let own = self.agent.options().system.clone().filter(|own| !own.trim().is_empty());
        let system = own.map_or_else(|| turn.system.clone(), |own| format!("{own}\n\n{}", turn.system));
        let agent = self.without_memory().with_system(system);
        let by = match turn.source {
            Source::Person => Speaker::Person,
            _ => Speaker::Tool,
        };
        let message = Message::user(turn.message.as_str(), self.clock.now());
        let prompt = AgentMessage::from(message).with_speaker(by);
        let work = self.spawn(context, |_, context| async move {
            Ok(agent.start(vec![prompt], origin, &context).await?)
        });
        work.reply().await
    }

    async fn resume_for(&self, run: &RunId, tenant: &TenantId) -> Result<Reply, RunError> {
        let records = self.journal.read(run).await?;
        if RunStarted::of(&records).is_none_or(|started| started.tenant != *tenant) {
            return Err(RunError::OtherTenant { run: run.clone(), tenant: tenant.clone() });
        }
        let (context, agent) = (self.context_after(run.clone(), &records), self.without_memory());
        let work = self.spawn(context, |_, context| async move { Ok(agent.resume(&context).await?) });
        work.reply().await
    }
}

/// Each message is answered by a run of this agent for the tenant of the message. The run continues the
/// newest run of the session that has ended. The assistant's system text follows this agent's own
/// instructions. For questions that wait for people the agent needs an approver that returns
/// [`Decision::Later`](archon_types::Decision::Later), such as [`AskLater`](archon_types::AskLater). The
/// memory of [`ArchonBuilder::memory`](crate::ArchonBuilder::memory) is not used, because all tenants would
/// share it; [`LongTermSteps`](archon_assistant::LongTermSteps) has a memory for each tenant.
impl Conversations for Archon {
    fn begin<'a>(&'a self, turn: &'a NextTurn) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(self.answer_turn(turn))
    }

    fn resume<'a>(&'a self, run: &'a RunId, tenant: &'a TenantId) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(self.resume_for(run, tenant))
    }
}
