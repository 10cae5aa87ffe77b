//! The position in a conversation at which a run of several agents begins.

use crate::{
    config::{RunConfig, RunKind},
    log::{Origin, PromptSource, RecordBody, RunStarted, TurnTrigger},
    messages::{AgentMessage, ExtensionMessage},
    values::{AgentId, LoopId},
};

use super::context::Context;

/// The place of a plan's or a team's run in its session: the run that this run continues, and background for the
/// agents.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionPlace {
    /// The origin of the run: the run that it continues, or the call that started it.
    pub origin: Origin,
    /// The number of earlier runs of the session. The display name of the run ends with this number plus 1.
    pub earlier: usize,
    /// Background for the agents besides the goal: the project's instructions, memories, and earlier
    /// messages. The log stores it, so that the run can be resumed without other data.
    pub background: String,
    /// Extension messages of the application, which the log stores beside the goal. No agent reads them.
    pub extensions: Vec<ExtensionMessage>,
}

impl SessionPlace {
    /// Creates a place without earlier runs, background and extensions.
    pub fn new(origin: Origin) -> Self {
        Self { origin, earlier: 0, background: String::new(), extensions: Vec::new() }
    }

    /// Returns the records that store the extension messages.
    pub fn extension_records(&self) -> impl Iterator<Item = RecordBody> {
        self.extensions.iter().cloned().map(|extension| RecordBody::MessageAdded {
            message: AgentMessage::from(extension),
            source: PromptSource::Prompt,
        })
    }
}

impl RunStarted {
    /// Creates the first record of the run that `context` names, for an agent that directs other agents. The
    /// display name of the run is `{session}.{kind}.{n}`, where `n` counts the runs of a conversation from 1.
    pub fn of_lead(
        context: &Context,
        place: &SessionPlace,
        agent: AgentId,
        kind: RunKind,
        config: RunConfig,
    ) -> Self {
        let (session, origin) =
            (context.session.as_str().replace(['.', '/', ':'], "-"), place.origin.clone());
        let loop_id = LoopId::new(format!("{session}.{kind}.{}", place.earlier + 1));
        let mut started = Self::new(context.run.clone(), context.session.clone(), agent, loop_id, config);
        started.kind = kind;
        started.tenant = context.tenant.clone();
        if matches!(origin, Origin::CalledBy { .. }) {
            started.first_trigger = TurnTrigger::SubAgent;
        }
        started.origin = origin;
        started
    }
}
