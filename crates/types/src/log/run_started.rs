//! The first record of a run.

use serde::{Deserialize, Serialize};

use crate::{
    config::{RunConfig, RunKind},
    values::{AgentId, LoopId, RunId, SessionId, TenantId},
};

use super::origin::{Origin, TurnTrigger};

/// The version of the log format, in the first record of every run. Readers refuse any other version.
pub const LOG_FORMAT: u32 = 2;

/// The beginning of a run: its identity, its origin, and its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RunStarted {
    /// The log format of the writer, see [`LOG_FORMAT`].
    pub format: u32,
    /// The kind of the run.
    pub kind: RunKind,
    /// The id of the run.
    pub run: RunId,
    /// The session that the run belongs to.
    pub session: SessionId,
    /// The agent of the run.
    pub agent: AgentId,
    /// The display name of the run.
    pub loop_id: LoopId,
    /// The tenant on whose behalf the run works.
    pub tenant: TenantId,
    /// The origin of the run.
    pub origin: Origin,
    /// The parallel loop that has this run as a branch; `None` for any other run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_run: Option<RunId>,
    /// The trigger of the first turn.
    pub first_trigger: TurnTrigger,
    /// The configuration: model, tools, limits and so on.
    pub config: RunConfig,
}

impl RunStarted {
    /// Creates the record of a loop that begins with a prompt, for the tenant `local`, in the format [`LOG_FORMAT`].
    pub fn new(run: RunId, session: SessionId, agent: AgentId, loop_id: LoopId, config: RunConfig) -> Self {
        Self {
            format: LOG_FORMAT,
            kind: RunKind::Loop,
            run,
            session,
            agent,
            loop_id,
            tenant: TenantId::new("local"),
            origin: Origin::Prompt,
            parallel_run: None,
            first_trigger: TurnTrigger::User,
            config,
        }
    }
}
