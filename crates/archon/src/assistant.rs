//! The conversations of an assistant: this agent answers each message, in the conversation of whoever it is for.

use std::sync::Arc;

use archon_orchestrator::{AgentPool, Conversations, NextTurn, Source};
use archon_react_loop::ReactAgent;
use archon_types::{
    AgentMessage, BoxFuture, Message, PoolIndex, Record, RecordBody, Reply, RunId, Speaker, TenantId,
};

use crate::{Archon, RunError, RunOptions};

impl Archon {
    /// The runs of this agent's journal that wait for people, for an [`Assistant`](archon_orchestrator::Assistant). The
    /// index finds them; after a restart [`AgentPool::restore`] makes one that is empty anew.
    pub fn pool(&self, index: Arc<dyn PoolIndex>) -> AgentPool {
        AgentPool::new(index, self.journal.clone(), self.clock.clone(), self.ids.clone())
    }

    /// Whoever answers for many keeps nothing of what one of them said: this agent's own memory is one memory.
    fn speaker(&self) -> ReactAgent {
        self.agent.clone().without_memory()
    }

    async fn say_in(&self, turn: &NextTurn) -> Result<Reply, RunError> {
        self.admit()?;
        let start = self.claim_ended(&turn.session, &turn.tenant).await?;
        let run = RunId::new(self.ids.fresh("run"));
        let options = RunOptions { tenant: Some(turn.tenant.clone()), ..RunOptions::default() };
        let mut context = self.context(run, turn.session.clone(), options);
        let origin = start.hand_over(&mut context);
        let own = self.agent.options().system.clone().filter(|own| !own.trim().is_empty());
        let system = own.map_or_else(|| turn.system.clone(), |own| format!("{own}\n\n{}", turn.system));
        let agent = self.speaker().with_system(system);
        let by = match turn.source {
            Source::Person => Speaker::Person,
            _ => Speaker::Tool,
        };
        let message = Message::user(turn.message.as_str(), self.clock.now());
        let prompt = AgentMessage::from(message).said_by(by);
        let work = self.spawn(context, |_, context| async move {
            Ok(agent.start(vec![prompt], origin, &context).await?)
        });
        work.reply().await
    }

    async fn go_on_for(&self, run: &RunId, tenant: &TenantId) -> Result<Reply, RunError> {
        let records = self.journal.read(run).await?;
        if tenant_of(&records) != Some(tenant) {
            return Err(RunError::OtherTenant { run: run.clone(), tenant: tenant.clone() });
        }
        let (context, agent) = (self.context_after(run.clone(), &records), self.speaker());
        let work = self.spawn(context, |_, context| async move { Ok(agent.resume(&context).await?) });
        work.reply().await
    }
}

/// Each message is a run of this agent, on behalf of its tenant, which goes on from the newest run of the conversation
/// that has ended. What the assistant says of itself stands behind this agent's own instructions. An agent whose
/// questions are to wait needs an approver that says [`Decision::Later`](archon_types::Decision::Later), such as
/// [`AskLater`](archon_types::AskLater). The memory of [`ArchonBuilder::memory`](crate::ArchonBuilder::memory) is not
/// used, as it is one for all: [`LongTermSteps`](archon_orchestrator::LongTermSteps) has one for each tenant.
impl Conversations for Archon {
    fn begin<'a>(&'a self, turn: &'a NextTurn) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(self.say_in(turn))
    }

    fn resume<'a>(&'a self, run: &'a RunId, tenant: &'a TenantId) -> BoxFuture<'a, Result<Reply, RunError>> {
        Box::pin(self.go_on_for(run, tenant))
    }
}

fn tenant_of(records: &[Arc<Record>]) -> Option<&TenantId> {
    match &records.first()?.body {
        RecordBody::RunStarted(started) => Some(&started.tenant),
        _ => None,
    }
}
