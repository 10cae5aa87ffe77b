//! The options and the parts of a team: planner, members, lead, bus, desk.

use std::{collections::BTreeMap, sync::Arc};

use archon_types::{
    Agent, AgentId, Bus, DynPlanner, ExecutionLimits, Journal, Member, RunConfig, SubTask, TeamRole,
    TeamSettings,
};

use crate::TeamDesk;

/// Options of a [`Team`](crate::Team). Each has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TeamOptions {
    /// Name of the team, for people and for delegation. Default `team`.
    pub name: String,
    /// Stable id of the team, and the sender of its messages on the bus. Default `team`.
    pub agent_id: AgentId,
    /// Settings of the team's work, such as timeouts, heartbeats and the rules for contradictions.
    pub settings: TeamSettings,
    /// Limits of a run of the team. The runs of the members count towards these limits.
    pub limits: ExecutionLimits,
    /// The roles that members may have. Default [`sample_roles`](crate::sample_roles).
    pub roles: Vec<TeamRole>,
    /// A fixed plan, which every resume keeps; no planner is asked. Default none.
    pub plan: Option<Vec<SubTask>>,
    /// Further configuration in the first record of a run: the team's memory, and the project files that
    /// the team reads. The members' configurations come from their agents.
    pub config: RunConfig,
}

impl Default for TeamOptions {
    fn default() -> Self {
        Self {
            name: "team".to_owned(),
            agent_id: AgentId::new("team"),
            settings: TeamSettings::default(),
            limits: ExecutionLimits::default(),
            roles: crate::sample_roles(),
            plan: None,
            config: RunConfig::default(),
        }
    }
}

/// The parts of a team.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) planner: Arc<dyn DynPlanner>,
    pub(crate) desk: TeamDesk,
    pub(crate) bus: Option<Arc<dyn Bus>>,
    pub(crate) options: TeamOptions,
    pub(crate) members: Vec<Member>,
    pub(crate) agents: BTreeMap<AgentId, Arc<dyn Agent>>,
    pub(crate) lead: Option<AgentId>,
    pub(crate) journal: Arc<dyn Journal>,
}
