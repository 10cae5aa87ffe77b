//! The options of a planning agent.

use std::collections::BTreeMap;

use archon_types::{AgentId, ExecutionLimits, Json, PlanSettings, RunConfig, SubTask};

use crate::{Briefing, PlanSize};

/// Options of a [`PlanningAgent`](crate::PlanningAgent); everything has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanningAgentOptions {
    /// The name, for people and for delegation.
    pub name: String,
    /// The id of the agent, which must stay the same for its whole life.
    pub agent_id: AgentId,
    /// The configuration of the agent that executes subtasks. It is recorded, so that a process that resumes
    /// a run can build the same agent. Limits and tools come from the run itself.
    pub config: RunConfig,
    /// Settings for following plans.
    pub settings: PlanSettings,
    /// The amount of context in the prompts of subtasks.
    pub briefing: Briefing,
    /// Limits of a run, its subtasks included.
    pub limits: ExecutionLimits,
    /// Limits of the number of subtasks.
    pub size: PlanSize,
    /// Initial values of every run.
    pub values: serde_json::Map<String, Json>,
    /// A fixed plan. It is recorded, no planner is asked for it, and there is no replan when a subtask fails.
    /// Default: none.
    pub plan: Option<Vec<SubTask>>,
    /// Tools that are known and not there: by name the way to get each, for the problem of a plan that names
    /// it. Planners that are models are not told. Default: none.
    pub missing_tools: BTreeMap<String, String>,
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
            missing_tools: BTreeMap::new(),
        }
    }
}
