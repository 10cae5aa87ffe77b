//! The options and the parts of a team: planner, members, lead, bus, desk, limits.

use std::{collections::BTreeMap, sync::Arc};

use archon_types::{
    Agent, AgentId, Bus, DynPlanner, ExecutionLimits, FormCheck, Journal, Member, ResponseFormat, Role,
    RunConfig, SubTask, TeamSettings,
};

use super::Team;
use crate::Desk;

/// Options of a [`Team`]; each has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TeamOptions {
    /// Name for people and for delegation.
    pub name: String,
    /// Id of the team, stable for its whole life; the sender of its messages on the bus.
    pub agent_id: AgentId,
    /// Settings of the team's work.
    pub settings: TeamSettings,
    /// Limits of a run, the runs of its members included.
    pub limits: ExecutionLimits,
    /// The roles that members may have.
    pub roles: Vec<Role>,
    /// A fixed plan, kept on every resume; no planner is asked. Default none.
    pub plan: Option<Vec<SubTask>>,
    /// Configuration that the first record of a run notes besides the limits: the team's memory,
    /// the project files that it reads. The members' configurations are read from their agents.
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
    pub(crate) desk: Desk,
    pub(crate) bus: Option<Arc<dyn Bus>>,
    pub(crate) options: TeamOptions,
    pub(super) members: Vec<Member>,
    pub(super) agents: BTreeMap<AgentId, Arc<dyn Agent>>,
    pub(super) lead: Option<AgentId>,
    pub(crate) journal: Arc<dyn Journal>,
}

impl Team {
    /// Adds a member. Two members with one id are reported when a run starts.
    pub fn with_member(self, member: Member, agent: Arc<dyn Agent>) -> Self {
        self.with(|parts| {
            parts.agents.entry(member.id.clone()).or_insert(agent);
            parts.members.push(member);
        })
    }

    /// Sets the lead: does the work that no member can do, arbitrates conflicts, and combines the
    /// answers.
    pub fn with_lead(self, id: impl Into<AgentId>, agent: Arc<dyn Agent>) -> Self {
        self.with(|parts| {
            let id = id.into();
            parts.agents.entry(id.clone()).or_insert(agent);
            parts.lead = Some(id);
        })
    }

    /// Publishes delegations, results and status on a bus.
    pub fn with_bus(self, bus: Arc<dyn Bus>) -> Self {
        self.with(|parts| parts.bus = Some(bus))
    }

    /// Sets the desk where members find their seats.
    pub fn with_desk(self, desk: Desk) -> Self {
        self.with(|parts| parts.desk = desk)
    }

    /// Sets the limits of its runs.
    pub fn with_limits(self, limits: ExecutionLimits) -> Self {
        self.with(|parts| parts.options.limits = limits)
    }

    /// Asks for a structured output: the answer must be JSON of this schema. If the lead's combined
    /// answer does not fit, it answers again, at most as often as `check` says; then the run fails.
    /// Without a lead the result of the only subtask must fit. The schema is in the run's first
    /// record, so a resume asks for the same. Members do not see it. The reviewer sees only answers
    /// that fit, and an objection at the end goes to the log only.
    pub fn with_form(self, form: ResponseFormat, check: FormCheck) -> Self {
        self.with(|parts| {
            let config = &mut parts.options.config;
            Arc::make_mut(&mut config.options).response_format = Some(form);
            config.form_check = Some(check);
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::make_mut(&mut self.parts));
        self
    }
}

impl Parts {
    pub(crate) fn agent(&self, id: &AgentId) -> Option<Arc<dyn Agent>> {
        self.agents.get(id).cloned()
    }
}
