//! The methods that put a team together.

use std::sync::Arc;

use archon_types::{Agent, AgentId, Bus, ExecutionLimits, Member, OutputCheck, ResponseFormat};

use crate::{Team, TeamDesk, parts::Parts};

impl Team {
    /// Adds a member. A duplicate id is reported when a run starts.
    pub fn with_member(self, member: Member, agent: Arc<dyn Agent>) -> Self {
        self.with(|parts| {
            parts.agents.entry(member.id.clone()).or_insert(agent);
            parts.members.push(member);
        })
    }

    /// Sets the lead, which does work that no member can do, judges conflicts, and combines the answers.
    pub fn with_lead(self, id: impl Into<AgentId>, agent: Arc<dyn Agent>) -> Self {
        self.with(|parts| {
            let id = id.into();
            parts.agents.entry(id.clone()).or_insert(agent);
            parts.lead = Some(id);
        })
    }

    /// Sets a bus, on which the team publishes delegations, results and status. Default: none.
    pub fn with_bus(self, bus: Arc<dyn Bus>) -> Self {
        self.with(|parts| parts.bus = Some(bus))
    }

    /// Sets the desk, where the runs of members find their [`TeamHandle`](crate::TeamHandle). Give a clone of the same
    /// desk to the members or their tools.
    pub fn with_desk(self, desk: TeamDesk) -> Self {
        self.with(|parts| parts.desk = desk)
    }

    /// Sets the limits of each run of the team, the runs of its members included. Default: `ExecutionLimits::default`.
    pub fn with_limits(self, limits: ExecutionLimits) -> Self {
        self.with(|parts| parts.options.limits = limits)
    }

    /// Sets a structured output: the answer must be JSON that fits this schema. If the lead's combined
    /// answer does not fit, the lead answers again, at most as often as `check` allows; then the run
    /// fails. Without a lead, the result of the only subtask must fit.
    ///
    /// Every resume uses the schema with which the run began. Members do not see the schema. The reviewer
    /// sees only answers that fit; a final objection of the reviewer is recorded in the log only.
    ///
    /// ```
    /// # fn example(team: archon_orchestrator::Team) {
    /// use archon_types::{OutputCheck, ResponseFormat};
    /// let schema = serde_json::json!({ "type": "object", "required": ["year"] });
    /// let format = ResponseFormat { name: "Landing".to_owned(), schema };
    /// let team = team.with_output_schema(format, OutputCheck::new(2)); // at most 2 retries
    /// # }
    /// ```
    pub fn with_output_schema(self, format: ResponseFormat, check: OutputCheck) -> Self {
        self.with(|parts| {
            let config = &mut parts.options.config;
            Arc::make_mut(&mut config.options).response_format = Some(format);
            config.output_check = Some(check);
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(Arc::make_mut(&mut self.parts));
        self
    }
}
