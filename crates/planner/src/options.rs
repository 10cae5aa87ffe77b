//! The choices of a planning agent.

use archon_types::{AgentId, ExecutionLimits, Json, PlanSettings, RunConfig, SubTask};

use crate::{Briefing, PlanSize};

/// What a [`PlanningAgent`](crate::PlanningAgent) works with; everything has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanningAgentOptions {
    /// For people and for delegation.
    pub name: String,
    /// Stable for the agent's whole life.
    pub agent_id: AgentId,
    /// What the runs of the agent begin with that does the subtasks, for whoever resumes a run elsewhere: it builds the
    /// same agent from it. Limits and tools of a run are its own.
    pub config: RunConfig,
    /// How plans are followed.
    pub settings: PlanSettings,
    /// How much the agents are told that do subtasks.
    pub briefing: Briefing,
    /// How far a run may go, its subtasks included.
    pub limits: ExecutionLimits,
    /// How many subtasks a plan may have.
    pub size: PlanSize,
    /// What is known at the start of every run.
    pub values: serde_json::Map<String, Json>,
    /// A plan that is followed as it stands, whoever takes the run up: no planner is asked for it, nor for another one
    /// when a subtask fails. Default none.
    pub plan: Option<Vec<SubTask>>,
}

impl Default for PlanningAgentOptions {
    fn default() -> Self {
        Self {
            name: "planner".to_owned(),
            agent_id: AgentId::new("planner"),
            config: RunConfig::default(),
            settings: PlanSettings::default(),
            briefing: Briefing::default(),
            limits: ExecutionLimits::default(),
            size: PlanSize::default(),
            values: serde_json::Map::new(),
            plan: None,
        }
    }
}
