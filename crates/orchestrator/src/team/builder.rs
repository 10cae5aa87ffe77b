//! The methods that put a team together.

use std::sync::Arc;

use archon_types::{Agent, AgentId, Bus, ExecutionLimits, Member, OutputCheck, ResponseFormat};

use crate::{Team, TeamDesk, parts::Parts};

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

    /// Sets the desk where members find their handles of the team.
    pub fn with_desk(self, desk: TeamDesk) -> Self {
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
    pub fn with_output_schema(self, form: ResponseFormat, check: OutputCheck) -> Self {
        self.with(|parts| {
            let config = &mut parts.options.config;
            Arc::make_mut(&mut config.options).response_format = Some(form);
            config.output_check = Some(check);
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::make_mut(&mut self.parts));
        self
    }
}
